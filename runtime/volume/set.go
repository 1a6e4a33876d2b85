package volume

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/keyedmutex"
	"github.com/podstead/podstead/spec"
)

// Values gives the content of config maps and secrets, by key. What is not there is an error that is
// [io/fs.ErrNotExist]. No error may hold a secret's value: it becomes part of a pod's status.
type Values interface {
	ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error)
	Secret(pod *spec.Pod, name string) (map[string][]byte, error)
}

// Options say where volumes lie and what the machine can do. The zero value of each is its default.
type Options struct {
	DataDir   string // the pods' folders; /var/lib/podstead/pods
	RunDir    string // what is void after a boot; /run/podstead/volumes
	ClaimsDir string // the persistent volumes; /var/lib/podstead/volumes

	// HostPaths are folders of the machine below which hostPath volumes may lie, with every link followed; nil, or with "/"
	// among them: anywhere.
	HostPaths []string

	// MemoryBytes is the memory that pods can have together, which bounds each emptyDir in memory; all of the machine's.
	MemoryBytes int64
	// RecursiveReadOnly says that the kernel (5.12) and the OCI runtime can make a whole tree of mounts read-only.
	RecursiveReadOnly bool
}

func (o Options) withDefaults() (Options, error) {
	o.DataDir = cmp.Or(o.DataDir, "/var/lib/podstead/pods")
	o.RunDir = cmp.Or(o.RunDir, "/run/podstead/volumes")
	o.ClaimsDir = cmp.Or(o.ClaimsDir, "/var/lib/podstead/volumes")
	if o.MemoryBytes <= 0 {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return o, fmt.Errorf("look at the machine's memory: %w", err)
		}
		o.MemoryBytes = int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // 32 bits wide elsewhere
	}
	return o, nil
}

// Set is the volumes of all pods of a machine. It is safe for concurrent use. Calls for one pod wait for each other.
//
// Every method that takes a context returns when that ends, even if the kernel is stuck in a file system that does not
// answer. What is stuck goes on by itself, and further calls for the pod wait for it.
type Set struct {
	values Values
	opts   Options
	locks  keyedmutex.Mutex
}

// New returns the volumes below the folders of o, which it makes where they are missing, for root alone.
func New(values Values, o Options) (*Set, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	for _, dir := range []*string{&o.DataDir, &o.RunDir, &o.ClaimsDir} {
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			return nil, fmt.Errorf("make folder of volumes: %w", err)
		}
		// The kernel lists mounts by their real path.
		path, err := filepath.EvalSymlinks(*dir)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return nil, fmt.Errorf("find folder of volumes: %w", err)
		}
		*dir = path
	}
	return &Set{values: values, opts: o}, nil
}

// Pod is whose volumes are meant.
type Pod struct {
	UID  string
	Spec *spec.Pod
	// Field gives a field of the pod, such as "metadata.labels", and Resource a request or limit of a container, for
	// files of the downward API. A nil divisor stands for one. They may be nil where no volume asks for them.
	Field    func(fieldPath string) (string, error)
	Resource func(container, resource string, divisor *spec.Quantity) (string, error)
}

// fsGroup is the group that the pod's own volumes are given to, or nil.
func (p Pod) fsGroup() *int64 {
	if p.Spec.SecurityContext == nil {
		return nil
	}
	return p.Spec.SecurityContext.FSGroup
}

// onRootMismatch says that a volume whose root belongs to the fsGroup is not walked again.
func (p Pod) onRootMismatch() bool {
	return p.Spec.SecurityContext != nil && p.Spec.SecurityContext.FSGroupChangePolicy == "OnRootMismatch"
}

func (s *Set) diskDir(uid string) string     { return filepath.Join(s.opts.DataDir, uid, "volumes") }
func (s *Set) runDir(uid string) string      { return filepath.Join(s.opts.RunDir, uid) }
func (s *Set) memoryDir(uid string) string   { return filepath.Join(s.runDir(uid), "memory") }
func (s *Set) filesDir(uid string) string    { return filepath.Join(s.runDir(uid), "files") }
func (s *Set) subPathsDir(uid string) string { return filepath.Join(s.runDir(uid), "subpaths") }

// path is where a volume lies that is not the machine's own path or an image.
func (s *Set) path(uid string, v *spec.Volume) string {
	switch {
	case v.EmptyDir != nil && v.EmptyDir.Medium == "Memory":
		return filepath.Join(s.memoryDir(uid), v.Name)
	case v.EmptyDir != nil:
		return filepath.Join(s.diskDir(uid), v.Name)
	case v.PersistentVolumeClaim != nil:
		return s.claimDir(v.PersistentVolumeClaim.ClaimName)
	}
	return filepath.Join(s.filesDir(uid), v.Name)
}

// checkName refuses what is not the name of one entry of a folder, or is hidden, as our own temporary ones are.
func checkName(kind, name string) error {
	if name == "" || name[0] == '.' || len(name) > 253 || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%s %q is not a name", kind, name)
	}
	return nil
}

// do runs f alone for a pod, and returns its results or the end of ctx.
func do[T any](ctx context.Context, s *Set, uid string, f func(context.Context) (T, error)) (T, error) {
	if err := checkName("pod UID", uid); err != nil {
		var none T
		return none, err
	}
	return alone(ctx, &s.locks, "pod/"+uid, f)
}

// alone runs f while it holds the lock of this name, which f keeps if ctx ends before it does.
func alone[T any](ctx context.Context, l *keyedmutex.Mutex, name string, f func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	release, err := l.Lock(ctx, name)
	if err != nil {
		return none, fmt.Errorf("wait for what is under way with the volumes of %s: %w", name, err)
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
		return none, fmt.Errorf("volumes of %s: a file system does not answer in time: %w", name, ctx.Err())
	}
}

// problems is every error of one call, on one line: it is read in a pod's status.
type problems []error

func (p problems) Error() string {
	texts := make([]string, len(p))
	for i, err := range p {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.Is and errors.As see each.
func (p problems) Unwrap() []error { return p }

// err is nil if there are none.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
