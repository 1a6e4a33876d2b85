package podfiles

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor"
)

// TestRandomEdits makes a thousand edits in a row, of all the kinds that editors and people make. They end in exactly the last valid
// state of each file.
func TestRandomEdits(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if seed%2 == 0 {
				b.compare = effectOfImage
			}
			b.write("fixed.toml", podText("fixed"))
			b.run()
			b.untilPods(map[string]string{"fixed": "fixed"})
			r := rand.New(rand.NewPCG(seed, 0))
			for i := range 1000 {
				b.edit(r, i)
				if r.IntN(100) == 0 {
					b.looks(1 + r.IntN(3))
				}
			}
			want := map[string]string{"fixed": "fixed"}
			for n := range 8 { // each file ends valid or removed
				name := fmt.Sprintf("p%d", n)
				_ = os.Remove(filepath.Join(b.dir, name+".toml.off"))
				_ = os.Remove(filepath.Join(b.dir, name+".toml"))
				if r.IntN(3) > 0 {
					b.write(name+".toml", podText("last"))
					want[name] = "last"
				}
			}
			b.untilPods(want)
			b.passes(300 * time.Millisecond)
			b.untilPods(want)
			if files := b.set.Files(); len(files) != len(want) || statesOf(files) != "" {
				t.Errorf("files %v, state %s", files, statesOf(files))
			}
		})
	}
}

// TestLastValidState: random edits that may leave a file invalid end in the last valid state that was there long enough to be seen.
func TestLastValidState(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("fixed.toml", podText("fixed"))
	b.run()
	want := map[string]string{"fixed": "fixed"}
	b.untilPods(want)
	r := rand.New(rand.NewPCG(7, 0))
	for i := range 40 {
		name := fmt.Sprintf("p%d", r.IntN(4))
		path := filepath.Join(b.dir, name+".toml")
		switch r.IntN(4) {
		case 0:
			b.must(os.WriteFile(path, []byte("image = "), 0o600))
		case 1:
			_ = os.Remove(path)
			delete(want, name)
		default:
			want[name] = fmt.Sprint(i)
			b.write(name+".toml", podText(want[name]))
		}
		b.untilPods(want)
	}
}

// edit makes a random edit of one of eight files.
func (b *bench) edit(r *rand.Rand, i int) {
	b.Helper()
	name := fmt.Sprintf("p%d.toml", r.IntN(8))
	path := filepath.Join(b.dir, name)
	valid := podText(fmt.Sprint(i))
	switch r.IntN(9) {
	case 0:
		_ = os.Remove(path)
	case 1:
		b.write(name, "image = ")
	case 2:
		b.write(name, valid[:len(valid)/2])
	case 3:
		b.write("."+name, valid)
		b.rename("."+name, name)
	case 4:
		_ = os.Rename(path, path+".off")
	case 5:
		_ = os.Rename(path+".off", path)
	case 6:
		b.write(name, named(fmt.Sprintf("p%d", r.IntN(8)), "renamed"))
	case 7:
		if r.IntN(20) == 0 {
			b.must(os.Rename(b.dir, b.dir+".away"))
			b.must(os.Rename(b.dir+".away", b.dir))
		}
		if r.IntN(20) == 0 {
			_ = b.Stop(b.Context(), fmt.Sprintf("p%d", r.IntN(8)), supervisor.StopOptions{Delete: true})
		}
	default:
		b.write(name, valid)
	}
}

// TestFilesChangedOneByOne: a file that defines another pod now ends its pod after a delay only. Git and others change one file after the
// other.
func TestFilesChangedOneByOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.times.removal = time.Hour
	b.write("web.toml", named("web", "a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	b.write("web.toml", named("site", "x"))
	b.untilPods(map[string]string{"web": "a", "site": "x"})
	b.looks(2)
	b.write("other.toml", named("web", "a"))
	b.until("the pod follows the other file", func() bool {
		return slices.ContainsFunc(b.Pods(), func(p supervisor.Snapshot) bool {
			return p.Pod.Name == "web" && p.Owner.File == filepath.Join(b.dir, "other.toml")
		})
	})
	if want := []string{"add web a", "add site x", "redefine web a"}; !slices.Equal(b.history(), want) {
		t.Errorf("changes %v, want %v", b.history(), want)
	}
}
