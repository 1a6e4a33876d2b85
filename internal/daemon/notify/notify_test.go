package notify

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// bench is a set of notifiers with a receiver that fails while down is set.
type bench struct {
	t     *testing.T
	dir   string
	ring  *event.Ring
	boot  string
	start time.Time

	mu   sync.Mutex
	down bool
	bad  string   // text of an event that the receiver refuses
	got  []string // texts of events
	ids  []string
	at   []time.Duration // of the attempts
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, dir: t.TempDir(), ring: event.NewRing(4096), boot: "boot-one", start: time.Now()}
}

func (b *bench) set(list ...config.Notifier) *Set {
	s := New(Options{
		Dir: b.dir, Events: b.ring, Log: slog.New(slog.DiscardHandler),
		Labels: func(pod string) (map[string]string, bool) { return map[string]string{"app": pod}, pod != "gone" },
		Now: func() lifecycle.Instant {
			return lifecycle.Instant{Boot: b.boot, Mono: time.Since(b.start), Wall: time.Now()}
		},
		send: func(_ context.Context, _ *config.Notifier, m *Message) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.at = append(b.at, time.Since(b.start))
			if b.down || m.Event.Message == b.bad {
				return errors.New("down")
			}
			b.got, b.ids = append(b.got, m.Event.Message), append(b.ids, m.ID)
			return nil
		},
	})
	s.Apply(b.t.Context(), list)
	synctest.Wait()
	return s
}

func (b *bench) emit(pod, message string, level api.EventLevel) {
	b.ring.Add(event.Event{Pod: pod, Level: level, Kind: "BackOff", Reason: "BackOff", Message: message, Time: time.Now()})
	synctest.Wait()
}

// setDown changes whether the receiver fails.
func (b *bench) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// restart restores the events of an earlier run of the daemon.
func (b *bench) restart() {
	events, _ := b.ring.Since(0)
	b.ring = event.NewRing(4096)
	b.ring.Restore(events)
}

func (b *bench) want(texts ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.Join(b.got, " ") != strings.Join(texts, " ") {
		b.t.Errorf("got %q, want %q", b.got, texts)
	}
}

func (b *bench) state() State {
	b.t.Helper()
	s, err := Load(b.dir, "ops")
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func ops() config.Notifier { return config.Notifier{Name: "ops", URL: "http://example.com/"} }

func TestFilters(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*config.Notifier)
		want   string
	}{
		"default":      {func(*config.Notifier) {}, "a b"},
		"type":         {func(n *config.Notifier) { n.Types = []string{"Normal"} }, "c"},
		"reason":       {func(n *config.Notifier) { n.Reasons = []string{"BackOff"} }, "a b c"},
		"other reason": {func(n *config.Notifier) { n.Reasons = []string{"Killing"} }, ""},
		"pod":          {func(n *config.Notifier) { n.Pods = []string{"we*"} }, "a"},
		"selector":     {func(n *config.Notifier) { n.Selector = "app=db" }, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, n := newBench(t), ops()
				b.emit("web", "before the notifier", api.EventWarning)
				test.change(&n)
				defer b.set(n).Close()
				b.emit("web", "a", api.EventWarning)
				b.emit("db", "b", api.EventWarning)
				b.emit("web", "c", api.EventNormal)
				b.want(strings.Fields(test.want)...)
			})
		})
	}
}

// A receiver that is down is tried again with a back-off, also after a restart of the daemon and after a reboot.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.setDown(true)
		s := b.set(ops())
		b.emit("web", "a", api.EventWarning)
		b.emit("web", "b", api.EventWarning)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got, want := fmt.Sprint(b.at), "[0s 1s 3s 7s 15s 15s]"; got != want { // at last also for the event behind
			t.Errorf("attempts at %v, want %v", got, want)
		}
		s.Close()
		if got := b.state(); len(got.Pending) != 2 || got.Attempts != 5 || got.LastError != "down" {
			t.Errorf("state %+v", got)
		}

		b.boot, b.start, b.at = "boot-two", time.Now(), nil
		b.restart()
		s = b.set(ops())
		time.Sleep(33 * time.Second) // the back-off continues with 32s
		synctest.Wait()
		if got, want := fmt.Sprint(b.at), "[0s 0s 32s 32s]"; got != want {
			t.Errorf("attempts after the reboot at %v, want %v", got, want)
		}
		b.setDown(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		b.want("a", "b")
		s.Close()
		b.restart()
		defer b.set(ops()).Close()
		b.want("a", "b") // not again
		if got := b.state(); len(got.Pending) != 0 || got.Sent != 2 || got.Attempts != 0 {
			t.Errorf("state %+v", got)
		}
	})
}

