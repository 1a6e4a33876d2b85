package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
			if v.EmptyDir == nil || v.EmptyDir.Medium == "" {
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
