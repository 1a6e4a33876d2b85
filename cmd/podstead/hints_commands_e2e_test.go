//go:build e2e

package main

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hinted is the pod of TestHintsOnContainers.
const hinted = `
update = { minReadySeconds = 0 }
volumes = [{ name = "data", persistentVolumeClaim = { claimName = "data" } }]

[[containers]]
name = "app"
image = "busybox"
command = ["sh", "-c", "trap 'exit 0' TERM; httpd -f -p 8080 & wait"]
ports = [{ containerPort = 8080 }]
volumeMounts = { data = "/data" }
`

// TestHintsOnContainers runs the command lines of the hints in the sources that need real containers, images, volumes, a terminal, or a
// daemon of their own: each succeeds, on a host where the pod web runs.
func TestHintsOnContainers(t *testing.T) {
	_, lines := hintedCommands(t)
	shell := newPageHost(t)
	for name, text := range map[string]string{
		"web.toml": hinted, "pods/web.toml": hinted,
		"changed.toml": "name = \"web\"\n" + strings.Replace(hinted, "busybox", "docker.io/library/nginx:2", 1),
	} {
		path := filepath.Join(shell.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	steps := map[string]recipe{}
	for _, line := range lines {
		steps[line] = recipeOf(line)
	}
	maps.Copy(steps, optionsOfHints)
	for _, line := range slices.SortedFunc(maps.Keys(steps), daemonLast) {
		t.Run(line, func(t *testing.T) {
			mustRun(t, shell, "podstead apply web.toml && podstead start web && podstead wait web --for=condition=Ready")
			r := steps[line]
			for _, before := range r.before {
				mustRun(t, shell, "podstead "+before)
			}
			until := func(stdout string) bool { return r.until != "" && regexp.MustCompile(r.until).MatchString(stdout) }
			got, err := shell.Exec(t.Context(), r.as, until)
			if err != nil || got.Code != 0 && r.until == "" || r.until != "" && !until(got.Stdout) {
				t.Errorf("%s: exit code %d, %v, stdout %q, stderr %q", r.as, got.Code, err, got.Stdout, got.Stderr)
			}
		})
	}
}

// daemonLast orders the command lines that end the daemon after the others, and the one that stops pods last.
func daemonLast(a, b string) int {
	order := func(line string) int { return strings.Count(line, "daemon") + strings.Count(line, "shutdown") }
	return cmp.Or(order(a)-order(b), strings.Compare(a, b))
}
