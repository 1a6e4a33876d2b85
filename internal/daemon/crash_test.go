package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/parallel"
)

// crashVariable makes the test program crash in the directory.
const crashVariable = "PODSTEAD_TEST_CRASH"

func TestMain(m *testing.M) {
	dir, how, crash := strings.Cut(os.Getenv(crashVariable), ",")
	if !crash {
		parallel.Set()
		os.Exit(m.Run())
	}
	cause, end := watchCrashes(context.Background(), dir, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	fmt.Println(cause)
	switch how {
	case "panic":
		go func() { panic("a bug") }()
	case "stack":
		var deep func(int) int
		deep = func(n int) int { return deep(n+1) + 1 }
		deep(0)
	case "exit":
		end()
		os.Exit(0)
	}
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin)
}

// TestLastCrash ends processes in several ways, and checks what the next one makes of it.
func TestLastCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := ""
	for _, test := range []struct{ how, signal, next string }{
		{"panic", "", "panic: a bug"},
		{"exit", "", ""},
		{"stack", "", "fatal error, see the log of the daemon"},
		{"wait", "KILL", ""},
		{"wait", "SEGV", "SIGSEGV: segmentation violation"},
		{"wait", "QUIT", ""},
		{"wait", "TERM", ""},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), crashVariable+"="+dir+","+test.how)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if test.signal != "" {
			got := make([]byte, 0, 100)
			for !strings.HasSuffix(string(got), "ready\n") {
				b := make([]byte, 1)
				if _, err := out.Read(b); err != nil {
					t.Fatalf("%s: %v", test.how, err)
				}
				got = append(got, b...)
			}
			if first, _, _ := strings.Cut(string(got), "\n"); first != want {
				t.Errorf("before %s %s the cause is %q, want %q", test.how, test.signal, first, want)
			}
			kill := exec.CommandContext(t.Context(), "kill", "-"+test.signal, fmt.Sprint(cmd.Process.Pid))
			if err := kill.Run(); err != nil {
				t.Fatal(err)
			}
		} else if text, _ := io.ReadAll(out); !strings.HasPrefix(string(text), want+"\n") {
			t.Errorf("before %s the cause is %q, want %q", test.how, text, want)
		}
		_ = cmd.Wait()
		want = test.next
		if got := lastCrash(dir); got != want {
			t.Errorf("after %s %s: %q, want %q", test.how, test.signal, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, lifeFile)); err != nil {
		t.Error(err)
	}
}

func TestKillsDaemon(t *testing.T) {
	last := life{PID: 4711, Started: time.Minute}
	for entry, want := range map[string]bool{
		"6,1206,60000001,-;Memory cgroup out of memory: Killed process 4711 (podstead) total-vm:1kB, anon-rss:1kB": true,
		"3,99,70000000,-;Out of memory: Killed process 4711 (podstead) total-vm:2kB\n SUBSYSTEM=x\n":               true,
		// an earlier process
		"3,99,59000000,-;Out of memory: Killed process 4711 (sh) total-vm:2kB":  false,
		"3,99,70000000,-;Out of memory: Killed process 47110 (sh) total-vm:2kB": false,
		"3,99,x,-;Killed process 4711 (podstead)":                               false,
		"no entry": false,
	} {
		if got := killsDaemon(entry, last); got != want {
			t.Errorf("%q: got %v", entry, got)
		}
	}
}
