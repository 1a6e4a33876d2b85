//go:build e2e

package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// hugePages returns the sizes of the huge pages of the host, such as 2Mi. A directory in them needs no page.
func hugePages(t *testing.T) []string {
	t.Helper()
	var sizes []string
	for _, dir := range glob(t, "/sys/kernel/mm/hugepages/hugepages-*kB") {
		name := filepath.Base(dir)
		kib := resource.MustParse(name[len(spec.HugePagesPrefix):len(name)-2] + "Ki")
		sizes = append(sizes, resource.NewQuantity(kib.Value(), resource.BinarySI).String())
	}
	if len(sizes) == 0 {
		t.Fatal("the kernel has no huge pages (CONFIG_HUGETLBFS)")
	}
	return sizes
}

// requesting returns a pod that requests huge pages of a size.
func requesting(size string, volumes ...spec.Volume) Pod {
	pod := podOf(volumes...)
	pod.Spec.Resources.Requests = spec.ResourceList{spec.HugePagesPrefix + size: resource.MustParse("1Gi")}
	return pod
}

// TestHugePagesEmptyDir: an emptyDir in huge pages has pages of the requested size, a mode and a group.
func TestHugePagesEmptyDir(t *testing.T) {
	s, mode := newSet(t, nil), int32(0o1750)
	for _, size := range hugePages(t) {
		t.Run(size, func(t *testing.T) {
			plain := spec.Volume{Name: "plain", EmptyDir: &spec.EmptyDirVolume{Medium: "HugePages"}}
			own := spec.Volume{Name: "own", EmptyDir: &spec.EmptyDirVolume{Medium: "HugePages-" + size, Mode: &mode}}
			pod := requesting(size, plain, own)
			clean(t, s, pod.UID)
			want := func(when string, v *spec.Volume, mode, gid uint32) {
				t.Helper()
				dir, pages := s.path(pod.UID, v), resource.MustParse(size)
				var now unix.Statfs_t
				err := unix.Statfs(dir, &now)
				if err != nil || int64(now.Bsize) != pages.Value() { //nolint:unconvert // 32 bits wide elsewhere
					t.Errorf("%s %s: pages of %d bytes, %v", v.Name, when, now.Bsize, err)
				}
				if got := filetest.Stat(t, dir); got.Mode != unix.S_IFDIR|mode || got.Gid != gid ||
					fileSystem(t, dir) != unix.HUGETLBFS_MAGIC || len(mountsBelow(t, dir)) != 1 {
					t.Errorf("%s %s: mode %o, group %d, file system %x", v.Name, when, got.Mode, got.Gid, fileSystem(t, dir))
				}
			}
			prepare(t, s, pod)
			want("new", &plain, 0o777, 0)
			want("new", &own, 0o1750, 0)
			kept := filepath.Join(s.path(pod.UID, &plain), "kept")
			filetest.Mkdir(t, kept)
			if err := os.Chmod(s.path(pod.UID, &plain), 0o700); err != nil { // by a container
				t.Fatal(err)
			}
			prepare(t, s, pod)
			want("after a change by a container", &plain, 0o700, 0)
			prepare(t, s, withGroup(pod))
			want("with fsGroup", &plain, unix.S_ISGID|0o770, group)
			want("with fsGroup", &own, unix.S_ISGID|0o1770, group)
			if got := filetest.Stat(t, kept); got.Gid != group {
				t.Errorf("content has the group %d", got.Gid)
			}
			for _, v := range []*spec.Volume{&plain, &own} {
				if err := unix.Unmount(s.path(pod.UID, v), unix.MNT_DETACH); err != nil { // as after a reboot
					t.Fatal(err)
				}
			}
			prepare(t, s, withGroup(pod))
			want("new with fsGroup", &plain, unix.S_ISGID|0o777, group)
			want("new with fsGroup", &own, unix.S_ISGID|0o1770, group)
		})
	}
}

// TestDiscardMemory: a volume in memory that the pod has on another medium, or with other pages, is a new one. Nothing is left of one that
// the pod does not have any more.
func TestDiscardMemory(t *testing.T) {
	s, sizes := newSet(t, nil), hugePages(t)
	first, last := sizes[0], sizes[len(sizes)-1]
	clean(t, s, podOf().UID)
	if err := s.DiscardMemory(t.Context(), podOf()); err != nil {
		t.Errorf("a pod without volumes: %v", err)
	}
	other := spec.Volume{Name: "other", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}}
	for i, step := range []struct {
		medium, size string
		system       uint32
	}{
		{"HugePages", first, unix.HUGETLBFS_MAGIC},
		{"HugePages", last, unix.HUGETLBFS_MAGIC},
		{"Memory", first, unix.TMPFS_MAGIC},
		{"HugePages", first, unix.HUGETLBFS_MAGIC},
		{"", first, 0},
		{"HugePages", first, unix.HUGETLBFS_MAGIC},
		{"hostPath", first, 0},
		{"Memory", first, unix.TMPFS_MAGIC},
		{"", first, 0},
		{"Memory", first, unix.TMPFS_MAGIC},
		{"none", first, 0},
	} {
		volumes := []spec.Volume{{Name: "v", EmptyDir: &spec.EmptyDirVolume{Medium: step.medium}}, other}
		switch step.medium {
		case "hostPath":
			volumes[0] = spec.Volume{Name: "v", HostPath: &spec.HostPathVolume{Path: "/etc"}}
		case "none":
			volumes = volumes[1:]
		}
		pod := withGroup(requesting(step.size, volumes...))
		for range 2 { // repeated, it is a no-op
			if err := s.DiscardMemory(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			prepare(t, s, pod)
		}
		if list := mountsBelow(t, s.path(pod.UID, &other)); len(list) != 1 {
			t.Errorf("step %d: the other volume is not mounted: %v", i, list)
		}
		dir := filepath.Join(s.memoryDir(pod.UID), "v")
		if step.system == 0 {
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || len(mountsBelow(t, dir)) > 0 {
				t.Errorf("step %d: %s is left: %v", i, dir, err)
			}
			continue
		}
		var now unix.Statfs_t
		if err := unix.Statfs(dir, &now); err != nil || uint32(now.Type) != step.system || len(mountsBelow(t, dir)) != 1 {
			t.Errorf("step %d: file system %x, %v", i, now.Type, err)
		}
		size := resource.MustParse(step.size)
		if step.medium == "HugePages" && int64(now.Bsize) != size.Value() { //nolint:unconvert // 32 bits wide elsewhere
			t.Errorf("step %d: pages of %d bytes", i, now.Bsize)
		}
		if got := filetest.Stat(t, dir); got.Mode != unix.S_IFDIR|unix.S_ISGID|0o777 || got.Gid != group {
			t.Errorf("step %d: mode %o, group %d", i, got.Mode, got.Gid)
		}
		same := i == 1 && first == last
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 && !same {
			t.Errorf("step %d: content of an earlier definition: %v, %v", i, list, err)
		}
		filetest.Mkdir(t, filepath.Join(dir, "left"))
		if err := s.DiscardMemory(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "left")); err != nil {
			t.Errorf("step %d: the content does not stay: %v", i, err)
		}
	}
}
