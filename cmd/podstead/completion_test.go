package main

import (
	"testing"

	"github.com/podstead/podstead/api"
)

// TestCompletion checks that names of pods, containers and files are completed.
func TestCompletion(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", runs))
	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	const names, extensions = ":4\n", ":8\n"
	for line, want := range map[string]string{
		"__complete stop w":           "web\n" + names,
		"__complete start w":          "web\n" + names,
		"__complete restart w":        "web\n" + names,
		"__complete restart web -c a": "app\n" + names,
		"__complete apply w":          "toml\nyaml\nyml\njson\n" + extensions,
		"__complete plan -f w":        "toml\nyaml\nyml\njson\n" + extensions,
	} {
		t.Run(line, func(t *testing.T) { h.want(t, line, want) })
	}
}
