package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/spec"
)

// Values provides the data of config maps and secrets, by key. The error for a missing object is [io/fs.ErrNotExist].
// Errors must not contain secret values, since they appear in the status of pods.
type Values interface {
	ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error)
	Secret(pod *spec.Pod, name string) (map[string][]byte, error)
}

// Options are the directories of volumes, which are required, and features of the host.
type Options struct {
	DataDir   string // directories of pods
	RunDir    string // cleared at boot
	ClaimsDir string // persistent volumes

	// HostPaths are the directories below which hostPath volumes are allowed, after all links are resolved. Nil, or a
	// list with "/", allows all paths.
	HostPaths []string

	// Unbindable are the directories that contain the mounts of pods, each an unbindable mount, without symbolic links in its path.
	Unbindable []string
	// Protected are paths that a hostPath volume must neither contain nor be below, unless the container is privileged.
	// Missing ones are ignored.
	Protected []string

	// MemoryBytes is the memory for all pods, which limits each emptyDir in memory. The default is the memory of the
	// host.
	MemoryBytes int64
	// Rootless is true for a daemon that is root in the user namespace of an ordinary user only.
	Rootless bool
}

func (o Options) withDefaults() (Options, error) {
	if o.MemoryBytes <= 0 {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return o, fmt.Errorf("get memory of the host: %w", err)
		}
		o.MemoryBytes = int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // 32 bits wide elsewhere
	}
	return o, nil
}

// Set manages the volumes of all pods on a host. It is safe for concurrent use. Calls for one pod are serialized.
//
// Every method with a context returns when the context ends, even if the kernel blocks in an unresponsive file system.
// The blocked operation continues in the background, and further calls for the pod wait for it.
type Set struct {
	values Values
	opts   Options
	locks  guard.KeyedMutex
	files  guard.FileUsers
}

// New creates missing directories of o with access for root only.
func New(values Values, o Options) (*Set, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	for _, dir := range []*string{&o.DataDir, &o.RunDir, &o.ClaimsDir} {
		if *dir, err = makeDir(*dir); err != nil {
			return nil, fmt.Errorf("directory of volumes: %w", err)
		}
	}
	s := &Set{values: values, opts: o}
	if err := s.setLeftAside(); err != nil {
		return nil, fmt.Errorf("find unfinished imports and removals of volumes: %w", err)
	}
	return s, nil
}

// makeDir creates a directory with access for root only, and returns its path without links, by which the kernel lists mounts.
func makeDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// Pod is a pod with volumes.
type Pod struct {
	UID  string
	Spec *spec.Pod
	// Field returns a field of the pod, such as "metadata.labels", and Resource a request or limit of a container, for
	// downward API files. A nil divisor means 1. Both may be nil if no volume uses them.
	Field    func(fieldPath string) (string, error)
	Resource func(container, resource string, divisor *spec.Quantity) (string, error)
}

// fsGroup returns the group that owns the pod's volumes, or nil.
func (p Pod) fsGroup() *int64 {
	if p.Spec.SecurityContext == nil {
		return nil
	}
	group := p.Spec.SecurityContext.FSGroup
	if group != nil && p.Spec.KeepID != nil {
		ids := namespace.IDRange{Kept: uint32(*p.Spec.KeepID)}
		return new(int64(ids.Swap(uint32(*group)))) // the pod file was checked
	}
	return group
}

// onRootMismatch reports whether files of a volume are skipped if its root directory has the right group and mode.
func (p Pod) onRootMismatch() bool {
	return p.Spec.SecurityContext != nil && p.Spec.SecurityContext.FSGroupChangePolicy == "OnRootMismatch"
}

func (s *Set) diskDir(uid string) string     { return filepath.Join(s.opts.DataDir, uid, "volumes") }
func (s *Set) runDir(uid string) string      { return filepath.Join(s.opts.RunDir, uid) }
func (s *Set) memoryDir(uid string) string   { return filepath.Join(s.runDir(uid), "memory") }
func (s *Set) filesDir(uid string) string    { return filepath.Join(s.runDir(uid), "files") }
func (s *Set) subPathsDir(uid string) string { return filepath.Join(s.runDir(uid), "subpaths") }

// path returns the directory of a volume other than hostPath and image.
func (s *Set) path(uid string, v *spec.Volume) string {
	switch {
	case v.EmptyDir != nil && v.EmptyDir.Medium != "":
		return filepath.Join(s.memoryDir(uid), v.Name)
	case v.EmptyDir != nil:
		return filepath.Join(s.diskDir(uid), v.Name)
	case v.PersistentVolumeClaim != nil:
		return s.claimDir(v.PersistentVolumeClaim.ClaimName)
	}
	return filepath.Join(s.filesDir(uid), v.Name)
}

// checkName reports a name that is not a single path element. Hidden names are invalid too, since they are used for
// temporary files.
func checkName(kind, name string) error {
	if name == "" || name[0] == '.' || len(name) > 253 || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%s %q is not a valid name", kind, name)
	}
	return nil
}

// withPod runs f while it holds the lock of a pod. It returns early when ctx ends.
func withPod[T any](ctx context.Context, s *Set, uid string, f func(context.Context) (T, error)) (T, error) {
	if err := checkName("pod UID", uid); err != nil {
		var none T
		return none, err
	}
	return exclusive(ctx, &s.locks, "pod/"+uid, f)
}

// exclusive runs f while it holds the lock of a key. If ctx ends first, exclusive returns and f keeps the lock until it
// returns.
func exclusive[T any](ctx context.Context, l *guard.KeyedMutex, name string, f func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	release, err := l.Lock(ctx, name)
	if err != nil {
		return none, fmt.Errorf("wait for other operations on volumes of %s: %w", name, err)
	}
	done := make(chan outcome, 1)
	go func() {
		defer release()
		value, err := f(ctx)
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return none, fmt.Errorf("volumes of %s: file system did not respond in time: %w", name, ctx.Err())
	}
}

// errorList joins errors on one line, for the status of a pod.
type errorList []error

func (p errorList) Error() string {
	texts := make([]string, len(p))
	for i, err := range p {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap supports errors.Is and errors.As.
func (p errorList) Unwrap() []error { return p }

// err returns nil if the list is empty.
func (p errorList) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
