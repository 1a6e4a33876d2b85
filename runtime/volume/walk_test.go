package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// deepTree makes folders in each other, of which paths could not name the innermost, with a file in it.
func deepTree(t *testing.T, dir string, depth int) {
	t.Helper()
	fd, err := unix.Open(mkdir(t, dir), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 100)
	for range depth {
		if err := unix.Mkdirat(fd, name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_CLOEXEC, 0)
		_ = unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	file, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Close(file), unix.Close(fd)
}

func TestRemoveTree(t *testing.T) {
	top := t.TempDir()
	keep := filepath.Join(top, "keep", "file")
	write(t, keep, "kept")
	tree := filepath.Join(top, "tree")
	for i := range 1500 { // more than one batch of names
		write(t, filepath.Join(tree, "many", strconv.Itoa(i)), "")
	}
	deepTree(t, filepath.Join(tree, "deep"), 400)
	write(t, filepath.Join(tree, ".deep-1", "file"), "in the way")
	symlink(t, filepath.Dir(keep), filepath.Join(tree, "link"))
	if err := os.Mkdir(filepath.Join(tree, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	symlink(t, filepath.Dir(keep), link)
	fewFiles(t, 128)
	for _, path := range []string{tree, link, tree, filepath.Join(top, "no", "parent")} {
		if err := removeTree(t.Context(), path); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if read(t, keep) != "kept" {
		t.Error("what a link led to was changed")
	}
	write(t, filepath.Join(tree, "file"), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := removeTree(ctx, tree); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

// fewFiles lets this process have no more than a number of files open, until the end of the test.
func fewFiles(t *testing.T, number uint64) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: number, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) })
}

// What has the name already that a folder is to get is neither replaced nor in the way.
func TestMoveUp(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, ".deep-1"), "kept")
	write(t, filepath.Join(top, "a", "b", "file"), "")
	r := remover{top: openDirectory(t, top)}
	a := openDirectory(t, filepath.Join(top, "a"))
	for range 2 { // the second time it is gone, which is no error
		if err := r.moveUp(a, "b"); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, filepath.Join(top, ".deep-1")) != "kept" || read(t, filepath.Join(top, ".deep-2", "file")) != "" {
		t.Error("it was moved elsewhere")
	}
}

