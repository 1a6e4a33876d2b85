package hostcondition

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waiting is a call of [Host.WaitFor].
type waiting struct {
	t       *testing.T
	reports chan string
	done    chan error
}

// notified returns a host that notices paths by what the kernel reports, and not by checks.
func notified() *Host {
	h := New()
	h.recheck = time.Hour
	return h
}

func start(ctx context.Context, t *testing.T, h *Host, condition string) *waiting {
	w := &waiting{t: t, reports: make(chan string), done: make(chan error, 1)}
	go func() {
		w.done <- h.WaitFor(ctx, spec.ParseWaitCondition(condition), func(unmet string) {
			select {
			case w.reports <- unmet:
			case <-ctx.Done():
			}
		})
	}()
	return w
}

// expect waits for a report.
func (w *waiting) expect(want string) {
	w.t.Helper()
	select {
	case got := <-w.reports:
		if got != want {
			w.t.Errorf("report %q, want %q", got, want)
		}
	case err := <-w.done:
		w.t.Fatalf("returned %v, want the report %q", err, want)
	case <-time.After(time.Minute):
		w.t.Fatalf("no report %q", want)
	}
}

// met waits until the condition is met. Reports may precede that.
func (w *waiting) met() {
	w.t.Helper()
	for {
		select {
		case <-w.reports:
		case err := <-w.done:
			if err != nil {
				w.t.Fatal(err)
			}
			return
		case <-time.After(time.Minute):
			w.t.Fatal("the condition is not met")
		}
	}
}

func TestPath(t *testing.T) {
	dir := t.TempDir()
	write := func(path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		path   string
		before func(path string)
		report string
		make   func(path string)
	}{
		"file":                    {"file", nil, "not found", write},
		"directory":               {"directory", nil, "not found", func(path string) { mkdir(t, path) }},
		"directories are missing": {"a/b/c/file", nil, "not found", write},
		"renamed": {"renamed", nil, "not found", func(path string) {
			write(path + ".tmp")
			if err := os.Rename(path+".tmp", path); err != nil {
				t.Fatal(err)
			}
		}},
		"below a file": {"parent/file", func(path string) { write(filepath.Dir(path)) }, "not found", func(path string) {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			write(path)
		}},
		"directory is replaced": {"x/y/file", func(path string) { mkdir(t, filepath.Dir(path)) }, "not found", func(path string) {
			if err := os.RemoveAll(filepath.Dir(filepath.Dir(path))); err != nil {
				t.Fatal(err)
			}
			write(path)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, test.path)
			if test.before != nil {
				test.before(path)
			}
			w := start(t.Context(), t, notified(), "path:"+path)
			w.expect(test.report)
			test.make(path)
			w.met()
		})
	}
	w := start(t.Context(), t, New(), "path:"+filepath.Join(dir, "file"))
	if err := <-w.done; err != nil {
		t.Errorf("a file that exists: %v", err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestPathIsRechecked has a path behind a link. The kernel does not report its creation.
func TestPathIsRechecked(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "other", "target")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	mkdir(t, filepath.Dir(target))
	h := New()
	h.recheck = 10 * time.Millisecond
	w := start(t.Context(), t, h, "path:"+link)
	w.expect("not found")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.met()
}

func TestPathThatCannotBeRead(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := start(ctx, t, New(), "path:"+loop)
	w.expect("too many levels of symbolic links")
	cancel()
	if err := <-w.done; !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// TestCancel checks that each wait ends with its context.
func TestCancel(t *testing.T) {
	h := New()
	h.online = func() (string, error) { return "no default route", nil }
	h.lookup = func(context.Context, string) ([]string, error) { return nil, nil }
	h.clock = func() (int32, error) { return unix.STA_UNSYNC, nil }
	for condition, report := range map[string]string{
		"path:/no/such/path": "not found", "mount:/no/such/path": "not mounted", "network-online": "no default route",
		"dns:registry.local": "no such host", "time-synced": "clock not synchronized",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		w := start(ctx, t, h, condition)
		w.expect(report)
		cancel()
		select {
		case err := <-w.done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", condition, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the wait does not end with its context", condition)
		}
	}
}

func TestMount(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/proc", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/proc", "/proc/", link} {
		w := start(t.Context(), t, New(), "mount:"+path)
		if err := <-w.done; err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestUnknownCondition(t *testing.T) {
	if err := New().WaitFor(t.Context(), spec.WaitCondition{Kind: "moon"}, nil); err == nil {
		t.Error("no error")
	}
}

func TestDNS(t *testing.T) {
	timeout := &net.DNSError{Err: "i/o timeout", Name: "registry.local", IsTimeout: true}
	refused := &net.DNSError{
		Err: "read udp 127.0.0.1:46183->127.0.0.53:53: read: connection refused", Name: "registry.local", Server: "127.0.0.53:53",
	}
	missing := &net.DNSError{Err: "no such host", Name: "registry.local", IsNotFound: true}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		answers := []error{missing, timeout, refused, context.DeadlineExceeded, nil}
		var names []string
		h := &Host{lookup: func(_ context.Context, host string) ([]string, error) {
			names = append(names, host)
			err := answers[0]
			answers = answers[1:]
			return []string{"10.0.0.1"}, err
		}}
		w := start(t.Context(), t, h, "dns:registry.local")
		w.expect("no such host")
		w.expect("no answer from the DNS server")
		w.expect("connection refused")
		w.expect("no answer from the DNS server")
		w.met()
		if took := time.Since(begun); took != 4*dnsInterval || len(names) != 5 || names[4] != "registry.local" {
			t.Errorf("took %v for %q", took, names)
		}
	})
}

func TestTimeSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		h := &Host{clock: func() (int32, error) {
			switch passed := time.Since(begun); {
			case passed < time.Minute:
				return unix.STA_UNSYNC | unix.STA_PLL, nil
			case passed < 2*time.Minute:
				return 0, unix.EPERM
			}
			return unix.STA_PLL, nil
		}}
		w := start(t.Context(), t, h, "time-synced")
		w.expect("clock not synchronized")
		time.Sleep(time.Minute)
		w.expect("clock not synchronized") // blocked meanwhile
		w.expect("read the state of the clock: operation not permitted")
		w.met()
		if passed := time.Since(begun); passed < 2*time.Minute || passed > 2*time.Minute+2*clockInterval {
			t.Errorf("met after %v", passed)
		}
	})
	if _, err := clockStatus(); err != nil {
		t.Error(err)
	}
}

// TestCrowded has more waits than may follow what the kernel reports. The others check at an interval, and do not block threads.
func TestCrowded(t *testing.T) {
	const waits = 4 * maxFollowers
	h := notified()
	h.recheck, h.crowded = 100*time.Millisecond, 10*time.Millisecond // in case other processes use all inotify instances
	h.online = func() (string, error) { return "no default route", nil }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path := filepath.Join(t.TempDir(), "file")
	before := threads(t)
	var all []*waiting
	for range waits {
		w := start(ctx, t, h, "path:"+path)
		w.expect("not found")
		all = append(all, w)
	}
	for condition, report := range map[string]string{"mount:/no/such/path": "not mounted", "network-online": "no default route"} {
		start(ctx, t, h, condition).expect(report)
	}
	if now := threads(t); now > before+2*maxFollowers {
		t.Errorf("%d threads, %d before %d waits", now, before, waits)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		w.met()
	}
	h.online = func() (string, error) { return "", unix.EPERM }
	for range maxFollowers {
		h.followers <- struct{}{}
	}
	if err := h.WaitFor(ctx, spec.WaitCondition{Kind: spec.WaitNetworkOnline}, nil); !errors.Is(err, unix.EPERM) {
		t.Errorf("error of a check: %v", err)
	}
}

// threads returns the number of threads of the process.
func threads(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestPathInBusyDirectory: many changes of the directory cause few checks.
func TestPathInBusyDirectory(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var checks atomic.Int64
	checked, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		done <- notified().WaitFor(ctx, spec.ParseWaitCondition("path:"+filepath.Join(dir, "file")), func(string) {
			checks.Add(1)
			select {
			case checked <- struct{}{}:
			default:
			}
		})
	}()
	<-checked
	begun := time.Now()
	for i := range 3000 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	if n, most := checks.Load(), int64(time.Since(begun)/minInterval)+3; n > most {
		t.Errorf("%d checks, want at most %d", n, most)
	}
}
