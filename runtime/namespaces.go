package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/spec"
)

// namespacesOf says which namespaces a pod has of its own, with the ids of its users if it has any of its own. In the machine's
// network it has the machine's name too.
func namespacesOf(pod *spec.Pod, ids idmap.Range) netns.Options {
	o := netns.Options{HostIPC: pod.HostIPC, PID: pod.ShareProcessNamespace, IDs: ids}
	if !pod.HostNetwork {
		o.Network, o.Hostname = true, oci.Hostname(pod)
	}
	return o
}

// joined are the namespaces of a sandbox that its processes join.
func joined(pins netns.Pins, ids idmap.Range) oci.Namespaces {
	return oci.Namespaces{Network: pins.Network, IPC: pins.IPC, UTS: pins.UTS, PID: pins.PID, User: pins.User, IDs: ids}
}

// sandboxSpec is the specification of the process that a sandbox needs, or nil where it needs none: only a PID namespace that
// containers share does.
func (r *Runtime) sandboxSpec(uid string, sandbox int, pod *spec.Pod, n oci.Namespaces) *specs.Spec {
	if !pod.ShareProcessNamespace {
		return nil
	}
	s := oci.Pause(oci.PauseInput{
		Program:     r.engine.ShimPath(),
		Namespaces:  n,
		CgroupsPath: r.cgroups.spec(uid, sandboxID(uid, sandbox)),
		Machine:     r.machine,
	})
	s.Annotations = map[string]string{shim.PIDAnnotation: n.PID}
	return s
}

// ownUsers reports whether a pod has a user namespace of its own.
func ownUsers(pod *spec.Pod) bool { return pod.HostUsers != nil && !*pod.HostUsers }

// allocateIDs gives a pod the ids of its users, if it has any of its own.
func (r *Runtime) allocateIDs(uid string, pod *spec.Pod) (idmap.Range, error) {
	if !ownUsers(pod) {
		return idmap.Range{}, nil
	}
	if err := r.openToUsers(); err != nil {
		return idmap.Range{}, err
	}
	return r.ids.Allocate(uid)
}

// idsOf are the ids that a pod was given, which can be used when it returns.
func (r *Runtime) idsOf(uid string, pod *spec.Pod) (idmap.Range, error) {
	if !ownUsers(pod) {
		return idmap.Range{}, nil
	}
	if err := r.openToUsers(); err != nil { // each start of the engine closes them
		return idmap.Range{}, err
	}
	return r.ids.Find(uid)
}

// openToUsers lets anybody pass through the folders that lead to the roots of containers, and does not let them see what is there:
// the root of a user namespace is nobody on the way to its own root folder. Folders that are not ours stay as they are, and one
// that cannot be passed through is an error.
func (r *Runtime) openToUsers() error {
	ours, err := filepath.Abs(r.opts.RunDir)
	if err != nil {
		return fmt.Errorf("open folders to users of pods: %w", err)
	}
	for _, dir := range r.engine.BundleDirs() {
		if err := openTo(dir, ours); err != nil {
			return fmt.Errorf("hostUsers = false: open folders to users of pods: %w", err)
		}
	}
	return nil
}

// openTo is openToUsers for one folder, which need not be there yet, and those that it lies in.
func openTo(dir, ours string) error {
	const pass = 0o011
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		if mode&0o001 != 0 {
			continue
		}
		if dir != ours && !strings.HasPrefix(dir, ours+"/") {
			return fmt.Errorf("nobody but its owner can pass through %s (mode %#o): it needs x for others", dir, mode)
		}
		if err := os.Chmod(dir, mode|pass); err != nil {
			return err
		}
	}
	return nil
}

// errNoMappedImages is the error of a kernel, or of a snapshotter or its file system, that cannot show one image to pods with
// different users.
var errNoMappedImages = errors.New("hostUsers = false: the kernel or the snapshotter cannot id-map the layers of images (overlayfs needs Linux 5.19)")

// remapCapability is what a snapshotter says that can id-map.
const remapCapability = "remap-ids"

// admitUsers returns why a pod cannot have users of its own on this machine.
func (r *Runtime) admitUsers(ctx context.Context, pod *spec.Pod) error {
	if !ownUsers(pod) {
		return nil
	}
	if err := netns.CheckUsers(); err != nil {
		return fmt.Errorf("hostUsers = false: %w", err)
	}
	capabilities, err := r.client.GetSnapshotterCapabilities(inNamespace(ctx), r.opts.Images.Snapshotter)
	if err != nil {
		return fmt.Errorf("hostUsers = false: ask the snapshotter: %w", err)
	}
	if !slices.Contains(capabilities, remapCapability) {
		return errNoMappedImages
	}
	return r.openToUsers()
}

// remapped has a snapshot show the files of an image to a pod's own users.
func remapped(ids idmap.Range) []snapshots.Opt {
	if ids.First == 0 {
		return nil
	}
	return []snapshots.Opt{client.WithUserNSRemapperLabels(ids.Mappings(), ids.Mappings())}
}

// withOwner gives the output of a task to the root of its pod, who may open it anew.
func withOwner(ids idmap.Range) []client.NewTaskOpts {
	if ids.First == 0 {
		return nil
	}
	return []client.NewTaskOpts{client.WithUIDOwner(ids.First), client.WithGIDOwner(ids.First)}
}

// give makes the root of a pod the owner of files that its containers are shown.
func give(ids idmap.Range, files ...string) error {
	if ids.First == 0 {
		return nil
	}
	for _, file := range files {
		if err := os.Lchown(file, int(ids.First), int(ids.First)); err != nil {
			return err
		}
	}
	return nil
}
