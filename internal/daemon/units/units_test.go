package units

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

func TestMain(m *testing.M) {
	if os.Getenv("PODSTEAD_TEST_WAIT") != "" { // the main process of a unit
		err := errors.Join(Pipe(), Wait("web"))
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(99)
	}
	os.Exit(m.Run())
}

// TestRelease: the shell that waits exits with the code that it is sent.
func TestRelease(t *testing.T) {
	for _, code := range []int{0, 1} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "PODSTEAD_TEST_WAIT=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for release(cmd.Process.Pid, code) != nil { // until it has a pipe
			if state.ProcessOf(cmd.Process.Pid) == (state.Process{}) {
				t.Fatal("the process has exited")
			}
		}
		_ = cmd.Wait() // the exit code is compared
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("exit code %d, want %d", got, code)
		}
	}
	if err := release(os.Getpid(), 0); err == nil {
		t.Error("no error for a process that does not wait")
	}
}

// TestNotify: systemd receives a state with the PID of the sender.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) }); err != nil {
		t.Fatal(err)
	}
	if err := notify(path, os.Getpid(), "STATUS=1/1 Running"); err != nil {
		t.Fatal(err)
	}
	data, oob := make([]byte, 100), make([]byte, 100)
	n, m, _, _, err := l.ReadMsgUnix(data, oob)
	if err != nil || string(data[:n]) != "STATUS=1/1 Running" {
		t.Fatalf("%q, %v", data[:n], err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:m])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%v, %v", messages, err)
	}
	if c, err := unix.ParseUnixCredentials(&messages[0]); err != nil || int(c.Pid) != os.Getpid() {
		t.Errorf("credentials %+v, %v", c, err)
	}
}

// TestFollow: a unit gets each new status once, and its process ends once: with 1 if the pod failed, with 0 if it succeeded or is deleted.
func TestFollow(t *testing.T) {
	pod := func(uid string, change func(*supervisor.Snapshot)) supervisor.Snapshot {
		s := supervisor.Snapshot{
			Pod: &spec.Pod{Name: uid}, Owner: state.Owner{Unit: "podstead@" + uid + ".service", Process: state.ProcessOf(os.Getpid())},
		}
		s.Facts.UID, s.Status.Phase = uid, lifecycle.PhaseRunning
		change(&s)
		return s
	}
	same := func(*supervisor.Snapshot) {}
	ended := func(phase lifecycle.Phase) func(*supervisor.Snapshot) {
		return func(s *supervisor.Snapshot) { s.Status.Phase, s.AtRest = phase, true }
	}
	for name, test := range map[string]struct {
		then func(*supervisor.Snapshot)
		want []int
	}{
		"runs":      {same, nil},
		"failed":    {ended(lifecycle.PhaseFailed), []int{1}},
		"succeeded": {ended(lifecycle.PhaseSucceeded), []int{0}},
		"deleting":  {func(s *supervisor.Snapshot) { s.Facts.Stop.Delete = true }, []int{0}},
		"stopping":  {func(s *supervisor.Snapshot) { s.Status.Phase = lifecycle.PhaseFailed }, nil},
		"stopped": {func(s *supervisor.Snapshot) {
			ended(lifecycle.PhaseFailed)(s)
			s.Facts.Stop.Requested = lifecycle.Instant{Boot: "b", Mono: 1}
		}, nil},
		"other": {func(s *supervisor.Snapshot) { s.Owner.Unit = "" }, []int{0}}, // counts as deleted
	} {
		var codes []int
		var lines []string
		f := newFollower(slog.New(slog.DiscardHandler))
		f.notify = func(_ int, state string) error { lines = append(lines, state); return nil }
		f.release = func(_, code int) error { codes = append(codes, code); return nil }
		f.turn(t.Context(), []supervisor.Snapshot{pod("web", same)})
		f.turn(t.Context(), []supervisor.Snapshot{pod("web", same)})
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "STATUS=") {
			t.Errorf("%s: sent %q, want one status", name, lines)
		}
		f.turn(t.Context(), []supervisor.Snapshot{pod("web", test.then)})
		f.turn(t.Context(), []supervisor.Snapshot{pod("web", test.then)})
		if diff := cmp.Diff(test.want, codes); diff != "" {
			t.Errorf("%s: exit codes (-want +got):\n%s", name, diff)
		}
	}
	var codes []int
	f := newFollower(slog.New(slog.DiscardHandler))
	f.notify = func(int, string) error { return nil }
	f.release = func(_, code int) error { codes = append(codes, code); return nil }
	f.turn(t.Context(), []supervisor.Snapshot{pod("web", same)})
	f.turn(t.Context(), nil)
	if diff := cmp.Diff([]int{0}, codes); diff != "" {
		t.Errorf("deleted: exit codes (-want +got):\n%s", diff)
	}
}

// TestFind: a unit has exactly one file. One in the pods directory must have the table systemd.
func TestFind(t *testing.T) {
	const containers = "[[containers]]\nname = \"app\"\nimage = \"busybox:1\"\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
		err   string
	}{
		"unit":     {map[string]string{"units.d/web.toml": ""}, "units.d/web.toml", ""},
		"yaml":     {map[string]string{"units.d/web.yaml": ""}, "units.d/web.yaml", ""},
		"pod":      {map[string]string{"pods.d/web.toml": "systemd.after = [\"a.service\"]\n" + containers}, "pods.d/web.toml", ""},
		"daemon's": {map[string]string{"pods.d/web.toml": containers}, "", "has no table [systemd]"},
		"none":     {map[string]string{"pods.d/other.toml": ""}, "", "units.d/web.toml does not exist"},
		"two":      {map[string]string{"units.d/web.toml": "", "pods.d/web.toml": ""}, "", `pod "web" is defined by`},
	} {
		dir := t.TempDir()
		for path, text := range test.files {
			path = filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Find(dir, filepath.Join(dir, "pods.d"), "web")
		if test.err == "" && (err != nil || got != filepath.Join(dir, test.want)) ||
			test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
