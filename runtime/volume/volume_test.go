package volume

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// fakeValues are config maps and secrets in memory.
type fakeValues struct {
	mu         sync.Mutex
	configMaps map[string]map[string]string
	secrets    map[string]map[string]string
	err        error // returned by all calls
}

func (f *fakeValues) ConfigMap(_ *spec.Pod, name string) (map[string][]byte, error) {
	return f.get(f.configMaps, name)
}

func (f *fakeValues) Secret(_ *spec.Pod, name string) (map[string][]byte, error) {
	return f.get(f.secrets, name)
}

func (f *fakeValues) get(all map[string]map[string]string, name string) (map[string][]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	object, ok := all[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	values := map[string][]byte{}
	for k, v := range object {
		values[k] = []byte(v)
	}
	return values, nil
}

func (f *fakeValues) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// newSet returns a set in a temporary directory.
func newSet(t *testing.T, values Values) *Set {
	t.Helper()
	dir := t.TempDir()
	s, err := New(values, Options{
		DataDir: filepath.Join(dir, "data"), RunDir: filepath.Join(dir, "run"), ClaimsDir: filepath.Join(dir, "claims"),
		MemoryBytes: 1 << 30,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func quantity(text string) *spec.Quantity { return new(resource.MustParse(text)) }

// podOf returns a pod with these volumes. Its fields and resources return their own names.
func podOf(volumes ...spec.Volume) Pod {
	return Pod{
		UID: "uid-1", Spec: &spec.Pod{Name: "web", Volumes: volumes},
		Field: func(path string) (string, error) {
			if path == "status.podIP" {
				return "", errors.New("no address yet")
			}
			return "field " + path, nil
		},
		Resource: func(container, resource string, divisor *spec.Quantity) (string, error) {
			text := container + " " + resource
			if divisor != nil {
				text += " / " + divisor.String()
			}
			return text, nil
		},
	}
}

// While a call is blocked in the kernel, calls for the pod return when their context ends, other pods are not affected,
// and the blocked call completes in the background.
func TestStuck(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newSet(t, nil)
	unstuck, finished := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan struct{})
	go func() {
		<-entered
		cancel()
	}()
	_, err := withPod(ctx, s, "uid-1", func(context.Context) (int, error) {
		close(entered)
		<-unstuck
		close(finished)
		return 1, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("blocked call: %v", err)
	}
	if err := s.Prepare(ctx, podOf()); !errors.Is(err, context.Canceled) {
		t.Errorf("another call for the pod: %v", err)
	}
	other := podOf()
	other.UID = "uid-2"
	if err := s.Prepare(t.Context(), other); err != nil {
		t.Errorf("another pod: %v", err)
	}
	close(unstuck)
	<-finished
	if err := s.Prepare(t.Context(), podOf()); err != nil {
		t.Errorf("the pod after unblocking: %v", err)
	}
}

func TestInvalidNames(t *testing.T) {
	s := newSet(t, nil)
	for _, uid := range []string{"", ".", "..", "a/b", ".hidden", "a\x00b", strings.Repeat("x", 254)} {
		pod := podOf()
		pod.UID = uid
		_, updateErr := s.Update(t.Context(), pod.UID, func() (Pod, error) { return pod, nil })
		_, mountsErr := s.Mounts(t.Context(), pod, Request{Container: &spec.Container{}, Run: "run"})
		_, runErr := s.Mounts(t.Context(), podOf(), Request{Container: &spec.Container{}, Run: uid})
		for name, err := range map[string]error{
			"Prepare": s.Prepare(t.Context(), pod), "Update": updateErr, "Mounts": mountsErr, "Mounts of a run": runErr,
			"Teardown": s.Teardown(t.Context(), uid), "Release": s.Release(t.Context(), "uid-1", uid),
		} {
			if err == nil || !strings.Contains(err.Error(), "is not a valid name") {
				t.Errorf("%s of %q: %v", name, uid, err)
			}
		}
		volume := podOf(spec.Volume{Name: uid, EmptyDir: &spec.EmptyDirVolume{}})
		filetest.WantError(t, s.Prepare(t.Context(), volume), "is not a valid name")
	}
}

// The error lists all volumes that cannot be set up, and the others are ready.
func TestPrepareReportsAllErrors(t *testing.T) {
	s := newSet(t, &fakeValues{})
	missing := filepath.Join(t.TempDir(), "missing")
	pod := podOf(
		spec.Volume{Name: "first", HostPath: &spec.HostPathVolume{Path: missing, Type: spec.HostPathDirectory}},
		spec.Volume{Name: "second", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "third"},
		spec.Volume{Name: "image", Image: &spec.ImageVolume{Reference: "x"}},
	)
	err := s.Prepare(t.Context(), pod)
	want := `volume "first": hostPath type check failed: ` + missing + ` is not a directory: it does not exist; ` +
		`volume "third": a volume source is required`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if mode := filetest.Stat(t, s.path("uid-1", &pod.Spec.Volumes[1])).Mode; mode != unix.S_IFDIR|0o777 {
		t.Errorf("emptyDir: mode %o", mode)
	}
}

func TestNewFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	filetest.Write(t, file, "")
	if _, err := New(nil, Options{DataDir: file, RunDir: file, ClaimsDir: file}); err == nil {
		t.Error("no error for a file in place of a directory")
	}
}

func TestDefaults(t *testing.T) {
	o, err := Options{}.withDefaults()
	if err != nil || o.MemoryBytes < 1<<20 {
		t.Errorf("defaults: %+v, %v", o, err)
	}
}

// The error for a directory that cannot be created names the volume.
func TestPrepareWithoutDirectory(t *testing.T) {
	values := &fakeValues{configMaps: map[string]map[string]string{"shop": {"a": "1"}}}
	for _, volume := range []spec.Volume{
		{Name: "data", EmptyDir: &spec.EmptyDirVolume{}},
		{Name: "data", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}},
		{Name: "data", ConfigMap: &spec.ConfigMapVolume{Name: "shop"}},
	} {
		s := newSet(t, values)
		filetest.Write(t, s.runDir("uid-1"), "")
		filetest.Write(t, filepath.Join(s.opts.DataDir, "uid-1"), "")
		filetest.WantError(t, s.Prepare(t.Context(), podOf(volume)), `volume "data": mkdir `)
	}
	s := newSet(t, values)
	volume := spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}
	if err := s.Prepare(t.Context(), podOf(volume)); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, s.subPathsDir("uid-1"), "")
	_, err := s.Mounts(t.Context(), podOf(volume), Request{Run: "run", Container: &spec.Container{
		VolumeMounts: []spec.VolumeMount{{Name: "data", MountPath: "/data", SubPath: "a"}},
	}})
	filetest.WantError(t, err, "not a directory")
}
