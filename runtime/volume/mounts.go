package volume

import (
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

// Request describes the container that mounts volumes.
type Request struct {
	Container *spec.Container
	// Run identifies this run of the container within the pod. Its mounts last until [Set.Release]. The caller calls it when the OCI
	// runtime has created the container, which has copies of them, and again when the container is removed.
	Run string
	// Variables are the environment variables of the container, for subPathExpr.
	Variables map[string]string
	// Images are the directories on which the images of image volumes are mounted read-only, by volume name. For a pod
	// with a user namespace they are already id-mapped.
	Images map[string]string
	// UserNamespace is the path of the container's user namespace, or "" for that of the host. Volumes are mounted
	// id-mapped, so that files of root belong to root of that namespace. The file system must support id-mapped mounts.
	UserNamespace string
	// Existing requires that the directories of host paths and subPaths exist. Otherwise they are created.
	Existing bool
	// RecursiveReadOnly means that the kernel (5.12) and the OCI runtime support recursive options of mounts, such as read-only.
	RecursiveReadOnly bool
}

// Mounts returns the OCI mounts for the volumes of a container run, in the order of its volumeMounts. The volumes must be
// prepared. A subPath is resolved once and pinned by a bind mount, so that other containers cannot change it later. A
// repeated call for the same run starts over.
//
// After an error nothing is left mounted. Errors are problems of the container's configuration
// (CreateContainerConfigError) and can be retried.
func (s *Set) Mounts(ctx context.Context, p Pod, r Request) ([]specs.Mount, error) {
	if err := checkName("run", r.Run); err != nil {
		return nil, err
	}
	return withPod(ctx, s, p.UID, func(ctx context.Context) ([]specs.Mount, error) {
		if err := s.release(ctx, p.UID, r.Run); err != nil {
			return nil, err
		}
		list := make([]specs.Mount, 0, len(r.Container.VolumeMounts))
		for i := range r.Container.VolumeMounts {
			m := &r.Container.VolumeMounts[i]
			mount, err := s.mount(p, r, i)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				err = fmt.Errorf("volume %q: %w", m.Name, err)
				return nil, errors.Join(err, s.release(context.WithoutCancel(ctx), p.UID, r.Run))
			}
			list = append(list, mount)
		}
		return list, nil
	})
}

// mount returns the OCI mount for a volume mount, given by its index.
func (s *Set) mount(p Pod, r Request, number int) (specs.Mount, error) {
	m := &r.Container.VolumeMounts[number]
	i := slices.IndexFunc(p.Spec.Volumes, func(v spec.Volume) bool { return v.Name == m.Name })
	if i < 0 {
		return specs.Mount{}, errors.New("not found in the pod")
	}
	v := &p.Spec.Volumes[i]
	options, err := r.options(v, m)
	if err != nil {
		return specs.Mount{}, err
	}
	if s.isNoSetuid(p.Spec, v) {
		options = append(options, r.noSetuid())
	}
	sub, err := subPathOf(m, r.Variables)
	if err != nil {
		return specs.Mount{}, err
	}
	source, fd, err := s.open(p.UID, v, r)
	if err != nil {
		return specs.Mount{}, err
	}
	defer unix.Close(fd)
	foreign := v.HostPath != nil && !isPrivileged(r.Container) // a host path that must be what was checked
	if foreign {
		if err := s.checkProtected(fd); err != nil {
			return specs.Mount{}, err
		}
	}
	if err := checkPropagation(fd, source, m.MountPropagation); err != nil {
		return specs.Mount{}, err
	}
	if err := s.checkBindable(fd, source); err != nil {
		return specs.Mount{}, err
	}
	target := filepath.Join(s.subPathsDir(p.UID), r.Run, strconv.Itoa(number))
	users := r.UserNamespace
	if v.Image != nil {
		users = "" // the caller has id-mapped it
	}
	switch {
	case sub != "":
		if err := pinBelow(fd, sub, target, v.Image != nil || r.Existing, m, users); err != nil {
			return specs.Mount{}, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w",
				m.Name, r.Container.Name, err)
		}
		source = target
	case users != "", foreign, v.HostPath != nil && (s.confined() || s.overUnbindable(source)):
		// Mount what was checked, since the path may have changed; here, since runc would copy the mounts of pods too.
		if err := pin(fd, target, m, unix.MS_REC, users); err != nil {
			return specs.Mount{}, fmt.Errorf("mount %s: %w", source, err)
		}
		source = target
	}
	if r.UserNamespace != "" || p.Spec.KeepID != nil {
		if options, err = keepFlags(source, options); err != nil {
			return specs.Mount{}, err
		}
	}
	return specs.Mount{
		Destination: path.Join("/", m.MountPath), Type: "bind", Source: source, Options: options,
	}, nil
}

