package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// openMode is the mode of new directories, which all users of all containers can write to.
const openMode fs.FileMode = 0o777

// minInodes is the number of files that an emptyDir in memory can have, however small it is. 0 would mean no limit.
const minInodes = 16

// prepareEmptyDir creates an emptyDir, or makes an existing one follow the definition of the pod. Its files stay.
func (s *Set) prepareEmptyDir(ctx context.Context, p Pod, v *spec.Volume) error {
	dir := s.path(p.UID, v)
	if err := forgetMode(dir, v.EmptyDir.Medium); err != nil {
		return err
	}
	if v.EmptyDir.Medium == "" {
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			return err
		}
		if _, err := createDir(dir, p.fsGroup()); err != nil {
			return err
		}
		return follow(ctx, dir, p, v)
	}
	if v.EmptyDir.InHugePages() {
		if err := ensureHugePages(dir, p, v.EmptyDir); err != nil {
			return err
		}
		return follow(ctx, dir, p, v)
	}
	size := s.memorySize(p.Spec, v.EmptyDir)
	files := max(size/FileBytes, minInodes)
	data := fmt.Sprintf("size=%d,nr_inodes=%d", size, files)
	if gid := p.fsGroup(); gid == nil {
		data += ",mode=0777"
	} else {
		data += fmt.Sprintf(",mode=2777,gid=%d", *gid)
	}
	if err := ensureTmpfs(dir, 0, data); err != nil {
		return err
	}
	if err := resizeTmpfs(dir, size, files); err != nil {
		return err
	}
	return follow(ctx, dir, p, v)
}

// CheckMemory returns an error if the files of a volume in memory do not fit into the size that follows from the definition of the pod. It
// changes nothing. Volumes that are not mounted fit.
func (s *Set) CheckMemory(ctx context.Context, p Pod) error {
	_, err := withPod(ctx, s, p.UID, func(context.Context) (struct{}, error) {
		var failed errorList
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			if v.EmptyDir == nil || v.EmptyDir.Medium != "Memory" {
				continue
			}
			if err := s.checkMemory(p, v); err != nil {
				failed = append(failed, fmt.Errorf("volume %q: %w", v.Name, err))
			}
		}
		return struct{}{}, failed.err()
	})
	return err
}

func (s *Set) checkMemory(p Pod, v *spec.Volume) error {
	if err := checkName("volume", v.Name); err != nil {
		return err
	}
	dir := s.path(p.UID, v)
	mounted, err := mountinfo.Mounted(dir)
	if !mounted || err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	var now unix.Statfs_t
	if err := unix.Statfs(dir, &now); err != nil {
		return fmt.Errorf("size of %s: %w", dir, err)
	}
	return fits(&now, s.memorySize(p.Spec, v.EmptyDir))
}

// ensureHugePages mounts huge pages at dir unless they are mounted. As in the kubelet, the limits of the containers bound their number.
func ensureHugePages(dir string, p Pod, v *spec.EmptyDirVolume) error {
	size, err := p.Spec.PageSizeOf(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	mounted, err := mountinfo.Mounted(dir)
	if err != nil {
		return err
	}
	data, gid := fmt.Sprintf("mode=0777,pagesize=%d", size), p.fsGroup()
	if gid != nil {
		data += fmt.Sprintf(",gid=%d", *gid)
	}
	if !mounted {
		if err := ignore(os.Remove(groupNote(dir)), fs.ErrNotExist); err != nil {
			return err
		}
		if err := unix.Mount("hugetlbfs", dir, "hugetlbfs", 0, data); err != nil {
			return fmt.Errorf("mount hugetlbfs with pages of %d bytes on %s: %w", size, dir, err)
		}
	}
	if gid == nil {
		return nil
	}
	if _, err := os.Lstat(groupNote(dir)); !errors.Is(err, fs.ErrNotExist) {
		return err // it has been prepared
	}
	var root unix.Stat_t
	if err := unix.Stat(dir, &root); err != nil {
		return fmt.Errorf("stat %s: %w", dir, err)
	}
	if int64(root.Gid) != *gid {
		return nil // it is not new
	}
	return os.Chmod(dir, openMode|fs.ModeSetgid) // the file system ignores the bit in its option
}

// DiscardMemory removes the volumes in memory and in huge pages that the pod does not have any more, or has on another medium or with pages
// of another size. Their files would use memory until the pod is removed. No container of the pod may be running if there are any.
func (s *Set) DiscardMemory(ctx context.Context, p Pod) error {
	_, err := withPod(ctx, s, p.UID, func(ctx context.Context) (struct{}, error) {
		entries, err := os.ReadDir(s.memoryDir(p.UID))
		if err != nil {
			return struct{}{}, ignore(err, fs.ErrNotExist)
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue // a note
			}
			dir := filepath.Join(s.memoryDir(p.UID), e.Name())
			has, err := hasMemory(dir, p.Spec, e.Name())
			if err == nil && !has {
				err = discard(ctx, dir)
			}
			if err != nil {
				return struct{}{}, fmt.Errorf("volume %q: %w", e.Name(), err)
			}
		}
		return struct{}{}, nil
	})
	return err
}

