package ondemand_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
)

// TestMain also serves as the daemon, because a starter starts its own executable.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "daemon" {
		os.Exit(runDaemon(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// runDaemon is a daemon with a behaviour: "silent", "failing", "dying", "recording" for one that records its stop, or any other for one
// that works. It returns the exit code.
func runDaemon(behaviour, dir string) int {
	reporter := ondemand.NewReporter()
	switch behaviour {
	case "silent":
		return 7
	case "dying":
		reporter.Ready()
		fmt.Println("panic: a bug")
		return 2
	case "failing":
		reporter.Failed("runc not found", []string{"install runc"}, 4)
		return 4
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 1
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		reporter.Failed("in use", nil, ondemand.StatusInUse)
		return 1
	}
	s := supervisor.New(ctx, supervisor.Options{Runtime: fakeruntime.New(fakeruntime.Options{})})
	srv := server.New(ctx, server.Options{
		Supervisor: s, Version: api.Version{PID: os.Getpid(), OnDemand: true, Instance: strconv.Itoa(os.Getpid())},
		StopDaemon: func(string, bool) { stop() },
	})
	l, err := server.Listen(ctx, filepath.Join(dir, "s"))
	if err != nil {
		return 1
	}
	go func() { _ = srv.Serve(l) }()
	fmt.Println("ready") // before the report: the test reads the log after it
	reporter.Ready()
	<-ctx.Done()
	if behaviour == "recording" && api.RecordStop(filepath.Join(dir, "s"), 3) != nil {
		return 1
	}
	_ = srv.Close(context.Background())
	return 0
}

// newStarter returns a starter of daemons with a behaviour, and their directory.
func newStarter(t *testing.T, behaviour string) (*ondemand.Starter, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "od")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return newStarterIn(t, behaviour, dir), dir
}

func newStarterIn(t *testing.T, behaviour, dir string) *ondemand.Starter {
	t.Helper()
	c := client.New(filepath.Join(dir, "s"), "podstead get")
	t.Cleanup(c.Close)
	return &ondemand.Starter{Client: c, Args: []string{"daemon", behaviour, dir}, Log: filepath.Join(dir, "lib", "daemon.log")}
}

func TestConnectStartsDaemonInItsOwnSession(t *testing.T) {
	s, dir := newStarter(t, "good")
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := s.Client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sid, err := unix.Getsid(v.PID); err != nil || sid != v.PID {
		t.Errorf("the daemon is in session %d (%v), want %d", sid, err, v.PID)
	}
	if err := newStarterIn(t, "silent", dir).Connect(t.Context()); err != nil {
		t.Errorf("connect to a running daemon: %v", err)
	}
	log, err := os.ReadFile(s.Log)
	if err != nil || string(log) != "ready\n" {
		t.Errorf("log %q, %v", log, err)
	}
	if err := s.Client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// awaitExit waits until no daemon holds the lock.
func awaitExit(t *testing.T, dir string) {
	t.Helper()
	lock, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// TestConnectAfterStopOnRequest checks that a client whose daemon was stopped on request starts no daemon, and that other clients do.
func TestConnectAfterStopOnRequest(t *testing.T) {
	s, dir := newStarter(t, "recording")
	for range 2 {
		if err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.StopDaemon(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitExit(t, dir)
		e, ok := errors.AsType[*api.StoppedError](s.Connect(t.Context()))
		if !ok || e.Pods != 3 {
			t.Fatalf("error %+v, want a StoppedError with 3 pods", e)
		}
		if err := newStarterIn(t, "recording", dir).Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, dir)
	if e, ok := errors.AsType[*api.StoppedError](s.Connect(t.Context())); !ok {
		t.Errorf("error %+v after the stop of a daemon that the client did not notice, want a StoppedError", e)
	}
}

func TestConcurrentConnectsStartOneDaemon(t *testing.T) {
	_, dir := newStarter(t, "good")
	var mu sync.Mutex
	pids := map[int]bool{}
	var clients sync.WaitGroup
	for range 8 {
		s := newStarterIn(t, "good", dir)
		clients.Go(func() {
			if err := s.Connect(t.Context()); err != nil {
				t.Error(err)
				return
			}
			v, err := s.Client.Version(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			pids[v.PID] = true
		})
	}
	clients.Wait()
	if len(pids) != 1 {
		t.Errorf("the clients found %d daemons", len(pids))
	}
	if err := newStarterIn(t, "good", dir).Client.StopDaemon(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestConnectReportsWhyTheDaemonFailed(t *testing.T) {
	for behaviour, want := range map[string]string{
		"failing": "start daemon: runc not found", "silent": "start daemon: exited unexpectedly: exit status 7",
	} {
		t.Run(behaviour, func(t *testing.T) {
			s, _ := newStarter(t, behaviour)
			err := s.Connect(t.Context())
			e, ok := errors.AsType[*ondemand.Error](err)
			if !ok || e.Message != want || len(e.Hints) != 1 || !errors.Is(err, api.ErrUnavailable) {
				t.Errorf("error %v, want %s and a hint", err, want)
			}
		})
	}
}

// TestDyingDaemonIsNotStartedForever has a daemon that exits as soon as it is ready.
func TestDyingDaemonIsNotStartedForever(t *testing.T) {
	s, _ := newStarter(t, "dying")
	for i := range 3 {
		if err := s.Connect(t.Context()); err != nil {
			t.Fatalf("start %d: %v", i+1, err)
		}
	}
	for range 2 {
		err := s.Connect(t.Context())
		e, ok := errors.AsType[*ondemand.Error](err)
		if want := "start daemon: exited unexpectedly 3 times in a row: exit status 2: panic: a bug"; !ok || e.Message != want ||
			len(e.Hints) != 1 {
			t.Errorf("error %v, want %s and a hint", err, want)
		}
	}
	if log, err := os.ReadFile(s.Log); err != nil || strings.Count(string(log), "panic") != 3 {
		t.Errorf("log %q, %v; want three starts", log, err)
	}
}

func TestLogRotation(t *testing.T) {
	s, _ := newStarter(t, "failing")
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Log, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = s.Connect(t.Context())
	if st, err := os.Stat(s.Log); err != nil || st.Size() > 1<<20 {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(s.Log), "daemon.old.log")); err != nil {
		t.Error(err)
	}
}

func TestConnectStopsWhenItsContextEnds(t *testing.T) {
	s, dir := newStarter(t, "good")
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	// This socket never responds. The first connection is the check for a running daemon. The second one is the wait for the daemon that
	// holds the lock.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for range 2 {
			if c, err := l.Accept(); err == nil {
				_ = c.Close()
			}
		}
		cancel()
	}()
	err = s.Connect(ctx)
	if e, ok := errors.AsType[*ondemand.Error](err); !ok || !strings.Contains(e.Message, "in use") {
		t.Errorf("error %v, want that the lock is in use", err)
	}
}

// TestConnectAfterTheLockHolderExits: a daemon that exits holds the lock for longer than its socket. The command that meets it starts the
// next daemon.
func TestConnectAfterTheLockHolderExits(t *testing.T) {
	s, dir := newStarter(t, "good")
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var holder sync.WaitGroup
	holder.Go(func() {
		for range 2 { // the check for a running daemon, and the wait for the one that holds the lock
			if c, err := l.Accept(); err == nil {
				_ = c.Close()
			}
		}
		_ = l.Close()
		_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN)
	})
	err = s.Connect(t.Context())
	_ = l.Close() // ends the holder also if the starter connected less often
	holder.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Client.StopDaemon(t.Context()); err != nil {
		t.Error(err)
	}
}