// overUnbindable reports whether mounts of pods are below a path.
func (s *Set) overUnbindable(source string) bool {
	return slices.ContainsFunc(s.opts.Unbindable, func(dir string) bool { return isBelow(dir, source) })
}

// checkBindable returns an error if a path is in a directory that contains mounts of pods, and not itself in one of these mounts.
func (s *Set) checkBindable(fd int, source string) error {
	if !slices.ContainsFunc(s.opts.Unbindable, func(dir string) bool { return isBelow(source, dir) }) {
		return nil
	}
	m, err := mountOf(fd)
	if err == nil && strings.Contains(m.Optional, "unbindable") {
		err = fmt.Errorf("path %q is in %s, which contains mounts of pods and cannot be mounted", source, m.Mountpoint)
	}
	return err
}

// open opens a volume with O_PATH. It also returns the path on the host.
func (s *Set) open(uid string, v *spec.Volume, r Request) (source string, fd int, err error) {
	if v.HostPath != nil && s.confined() {
		if r.Existing {
			fd, err = s.openBelowAllowed(filepath.Clean(v.HostPath.Path))
		} else {
			fd, err = s.openAllowed(v.HostPath)
		}
		if err != nil {
			return "", -1, err
		}
		if source, err = os.Readlink(fdPath(fd)); err != nil {
			unix.Close(fd)
			return "", -1, err
		}
		return source, fd, nil
	}
	if source, err = s.source(uid, v, r); err != nil {
		return "", -1, err
	}
	if fd, err = unix.Open(source, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return "", -1, fmt.Errorf("open %s: %w", source, err)
	}
	return source, fd, nil
}

// source returns the path of a volume on the host.
func (s *Set) source(uid string, v *spec.Volume, r Request) (string, error) {
	switch {
	case v.HostPath != nil:
		if v.HostPath.Type == spec.HostPathUnset && !r.Existing { // may have been deleted since; containerd creates it for each container
			if err := checkHostPath(v.HostPath); err != nil {
				return "", err
			}
		}
		return filepath.EvalSymlinks(v.HostPath.Path)
	case v.Image != nil:
		dir := r.Images[v.Name]
		if dir == "" {
			return "", fmt.Errorf("image %q is not mounted", v.Image.Reference)
		}
		return dir, nil
	case v.PersistentVolumeClaim != nil:
		if err := checkClaim(v.PersistentVolumeClaim.ClaimName); err != nil {
			return "", err
		}
	}
	return s.path(uid, v), checkName("volume", v.Name)
}

// options returns the options of a bind mount, as set by containerd's CRI plug-in.
func (r *Request) options(v *spec.Volume, m *spec.VolumeMount) ([]string, error) {
	options := []string{"rbind"}
	switch m.MountPropagation {
	case "", "None":
		options = append(options, "rprivate")
	case "HostToContainer":
		options = append(options, "rslave")
	case "Bidirectional":
		options = append(options, "rshared")
	default:
		return nil, fmt.Errorf("mount propagation %q is not supported", m.MountPropagation)
	}
	recursive, err := r.recursiveReadOnly(m)
	switch {
	case err != nil:
		return nil, err
	case recursive:
		options = append(options, "rro")
	case m.ReadOnly || isContent(v) || v.Image != nil || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly:
		options = append(options, "ro")
	default:
		options = append(options, "rw")
	}
	if v.Image != nil {
		options = append(options, "noexec") // KEP-4639
	}
	return options, nil
}

