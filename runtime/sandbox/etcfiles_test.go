package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
)

func TestWrite(t *testing.T) {
	dirs := record.Dirs{State: t.TempDir()}
	f := NewEtcFiles(dirs, &fakeNetwork{}, NewIndex(), slog.Default(), "")
	path := filepath.Join(dirs.State, "hosts")
	for _, test := range []struct {
		name    string
		prepare func() error
	}{
		{"no file", func() error { return nil }},
		{"same content", func() error { return nil }},
		{"longer content", func() error { return os.WriteFile(path, []byte("text\nand more\n"), 0o644) }},
		{"shorter content", func() error { return os.WriteFile(path, []byte("te"), 0o644) }},
		{"larger than memory", func() error { return os.Truncate(path, 8<<40) }},
	} {
		if err := test.prepare(); err != nil {
			t.Fatal(err)
		}
		if err := f.write(t.Context(), path, "text\n"); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got, err := os.ReadFile(path); string(got) != "text\n" || err != nil {
			t.Errorf("%s: %d bytes, %v", test.name, len(got), err)
		}
	}
}

// fakeNetwork has the lines of other pods.
type fakeNetwork struct {
	changed chan struct{}
	peers   string
}

func (n *fakeNetwork) PodPeers(string) (ips []string, lines string) {
	return []string{"10.0.0.2"}, n.peers
}

func (n *fakeNetwork) Changed() <-chan struct{} { return n.changed }

func TestWriteHosts(t *testing.T) {
	dirs := record.Dirs{State: t.TempDir()}
	network := &fakeNetwork{}
	f := NewEtcFiles(dirs, network, NewIndex(), slog.Default(), "")
	pod := &spec.Pod{Name: "web"}
	hosts := filepath.Join(dirs.Etc("u", 1), "hosts")
	if err := f.updateHosts(t.Context(), "u", pod, 1); err != nil {
		t.Errorf("update without a file: %v", err)
	}
	if _, err := os.Stat(hosts); !os.IsNotExist(err) {
		t.Errorf("an update created the file of a removed sandbox: %v", err)
	}
	if err := f.Write(t.Context(), "u", pod, 1, namespace.IDRange{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hosts, []byte("changed by a container"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.updateHosts(t.Context(), "u", pod, 1); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(hosts); string(text) != "changed by a container" || err != nil {
		t.Errorf("after an update without new content: %q, %v", text, err)
	}
	network.peers = otherPod
	if err := f.updateHosts(t.Context(), "u", pod, 1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(hosts)
	if err != nil || !strings.Contains(string(text), "10.0.0.2\tweb") || !strings.Contains(string(text), "10.0.0.3\tother") {
		t.Errorf("%q, %v; want the pod and the other pod", text, err)
	}
	network.peers = ""
	if err := f.Write(t.Context(), "u", pod, 2, namespace.IDRange{}); err != nil {
		t.Fatal(err)
	}
	network.peers = otherPod
	if err := errors.Join(f.updateHosts(t.Context(), "u", pod, 1), f.updateHosts(t.Context(), "u", pod, 2)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dirs.Etc("u", 2), "hosts")); err != nil || !strings.Contains(string(text), otherPod) {
		t.Errorf("after a late update of the earlier sandbox: %q, %v", text, err)
	}
	if name, err := os.ReadFile(filepath.Join(dirs.Etc("u", 1), "hostname")); string(name) != "web\n" || err != nil {
		t.Errorf("hostname %q, %v; want web", name, err)
	}
}

// TestHeldFiles: a container that holds its files delays neither the next container of its pod, which gets new files, nor other pods. When
// it releases them, they are written.
func TestHeldFiles(t *testing.T) {
	dirs := record.Dirs{State: t.TempDir()}
	index := NewIndex()
	network := &fakeNetwork{}
	f := NewEtcFiles(dirs, network, index, slog.Default(), "")
	pod := &spec.Pod{Name: "web"}
	var held []*os.File
	for _, uid := range []string{"u", "v"} {
		if err := f.Write(t.Context(), uid, pod, 1, namespace.IDRange{}); err != nil {
			t.Fatal(err)
		}
		index.Put(uid, pod, 1)
	}
	for _, name := range []string{"hosts", "hostname", "resolv.conf"} {
		held = append(held, hold(t, filepath.Join(dirs.Etc("u", 1), name)))
	}
	other := filepath.Join(dirs.Etc("v", 1), "hosts")
	if err := os.WriteFile(other, []byte("changed by a container"), 0o600); err != nil {
		t.Fatal(err)
	}
	network.peers = otherPod
	if !f.updateAll(t.Context(), map[string]bool{}) {
		t.Error("an update does not report that a file is held")
	}
	if text, err := os.ReadFile(other); err != nil || !strings.Contains(string(text), "10.0.0.3\tother") {
		t.Errorf("the file of another pod: %q, %v", text, err)
	}
	for i, name := range []string{"hosts", "hostname", "resolv.conf"} {
		path := filepath.Join(dirs.Etc("u", 1), name)
		if err := f.Write(t.Context(), "u", pod, 1, namespace.IDRange{}); err != nil {
			t.Fatal(err)
		}
		now, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if old, err := held[i].Stat(); err != nil || os.SameFile(now, old) {
			t.Errorf("%s was not replaced, %v", name, err)
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) == 0 && name != "resolv.conf" || now.Mode() != 0o644 {
			t.Errorf("the new %s: %v, %q, %v", name, now.Mode(), text, err)
		}
	}
	if f.updateAll(t.Context(), map[string]bool{}) {
		t.Error("a replaced file is held")
	}
}

const otherPod = "10.0.0.3\tother\n"

// hold takes a write lease on a file, until the end of the test.
func hold(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	return f
}

// countingNetwork counts how often the peers of the pod in the index are read, which is once for each update.
type countingNetwork struct {
	mu      sync.Mutex
	changed chan struct{}
	updates int
}

func (n *countingNetwork) PodPeers(string) (ips []string, lines string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.updates++
	return nil, ""
}

func (n *countingNetwork) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *countingNetwork) change() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *countingNetwork) count() int {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.updates = 0 }()
	return n.updates
}