// An event whose success was not saved is sent again with its ID, and one that was only in the journal is sent.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.setDown(true)
		s := b.set(ops())
		b.emit("web", "a", api.EventWarning)
		file, err := os.ReadFile(path(b.dir, "ops"))
		if err != nil {
			t.Fatal(err)
		}
		b.setDown(false)
		time.Sleep(time.Minute)
		b.emit("web", "b", api.EventWarning)
		s.Close()
		b.want("a", "b")
		if err := os.WriteFile(path(b.dir, "ops"), file, 0o600); err != nil { // as it was before the success
			t.Fatal(err)
		}
		b.restart()
		defer b.set(ops()).Close()
		b.want("a", "b", "a", "b")
		if b.ids[0] != b.ids[2] || b.ids[1] != b.ids[3] || b.ids[0] == b.ids[1] {
			t.Errorf("IDs %q", b.ids)
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.setDown(true)
		s := b.set(ops())
		for range maxPending + 10 {
			b.ring.Add(event.Event{Level: api.EventWarning, Time: time.Now()})
		}
		synctest.Wait()
		if got := b.state(); len(got.Pending) != maxPending || got.Dropped != 10 {
			t.Errorf("%d pending, %d dropped", len(got.Pending), got.Dropped)
		}
		time.Sleep(maxAge + maxDelay)
		synctest.Wait()
		s.Close()
		if got := b.state(); len(got.Pending) != 0 || got.Dropped != maxPending+10 {
			t.Errorf("after a day: %d pending, %d dropped", len(got.Pending), got.Dropped)
		}
	})
}

// Without a matching event nothing is written.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.set(ops()).Close()
		if err := os.Remove(path(b.dir, "ops")); err != nil {
			t.Fatal(err)
		}
		b.emit("web", "normal", api.EventNormal)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if _, err := os.Stat(path(b.dir, "ops")); err == nil {
			t.Error("the state was written")
		}
	})
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.set(ops())
		b.emit("web", "a", api.EventNormal)
		n := ops()
		n.Types = []string{"Normal"}
		s.Apply(t.Context(), []config.Notifier{n})
		synctest.Wait()
		b.emit("web", "b", api.EventNormal)
		b.want("b")
		s.Apply(t.Context(), nil)
		b.emit("web", "c", api.EventNormal)
		b.want("b")
		if _, err := Load(b.dir, "ops"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("state of the removed notifier: %v", err)
		}
	})
}

func TestPost(t *testing.T) {
	status := http.StatusOK
	var body, header string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		body, header = string(data), r.Header.Get("Authorization")
		w.WriteHeader(status)
	}))
	defer server.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	n := config.Notifier{
		Name: "ops", URLFile: file("url", server.URL+"/planted-path\n"),
		HeadersFile: file("headers", "# token\nAuthorization: Bearer planted\n"),
	}
	e := event.Event{Seq: 7, Boot: "0123456789", Pod: "web", Level: api.EventWarning, Reason: "BackOff", Message: "text"}
	m := NewMessage("ops", eventID(&e), &e)
	err := Send(t.Context(), &n, &m, nil)
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "planted") {
		t.Errorf("without caFile: %v", err)
	}
	n.CAFile = file("ca", string(pemOf(server)))
	if err := Send(t.Context(), &n, &m, nil); err != nil {
		t.Fatal(err)
	}
	if header != "Bearer planted" || !strings.Contains(body, `"id":"01234567-7-0"`) || !strings.Contains(body, `"message":"text"`) {
		t.Errorf("received header %q, body %s", header, body)
	}
	for _, status = range []int{301, 429, 500} {
		if err := Send(t.Context(), &n, &m, nil); err == nil || strings.Contains(err.Error(), "planted") {
			t.Errorf("status %d: %v", status, err)
		}
	}
	file("headers", "planted")
	if err := Send(t.Context(), &n, &m, nil); err == nil || strings.Contains(err.Error(), "planted") {
		t.Errorf("invalid headers: %v", err)
	}
}

