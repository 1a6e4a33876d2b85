package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// Fixture is a rig for one test. Its own methods call t.Fatal, so only the test's goroutine may call them.
type Fixture struct {
	*testing.T
	*Rig
	// Timeout limits each wait of the fixture's methods, and the contexts of [Fixture.Ctx].
	Timeout time.Duration

	images []string
	disks  []string // mount points in the rig's directory
}

// NewFixture creates a rig without a daemon. It is removed at the end of the test, which fails if that fails. Its pod files list the
// images by the names of their archives.
func NewFixture(t *testing.T, timeout time.Duration, images ...string) *Fixture {
	t.Helper()
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	f := &Fixture{T: t, Rig: r, Timeout: timeout, images: images}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the daemon's log:\n%s", r.EndOfLog())
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error("clean up:", err)
		}
	})
	return f
}

// Of returns the fixture for a subtest.
func (f *Fixture) Of(t *testing.T) *Fixture {
	part := *f
	part.T = t
	return &part
}

// CheckLeftovers runs a command at the end of a test that has not failed, such as one that stops the daemon. The test fails if anything
// is left after the timeout. Cleanups registered after this call run before it.
func (f *Fixture) CheckLeftovers(within time.Duration, command ...string) {
	f.Cleanup(func() {
		if f.Failed() {
			return // the failure explains what is left
		}
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(f.Context()), within, errors.New("timed out waiting for cleanup"))
		defer cancel()
		_, err := f.Podstead(ctx, command...)
		for _, disk := range f.disks {
			err = errors.Join(err, unix.Unmount(disk, unix.MNT_DETACH))
		}
		if err == nil {
			err = f.AwaitNoLeftovers(ctx)
		}
		if err != nil {
			f.Error(err)
		}
	})
}

// SmallDisk mounts a tmpfs on the rig's state directory until leftovers are checked. The options are those of tmpfs, such as "size=64m".
// It must be called before the first daemon starts.
func (f *Fixture) SmallDisk(options string) {
	f.Helper()
	f.Check(os.Mkdir(f.StateDir(), 0o711)) // same mode as the daemon's
	f.Check(unix.Mount("small", f.StateDir(), "tmpfs", 0, "mode=0711,"+options))
	f.disks = append(f.disks, f.StateDir())
}

// Ext4Disk mounts an ext4 file system on the rig's state directory until leftovers are checked, and returns a function that freezes it.
// The options are those of mkfs.ext4. It must be called before the first daemon starts.
func (f *Fixture) Ext4Disk(options ...string) (freeze func() (thaw func())) {
	f.Helper()
	image := filepath.Join(f.Dir, "disk")
	f.Check(os.Mkdir(f.StateDir(), 0o711)) // same mode as the daemon's
	for _, args := range [][]string{
		{"truncate", "-s", "128M", image},
		append(append([]string{"mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"}, options...), image),
		{"mount", "-o", "loop", image, f.StateDir()},
	} {
		if out, err := exec.CommandContext(f.Ctx(), args[0], args[1:]...).CombinedOutput(); err != nil {
			f.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	f.disks = append(f.disks, f.StateDir())
	return f.freezeDisk
}

// freezeDisk freezes the file system of the state directory. It thaws at the end of the test, or when the process of the test dies.
func (f *Fixture) freezeDisk() (thaw func()) {
	f.Helper()
	return f.whileRuns("frozen", `fsfreeze -f "$0" && echo frozen && read end; fsfreeze -u "$0"`, f.StateDir())
}

// Ctx returns a context that ends with the test, and well before the timeout of go test. Unlike the test's context, it can be used in
// cleanups.
func (f *Fixture) Ctx() context.Context {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(f.Context()), f.Timeout, errors.New("the test timed out"))
	f.Cleanup(cancel)
	return ctx
}

// Check ends the test if err is not nil.
func (f *Fixture) Check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Await waits until the condition holds.
func (f *Fixture) Await(holds func() error) {
	f.Helper()
	f.Check(Await(f.Ctx(), holds))
}

// MustRun runs a podstead command, which must succeed, and returns its output.
func (f *Fixture) MustRun(args ...string) string {
	f.Helper()
	out, err := f.Podstead(f.Ctx(), args...)
	f.Check(err)
	return out
}

// MustKillDaemon kills the daemon and returns when it is dead.
func (f *Fixture) MustKillDaemon() {
	f.Helper()
	f.Check(f.KillDaemon(f.Ctx()))
}

// PodText returns a pod file that lists the images, followed by text.
func (f *Fixture) PodText(name, text string) string {
	archives := make([]string, len(f.images))
	for i, image := range f.images {
		archives[i] = fmt.Sprintf("%q", f.Archive(image))
	}
	return fmt.Sprintf("name = %q\nimageArchives = [%s]\n", name, strings.Join(archives, ", ")) + text
}

// PodFile writes a [Fixture.PodText] and returns its path.
func (f *Fixture) PodFile(name, text string) (path string) {
	f.Helper()
	path, err := f.WritePod(name, f.PodText(name, text))
	f.Check(err)
	return path
}

// MustCreate creates the pod of a [Fixture.PodText]. A daemon must be running.
func (f *Fixture) MustCreate(name, text string) api.Pod {
	f.Helper()
	p, err := f.Create(f.Ctx(), name, f.PodText(name, text))
	f.Check(err)
	return p
}

// Until waits until ok holds for a pod, and returns the pod.
func (f *Fixture) Until(name, what string, ok func(p *api.Pod) bool) (p api.Pod) {
	f.Helper()
	f.Await(func() (err error) {
		p, err = f.Client().Pod(f.Ctx(), name)
		if err == nil && !ok(&p) {
			text, _ := json.Marshal(p.Status)
			err = fmt.Errorf("pod %s is not %s: %s", name, what, text)
		}
		return err
	})
	return p
}
