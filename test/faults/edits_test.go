//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// edits makes random edits of pod files.
type edits struct {
	*podsDir
	r    *rand.Rand
	want map[string]string // markers, by pod
	held map[string]bool   // pods whose file does not define what runs
	name map[string]string // files, by pod
}

// file is the path of the file of a pod.
func (e *edits) file(pod string) string { return filepath.Join(e.path, e.name[pod]+".toml") }

// put replaces the file of a pod by a rename, a link that is swapped, or a write.
func (e *edits) put(i int, pod, text string) {
	e.Helper()
	if e.name[pod] == "" {
		e.name[pod] = pod
	}
	temporary, target := filepath.Join(e.path, "."+pod), filepath.Join(e.Dir, fmt.Sprintf("edit-%d", i))
	info, err := os.Lstat(e.file(pod))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.Fatal(err)
	}
	switch kind := e.r.IntN(3); {
	case kind == 0:
		e.Check(errors.Join(os.WriteFile(target, []byte(text), 0o600), os.Symlink(target, temporary), os.Rename(temporary, e.file(pod))))
	case kind == 1 || info != nil && info.Mode().Type() == fs.ModeSymlink: // the target of a link is looked at once a minute
		e.Check(errors.Join(os.WriteFile(temporary, []byte(text), 0o600), os.Rename(temporary, e.file(pod))))
	default:
		e.Check(os.WriteFile(e.file(pod), []byte(text), 0o600))
	}
}

// drop removes the file of a pod.
func (e *edits) drop(pod string) {
	e.remove(e.name[pod])
	delete(e.want, pod)
	delete(e.held, pod)
	delete(e.name, pod)
}

// settled waits until all pods run what they should, and the last definition of one was ready.
func (e *edits) settled(pod string) {
	e.Helper()
	e.until(e.want)
	e.Await(func() error {
		r, err := e.Client().Rollout(e.Ctx(), pod)
		if err == nil {
			if g := r.Find(r.Running); g == nil || g.Outcome != api.GenerationReady {
				err = fmt.Errorf("generations of %s: %+v", pod, r)
			}
		}
		return err
	})
}

// edit makes one edit.
func (e *edits) edit(i int) {
	e.Helper()
	pod := fmt.Sprintf("p%d", e.r.IntN(4))
	exists := e.name[pod] != ""
	switch kind := e.r.IntN(10); {
	case kind == 0 && exists:
		e.drop(pod)
	case kind == 1 && !exists:
		e.put(i, pod, "broken = ")
		e.drop(pod) // before or after it is seen
	case kind == 2 && exists && !e.held[pod]:
		e.settled(pod)
		e.put(i, pod, "broken = ")
		e.held[pod] = true
	case kind == 3 && exists && !e.held[pod]:
		e.settled(pod)
		e.put(i, pod, e.PodText(pod, "terminationGracePeriodSeconds = 1\nupdate = { onFailure = \"rollback\" }\n"+
			container("c", fmt.Sprintf(": marker=broken%d; exit 3", i))))
		e.held[pod] = true
	case kind == 4 && exists && !e.held[pod]:
		old := e.file(pod)
		e.name[pod] = fmt.Sprintf("%s-renamed%d", pod, i)
		e.Check(os.Rename(old, e.file(pod)))
	case kind == 5 && exists:
		now := time.Now()
		e.Check(os.Chtimes(e.file(pod), now, now))
	default:
		e.want[pod] = fmt.Sprint("w", i)
		e.put(i, pod, e.text(pod, e.want[pod]))
		delete(e.held, pod)
	}
}

// TestRandomEdits makes random edits of pod files, and kills the daemon at random moments. They end in exactly the last valid state of
// each file, and nothing is left behind. make soak makes a thousand edits.
func TestRandomEdits(t *testing.T) {
	d := newPodsDir(t)
	d.keep("fixed")
	e := &edits{
		podsDir: d, r: rig.Seeded(t), want: map[string]string{"fixed": "x"}, held: map[string]bool{},
		name: map[string]string{"fixed": "fixed"},
	}
	e.until(e.want)
	n := 50
	if factor := rig.Times(t); factor > 1 {
		n = 100 * factor
	}
	for i := range n {
		e.edit(i)
		for range e.r.IntN(3) {
			d.MustRun("get")
		}
		if e.r.IntN(10) == 0 {
			d.MustRun("get") // a daemon may not run
			d.MustKillDaemon()
		}
		if e.r.IntN(15) == 0 {
			e.until(e.want)
		}
	}
	e.until(e.want)
	if got := d.files(); !slices.Contains(got, "fixed") || len(got) != len(e.want) {
		t.Errorf("files %v, want those of %v", got, e.want)
	}
}
