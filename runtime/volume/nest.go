package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// Nest mounts what belongs inside of a volume, and returns the mounts that are left for the OCI runtime. They must be in the order in which
// the OCI runtime mounts them. Root is the root file system of the container, which nothing changes meanwhile.
//
// OCI runtimes create mount points by path. A container that replaces a directory of the volume with a symbolic link at that moment makes
// them create files on the host (CVE-2024-45310, fixed in runc 1.1.14). Here, mount points are created and opened below what the container
// has of the volume, and the paths that are left contain no links of volumes. Mounts inside of volumes with Bidirectional propagation, and
// those with it, of privileged containers, are left for the OCI runtime.
//
// As in the kubelet, mount points are created in volumes that are read-only because of their type. The mounts of the run must have been
// made by [Set.Mounts], and last as long.
func (s *Set) Nest(ctx context.Context, p Pod, r Request, root string, mounts []specs.Mount) ([]specs.Mount, error) {
	if len(r.Container.VolumeMounts) == 0 {
		return mounts, nil
	}
	return withPod(ctx, s, p.UID, func(ctx context.Context) ([]specs.Mount, error) {
		list, err := placesOf(root, mounts)
		if err != nil {
			return nil, err
		}
		n := nesting{set: s, pod: p, request: r, mounts: slices.Clone(mounts), places: list, roots: map[int]int{}}
		for _, m := range mounts {
			n.numbers = append(n.numbers, volumeMount(r.Container, m.Destination))
		}
		defer n.close()
		var left []int
		for i := range n.mounts {
			nested, err := n.nest(i)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, fmt.Errorf("mount point %q: %w", mounts[i].Destination, err)
			}
			if !nested {
				left = append(left, i)
			}
		}
		remaining := make([]specs.Mount, 0, len(left))
		for _, i := range left {
			n.mounts[i].Destination = list[i].Path
			remaining = append(remaining, n.mounts[i])
		}
		return remaining, nil
	})
}

// volumeMount returns the index of the volume mount that a mount is for; -1: none.
func volumeMount(c *spec.Container, destination string) int {
	return slices.IndexFunc(c.VolumeMounts, func(m spec.VolumeMount) bool { return path.Join("/", m.MountPath) == destination })
}

// nesting is the state of one call of Nest.
type nesting struct {
	set     *Set
	pod     Pod
	request Request
	mounts  []specs.Mount
	numbers []int // of the volume mounts, by the index of the mount; -1: none
	places  []mountPlace
	roots   map[int]int // descriptors of the mounts of this run, by index
}

func (n *nesting) close() {
	for _, fd := range n.roots {
		unix.Close(fd)
	}
}

// nest mounts what belongs inside of a volume. It reports false for anything else.
func (n *nesting) nest(i int) (bool, error) {
	m, parent := &n.mounts[i], n.places[i].Parent
	if parent < 0 || m.Type != "bind" || slices.Contains(m.Options, "rshared") {
		return false, nil
	}
	number := n.numbers[parent]
	below := strings.TrimPrefix(strings.TrimPrefix(n.places[i].Path, n.places[parent].Path), "/")
	if number < 0 || below == "" || slices.Contains(n.mounts[parent].Options, "rshared") {
		return false, nil
	}
	outer, err := n.root(parent, number)
	if err != nil {
		return false, err
	}
	if err := n.ensure(outer, number, below, m.Source); err != nil {
		return false, err
	}
	target, err := openBelow(outer, below)
	if err != nil {
		return false, err
	}
	defer unix.Close(target)
	if n.roots[i], err = AttachMount(m.Source, target, m.Options); err != nil {
		delete(n.roots, i)
		return false, err
	}
	return true, nil
}

// root returns a descriptor of a mount of this run for a volume mount. Unless [Set.Mounts] has made one, it makes it.
func (n *nesting) root(i, number int) (int, error) {
	if fd, ok := n.roots[i]; ok {
		return fd, nil
	}
	m := &n.mounts[i]
	target := filepath.Join(n.set.subPathsDir(n.pod.UID), n.request.Run, strconv.Itoa(number))
	if m.Source != target {
		fd, err := unix.Open(m.Source, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: m.Source, Err: err}
		}
		defer unix.Close(fd)
		if err := pin(fd, target, &n.request.Container.VolumeMounts[number], unix.MS_REC, ""); err != nil {
			return -1, fmt.Errorf("mount %s: %w", m.Source, err)
		}
		m.Source = target
	}
	fd, err := unix.Open(target, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: target, Err: err}
	}
	n.roots[i] = fd
	return fd, n.independent(i)
}

// independent changes the options of a mount so that the OCI runtime does not apply them to the mounts in it. They are set for the mounts
// of the volume itself.
func (n *nesting) independent(i int) error {
	m := &n.mounts[i]
	m.Options = slices.Clone(m.Options)
	for k, o := range m.Options {
		switch recursive := recursiveOptions[o]; {
		case o == "rprivate": // they are private already
			m.Options[k] = "private"
		case recursive.option != "":
			if err := setRecursively(n.roots[i], recursive.attribute); err != nil {
				return fmt.Errorf("set option %s of %s: %w", o, m.Source, err)
			}
			m.Options[k] = recursive.option
		}
	}
	return nil
}

// ensure creates the mount point for a source below what the container has of a volume, if the volume can be written, or only this program
// writes it.
func (n *nesting) ensure(outer, number int, below, source string) error {
	var stat unix.Stat_t
	if err := unix.Stat(source, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: source, Err: err}
	}
	m := &n.request.Container.VolumeMounts[number]
	i := slices.IndexFunc(n.pod.Spec.Volumes, func(v spec.Volume) bool { return v.Name == m.Name })
	v := &n.pod.Spec.Volumes[i] // Mounts has found it
	if m.ReadOnly && !isContent(v) || v.Image != nil || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly {
		return nil
	}
	inner, err := n.reopen(outer, v, m)
	if err != nil {
		return err
	}
	defer unix.Close(inner)
	err = ensureBelow(inner, below, stat.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil && !errors.Is(err, unix.EROFS) { // then the mount point must exist
		return fmt.Errorf("create mount point: %w", err)
	}
	return nil
}

// reopen opens what the container has of a volume, in the volume itself: its mount can be read-only or id-mapped. It returns an error if
// that is not what was mounted.
func (n *nesting) reopen(mounted int, v *spec.Volume, m *spec.VolumeMount) (int, error) {
	sub, err := subPathOf(m, n.request.Variables)
	if err != nil {
		return -1, err
	}
	_, volume, err := n.set.open(n.pod.UID, v, n.request)
	if err != nil {
		return -1, err
	}
	defer unix.Close(volume)
	fd, err := openBelow(volume, path.Join(".", sub))
	if err != nil {
		return -1, err
	}
	var want, got unix.Stat_t
	if err := errors.Join(unix.Fstat(mounted, &want), unix.Fstat(fd, &got)); err != nil || want.Dev != got.Dev || want.Ino != got.Ino {
		unix.Close(fd)
		return -1, cmp.Or(err, fmt.Errorf("volume %q was replaced since it was mounted", v.Name))
	}
	return fd, nil
}
