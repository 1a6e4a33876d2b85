package podfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/podfiles/watch"
)

// TestObserve: a directory is lost, and not emptied, unless its files were seen being removed.
func TestObserve(t *testing.T) {
	t.Parallel()
	a, b := listingOf(t), listingOf(t)
	with := func(l watch.Listing, names ...string) observation {
		for _, name := range names {
			l.Files = append(l.Files, watch.File{Name: name})
		}
		return observation{listing: l}
	}
	missing := observation{err: fs.ErrNotExist}
	unreadable := observation{err: errors.New("input/output error")}
	removed := func(o observation, names ...string) observation {
		o.removed = map[string]bool{}
		for _, name := range names {
			o.removed[name] = true
		}
		return o
	}
	for _, test := range []struct {
		name string
		seen []observation
		lost bool
	}{
		{"empty at boot", []observation{with(a)}, true},
		{"missing at boot", []observation{missing}, true},
		{"unreadable at boot", []observation{unreadable}, true},
		{"vanished", []observation{with(a, "x", "y"), missing}, true},
		{"unreadable", []observation{with(a, "x"), unreadable}, true},
		{"replaced by an empty directory", []observation{with(a, "x"), with(b)}, true},
		{"replaced by another directory", []observation{with(a, "x", "y"), with(b, "x")}, false},
		{"one of two files removed", []observation{with(a, "x", "y"), with(a, "x")}, false},
		{"all files removed between listings", []observation{with(a, "x", "y"), with(a, "x"), with(a)}, false},
		{"the only file removed", []observation{with(a, "x"), with(a)}, false},
		{"all files missing in one listing", []observation{with(a, "x", "y"), with(a)}, true},
		{"all files removed one by one before one listing", []observation{with(a, "x", "y"), removed(with(a), "x", "y")}, false},
		{"one removal not noticed", []observation{with(a, "x", "y"), removed(with(a), "x")}, true},
		{"the last removal noticed late", []observation{with(a, "x", "y"), removed(with(a), "x"), removed(with(a), "y")}, false},
		{"emptied, later listings", []observation{with(a, "x"), with(a), with(a)}, false},
		{"emptied, then vanished", []observation{with(a, "x"), with(a), missing}, true},
		{"vanished, returned without files", []observation{with(a, "x"), missing, with(a)}, true},
		{"vanished, returned with a file", []observation{with(a, "x"), missing, with(a, "y")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var d directory
			for i, o := range test.seen {
				d = d.observe(&o.listing, o.err, o.removed, true, time.Unix(int64(i), 0), time.Second)
			}
			if (d.lost != nil) != test.lost {
				t.Errorf("lost: %v, want %v", d.lost, test.lost)
			}
			var none directory
			for i, o := range test.seen {
				none = none.observe(&o.listing, o.err, o.removed, false, time.Unix(int64(i), 0), time.Second)
			}
			if none.lost != nil {
				t.Errorf("lost without pods: %v", none.lost)
			}
		})
	}
}

type observation struct {
	listing watch.Listing
	err     error
	removed map[string]bool
}

// listingOf returns the listing of a new directory.
func listingOf(t *testing.T) watch.Listing {
	t.Helper()
	l, err := watch.NewDir(t.TempDir()).List()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestDirectorySettles: after a loss nothing counts as removed until the directory stops changing.
func TestDirectorySettles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listed := watch.NewDir(dir)
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	list := func() *watch.Listing {
		l, err := listed.List()
		if err != nil {
			t.Fatal(err)
		}
		for i := range l.Files {
			l.Files[i].Text = nil
		}
		return &l
	}
	d := directory{}.observe(list(), nil, nil, true, at(0), 10*time.Second)
	if err := os.WriteFile(filepath.Join(dir, "a.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d = d.observe(list(), nil, nil, true, at(1), 10*time.Second); d.lost != nil || d.settles != at(11) {
		t.Errorf("after the first file: lost %v, settles at %v", d.lost, d.settles)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d = d.observe(list(), nil, nil, true, at(5), 10*time.Second); d.settles != at(15) {
		t.Errorf("after the second file: settles at %v, want 15 s", d.settles)
	}
	if d = d.observe(list(), nil, nil, true, at(14), 10*time.Second); d.settles != at(15) {
		t.Errorf("without a change: settles at %v, want 15 s", d.settles)
	}
	if !slices.Equal(d.names, []string{"a.toml", "b.toml"}) {
		t.Errorf("names are %v", d.names)
	}
}

func TestLossMessages(t *testing.T) {
	t.Parallel()
	for want, lost := range map[string]error{
		"does not exist": fs.ErrNotExist, "has no pod files": errNoFiles, "cannot be read: input": errors.New("input/output error"),
	} {
		d := directory{lost: lost}
		if text := d.message("/etc/podstead/pods.d"); !strings.Contains(text, "/etc/podstead/pods.d "+want) {
			t.Errorf("message %q does not contain %q", text, want)
		}
	}
}

// TestTakeDuringListing: a file that changes while the directory is being listed may be half-written.
func TestTakeDuringListing(t *testing.T) {
	t.Parallel()
	s := New(testDir, newFakePods(), Options{})
	s.facts.now = time.Now().Add(-time.Hour) // when a listing began that takes long
	path := filepath.Join(testDir, "web.toml")
	for _, test := range []struct {
		name    string
		changed time.Time
		taken   bool
	}{
		{"before the listing", s.facts.now.Add(-time.Minute), true},
		{"just before the listing", s.facts.now, false},
		{"during the listing", s.facts.now.Add(time.Minute), false},
		{"in the future", s.facts.now.Add(24 * time.Hour), true},
	} {
		text := []byte(podText("a"))
		c, due := s.take(&watch.File{Name: "web.toml", Text: text, Changed: test.changed}, path, accept(path, text))
		if (c != nil) != test.taken || due.IsZero() != test.taken {
			t.Errorf("%s: content %v, due at %v", test.name, c, due)
		}
	}
}
