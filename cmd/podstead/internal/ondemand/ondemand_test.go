package ondemand_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
)

// TestMain is the daemon too: a starter starts the program that it is in.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "daemon" {
		os.Exit(daemon(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// daemon is a daemon that behaves in a certain way.
func daemon(how, dir string) int {
	reporter := ondemand.NewReporter()
	switch how {
	case "silent":
		return 7
	case "failing":
		reporter.Failed("no runc", []string{"install it"}, 4)
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
	server := api.NewServer(ctx, api.Options{
		Supervisor: s, Version: api.Version{PID: os.Getpid(), OnDemand: true}, Leave: func(string) { stop() },
	})
	l, err := api.Listen(ctx, filepath.Join(dir, "s"))
	if err != nil {
		return 1
	}
	go func() { _ = server.Serve(l) }()
	fmt.Println("ready") // before anybody is told, and looks for it
	reporter.Ready()
	<-ctx.Done()
	_ = server.Close(context.Background())
	return 0
}

// starter starts daemons of the kind, in a folder of their own.
func starter(t *testing.T, how string) (*ondemand.Starter, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "od")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return another(t, how, dir), dir
}

func another(t *testing.T, how, dir string) *ondemand.Starter {
	t.Helper()
	client := api.NewClient(filepath.Join(dir, "s"), "podstead get")
	t.Cleanup(client.Close)
	return &ondemand.Starter{Client: client, Args: []string{"daemon", how, dir}, Log: filepath.Join(dir, "lib", "daemon.log")}
}

func TestConnectStartsADaemonThatOutlivesIt(t *testing.T) {
	s, dir := starter(t, "good")
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := s.Client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sid, err := unix.Getsid(v.PID); err != nil || sid != v.PID {
		t.Errorf("the daemon is in session %d (%v), want one of its own", sid, err)
	}
	if err := another(t, "silent", dir).Connect(t.Context()); err != nil {
		t.Errorf("to one that is there: %v", err)
	}
	log, err := os.ReadFile(s.Log)
	if err != nil || string(log) != "ready\n" {
		t.Errorf("log %q, %v", log, err)
	}
	if err := s.Client.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestManyStartOne(t *testing.T) {
	_, dir := starter(t, "good")
	var mu sync.Mutex
	pids := map[int]bool{}
	var clients sync.WaitGroup
	for range 8 {
		s := another(t, "good", dir)
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
	if err := another(t, "good", dir).Client.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestConnectTellsWhyThereIsNoDaemon(t *testing.T) {
	for how, want := range map[string]string{"failing": "start daemon: no runc", "silent": "it ended without a word: exit status 7"} {
		t.Run(how, func(t *testing.T) {
			s, _ := starter(t, how)
			err := s.Connect(t.Context())
			e, ours := errors.AsType[*ondemand.Error](err)
			if !ours || !strings.Contains(e.Message, want) || len(e.Hints) != 1 || !errors.Is(err, api.ErrUnavailable) {
				t.Errorf("error %v, want %s and a hint", err, want)
			}
		})
	}
}

func TestLogIsBegunAnewWhenItHasGrown(t *testing.T) {
	s, _ := starter(t, "failing")
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

func TestConnectHeedsItsContext(t *testing.T) {
	s, dir := starter(t, "good")
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	// Nobody answers here. The first who asks wants to know whether to start a daemon, the second whether another's has started.
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
	if e, ours := errors.AsType[*ondemand.Error](err); !ours || !strings.Contains(e.Message, "in use") {
		t.Errorf("error %v, want that another has the lock and does not answer", err)
	}
}
