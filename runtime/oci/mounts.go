package oci

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/spec"
)

// mounts lists the mounts of a container in an order in which none hides another: what every container has, then the
// container's volumes and the pod's files, those nearer to the root first. A volume takes the place of what is mounted at
// the same path otherwise.
func mounts(in *Input, defaults []specs.Mount) ([]specs.Mount, error) {
	volumes, err := volumeMounts(in)
	if err != nil {
		return nil, err
	}
	over := map[string]bool{"/run": true} // containerd's client adds a tmpfs there, which the CRI does not have
	for _, v := range volumes {
		over[v.Destination] = true
	}
	list := append(defaults, specs.Mount{
		Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup",
		Options: []string{"nosuid", "noexec", "nodev", "relatime", "ro"},
	})
	for _, f := range in.Files {
		if over[f.Path] || over["/dev"] && strings.HasPrefix(f.Path, "/dev/") {
			continue
		}
		over[f.Path] = true
		volumes = append(volumes, specs.Mount{
			Destination: f.Path, Type: "bind", Source: f.Source, Options: []string{"rbind", "rprivate", "rw"},
		})
	}
	list = slices.DeleteFunc(list, func(m specs.Mount) bool {
		return over[m.Destination] || over["/dev"] && strings.HasPrefix(m.Destination, "/dev/")
	})
	depth := func(m specs.Mount) int { return strings.Count(m.Destination, "/") }
	slices.SortStableFunc(volumes, func(a, b specs.Mount) int { return cmp.Compare(depth(a), depth(b)) })
	return append(list, volumes...), nil
}

// volumeMounts lists the mounts of a container's volumes.
func volumeMounts(in *Input) ([]specs.Mount, error) {
	var list []specs.Mount
	for i := range in.Container.VolumeMounts {
		m := &in.Container.VolumeMounts[i]
		source, err := volumeSource(in, m.Name)
		if err != nil {
			return nil, fmt.Errorf("mount volume %q: %w", m.Name, err)
		}
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		list = append(list, specs.Mount{
			Destination: path.Join("/", m.MountPath), Type: "bind", Source: source, Options: []string{"rbind", "rprivate", mode},
		})
	}
	return list, nil
}

// volumeSource is the path of a volume on this machine. An emptyDir is made when it is first asked for; a host path is
// made or checked as its type says, each time.
func volumeSource(in *Input, name string) (string, error) {
	i := slices.IndexFunc(in.Pod.Volumes, func(v spec.Volume) bool { return v.Name == name })
	if i < 0 {
		return "", errors.New("the pod has no such volume")
	}
	switch v := &in.Pod.Volumes[i]; {
	case v.EmptyDir != nil:
		dir := filepath.Join(in.VolumesDir, v.Name)
		return dir, makeEmptyDir(dir)
	case v.HostPath != nil:
		if err := checkHostPath(v.HostPath); err != nil {
			return "", fmt.Errorf("hostPath type check failed: %w", err)
		}
		return filepath.EvalSymlinks(v.HostPath.Path)
	}
	return "", errors.New("volumes of its kind are not supported yet")
}

// makeEmptyDir makes a folder that any user of any container may write to. It is made once: its mode is the containers'
// to change. One that nobody may enter is one whose making was cut short.
func makeEmptyDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0 {
		return err
	}
	return os.Chmod(dir, 0o777) //nolint:gosec // see above
}

// checkHostPath makes a host path, or checks what is there, as its type says. Symbolic links are followed.
func checkHostPath(v *spec.HostPathVolume) error {
	info, err := os.Stat(v.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeHostPath(v)
	}
	if err != nil {
		return err
	}
	is, want := false, ""
	switch mode := info.Mode(); v.Type {
	case spec.HostPathUnset:
		return nil
	case spec.HostPathDirectory, spec.HostPathDirectoryOrCreate:
		is, want = mode.IsDir(), "directory"
	case spec.HostPathFile, spec.HostPathFileOrCreate:
		is, want = mode.IsRegular(), "file"
	case spec.HostPathSocket:
		is, want = mode.Type() == fs.ModeSocket, "socket"
	case spec.HostPathCharDevice:
		is, want = mode.Type() == fs.ModeDevice|fs.ModeCharDevice, "character device"
	case spec.HostPathBlockDevice:
		is, want = mode.Type() == fs.ModeDevice, "block device"
	}
	if !is {
		return fmt.Errorf("%s is not a %s", v.Path, want)
	}
	return nil
}

// makeHostPath makes a host path that is not there, if its type allows it. Without a type it becomes a folder, as with
// containerd.
func makeHostPath(v *spec.HostPathVolume) error {
	switch v.Type {
	case spec.HostPathUnset, spec.HostPathDirectoryOrCreate:
		return os.MkdirAll(v.Path, 0o755)
	case spec.HostPathFileOrCreate:
		f, err := os.OpenFile(v.Path, os.O_CREATE|os.O_RDONLY, 0o644) // its folder is not made
		if err != nil {
			return err
		}
		return f.Close()
	case spec.HostPathDirectory, spec.HostPathFile, spec.HostPathSocket, spec.HostPathCharDevice, spec.HostPathBlockDevice:
	}
	return fmt.Errorf("%s does not exist", v.Path)
}
