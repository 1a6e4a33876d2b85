package conformance

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// actor is the image of the actors (test/images).
const actor = "localhost/podstead/actor:1"

// Pod files in these tests have a short form for actors. A line
//
//	@app run=1s
//
// is a container with that name, the actor image, its command, and the directory for logs. Elsewhere, @Liveness-app if=well stands for
// the command of an exec probe or hook.
var part = regexp.MustCompile(`@([A-Za-z0-9-]+(?: [a-z]+=[^ }\n]+)*)`)

// expand writes out the actors of a pod file, and adds what all pod files here have.
func expand(name, archive, dir, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name = %q\nvolumes = [{ name = \"timeline\", hostPath = { path = %q } }]\n", name, dir)
	if !strings.HasPrefix(text, "imageArchives") {
		fmt.Fprintf(&b, "imageArchives = [%q]\n", archive)
	}
	if top, _, _ := strings.Cut(text, "[["); !strings.Contains(top, "restartPolicy") {
		b.WriteString("restartPolicy = \"Always\"\n") // required where a container has a restart policy of its own
	}
	for row := range strings.Lines(strings.TrimLeft(text, "\n")) {
		if trimmed := strings.TrimSpace(row); strings.HasPrefix(trimmed, "@") {
			name, _, _ := strings.Cut(trimmed[1:], " ")
			row = fmt.Sprintf("name = %q\nimage = %q\nvolumeMounts = { timeline = \"/timeline\" }\n%s", name, actor, row)
		}
		b.WriteString(part.ReplaceAllStringFunc(row, func(match string) string {
			words := append([]string{"/bin/actor"}, strings.Fields(match[1:])...)
			return `command = ["` + strings.Join(words, `", "`) + `"]`
		}))
	}
	return b.String()
}

// TestExpand checks the short form of actors.
func TestExpand(t *testing.T) {
	got := expand("short", "/a.tar", "/dir", `
restartPolicy = "Never"
[[containers]]
@app run=1s exit=3
readinessProbe = { exec = { @Readiness-app if=well }, periodSeconds = 1 }
`)
	want := `name = "short"
volumes = [{ name = "timeline", hostPath = { path = "/dir" } }]
imageArchives = ["/a.tar"]
restartPolicy = "Never"
[[containers]]
name = "app"
image = "localhost/podstead/actor:1"
volumeMounts = { timeline = "/timeline" }
command = ["/bin/actor", "app", "run=1s", "exit=3"]
readinessProbe = { exec = { command = ["/bin/actor", "Readiness-app", "if=well"] }, periodSeconds = 1 }
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod file (-want +got):\n%s", diff)
	}
}
