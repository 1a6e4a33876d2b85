package main

import (
	"testing"

	"github.com/podstead/podstead/api"
)

// TestCompletion checks that names of pods, containers and files are completed.
func TestCompletion(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script(gated, runs))
	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	h.want(t, "wait web --for=condition=ContainersReady --timeout 1m", "pod/web condition met\n")
	const names, extensions, partial = ":4\n", ":8\n", ":6\n"
	for line, want := range map[string]string{
		"__complete stop w":                          "web\n" + names,
		"__complete start w":                         "web\n" + names,
		"__complete restart w":                       "web\n" + names,
		"__complete restart web -c a":                "app\n" + names,
		"__complete get pod/w":                       "pod/web\n" + names,
		"__complete logs pods w":                     "web\n:0\n",
		"__complete down w":                          "web\n:0\n",
		"__complete down x":                          ":0\n",
		"__complete cp w":                            "web:\n:2\n",
		"__complete cp pod/w":                        "pod/web:\n:2\n",
		"__complete cp site.conf w":                  "web:\n:2\n",
		"__complete cp web:/etc/hosts w":             ":0\n",
		"__complete cp web:/etc/hosts . x":           names,
		"__complete cp web:/etc/hosts . -c a":        "app\n" + names,
		"__complete cp -c a":                         names,
		"__complete exec w":                          "web\n" + names,
		"__complete exec web -c a":                   "app\n" + names,
		"__complete exec web -it --container a":      "app\n" + names,
		"__complete exec web -itc a":                 "app\n" + names,
		"__complete exec web -- sh -c a":             ":0\n",
		"__complete exec web sh -c a":                ":0\n",
		"__complete wait w":                          "web\n" + names,
		"__complete events w":                        "web\n" + names,
		"__complete condition s":                     "set\tSet the condition of a readiness gate\n" + names,
		"__complete condition set w":                 "web\n" + names,
		"__complete condition set web example.org/d": "example.org/door=\n" + partial,
		"__complete condition set pod web example.":  "example.org/door=\nexample.org/window=\n" + names,
		"__complete condition set web example.org/door=": "example.org/door=True\nexample.org/door=False\nexample.org/door=Unknown\n" +
			names,
		"__complete condition set web example.org/door=F":      "example.org/door=False\n" + names,
		"__complete condition set web example.org/door=True e": names,
		"__complete condition set none e":                      names,
		"__complete wait web --for c":                          "condition=\ncreate\n" + names,
		"__complete wait web --for j":                          "jsonpath=\n" + partial,
		"__complete wait web --for=phase=S":                    "phase=Succeeded\n" + names,
		"__complete wait web --for condition=R":                "condition=Ready\n" + names,
		"__complete wait --for condition=Con":                  "condition=ContainersReady\n" + names,
		"__complete wait none --for condition=":                names,
		"__complete apply w":                                   "toml\nyaml\nyml\njson\n" + extensions,
		"__complete plan -f w":                                 "toml\nyaml\nyml\njson\n" + extensions,
	} {
		t.Run(line, func(t *testing.T) { h.want(t, line, want) })
	}
}
