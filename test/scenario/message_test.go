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

// TestTerminationMessage: the termination message of a container is in its state.
func TestTerminationMessage(t *testing.T) {
	const fallback = "terminationMessagePolicy = \"FallbackToLogsOnError\"\n"
	var log, tail strings.Builder
	for i := 1; i <= 100; i++ {
		fmt.Fprintf(&log, "%040d\n", i)
	}
	tail.WriteString(log.String()[log.Len()-2048:])
	f := newFixture(t)
	for _, test := range []struct{ name, script, fields, want string }{
		{"file after failure", "printf why > /dev/termination-log; exit 3", "", "why"},
		{"file after success", "printf done > /dev/termination-log", "", "done"},
		{"no message", "echo not here; exit 3", "", ""},
		{"own path", "printf why > /tmp/last/words; exit 3", "terminationMessagePath = \"/tmp/last/words\"\n", "why"},
		{"fallback to log", "(echo last; echo words) >&2; exit 3", fallback, "last\nwords\n"},
		{"fallback without newline", "printf DONE; exit 3", fallback, "DONE"},
		{"no fallback after success", "echo fine", fallback, ""},
		{"file before log", "echo log; printf file > /dev/termination-log; exit 3", fallback, "file"},
		{
			"long file", "(head -c 1000 /dev/zero | tr '\\0' a; head -c 4096 /dev/zero | tr '\\0' b) > /dev/termination-log", "",
			strings.Repeat("b", 4096),
		},
		{"long log", "i=0; while [ $i -lt 100 ]; do i=$((i+1)); printf '%040d\\n' $i; done; exit 3", fallback, tail.String()},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := f.of(t)
			name := strings.ReplaceAll(test.name, " ", "-")
			f.MustCreate(name, "restartPolicy = \"Never\"\n"+shell("c", test.script)+test.fields)
			p := f.Until(name, "terminated", func(p *api.Pod) bool { return p.Status.AtRest && p.Status.Phase.Terminal() })
			end := p.Status.ContainerStatuses[0].State.Terminated
			if end == nil {
				t.Fatalf("the container has not terminated: %+v", p.Status.ContainerStatuses[0])
			}
			if diff := cmp.Diff(test.want, end.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTerminationMessageOfLastRun: each run starts without a message, and the message of the previous run is in lastState. The image's
// user is not root.
func TestTerminationMessageOfLastRun(t *testing.T) {
	f := newFixture(t)
	p := f.start("again", "restartBackoff = { initialSeconds = 0.1 }\n"+server("c"))
	for i := range 3 {
		if got := f.inside(p.Status.PodIP, "/file", "path", "/dev/termination-log"); got != "" {
			t.Errorf("run %d starts with message %q", i, got)
		}
		words := fmt.Sprintf("message of run %d", i)
		_, err := space("").get(f.Ctx(), page(p.Status.PodIP, "/exit", "code", "3", "message", words))
		if !errors.Is(err, io.EOF) {
			t.Fatalf("server answered /exit: %v, want EOF", err)
		}
		f.Until("again", "restarted", func(p *api.Pod) bool {
			c := p.Status.ContainerStatuses[0]
			return c.State.Running != nil && c.RestartCount == i+1 && c.LastState.Terminated != nil &&
				c.LastState.Terminated.Message == words
		})
	}
	f.MustKillDaemon()
	f.MustRun("get")
	f.Until("again", "unchanged", func(p *api.Pod) bool {
		last := p.Status.ContainerStatuses[0].LastState.Terminated
		return runs(p) && last != nil && last.Message == "message of run 2" && last.ExitCode == 3
	})
}
