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

	"github.com/podstead/podstead/runtime/volume/mountpoint"
	"github.com/podstead/podstead/runtime/volume/tree"
	"github.com/podstead/podstead/spec"
)

// Request says which container is to see its volumes.
type Request struct {
	Container *spec.Container
	// Run names this run of the container: no other of the pod has the same. What is mounted for it lasts until
	// [Set.Release].
	Run string
	// Variables are those of the container, for subPathExpr.
	Variables map[string]string
	// Images are the folders on which the images of image volumes are mounted read-only, by volume. In a user namespace they are
	// id-mapped already.
	Images map[string]string
	// UserNamespace is the path of the user namespace whose ids the container sees in its volumes, "" for the machine's: what
	// belongs to root in a volume belongs to root of that namespace then. The file system must be one that can be id-mapped.
	UserNamespace string
}

// Mounts returns how the OCI runtime is to mount the volumes of a run of a container, in the order of its volumeMounts.
// What they need must be prepared. A subPath is resolved and pinned by a mount of ours, so that it stays what was looked
// at, whatever other containers do. A second call for the same run begins anew.
//
// After an error nothing is left. Each is one of the container's configuration (CreateContainerConfigError): it may be
// tried again.
func (s *Set) Mounts(ctx context.Context, p Pod, r Request) ([]specs.Mount, error) {
	if err := checkName("run", r.Run); err != nil {
		return nil, err
	}
	return do(ctx, s, p.UID, func(ctx context.Context) ([]specs.Mount, error) {
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

// mount is how the volume mount of a number is mounted.
func (s *Set) mount(p Pod, r Request, number int) (specs.Mount, error) {
	m := &r.Container.VolumeMounts[number]
	i := slices.IndexFunc(p.Spec.Volumes, func(v spec.Volume) bool { return v.Name == m.Name })
	if i < 0 {
		return specs.Mount{}, errors.New("the pod has no such volume")
	}
	v := &p.Spec.Volumes[i]
	options, err := s.options(v, m)
	if err != nil {
		return specs.Mount{}, err
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
	if err := checkPropagation(fd, source, m.MountPropagation); err != nil {
		return specs.Mount{}, err
	}
	target := filepath.Join(s.subPathsDir(p.UID), r.Run, strconv.Itoa(number))
	users := r.UserNamespace
	if v.Image != nil {
		users = "" // the runtime has id-mapped it
	}
	switch {
	case sub != "":
		if err := pinBelow(fd, sub, target, v.Image != nil, m, users); err != nil {
			return specs.Mount{}, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w",
				m.Name, r.Container.Name, err)
		}
		source = target
	case users != "", v.HostPath != nil && s.confined(): // what was looked at, whatever its path leads to by now
		if err := pin(fd, target, m, unix.MS_REC, users); err != nil {
			return specs.Mount{}, fmt.Errorf("mount %s: %w", source, err)
		}
		source = target
	}
	if r.UserNamespace != "" {
		if options, err = mountpoint.KeepFlags(source, options); err != nil {
			return specs.Mount{}, err
		}
	}
	return specs.Mount{
		Destination: path.Join("/", m.MountPath), Type: "bind", Source: source, Options: options,
	}, nil
}

// open opens a volume (O_PATH), and returns its path on this machine too.
func (s *Set) open(uid string, v *spec.Volume, r Request) (source string, fd int, err error) {
	if v.HostPath != nil && s.confined() {
		if fd, err = s.openAllowed(v.HostPath); err != nil {
			return "", -1, err
		}
		if source, err = os.Readlink(tree.FdPath(fd)); err != nil {
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

// source is the path of a volume on this machine.
func (s *Set) source(uid string, v *spec.Volume, r Request) (string, error) {
	switch {
	case v.HostPath != nil:
		if v.HostPath.Type == spec.HostPathUnset { // it may be gone since, and containerd makes it for each container
			if err := checkHostPath(v.HostPath); err != nil {
				return "", err
			}
		}
		return filepath.EvalSymlinks(v.HostPath.Path)
	case v.Image != nil:
		folder := r.Images[v.Name]
		if folder == "" {
			return "", fmt.Errorf("image %q is not mounted", v.Image.Reference)
		}
		return folder, nil
	case v.PersistentVolumeClaim != nil:
		if err := checkClaim(v.PersistentVolumeClaim.ClaimName); err != nil {
			return "", err
		}
	}
	return s.path(uid, v), checkName("volume", v.Name)
}

// options are those of a bind mount, as containerd's CRI plug-in writes them.
func (s *Set) options(v *spec.Volume, m *spec.VolumeMount) ([]string, error) {
	options := []string{"rbind"}
	switch m.MountPropagation {
	case "", "None":
		options = append(options, "rprivate")
	case "HostToContainer":
		options = append(options, "rslave")
	case "Bidirectional":
		options = append(options, "rshared")
	default:
		return nil, fmt.Errorf("unknown mount propagation %q", m.MountPropagation)
	}
	recursive, err := s.recursiveReadOnly(m)
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

// recursiveReadOnly says whether what is mounted below the volume is read-only too (KEP-3857).
func (s *Set) recursiveReadOnly(m *spec.VolumeMount) (bool, error) {
	switch m.RecursiveReadOnly {
	case "", "Disabled":
		return false, nil
	case "IfPossible", "Enabled":
	default:
		return false, fmt.Errorf("unknown recursive read-only mode %q", m.RecursiveReadOnly)
	}
	asked := fmt.Sprintf("volume %q requested recursive read-only mode, but it is not", m.Name)
	switch {
	case !m.ReadOnly:
		return false, fmt.Errorf("%s read-only", asked)
	case m.MountPropagation != "" && m.MountPropagation != "None":
		return false, fmt.Errorf("%s compatible with propagation %q", asked, m.MountPropagation)
	case m.RecursiveReadOnly == "Enabled" && !s.opts.RecursiveReadOnly:
		return false, fmt.Errorf("%s supported by the runtime", asked)
	}
	return s.opts.RecursiveReadOnly, nil
}

// checkPropagation refuses what the kernel would silently not do: mounts come and go with the machine only where the
// machine's own mount passes them on.
func checkPropagation(fd int, source, propagation string) error {
	if propagation == "" || propagation == "None" {
		return nil
	}
	m, err := mountpoint.Of(fd)
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

// pinBelow mounts what a subPath names below a volume at a path of ours. Mounts below it are not seen there, as with the kubelet.
func pinBelow(volume int, sub, target string, mustExist bool, m *spec.VolumeMount, users string) error {
	open := tree.OpenOrCreate
	if mustExist {
		open = tree.OpenBelow
	}
	fd, err := open(volume, sub)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return pin(fd, target, m, 0, users)
}

// pin mounts what a descriptor stands for at a path of ours, with MS_REC and all that is mounted below it, and with the ids of a
// user namespace unless that is "".
func pin(fd int, target string, m *spec.VolumeMount, recursive uintptr, users string) error {
	var err error
	if users != "" {
		err = mountpoint.BindMapped(fd, target, recursive, users)
	} else {
		err = mountpoint.Bind(fd, target, recursive)
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

// RootPropagation is the propagation that the root of a container needs for its mounts: "rshared" or "rslave", or "" for
// the runtime's own default.
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
