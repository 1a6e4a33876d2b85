//go:build e2e

package scenario

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

// TestTerminationMessage: what a container leaves as its last words is the message of its end.
func TestTerminationMessage(t *testing.T) {
	const fallback = "terminationMessagePolicy = \"FallbackToLogsOnError\"\n"
	var log, tail strings.Builder
	for i := 1; i <= 100; i++ {
		fmt.Fprintf(&log, "%040d\n", i)
	}
	tail.WriteString(log.String()[log.Len()-2048:])
	f := newFixture(t)
	for _, test := range []struct{ name, script, fields, want string }{
		{"file", "printf why > /dev/termination-log; exit 3", "", "why"},
		{"success", "printf done > /dev/termination-log", "", "done"},
		{"no-words", "echo not here; exit 3", "", ""},
		{"path", "printf why > /tmp/last/words; exit 3", "terminationMessagePath = \"/tmp/last/words\"\n", "why"},
		{"log", "(echo last; echo words) >&2; exit 3", fallback, "last\nwords\n"},
		{"log-of-success", "echo fine", fallback, ""},
		{"file-before-log", "echo log; printf file > /dev/termination-log; exit 3", fallback, "file"},
		{"long-file", "(head -c 1000 /dev/zero | tr '\\0' a; head -c 4096 /dev/zero | tr '\\0' b) > /dev/termination-log", "", strings.Repeat("b", 4096)},
		{"long-log", "i=0; while [ $i -lt 100 ]; do i=$((i+1)); printf '%040d\\n' $i; done; exit 3", fallback, tail.String()},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := f.of(t)
			f.MustCreate(test.name, "restartPolicy = \"Never\"\n"+shell("c", test.script)+test.fields)
			p := f.Until(test.name, "at rest", func(p *api.Pod) bool { return p.Status.AtRest && p.Status.Phase.Terminal() })
			end := p.Status.ContainerStatuses[0].State.Terminated
			if end == nil {
				t.Fatalf("the container's state is %+v", p.Status.ContainerStatuses[0])
			}
			if diff := cmp.Diff(test.want, end.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTerminationMessageOfTheFormerRun: each run begins with no message, and that of the run before is in lastState. The image's
// user is not root.
func TestTerminationMessageOfTheFormerRun(t *testing.T) {
	f := newFixture(t)
	p := f.start("again", "restartBackoff = { initialSeconds = 0.1 }\n"+server("c"))
	for i := range 3 {
		if got := f.inside(p.Status.PodIP, "/file", "path", "/dev/termination-log"); got != "" {
			t.Errorf("run %d begins with the message %q", i, got)
		}
		words := fmt.Sprintf("run %d is over", i)
		_, err := space("").get(f.Ctx(), page(p.Status.PodIP, "/exit", "code", "3", "message", words))
		if !errors.Is(err, io.EOF) {
			t.Fatalf("the server was to end without an answer: %v", err)
		}
		f.Until("again", "restarted", func(p *api.Pod) bool {
			c := p.Status.ContainerStatuses[0]
			return c.State.Running != nil && c.RestartCount == i+1 && c.LastState.Terminated != nil && c.LastState.Terminated.Message == words
		})
	}
	f.MustKillDaemon()
	f.MustRun("get")
	f.Until("again", "as it was", func(p *api.Pod) bool {
		last := p.Status.ContainerStatuses[0].LastState.Terminated
		return runs(p) && last != nil && last.Message == "run 2 is over" && last.ExitCode == 3
	})
}
