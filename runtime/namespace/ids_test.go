package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// ranges returns ranges in a temporary directory with these files of subordinate IDs.
func ranges(t *testing.T, subUID, subGID string) *IDRanges {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"subuid": subUID, "subgid": subGID} {
		if text == "" {
			continue // the file is missing
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return NewIDRanges(filepath.Join(dir, "state", "users.json"), filepath.Join(dir, "subuid"), filepath.Join(dir, "subgid"))
}

func mustAllocate(t *testing.T, r *IDRanges, uid string) uint32 {
	t.Helper()
	got, err := r.Allocate(uid)
	if err != nil {
		t.Fatal(err)
	}
	return got.First
}

func TestAllocate(t *testing.T) {
	r := ranges(t, "", "")
	for uid, want := range map[string]uint32{"a": IDRangeSize} {
		if got := mustAllocate(t, r, uid); got != want {
			t.Errorf("%s: %d, want %d", uid, got, want)
		}
	}
	b := mustAllocate(t, r, "b")
	if again := mustAllocate(t, r, "b"); again != b || b == IDRangeSize {
		t.Errorf("b has %d, then %d", b, again)
	}
	after := NewIDRanges(r.file, r.subUID, r.subGID) // after a restart
	if got, err := after.Find("b"); err != nil || got.First != b {
		t.Errorf("after a restart: %+v, %v, want %d", got, err, b)
	}
	if got := mustAllocate(t, after, "c"); got == IDRangeSize || got == b {
		t.Errorf("c has range %d of another pod", got)
	}
	if err := after.Release("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := after.Find("a"); err == nil {
		t.Error("a has a range after Release")
	}
	if got := mustAllocate(t, after, "d"); got != IDRangeSize {
		t.Errorf("d has %d, want the free range", got)
	}
	for _, uid := range []string{"b", "c", "d", "none"} {
		if err := after.Release(uid); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(r.file); !os.IsNotExist(err) {
		t.Errorf("file exists without pods: %v", err)
	}
}

func TestConcurrentAllocate(t *testing.T) {
	r := ranges(t, "", "")
	var (
		all sync.WaitGroup
		mu  sync.Mutex
		got = map[uint32]bool{}
	)
	for i := range 50 {
		all.Go(func() {
			a, err := r.Allocate(fmt.Sprint(i))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[a.First] = true
		})
	}
	all.Wait()
	if len(got) != 50 {
		t.Errorf("50 pods have %d ranges", len(got))
	}
}

func TestPool(t *testing.T) {
	const m = IDRangeSize
	for _, test := range []struct {
		name           string
		subUID, subGID string
		want           []uint32 // the first three
		err            string
	}{
		{name: "no subordinate IDs", want: []uint32{m, 2 * m, 3 * m}},
		{name: "subordinate IDs of a user", subUID: "me:100000:65536\n", want: []uint32{3 * m, 4 * m, 5 * m}},
		{name: "subordinate IDs of a group", subGID: "me:131072:10\nyou:196608:1\n", want: []uint32{m, 4 * m, 5 * m}},
		{name: "invalid lines", subUID: "# me\nme:x:1\nme:1\n\nme:131072:0\n", want: []uint32{m, 2 * m, 3 * m}},
		{
			name: "subordinate IDs for pods", subUID: "podstead:200000:200000\nme:65536:65536\n", subGID: "podstead:200000:200000\n",
			want: []uint32{4 * m, 5 * m},
		},
		{
			name: "two ranges for pods", subUID: "podstead:655360:65536\npodstead:65536:65536\n",
			subGID: "podstead:65536:65536\npodstead:655360:65536\n", want: []uint32{m, 10 * m},
		},
		{name: "system users are excluded", subUID: "podstead:0:131072\n", subGID: "podstead:0:131072\n", want: []uint32{m}},
		{name: "user IDs without group IDs", subUID: "podstead:65536:65536\n", err: "must be equal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := ranges(t, test.subUID, test.subGID)
			seq, err := idPool(r.subUID, r.subGID)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Collect(seq)
			if diff := cmp.Diff(test.want, got[:min(3, len(got))]); diff != "" {
				t.Errorf("ranges (-want +got):\n%s", diff)
			}
			if last := got[len(got)-1]; uint64(last)+IDRangeSize > idLimit {
				t.Errorf("last range starts at %d", last)
			}
		})
	}
}

func TestExhausted(t *testing.T) {
	r := ranges(t, "podstead:65536:65536\n", "podstead:65536:65536\n")
	mustAllocate(t, r, "a")
	if _, err := r.Allocate("b"); err == nil || !strings.Contains(err.Error(), "all 1 ranges") {
		t.Errorf("the second pod: %v", err)
	}
	if err := r.Release("a"); err != nil {
		t.Fatal(err)
	}
	mustAllocate(t, r, "b")
}

// A file that cannot be read is not overwritten, and a range that cannot be saved is not allocated.
func TestUnusableFile(t *testing.T) {
	for name, text := range map[string]string{"damaged": "{", "of a later version": `{"version":9,"pods":{"a":65536}}`} {
		t.Run(name, func(t *testing.T) {
			r := ranges(t, "", "")
			if err := os.MkdirAll(filepath.Dir(r.file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, allocated := r.Allocate("b")
			_, found := r.Find("a")
			released := r.Release("a")
			if !errors.Is(allocated, ErrUnreadableIDs) || !errors.Is(found, ErrUnreadableIDs) || !errors.Is(released, ErrUnreadableIDs) {
				t.Errorf("errors %v, %v, %v", allocated, found, released)
			}
			if now, _ := os.ReadFile(r.file); string(now) != text {
				t.Errorf("file content %q", now)
			}
		})
	}
	r := ranges(t, "", "")
	if err := os.WriteFile(filepath.Dir(r.file), nil, 0o600); err != nil { // a file in place of the directory
		t.Fatal(err)
	}
	r.loaded, r.pods = true, map[string]uint32{"a": IDRangeSize}
	if got, err := r.Allocate("b"); err == nil {
		t.Errorf("allocated without saving: %+v", got)
	}
	if err := r.Release("a"); err == nil {
		t.Error("Release without saving succeeded")
	}
	if got, err := r.Find("a"); err != nil || got.First != IDRangeSize {
		t.Errorf("after that: %+v, %v", got, err)
	}
	if _, err := r.Find("b"); err == nil {
		t.Error("b has a range")
	}
}

// TestUnknownFields: what a later version added to the file stays in it, also without pods. A file that only the later version understands
// is not changed.
func TestUnknownFields(t *testing.T) {
	r := ranges(t, "", "")
	if err := os.MkdirAll(filepath.Dir(r.file), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"version":2,"minReader":1,"pods":{"u":131072},"new":1}`)
	if err := r.Release("u"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(r.file); err != nil || !strings.Contains(string(text), `"new":1`) ||
		strings.Contains(string(text), "131072") {
		t.Errorf("file %s, %v", text, err)
	}
	const newer = `{"version":2,"pods":{"u":131072}}`
	write(newer)
	r = NewIDRanges(r.file, r.subUID, r.subGID)
	if err := r.Release("u"); !errors.Is(err, ErrUnreadableIDs) {
		t.Errorf("release: %v", err)
	}
	if text, err := os.ReadFile(r.file); err != nil || string(text) != newer {
		t.Errorf("file %s, %v", text, err)
	}
}

// TestKept tests that a kept ID is exchanged with root, and that the mappings agree with the translation for each ID.
func TestKept(t *testing.T) {
	for _, r := range []IDRange{{Kept: 1, Last: 65536}, {Kept: 1000, Last: 65536}, {Kept: 65535, Last: 65535}} {
		next := uint32(0)
		for _, m := range r.Mappings() {
			if m.ContainerID != next || m.Size == 0 {
				t.Errorf("%+v: %+v, want one from %d", r, m, next)
			}
			next = m.ContainerID + m.Size
			for _, i := range []uint32{0, m.Size - 1} {
				if got := r.Swap(m.ContainerID + i); got != m.HostID+i || r.Swap(got) != m.ContainerID+i {
					t.Errorf("%+v: %d is %d, want %d", r, m.ContainerID+i, got, m.HostID+i)
				}
			}
		}
		if next != r.Last+1 || !r.Own() || r.Swap(0) != r.Kept {
			t.Errorf("%+v: mapped to %d", r, next)
		}
	}
	if users, groups := (IDRange{}).Extents(); users != nil || groups != nil {
		t.Errorf("without a user namespace: %v, %v", users, groups)
	}
	if none := (IDRange{}); none.Own() || none.Mappings() != nil || none.Swap(0) != 0 || none.Swap(7) != 7 {
		t.Error("there is no user namespace")
	}
}

// TestCut tests that extents are cut where a line of the map of the daemon ends, in the order of the IDs in containers.
func TestCut(t *testing.T) {
	list := IDRange{Kept: 1000, Last: 65536}.Mappings()
	for _, test := range []struct {
		text string
		want []specs.LinuxIDMapping
	}{
		{" 0 1000 1\n 1 100000 65536\n", list},
		{" 0 1000 1\n 1 100000 999\n 1000 200000 64537\n", list},
		{" 1001 300000 64536\n 0 1000 1\n 1 100000 500\n 501 200000 500\n", []specs.LinuxIDMapping{
			{ContainerID: 0, HostID: 1000, Size: 1},
			{ContainerID: 1, HostID: 1, Size: 500},
			{ContainerID: 501, HostID: 501, Size: 499},
			{ContainerID: 1000, HostID: 0, Size: 1},
			{ContainerID: 1001, HostID: 1001, Size: 64536},
		}},
		{" 0 1000 1\n 1 100000 2000\n 2001 200000 70000\n", []specs.LinuxIDMapping{
			{ContainerID: 0, HostID: 1000, Size: 1},
			{ContainerID: 1, HostID: 1, Size: 999},
			{ContainerID: 1000, HostID: 0, Size: 1},
			{ContainerID: 1001, HostID: 1001, Size: 1000},
			{ContainerID: 2001, HostID: 2001, Size: 63536},
		}},
		{"", list},
	} {
		file := filepath.Join(t.TempDir(), "map")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := cut(list, file); !slices.Equal(got, test.want) {
			t.Errorf("%q: %+v, want %+v", test.text, got, test.want)
		}
	}
}
