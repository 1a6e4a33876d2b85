//go:build e2e

package faults

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestApplyShowsProgress: on a terminal, apply --wait shows how much of an image has been pulled.
func TestApplyShowsProgress(t *testing.T) {
	f := newFixture(t)
	r := newLayoutRegistry(t, f.ownImage("slow"))
	shown := make(chan struct{})
	half := onLayer(func(w http.ResponseWriter, req *http.Request, data []byte) bool {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		_ = http.NewResponseController(w).Flush()
		select {
		case <-shown:
			_, _ = w.Write(data[len(data)/2:])
		case <-req.Context().Done():
		}
		return true
	})
	r.fault.Store(&half)
	file, err := f.WritePod("slow", fmt.Sprintf("terminationGracePeriodSeconds = 0\n[[containers]]\nname = \"c\"\nimage = %q\ncommand = [\"sleep\", \"100000\"]\n", r.image()))
	f.Check(err)
	cmd := f.Command(f.Ctx(), "apply", file, "--wait")
	cmd.Env = append(cmd.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 200})
	f.Check(err)
	defer terminal.Close()
	const want = `": 1.0Mi of 2.0Mi (`
	text, found := readUntil(terminal, "Pulling image \""+r.image()+want)
	close(shown)
	rest, _ := readUntil(terminal, "")
	if err := cmd.Wait(); err != nil || !found || !strings.Contains(rest, "pod/slow: 1/1 Running") {
		t.Errorf("%v, want the line with %q and then the pod:\n%q", err, want, text+rest)
	}
	f.MustRun("delete", "slow")
}

// readUntil reads from a terminal until a text has appeared or, without one or without success, until the program has exited.
func readUntil(terminal *os.File, want string) (text string, found bool) {
	for part := make([]byte, 4096); ; {
		n, err := terminal.Read(part)
		text += string(part[:n])
		if want != "" && strings.Contains(text, want) {
			return text, true
		}
		if err != nil { // EIO: no program has the terminal
			return text, false
		}
	}
}