// While folders are being swapped against links that lead out, nothing outside is removed.
func TestRemoveTreeRace(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	write(t, filepath.Join(outside, "deep", "file"), "kept")
	for range 100 {
		tree := filepath.Join(top, "tree")
		for i := range 5 {
			write(t, filepath.Join(tree, "a", "deep", strconv.Itoa(i)), "")
		}
		symlink(t, outside, filepath.Join(tree, "b"))
		var group sync.WaitGroup
		group.Go(func() {
			for unix.Renameat2(unix.AT_FDCWD, filepath.Join(tree, "a"), unix.AT_FDCWD, filepath.Join(tree, "b"), unix.RENAME_EXCHANGE) == nil {
				continue // until one is gone
			}
		})
		for range 100 { // an error is a race that was seen
			if removeTree(t.Context(), tree) == nil {
				break
			}
		}
		group.Wait()
		if err := removeTree(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, filepath.Join(outside, "deep", "file")) != "kept" {
		t.Error("what a link led to was changed")
	}
}

func TestUsage(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(
		spec.Volume{Name: "limited", EmptyDir: &spec.EmptyDirVolume{SizeLimit: quantity("1Mi")}},
		spec.Volume{Name: "free", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "zero", EmptyDir: &spec.EmptyDirVolume{SizeLimit: quantity("0")}},
	)
	if list, err := s.Usage(t.Context(), pod); err != nil || len(list) != 0 {
		t.Errorf("before they are made: %v, %v", list, err)
	}
	if err := s.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	exceeded := func() (string, int64) {
		t.Helper()
		list, err := s.Usage(t.Context(), pod)
		if err != nil || len(list) != 2 || list[0].Volume != "limited" || list[1].Volume != "zero" {
			t.Fatalf("usage: %+v, %v", list, err)
		}
		if message, over := list[1].Exceeded(); over {
			t.Errorf("a limit of zero: %s", message)
		}
		message, over := list[0].Exceeded()
		if over != (message != "") {
			t.Errorf("exceeded: %v, %q", over, message)
		}
		return message, list[0].Bytes
	}
	dir := s.path(pod.UID, &pod.Spec.Volumes[0])
	write(t, filepath.Join(dir, "deep", "file"), strings.Repeat("x", 600<<10))
	if err := os.Link(filepath.Join(dir, "deep", "file"), filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(t.TempDir(), "big")
	write(t, big, strings.Repeat("x", 2<<20))
	symlink(t, big, filepath.Join(dir, "link"))
	symlink(t, filepath.Dir(big), filepath.Join(dir, "folder"))
	if message, bytes := exceeded(); message != "" || bytes < 600<<10 || bytes >= 1<<20 {
		t.Errorf("%d bytes: %q", bytes, message)
	}
	write(t, filepath.Join(dir, "more"), strings.Repeat("x", 600<<10))
	message, _ := exceeded()
	if want := `Usage of EmptyDir volume "limited" exceeds the limit "1Mi". `; message != want {
		t.Errorf("got  %q\nwant %q", message, want)
	}
	if err := os.Remove(filepath.Join(dir, "more")); err != nil {
		t.Fatal(err)
	}
	if message, _ := exceeded(); message != "" {
		t.Errorf("less again: %q", message)
	}
	deepTree(t, filepath.Join(dir, "abyss"), maxDepth+1) // what is in it nobody would find
	message, _ = exceeded()
	if want := `EmptyDir volume "limited" cannot be held to the limit "1Mi": there are more than 512 folders in each other. `; message != want {
		t.Errorf("got  %q\nwant %q", message, want)
	}
	if bytes, err := s.DiskUsage(t.Context(), pod.UID, dir); bytes != Endless || err != nil {
		t.Errorf("a folder that nobody can walk takes %d bytes, %v", bytes, err)
	}
	if err := s.Teardown(t.Context(), pod.UID); err != nil {
		t.Error(err)
	}
}

// TestUsageOfALimitedPod: where the pod as a whole is limited, every volume counts, and any folder of the pod can be measured.
func TestUsageOfALimitedPod(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(
		spec.Volume{Name: "free", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "memory", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}},
	)
	pod.Spec.Containers = []spec.Container{{
		Name: "c", Resources: spec.Resources{Limits: spec.ResourceList{spec.ResourceEphemeralStorage: *quantity("1Mi")}},
	}}
	dir := s.path(pod.UID, &pod.Spec.Volumes[0])
	write(t, filepath.Join(dir, "file"), strings.Repeat("x", 64<<10))
	list, err := s.Usage(t.Context(), pod)
	if err != nil || len(list) != 1 || list[0].Volume != "free" || list[0].Bytes < 64<<10 {
		t.Errorf("usage: %+v, %v", list, err)
	}
	for _, u := range list {
		if message, over := u.Exceeded(); over {
			t.Errorf("without a limit of its own: %s", message)
		}
	}
	bytes, err := s.DiskUsage(t.Context(), pod.UID, dir, filepath.Join(dir, "none"), dir)
	if err != nil || bytes < 128<<10 {
		t.Errorf("twice a folder, and one that is not there: %d, %v", bytes, err)
	}
	if _, err := s.DiskUsage(t.Context(), pod.UID, filepath.Join(dir, "file")); err == nil {
		t.Error("a file is taken for a folder")
	}
}

func TestGrantTree(t *testing.T) {
	defer unix.Umask(unix.Umask(0o022))
	dir := mkdir(t, filepath.Join(t.TempDir(), "claim"))
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, "")
	write(t, filepath.Join(dir, "deep", "file"), "")
	write(t, filepath.Join(dir, "closed"), "")
	if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	symlink(t, outside, filepath.Join(dir, "link"))
	gid := uint32(os.Getgid())
	if err := grantTree(t.Context(), dir, gid, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint32{
		".": unix.S_IFDIR | unix.S_ISGID | 0o775, "deep": unix.S_IFDIR | unix.S_ISGID | 0o775,
		"deep/file": unix.S_IFREG | 0o664, "closed": unix.S_IFREG | 0o660, "link": unix.S_IFLNK | 0o777,
	} {
		if s := statOf(t, filepath.Join(dir, name)); s.Mode != want || s.Gid != gid {
			t.Errorf("%s: mode %o, group %d, want %o", name, s.Mode, s.Gid, want)
		}
	}
	if mode := statOf(t, outside).Mode; mode != unix.S_IFREG|0o644 {
		t.Errorf("what a link leads to has mode %o", mode)
	}
	// With a root that is right, nothing is looked at; else everything is.
	if err := os.Chmod(filepath.Join(dir, "deep", "file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		skip bool
		root os.FileMode
		want uint32
	}{
		{true, os.ModeSetgid | 0o770, 0o600},
		{true, os.ModeSetgid | 0o777, 0o600},
		{true, 0o770, 0o660},
		{false, os.ModeSetgid | 0o770, 0o660},
	} {
		file := filepath.Join(dir, "deep", "file")
		if err := errors.Join(os.Chmod(dir, test.root), os.Chmod(file, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := grantTree(t.Context(), dir, gid, test.skip); err != nil {
			t.Fatal(err)
		}
		if mode := statOf(t, file).Mode &^ unix.S_IFMT; mode != test.want {
			t.Errorf("OnRootMismatch %v, root %o: the file has mode %o, want %o", test.skip, test.root, mode, test.want)
		}
	}
	if err := grantTree(t.Context(), filepath.Join(dir, "none"), gid, true); err == nil {
		t.Error("a folder that is not there was given away")
	}
}

// TestUsageBesideWork: containers do not wait for a measurement, which takes as long as one of them wants it to, nor the reverse.
func TestUsageBesideWork(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf()
	release, err := s.locks.acquire(t.Context(), "pod/"+pod.UID) // as while a volume is prepared
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Usage(ctx, pod); err != nil {
		t.Error(err)
	}
	if _, err := s.DiskUsage(ctx, pod.UID, t.TempDir()); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "a/b"} {
		if _, err := s.DiskUsage(ctx, bad); err == nil {
			t.Errorf("the UID %q was taken", bad)
		}
	}
}
