package stats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// sized are volumes and directories with a size. A directory that is not in bytes cannot be measured.
type sized struct {
	mu    sync.Mutex
	bytes map[string]int64
	takes time.Duration
	calls int
}

func (*sized) Usage(context.Context, volume.Pod) ([]volume.Usage, error)    { return nil, nil }
func (*sized) ImageDefinedDirs(_, _ string) ([]string, error)               { return nil, nil }
func (*sized) Failed(context.Context, volume.Pod) (message string, _ error) { return "", nil }

func (s *sized) DiskUsage(_ context.Context, _ string, dirs ...string) (total volume.TreeUsage, err error) {
	s.mu.Lock()
	s.calls++
	takes := s.takes
	s.mu.Unlock()
	time.Sleep(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range dirs {
		n, ok := s.bytes[dir]
		if !ok {
			return total, fmt.Errorf("measure %s: no such directory", dir)
		}
		total.Bytes += n
		total.Counted += 10 * n
	}
	return total, nil
}

// count returns the number of calls.
func (s *sized) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func newSized(t *testing.T) (*DiskMonitor, *sized) {
	t.Helper()
	s := &sized{bytes: map[string]int64{"/logs/a": 100, "/layer/a": 15, "/volume/a": 5, "/logs/b": 3}}
	m := NewDiskMonitor(nil, s, record.Dirs{}, 10*time.Second, slog.New(slog.DiscardHandler))
	m.find = func(context.Context, string, *spec.Pod) (map[string]containerDirectories, error) {
		dirs := map[string]containerDirectories{
			"a": {logs: "/logs/a", layer: []string{"/layer/a", "/volume/a"}}, "b": {logs: "/logs/b"}, "c": {logs: "/logs/c"},
		}
		return dirs, errors.New("one layer is missing")
	}
	return m, s
}

// TestDisk: a measurement is used again until it is older than the interval, and what cannot be measured is missing.
func TestDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newSized(t)
		want := map[string]ContainerDisk{"a": {Layer: new(int64(20)), Logs: new(int64(100))}, "b": {Logs: new(int64(3))}, "c": {}}
		first := m.Disk(t.Context(), "u", &spec.Pod{})
		if diff := cmp.Diff(want, first.Containers); diff != "" || !first.At.Equal(time.Now()) {
			t.Errorf("measured at %v (-want +got):\n%s", first.At, diff)
		}
		if diff := cmp.Diff(map[string]int64{"a": 1200, "b": 30}, first.counted); diff != "" {
			t.Errorf("what counts for limits (-want +got):\n%s", diff)
		}
		calls := s.count()
		time.Sleep(9 * time.Second)
		if again := m.Disk(t.Context(), "u", &spec.Pod{}); !again.At.Equal(first.At) || s.count() != calls {
			t.Errorf("after 9s: measured again, at %v", again.At)
		}
		time.Sleep(2 * time.Second)
		if again := m.Disk(t.Context(), "u", &spec.Pod{}); !again.At.Equal(time.Now()) || s.count() == calls {
			t.Errorf("after 11s: measured at %v", again.At)
		}
		time.Sleep(2 * keepDisk)
		m.Disk(t.Context(), "other", &spec.Pod{})
		if old := m.disks.get("u"); !old.At.IsZero() {
			t.Error("an old measurement is kept")
		}
	})
}

// TestDiskIsBounded: requests do not wait for a file system that does not respond longer than their context. They get the older
// measurement, and the pod is not measured a second time meanwhile.
func TestDiskIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newSized(t)
		first := m.Disk(t.Context(), "u", &spec.Pod{})
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.takes = time.Hour
		s.mu.Unlock()
		calls, started := s.count(), time.Now()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if got := m.Disk(ctx, "u", &spec.Pod{}); !got.At.Equal(first.At) {
				t.Errorf("measured at %v, want %v", got.At, first.At)
			}
			cancel()
		}
		if took := time.Since(started); took != 3*time.Second || s.count() != calls+1 {
			t.Errorf("took %v with %d calls", took, s.count()-calls)
		}
		time.Sleep(10 * time.Hour)
		if got := m.Disk(t.Context(), "u", &spec.Pod{}); got.At.Equal(first.At) {
			t.Error("not measured again after the file system has responded")
		}
		// A long measurement is not repeated for some time.
		calls = s.count()
		time.Sleep(time.Hour)
		if m.Disk(t.Context(), "u", &spec.Pod{}); s.count() != calls {
			t.Error("measured again at once after a long measurement")
		}
	})
}

// TestEvictionMeasurementIsUsed: the disk usage that is measured for a limit is that of the next request.
func TestEvictionMeasurementIsUsed(t *testing.T) {
	m, s := newSized(t)
	pod := &spec.Pod{Containers: []spec.Container{{Name: "a"}}}
	if _, err := m.measureDisk(t.Context(), "u", pod); err == nil {
		t.Error("no error about what cannot be measured")
	}
	calls := s.count()
	if got := m.Disk(t.Context(), "u", pod); len(got.Containers) != 3 || s.count() != calls {
		t.Errorf("%+v, %d more calls", got, s.count()-calls)
	}
	m.disks.forget("u")
	if diff := cmp.Diff(Disk{}, m.disks.get("u"), cmpopts.IgnoreUnexported(Disk{})); diff != "" {
		t.Errorf("after forget: %s", diff)
	}
}

// TestWithoutImage: the copy of an image does not count as the usage of a container, and what the container adds does.
func TestWithoutImage(t *testing.T) {
	const kib = 1 << 10
	image := snapshots.Usage{Size: 100 * kib, Inodes: 10}
	for _, test := range []struct{ used, want volume.TreeUsage }{
		{volume.TreeUsage{Bytes: 100 * kib, Files: 10, Counted: 120 * kib}, volume.TreeUsage{}},
		{ // a file of 50 KiB
			volume.TreeUsage{Bytes: 150 * kib, Files: 11, Counted: 170 * kib},
			volume.TreeUsage{Bytes: 50 * kib, Files: 1, Counted: 50 * kib},
		},
		{ // 100 empty files
			volume.TreeUsage{Bytes: 100 * kib, Files: 110, Counted: 520 * kib},
			volume.TreeUsage{Files: 100, Counted: 380 * kib},
		},
		{volume.TreeUsage{Bytes: 20 * kib, Files: 5, Counted: 20 * kib}, volume.TreeUsage{}}, // files of the image were removed
		{
			volume.TreeUsage{Bytes: volume.MaxUsage, Counted: volume.MaxUsage},
			volume.TreeUsage{Bytes: volume.MaxUsage, Counted: volume.MaxUsage},
		},
	} {
		if got := without(test.used, image); got != test.want {
			t.Errorf("%+v: got %+v, want %+v", test.used, got, test.want)
		}
	}
}
