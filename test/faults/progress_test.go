//go:build e2e

package faults

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
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
	file, err := f.WritePod("slow",
		fmt.Sprintf("terminationGracePeriodSeconds = 0\n[[containers]]\nname = \"c\"\nimage = %q\ncommand = [\"sleep\", \"100000\"]\n",
			r.image()))
	f.Check(err)
	cmd := f.Command(f.Ctx(), "apply", file, "--wait")
	cmd.Env = append(cmd.Env, "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 200})
	f.Check(err)
	defer terminal.Close()
	want := regexp.MustCompile(`Pulling image "` + regexp.QuoteMeta(r.image()) + `": \[=+ +\] [1-9][0-9.]*Mi of [0-9.]+Mi \([1-9][0-9]%\)`)
	text, found := readUntil(terminal, want)
	close(shown)
	rest, _ := readUntil(terminal, regexp.MustCompile("no such text"))
	if err := cmd.Wait(); err != nil || !found || !strings.Contains(rest, "pod/slow: 1/1 Running") {
		t.Errorf("%v, want the line %s and then the pod:\n%q", err, want, text+rest)
	}
	f.MustRun("delete", "slow")
}

// readUntil reads from a terminal until a text has appeared, or the program has exited.
func readUntil(terminal *os.File, want *regexp.Regexp) (text string, found bool) {
	part := make([]byte, 4096)
	for failures := 0; failures < 2; { // twice: the kernel can report the end before the last text
		n, err := terminal.Read(part)
		text += string(part[:n])
		if want.MatchString(text) {
			return text, true
		}
		if err != nil { // EIO: no program has the terminal
			failures++
		}
	}
	return text, false
}