// TestChangesAreGrouped expects an update at once after a change, and one for all changes that follow within a short time.
func TestChangesAreGrouped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		network, index := &countingNetwork{changed: make(chan struct{})}, NewIndex()
		index.Put("u", &spec.Pod{Name: "web"}, 1)
		f := NewEtcFiles(record.Dirs{State: t.TempDir()}, network, index, slog.Default(), "")
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Run(ctx)
		}()
		expect := func(what string, want int) {
			t.Helper()
			if got := network.count(); got != want {
				t.Errorf("%s: %d updates, want %d", what, got, want)
			}
		}
		time.Sleep(time.Minute)
		network.count()
		network.change()
		expect("a change", 1)
		for range 10 {
			network.change()
			time.Sleep(time.Millisecond)
		}
		expect("changes that follow it", 0)
		time.Sleep(updateInterval)
		expect("after the interval", 1)
		time.Sleep(time.Hour)
		expect("without changes", 0)
		network.change()
		network.count()
		network.change()
		cancel()
		<-done
	})
}

// TestOverwrite has a process that reads a file while it gets longer and shorter: the line that all texts begin with is in each of its
// readings.
func TestOverwrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	const stable = "127.0.0.1\tlocalhost\n"
	texts := []string{stable, stable + "10.0.0.2\tdb\n" + strings.Repeat("10.0.0.3\tapp\n", 100), stable + "10.0.0.2\tdb\n"}
	if err := os.WriteFile(path, []byte(stable), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.HasPrefix(string(text), stable) {
				t.Errorf("read %q, %v", text, err)
				return
			}
		}
	})
	for i := range 3000 {
		want := texts[i%len(texts)]
		if err := overwrite(path, want); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("wrote %q, want %q, %v", got, want, err)
		}
	}
	close(done)
	reading.Wait()
}

// TestUpdateOfOlderDefinition: after the start of a container with a new definition of the pod, an update that began before does not write
// the one of the definition before.
func TestUpdateOfOlderDefinition(t *testing.T) {
	dirs := record.Dirs{State: t.TempDir()}
	network, index := &fakeNetwork{}, NewIndex()
	f := NewEtcFiles(dirs, network, index, slog.Default(), "")
	of := func(name string) *spec.Pod {
		return &spec.Pod{Name: "web", HostAliases: []spec.HostAlias{{IP: "192.0.2.1", Hostnames: []string{name}}}}
	}
	before, after := of("old.example"), of("new.example")
	if err := f.Write(t.Context(), "u", before, 1, namespace.IDRange{}); err != nil {
		t.Fatal(err)
	}
	index.Put("u", before, 1)
	if err := f.WriteHosts(t.Context(), "u", after, 1); err != nil {
		t.Fatal(err)
	}
	network.peers = otherPod
	if err := f.updateHosts(t.Context(), "u", before, 1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dirs.Etc("u", 1), "hosts"))
	if err != nil || !strings.Contains(string(text), "new.example") || !strings.Contains(string(text), otherPod) {
		t.Errorf("%q, %v", text, err)
	}
}
