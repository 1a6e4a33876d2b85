package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	continuity "github.com/containerd/continuity/fs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/spec"
)

// maxImageDefined bounds the number of volumes that an image can define.
const maxImageDefined = 64

// ImageDefined returns the paths of the volumes that an image defines (VOLUME) and the container gets, sorted. A volume of the pod takes
// the place of those at and below its path: they would hide its files, which survive the run. So do the files that every container has,
// and the file systems of the kernel.
func ImageDefined(volumes map[string]struct{}, c *spec.Container, files []string) ([]string, error) {
	if len(volumes) > maxImageDefined {
		return nil, fmt.Errorf("the image defines %d volumes (VOLUME), at most %d are supported", len(volumes), maxImageDefined)
	}
	var paths []string
	for p := range volumes {
		p = path.Join("/", p)
		inVolume := slices.ContainsFunc(c.VolumeMounts, func(m spec.VolumeMount) bool {
			return isBelow(p, path.Join("/", m.MountPath))
		})
		if p != "/" && !inKernelFileSystem(p) && !inVolume && !slices.Contains(files, p) {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// WithImageDefined returns the pod with the volumes that the image of a container defines: an emptyDir for each path, mounted by this run
// of the container only. No volume of a pod file can have its name.
func WithImageDefined(pod *spec.Pod, container, run string, paths []string) *spec.Pod {
	result := *pod
	result.Volumes = slices.Clone(pod.Volumes)
	for _, list := range []*[]spec.Container{&result.InitContainers, &result.Containers, &result.EphemeralContainers} {
		*list = slices.Clone(*list)
	}
	c := result.Container(container)
	if c == nil {
		return pod
	}
	c.VolumeMounts = slices.Clone(c.VolumeMounts)
	for i, p := range paths {
		name := imageDefinedName(run, i)
		result.Volumes = append(result.Volumes, spec.Volume{Name: name, EmptyDir: &spec.EmptyDirVolume{}})
		c.VolumeMounts = append(c.VolumeMounts, spec.VolumeMount{Name: name, MountPath: p})
	}
	return &result
}

// imageDefinedName is the name of a volume, and of its directory beside those of the emptyDir volumes. It has a dot, unlike names in pod
// files.
func imageDefinedName(run string, i int) string { return run + "." + strconv.Itoa(i) }

// FillImageDefined copies what the image has at the paths into the volumes of a run, which must be empty, with owners and modes. Root is
// the root file system of the container, which nothing changes meanwhile.
func (s *Set) FillImageDefined(ctx context.Context, uid, run, root string, paths []string) error {
	dir, err := os.Open(root)
	if err != nil {
		return err
	}
	image := filecopy.NewRoot(dir)
	defer image.Close()
	for i, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.fillImageDefined(ctx, image, p, filepath.Join(s.diskDir(uid), imageDefinedName(run, i))); err != nil {
			return fmt.Errorf("volume %q of the image: %w", p, err)
		}
	}
	return nil
}

func (s *Set) fillImageDefined(ctx context.Context, image *filecopy.Root, p, dir string) error {
	source, err := image.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(os.Lchown(dir, os.Getuid(), os.Getgid()), os.Chmod(dir, 0o755)) // as the CRI plug-in creates it
	}
	if err != nil {
		return err
	}
	defer source.Close()
	if !source.IsDir() {
		return errors.New("is not a directory in the image")
	}
	used, err := DiskUsage(ctx, fdPath(int(source.Fd())))
	if err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return err
	}
	if free := disk.BlockBytes(&fs, fs.Bavail); used.Bytes > free {
		return fmt.Errorf("copy %d bytes of the image: only %d bytes are free", used.Bytes, free)
	}
	return continuity.CopyDir(dir, fdPath(int(source.Fd())), continuity.WithXAttrExclude("security.selinux"))
}

// ImageDefinedDirs returns the directories of the volumes that the image of a run defines.
func (s *Set) ImageDefinedDirs(uid, run string) ([]string, error) {
	entries, err := os.ReadDir(s.diskDir(uid))
	var dirs []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), run+".") {
			dirs = append(dirs, filepath.Join(s.diskDir(uid), e.Name()))
		}
	}
	return dirs, ignore(err, fs.ErrNotExist)
}

// RemoveImageDefined removes the volumes that the image of a run defines. It is no error if there are none.
func (s *Set) RemoveImageDefined(ctx context.Context, uid, run string) error {
	if err := checkName("run", run); err != nil {
		return err
	}
	_, err := withPod(ctx, s, uid, func(ctx context.Context) (struct{}, error) {
		dirs, err := s.ImageDefinedDirs(uid, run)
		for _, dir := range dirs {
			err = errors.Join(err, ignore(os.Remove(groupNote(dir)), fs.ErrNotExist), RemoveTree(ctx, dir))
		}
		return struct{}{}, err
	})
	return err
}