// hasMemory reports whether a pod has a volume of this name on the medium that is mounted at dir.
func hasMemory(dir string, pod *spec.Pod, name string) (bool, error) {
	i := slices.IndexFunc(pod.Volumes, func(v spec.Volume) bool { return v.Name == name })
	if i < 0 || pod.Volumes[i].EmptyDir == nil || pod.Volumes[i].EmptyDir.Medium == "" {
		return false, nil
	}
	v := pod.Volumes[i].EmptyDir
	mounted, err := mountinfo.Mounted(dir)
	if !mounted || err != nil {
		return true, err // since the host has started
	}
	var now unix.Statfs_t
	if err := unix.Statfs(dir, &now); err != nil {
		return false, fmt.Errorf("file system of %s: %w", dir, err)
	}
	huge := uint32(now.Type) == unix.HUGETLBFS_MAGIC // 32 bits on all architectures
	if !huge || !v.InHugePages() {
		return huge == v.InHugePages(), nil
	}
	size, err := pod.PageSizeOf(v)
	return int64(now.Bsize) == size, err //nolint:unconvert // 32 bits wide elsewhere
}

// discard removes an emptyDir and what is noted of it.
func discard(ctx context.Context, dir string) error {
	for _, note := range []string{modeNote(dir), groupNote(dir)} { // first: they would be those of the next one
		if err := ignore(os.Remove(note), fs.ErrNotExist); err != nil {
			return err
		}
	}
	return clearDir(ctx, dir)
}

// follow changes the group and the mode of an emptyDir to those of the definition.
func follow(ctx context.Context, dir string, p Pod, v *spec.Volume) error {
	if err := followGroup(ctx, dir, p); err != nil {
		return err
	}
	return followMode(dir, p, v)
}

// followMode changes the mode of an emptyDir if that of the definition has changed since the last call, or the directory is new and its
// mode is not the default. Otherwise changes by containers stay. An fsGroup adds its rights (SetVolumeOwnership of the kubelet).
func followMode(dir string, p Pod, v *spec.Volume) error {
	wanted, note := openMode.Perm(), modeNote(dir)
	if m := v.EmptyDir.Mode; m != nil {
		wanted = fs.FileMode(*m)
	}
	text := strconv.FormatUint(uint64(wanted), 8)
	known, err := os.ReadFile(note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(known) == text || err != nil && wanted == openMode {
		return nil
	}
	mode := wanted.Perm()
	if wanted&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	if p.fsGroup() != nil {
		mode |= 0o770 | fs.ModeSetgid
	}
	if err := os.Chmod(dir, mode); err != nil {
		return err
	}
	return os.WriteFile(note, []byte(text), 0o600)
}

// forgetMode forgets the mode of an emptyDir that does not exist, or is not mounted since the host has started: its directory will be a new
// one with another mode.
func forgetMode(dir, medium string) error {
	_, err := os.Lstat(dir)
	if errors.Is(err, unix.ENOTDIR) {
		return nil // the directory cannot be made either, and that error is reported
	}
	exists := err == nil
	if exists && medium != "" {
		exists, err = mountinfo.Mounted(dir)
	}
	if exists || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ignore(os.Remove(modeNote(dir)), fs.ErrNotExist)
}

// modeNote is the file that notes the mode of an emptyDir.
func modeNote(dir string) string {
	return filepath.Join(filepath.Dir(dir), ".mode-"+filepath.Base(dir))
}

// followGroup changes the group of an emptyDir if the fsGroup of the pod has changed since the last call. Otherwise changes by containers
// stay. It ignores the end of ctx, since it would have to start over.
func followGroup(ctx context.Context, dir string, p Pod) error {
	gid, note := p.fsGroup(), groupNote(dir)
	known, err := os.ReadFile(note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	noted := err == nil
	if gid == nil {
		if noted {
			return os.Remove(note)
		}
		return nil
	}
	group := strconv.FormatInt(*gid, 10)
	if string(known) == group {
		return nil
	}
	var root unix.Stat_t
	if err := unix.Stat(dir, &root); err != nil {
		return fmt.Errorf("stat %s: %w", dir, err)
	}
	if noted || int64(root.Gid) != *gid { // otherwise it is new
		if err := setOwnership(context.WithoutCancel(ctx), dir, uint32(*gid), false); err != nil {
			return err
		}
	}
	return os.WriteFile(note, []byte(group), 0o600)
}

// groupNote is the file that notes the group of an emptyDir.
func groupNote(dir string) string {
	return filepath.Join(filepath.Dir(dir), ".group-"+filepath.Base(dir))
}

// createDir creates the directory of a volume and sets its group to the fsGroup. Containers may change its mode
// afterwards. It is created under a temporary name and renamed, so that no incomplete directory is visible.
func createDir(dir string, gid *int64) (created bool, err error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return false, fmt.Errorf("%s is not a directory", dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	fresh := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".new")
	if err := os.Mkdir(fresh, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	mode := openMode
	if gid != nil {
		if err := os.Lchown(fresh, -1, int(*gid)); err != nil {
			return false, err
		}
		mode |= fs.ModeSetgid
	}
	if err := os.Chmod(fresh, mode); err != nil {
		return false, err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return false, err // also for a dangling link, which is left alone
	}
	return true, nil
}

// memorySize returns the size of an emptyDir in memory in bytes: the smallest of the memory for all pods, the pod's
// memory limit and the volume's sizeLimit (SizeMemoryBackedVolumes, KEP-1967).
func (s *Set) memorySize(pod *spec.Pod, v *spec.EmptyDirVolume) int64 {
	size := s.opts.MemoryBytes
	if limit := pod.Bound(spec.ResourceMemory); limit.Sign() > 0 {
		size = min(size, limit.Value())
	}
	if v.SizeLimit != nil && v.SizeLimit.Sign() > 0 {
		size = min(size, v.SizeLimit.Value())
	}
	return size
}
