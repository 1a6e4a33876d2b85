package monitor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// newTestKeeper returns a keeper, and the end of its monitor.
func newTestKeeper(t *testing.T) (k *keeper, monitor int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(pair[0], pair[1], self) })
	return &keeper{held: map[string]int{}, link: pair[0], pidfd: self, lock: -1}, pair[1]
}

// TestKeeperKeeps sends descriptors to a keeper and gets them back, as the next monitor does.
func TestKeeperKeeps(t *testing.T) {
	k, monitor := newTestKeeper(t)
	dir := t.TempDir()
	say := func(text string, fd int) {
		t.Helper()
		if err := sendMessage(monitor, text, fd); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a/stdout", "a/stderr", "b/stdout", "ab/stdout"} {
		f, err := os.Create(filepath.Join(dir, strings.ReplaceAll(name, "/", "-")))
		if err != nil {
			t.Fatal(err)
		}
		say(verbHold+" "+name, int(f.Fd()))
		say(verbHold+" "+name, int(f.Fd())) // replaces the first one
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	say(verbHold+" c/stdout", -1) // without a descriptor
	say("nonsense", -1)
	say(verbReap+" x y", -1)
	say(verbRelease+" a/", -1)
	say(verbRelease+" b", -1)
	say(verbGive, -1)
	if k.receive() {
		t.Fatal("the connection is closed")
	}
	got := map[string]string{}
	buf := make([]byte, maxMessage)
	for {
		text, fd, err := receiveMessage(monitor, buf)
		if err != nil {
			t.Fatal(err)
		}
		if text == verbGiven {
			break
		}
		verb, name, _ := strings.Cut(text, " ")
		to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if verb != verbGave || err != nil {
			t.Errorf("message %q, %v", text, err)
		}
		got[name] = filepath.Base(to)
		closeAll(fd)
	}
	if diff := cmp.Diff(map[string]string{"b/stdout": "b-stdout", "ab/stdout": "ab-stdout"}, got); diff != "" {
		t.Error(diff)
	}
	say(verbStop, -1)
	closeAll(monitor)
	if !k.receive() || !k.stop {
		t.Error("what a monitor has sent before it exits is lost")
	}
	for _, fd := range k.held {
		closeAll(fd)
	}
	if _, _, err := receiveMessage(k.link, buf); !errors.Is(err, errLinkClosed) {
		t.Errorf("receive from a monitor that has exited: %v", err)
	}
}

// TestKeeperReaps reaps children that are recorded, and no others.
func TestKeeperReaps(t *testing.T) {
	k, monitor := newTestKeeper(t)
	c := exec.Command("true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	s, err := proc.StatOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(fd)
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := retry(func() (int, error) { return unix.Poll(poll, -1) }); err != nil {
		t.Fatal(err)
	}
	for _, start := range []uint64{s.Start + 1, s.Start} {
		if err := sendMessage(monitor, verbReap+" "+strconv.Itoa(pid)+" "+strconv.FormatUint(start, 10), -1); err != nil {
			t.Fatal(err)
		}
		k.receive()
		if zombie := isProcess(pid, s.Start); zombie != (start != s.Start) {
			t.Errorf("a zombie after a request for start time %d of %d: %v", start, s.Start, zombie)
		}
	}
	_ = c.Process.Release()
}

// TestHandover passes descriptors to the next keeper in text.
func TestHandover(t *testing.T) {
	h := handover{lock: 4, link: -1, monitor: 77, pidfd: -1, held: map[string]int{"a/stdout": 1000, listenName: 1001}}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(h.text()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	got := handover{held: map[string]int{}}
	h.lock, got.lock = 1002, 0
	if err := got.read(f); err != nil {
		t.Fatal(err)
	}
	h.lock = 4
	if got.lock != h.lock || got.link != h.link || got.monitor != h.monitor || got.pidfd != h.pidfd || cmp.Diff(got.held, h.held) != "" {
		t.Errorf("got %+v, want %+v", got, h)
	}
	for _, bad := range []string{"lock", "lock x", "held y name"} {
		if err := os.WriteFile(f.Name(), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := os.Open(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := new(handover).read(again); err == nil {
			t.Errorf("%q is accepted", bad)
		}
		_ = again.Close()
	}
	// A program that cannot be executed changes nothing.
	err = (&handover{lock: int(f.Fd()), link: -1, pidfd: -1}).execute(filepath.Join(t.TempDir(), "missing"), nil)
	if !errors.Is(err, unix.ENOENT) {
		t.Errorf("execute a missing program: %v", err)
	}
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %d after a failed handover, %v", flags, err)
	}
}

func TestBackoff(t *testing.T) {
	now := time.Now()
	deaths := func(n int, ago time.Duration) []time.Time { return slices.Repeat([]time.Time{now.Add(-ago)}, n) }
	for _, test := range []struct {
		deaths []time.Time
		want   time.Duration
	}{
		{nil, 0},
		{deaths(quickDeaths-1, 0), 0},
		{deaths(quickDeaths, deathWindow), 0},
		{deaths(quickDeaths, 0), 10 * time.Millisecond},
		{deaths(quickDeaths+3, time.Second), 80 * time.Millisecond},
		{deaths(1000, 0), maxBackoff},
	} {
		if got := backoff(test.deaths, now); got != test.want {
			t.Errorf("after %d deaths: %v, want %v", len(test.deaths), got, test.want)
		}
	}
}

func TestArguments(t *testing.T) {
	zero := 0
	o, err := parse(options{dir: "/d", score: &zero}.arguments(roleMonitor))
	if err != nil || o.role != roleMonitor || o.dir != "/d" || o.score == nil || *o.score != 0 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range [][]string{
		{Name},
		{Name, "x"},
		{Name, roleKeeper},
		{Name, roleKeeper, "-state", "d"},
		{Name, roleKeeper, "-x"},
		{Name, roleMonitor, "-state", "/d", "-score", "x"},
	} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
