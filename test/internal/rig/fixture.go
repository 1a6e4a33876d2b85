package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// Fixture is a rig for one test. Its own methods end the test where they fail, so they are for the test's goroutine only.
type Fixture struct {
	*testing.T
	*Rig
	// Patience bounds each wait of the fixture's methods, and what is done with a [Fixture.Ctx].
	Patience time.Duration

	images []string
	disks  []string // mount points, each of which is in the rig's folder
}

// NewFixture makes a rig, without a daemon yet, that is cleared away when the test is over, or the test fails. Its pod files know
// the images, by the names of their archives.
func NewFixture(t *testing.T, patience time.Duration, images ...string) *Fixture {
	t.Helper()
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	f := &Fixture{T: t, Rig: r, Patience: patience, images: images}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the daemon's log:\n%s", r.EndOfLog())
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error("clear away:", err)
		}
	})
	return f
}

// Of is the fixture for a part of its test.
func (f *Fixture) Of(t *testing.T) *Fixture {
	part := *f
	part.T = t
	return &part
}

// CheckLeftovers has a test that has not failed end with a command, such as one that stops the daemon, and fail where anything is
// left so long after the command began. What the test cleans up at its end comes before if it is made known after this call.
func (f *Fixture) CheckLeftovers(within time.Duration, command ...string) {
	f.Cleanup(func() {
		if f.Failed() {
			return // what there is then is the failure's
		}
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(f.Context()), within, errors.New("it does not go"))
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

// SmallDisk gives the rig's state a disk of its own, on memory, until leftovers are looked for. The options are those of a tmpfs,
// such as "size=64m". It comes before the first daemon.
func (f *Fixture) SmallDisk(options string) {
	f.Helper()
	f.Check(os.Mkdir(f.StateDir(), 0o711)) // as the daemon makes it
	f.Check(unix.Mount("small", f.StateDir(), "tmpfs", 0, "mode=0711,"+options))
	f.disks = append(f.disks, f.StateDir())
}

// Ctx ends with the test, and well before go test gives up on all of them. Unlike the test's own context it serves cleanups, too.
func (f *Fixture) Ctx() context.Context {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(f.Context()), f.Patience, errors.New("the test waited too long"))
	f.Cleanup(cancel)
	return ctx
}

// Check ends the test at an error.
func (f *Fixture) Check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Await returns when the condition holds.
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

// MustKillDaemon kills the daemon that answers and returns when it is dead.
func (f *Fixture) MustKillDaemon() {
	f.Helper()
	f.Check(f.KillDaemon(f.Ctx()))
}

// PodText is a pod file that knows the images. The text has the rest, its top first.
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

// MustCreate has the daemon, which there must be, run the pod of a [Fixture.PodText].
func (f *Fixture) MustCreate(name, text string) api.Pod {
	f.Helper()
	p, err := f.Create(f.Ctx(), name, f.PodText(name, text))
	f.Check(err)
	return p
}

// Until waits for a state of a pod, which ok reports, and returns the pod.
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
