package main

import (
	"testing"

	"github.com/podstead/podstead/api"
)

// TestMissingFiles checks that a file of the host that does not exist is an error of the command line in each command that reads one, with
// its path as it was written.
func TestMissingFiles(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", runs))
	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	for _, line := range []string{
		"apply /nope.toml", "create -f /nope.toml", "plan /nope.toml", "diff /nope.toml", "validate /nope.toml",
		"run /nope.toml", "run -i /nope.toml",
		"delete -f /nope.toml", "down /nope.toml", "bundle create /nope.toml -o $DIR/b", "bundle apply /nope.toml",
		"bundle inspect /nope.toml",
		"image import /nope.toml", "load -i /nope.toml", "cp /nope.toml web:/", "get --config /nope.toml",
	} {
		h.fails(t, line, statusUsage, "/nope.toml")
	}
	for line, want := range map[string]string{
		"down nope.toml":                              "open nope.toml: no such file or directory",
		"logs web --tail x":                           `podstead: --tail "x": must be an integer`,
		"logs web --since 1":                          `podstead: --since "1": must be a duration, such as 10s, 5m or 1h30m`,
		"get --watch=maybe":                           `podstead: --watch "maybe": must be true or false`,
		"stop web --grace-period 9e9":                 `podstead: --grace-period "9e9": must be an integer`,
		"logs web --tail " + "9999999999999999999999": "podstead: --tail \"9999999999999999999999\": is out of range",
	} {
		h.fails(t, line, statusUsage, want)
	}
}

// TestRunDirectory checks that run and up take a directory, as apply does.
func TestRunDirectory(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "pods/a.toml", script("restartPolicy = \"Never\"", "exit 0"))
	h.write(t, "pods/b.toml", script("restartPolicy = \"Never\"", "exit 0"))
	for _, command := range []string{"up", "run"} {
		if got := h.run(t, command+" $DIR/pods"); got.code != 0 {
			t.Errorf("%s: exit code %d, stderr %q", command, got.code, got.stderr)
		}
	}
	h.fails(t, "run -i $DIR/pods", statusUsage, "podstead: --stdin requires exactly one pod file")
}
