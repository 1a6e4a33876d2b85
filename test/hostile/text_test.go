//go:build e2e

package hostile

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/podstead/podstead/internal/plain"
)

// ugly is what a container writes, in the syntax of printf: a title, a cleared screen, DEL, C1 (also as a byte), NEL, line separators,
// bidirectional marks, zero-width spaces, a byte order mark, tags, and bytes that are not UTF-8.
const ugly = `begin\033]0;title\007\033[2J\177\302\233\302\205\342\200\250\342\200\251\342\200\256txt.exe\342\200\254\342\201\246x\342\201\251` +
	`\342\200\216\342\200\217\330\234\342\200\213\342\201\240\357\273\277\363\240\201\201\233\377end`

// TestUglyText: text of a container, wherever it comes from, is printed without characters that control a terminal, reorder or hide text,
// and every document is valid. The output of the container is unchanged in logs, and in run if it is redirected.
func TestUglyText(t *testing.T) {
	f := newFixture(t, options{})
	f.create("ugly", fmt.Sprintf("restartPolicy = \"Never\"\n\n[[containers]]\nname = \"c\"\nimage = %q\n"+
		"command = [\"sh\", \"-c\", %q]\n"+
		"  [containers.readinessProbe]\n  periodSeconds = 1\n  timeoutSeconds = 30\n  exec = { command = [\"sh\", \"-c\", %q] }\n",
		Intruder,
		"printf '"+ugly+"\\n'; printf '"+ugly+"' > /dev/termination-log; until [ -e /tmp/probed ]; do sleep 0.1; done; sleep 1; exit 3",
		"printf '"+ugly+"'; touch /tmp/probed; exit 1"))
	f.create("hook",
		fmt.Sprintf("\n[[containers]]\nname = \"c\"\nimage = %q\ncommand = [\"sleep\", \"1000\"]\nlifecycle.postStart.exec.command = "+
			"[\"sh\", \"-c\", %q]\n",
			Intruder, "printf '"+ugly+"'; exit 1"))
	f.create("image", "\n[[containers]]\nname = \"c\"\nimage = \"localhost/none:1\"\nenv.X = \"\\u202e\\u009b\\u007f\"\n")
	f.Until("ugly", "done", ended)
	for _, command := range []string{
		"get", "get ugly", "get -o wide", "get -o json", "get -o yaml", "get ugly -o yaml", "get ugly -o json", "get image -o yaml", "why",
		"why ugly", "why hook",
		"why ugly -o json", "why ugly -o yaml", "why -o json", "why -o yaml", "events", "events ugly", "events -o json", "doctor",
		"doctor -o json",
	} {
		out, err := f.Podstead(f.Ctx(), strings.Fields(command)...)
		if err != nil && !strings.HasPrefix(command, "doctor") {
			f.Errorf("podstead %s: %v", command, err)
		}
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && plain.Hidden(r) }); i >= 0 {
			f.Errorf("podstead %s prints %q", command, out[max(0, i-100):min(len(out), i+20)])
		}
		f.parse(command, out)
	}
	if out := f.MustRun("logs", "ugly"); !strings.Contains(out, "\x1b[2J\x7f") || !strings.Contains(out, "\u202etxt.exe") {
		f.Errorf("logs print %q, want the output unchanged", out)
	}
	f.MustRun("delete", "ugly", "hook", "image")
}

// parse checks that a document is valid.
func (f *fixture) parse(command, out string) {
	f.Helper()
	var v any
	var err error
	switch {
	case strings.HasSuffix(command, "-o yaml"):
		err = yaml.Unmarshal([]byte(out), &v)
	case command == "events -o json":
		for line := range strings.Lines(out) {
			if err == nil {
				err = json.Unmarshal([]byte(line), &v)
			}
		}
	case strings.HasSuffix(command, "-o json"):
		err = json.Unmarshal([]byte(out), &v)
	}
	if err != nil {
		f.Errorf("podstead %s: %v\n%q", command, err, out)
	}
}

// TestUglyRun: run shows the output of containers escaped on a terminal, and unchanged in a pipe.
func TestUglyRun(t *testing.T) {
	f := newFixture(t, options{})
	file := f.PodFile("ugly",
		fmt.Sprintf("restartPolicy = \"Never\"\n\n[[containers]]\nname = \"c\"\nimage = %q\ncommand = [\"sh\", \"-c\", %q]\n",
			Intruder, "printf '"+ugly+"\\n'"))
	if out := f.MustRun("run", file); !strings.Contains(out, "begin\x1b]0;title\x07\x1b[2J\x7f") {
		f.Errorf("run prints %q to a pipe, want the output unchanged", out)
	}
	master, terminal := f.openTerminal()
	cmd := f.Command(f.Ctx(), "run", file)
	cmd.Stdout, cmd.Stderr = terminal, terminal
	f.Check(cmd.Start())
	f.Check(terminal.Close())
	shown, _ := io.ReadAll(master) // the end is EIO
	if err := cmd.Wait(); err != nil {
		f.Errorf("run on a terminal: %v", err)
	}
	_, line, _ := strings.Cut(string(shown), "begin")
	line, _, found := strings.Cut(line, "end")
	if want := `\x1b]0;title\a\x1b[2J\x7f\u009b\u0085\u2028\u2029\u202etxt.exe\u202c\u2066x\u2069\u200e\u200f\u061c\u200b\u2060\ufeff\U000e0041\xff`; !found ||
		!strings.HasPrefix(line, want[:len(want)-14]) {
		f.Errorf("run shows %q on a terminal, want %q", shown, want)
	}
}

// openTerminal opens a pseudo-terminal.
func (f *fixture) openTerminal() (master, terminal *os.File) {
	f.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	f.Check(err)
	f.Cleanup(func() { _ = master.Close() })
	f.Check(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	f.Check(err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	f.Check(err)
	return master, terminal
}