// isNoSetuid reports whether programs in a volume must not change the user. Root of a pod with keepID is another user in one without it,
// and the other way round: what this user stores in a shared volume with the setuid bit would run as root. Host paths of pods without
// keepID stay as they are, since programs of the person may be there.
func (s *Set) isNoSetuid(p *spec.Pod, v *spec.Volume) bool {
	return p.KeepID != nil && (v.HostPath != nil || v.EmptyDir != nil) || s.opts.Rootless && v.PersistentVolumeClaim != nil
}

// noSetuid returns the option for it: also for mounts below the volume, if the OCI runtime can do that.
func (r *Request) noSetuid() string {
	if r.RecursiveReadOnly {
		return "rnosuid"
	}
	return "nosuid"
}

// recursiveReadOnly reports whether mounts below the volume are read-only too (KEP-3857).
func (r *Request) recursiveReadOnly(m *spec.VolumeMount) (bool, error) {
	switch m.RecursiveReadOnly {
	case "", "Disabled":
		return false, nil
	case "IfPossible", "Enabled":
	default:
		return false, fmt.Errorf("recursive read-only mode %q is not supported", m.RecursiveReadOnly)
	}
	message := fmt.Sprintf("volume %q requested recursive read-only mode, but it is not", m.Name)
	switch {
	case !m.ReadOnly:
		return false, fmt.Errorf("%s read-only", message)
	case m.MountPropagation != "" && m.MountPropagation != "None":
		return false, fmt.Errorf("%s compatible with propagation %q", message, m.MountPropagation)
	case m.RecursiveReadOnly == "Enabled" && !r.RecursiveReadOnly:
		return false, fmt.Errorf("%s supported by the runtime", message)
	}
	return r.RecursiveReadOnly, nil
}

// checkPropagation reports an error if the source mount does not propagate mounts. The kernel would silently ignore this.
func checkPropagation(fd int, source, propagation string) error {
	if propagation == "" || propagation == "None" {
		return nil
	}
	m, err := mountOf(fd)
	if err != nil {
		return err
	}
	shared, slave := strings.Contains(m.Optional, "shared:"), strings.Contains(m.Optional, "master:")
	switch {
	case propagation == "Bidirectional" && !shared:
		return fmt.Errorf("path %q is mounted on %q but it is not a shared mount", source, m.Mountpoint)
	case !shared && !slave:
		return fmt.Errorf("path %q is mounted on %q but it is not a shared or slave mount", source, m.Mountpoint)
	}
	return nil
}

// pinBelow bind-mounts the subPath of a volume at target. Mounts below it are not included, as in the kubelet.
func pinBelow(volume int, sub, target string, mustExist bool, m *spec.VolumeMount, users string) error {
	open := openOrCreate
	if mustExist {
		open = openBelow
	}
	fd, err := open(volume, sub)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return pin(fd, target, m, 0, users)
}

// pin bind-mounts an open file or directory at target: with MS_REC including the mounts below it, and id-mapped unless
// users is "".
func pin(fd int, target string, m *spec.VolumeMount, recursive uintptr, users string) error {
	var err error
	if users != "" {
		err = bindMountMapped(fd, target, recursive, users)
	} else {
		err = bindMount(fd, target, recursive)
	}
	if err != nil {
		return err
	}
	switch m.MountPropagation {
	case "Bidirectional":
		return nil
	case "HostToContainer":
		return os.NewSyscallError("mount", unix.Mount("", target, "", unix.MS_SLAVE|recursive, ""))
	}
	return os.NewSyscallError("mount", unix.Mount("", target, "", unix.MS_PRIVATE|recursive, ""))
}

// RootPropagation returns the propagation that the container's root needs for its mounts: "rshared", "rslave", or "" for
// the default of the OCI runtime.
func RootPropagation(mounts []specs.Mount) string {
	root := ""
	for _, m := range mounts {
		switch {
		case slices.Contains(m.Options, "rshared"):
			return "rshared"
		case slices.Contains(m.Options, "rslave"):
			root = "rslave"
		}
	}
	return root
}