func TestCommand(t *testing.T) {
	e := event.Event{Pod: "web", Level: api.EventWarning, Reason: "BackOff", Message: "text"}
	m := NewMessage("ops", "id", &e)
	var out strings.Builder
	n := config.Notifier{Name: "ops", Command: []string{"/bin/sh", "-c", `cat; echo "$PODSTEAD_POD $PODSTEAD_ID ${HOME-none}"`}}
	if err := Send(t.Context(), &n, &m, &out); err != nil || !strings.Contains(out.String(), `"id":"id"`) ||
		!strings.Contains(out.String(), "web id none") {
		t.Errorf("%v, output %s", err, out.String())
	}
	n.Command[2] = "echo planted; exit 3 # planted"
	if err := Send(t.Context(), &n, &m, nil); err == nil || err.Error() != "run /bin/sh: exit status 3" {
		t.Errorf("failing command: %v", err)
	}
	n.Command[2], n.Timeout = "sleep 1000", "50ms"
	if err := Send(t.Context(), &n, &m, nil); err == nil || err.Error() != "/bin/sh: no success within 50ms" {
		t.Errorf("hanging command: %v", err)
	}
}

// TestCommandChildren: the children of a command that is canceled are killed.
func TestCommandChildren(t *testing.T) {
	e := event.Event{Pod: "web", Level: api.EventWarning}
	m := NewMessage("ops", "id", &e)
	n := config.Notifier{Name: "ops", Command: []string{"/bin/sh", "-c", "sleep 1000 & echo $!; wait"}, Timeout: "1m"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() { sent <- Send(ctx, &n, &m, w) }()
	child, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-sent; err == nil {
		t.Error("no error for a command that was canceled")
	}
	cmdline := filepath.Join("/proc", strings.TrimSpace(child), "cmdline")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if data, err := os.ReadFile(cmdline); err != nil || len(data) == 0 { // gone, or a zombie
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the child of the command is running")
		}
	}
}

// TestHostileText: a container whose probe prints what no environment variable and no line can have does not hold up the events behind it.
func TestHostileText(t *testing.T) {
	e := event.Event{
		Pod: "web", Level: api.EventWarning, Reason: "Unhealthy",
		Message: "Readiness probe failed: a\x00b\nhost pod web: Normal\x1b[2J" + strings.Repeat("é", 1<<20),
	}
	m := NewMessage("ops", "id", &e)
	if strings.ContainsAny(m.Text, "\x00\n\x1b") {
		t.Errorf("the text is not one line: %.100q", m.Text)
	}
	var out strings.Builder
	n := config.Notifier{Name: "ops", Command: []string{"/bin/sh", "-c", `cat >/dev/null; printf %s "$PODSTEAD_MESSAGE"`}}
	if err := Send(t.Context(), &n, &m, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "Readiness probe failed: a\uFFFDb\nhost pod web: ") || !utf8.ValidString(got) ||
		len(got) < 1<<14 {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// TestRefusedEvent: one event that the receiver refuses holds up the others for half a minute, and not for a day. It is tried until it is
// too old.
func TestRefusedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.bad = "bad"
		defer b.set(ops()).Close()
		b.emit("web", "bad", api.EventWarning)
		b.emit("web", "a", api.EventWarning)
		b.emit("web", "b", api.EventWarning)
		time.Sleep(10 * time.Second)
		b.want()
		time.Sleep(10 * time.Second)
		b.want("a", "b")
		b.emit("web", "c", api.EventWarning) // at once
		b.want("a", "b", "c")
		time.Sleep(12 * time.Hour)
		b.emit("web", "d", api.EventWarning)
		b.want("a", "b", "c", "d")
		if s := b.state(); len(s.Pending) != 1 || s.Pending[0].Event.Message != "bad" || s.Sent != 4 || s.Dropped != 0 {
			t.Errorf("state %+v", s)
		}
		b.setDown(true) // now all wait, in their order
		b.emit("web", "e", api.EventWarning)
		b.emit("web", "f", api.EventWarning)
		time.Sleep(time.Hour)
		b.want("a", "b", "c", "d")
		b.setDown(false)
		time.Sleep(maxDelay)
		b.want("a", "b", "c", "d", "e", "f")
		time.Sleep(12 * time.Hour)
		synctest.Wait()
		if s := b.state(); len(s.Pending) != 0 || s.Dropped != 1 {
			t.Errorf("state after a day %+v", s)
		}
	})
}
