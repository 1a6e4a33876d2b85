// Package cdi reads specifications of the Container Device Interface: files of vendors that name devices, and what a container with one of
// them needs. It knows nothing of pods, and applies nothing.
//
// The files belong to the administrator of the host: who may write them can have programs run as root. A damaged one makes only its own
// devices unusable.
package cdi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	"tags.cncf.io/container-device-interface/specs-go"

	"github.com/podstead/podstead/internal/guard"
)

// maxSize is the size of a specification in bytes. One of NVIDIA for 8 GPUs has 40 KiB.
const maxSize = 4 << 20

// ErrNoDevice means that a device does not exist, or not all that it needs. It may later.
var ErrNoDevice = errors.New("no device")

// missingError is an [ErrNoDevice] with another text.
type missingError struct{ text string }

func (e missingError) Error() string { return e.text }

func (missingError) Is(target error) bool { return target == ErrNoDevice }

// Registry are the devices of the specifications in some directories, as they were when it was read.
type Registry struct {
	// Unreadable are the errors of files and directories by their paths.
	Unreadable map[string]error

	dirs    []string
	devices map[string][]*Device // by qualified name; several have one priority, and conflict
}

// Device is a device of a specification.
type Device struct {
	name, path string // path is that of the specification
	priority   int
	own        *specs.ContainerEdits // of the device
	common     *specs.ContainerEdits // of all devices of the specification
}

// reading limits how many goroutines wait for a file that cannot be read.
var reading guard.FileUsers

// Read reads the files *.json and *.yaml of directories. A device in a later directory replaces one with the same name in an earlier one. A
// directory that does not exist is empty. Reading a file takes at most 5 seconds.
func Read(ctx context.Context, dirs []string) *Registry {
	r := &Registry{Unreadable: map[string]error{}, dirs: dirs, devices: map[string][]*Device{}}
	for priority, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.Unreadable[dir] = cause(err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if ext := filepath.Ext(path); entry.IsDir() || ext != ".json" && ext != ".yaml" {
				continue
			}
			s, err := guard.UseFile(ctx, &reading, path, func() (*cdi.Spec, error) { return readFile(path, priority) })
			if err != nil {
				r.Unreadable[path] = err
				continue
			}
			r.add(s)
		}
	}
	return r
}

// readFile reads a specification. The library panics on an entry of a list that is null.
func readFile(path string, priority int) (s *cdi.Spec, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("invalid specification: a list has an empty entry")
		}
	}()
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, cause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > maxSize:
		return nil, fmt.Errorf("larger than %d bytes", maxSize)
	}
	if s, err = cdi.ReadSpec(path, priority); err != nil {
		return nil, errors.New(strings.Join(strings.Fields(cause(err).Error()), " ")) // those of YAML have several lines
	}
	return s, nil
}

// cause returns an error without the path, which the caller names.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

func (r *Registry) add(s *cdi.Spec) {
	for i := range s.Devices {
		d := &Device{
			name: parser.QualifiedName(s.GetVendor(), s.GetClass(), s.Devices[i].Name), path: s.GetPath(), priority: s.GetPriority(),
			own: &s.Devices[i].ContainerEdits, common: &s.ContainerEdits,
		}
		if same := r.devices[d.name]; len(same) > 0 && same[0].priority == d.priority {
			r.devices[d.name] = append(same, d)
		} else {
			r.devices[d.name] = []*Device{d}
		}
	}
}

// Names returns the qualified names of all devices.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.devices)) }

// Find returns the device with a qualified name. The error is [ErrNoDevice] if there is none, or if a file of the host does not exist that
// it needs. Other errors are those of its specification.
func (r *Registry) Find(name string) (*Device, error) {
	same := r.devices[name]
	switch {
	case len(same) == 0:
		parts := []string{fmt.Sprintf("device %s: no specification in %s has it", name, strings.Join(r.dirs, " or "))}
		for _, path := range slices.Sorted(maps.Keys(r.Unreadable)) {
			parts = append(parts, fmt.Sprintf("%s cannot be read: %v", path, r.Unreadable[path]))
		}
		return nil, missingError{strings.Join(parts, "; ")}
	case len(same) > 1:
		return nil, fmt.Errorf("device %s: %s and %s both have it", name, same[0].path, same[1].path)
	}
	d := same[0]
	for _, edits := range []*specs.ContainerEdits{d.common, d.own} {
		if err := supported(edits); err != nil {
			return nil, fmt.Errorf("device %s: %s: %w", name, d.path, err)
		}
		for _, path := range required(edits) {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				return nil, missingError{fmt.Sprintf("device %s: %s does not exist, which %s names", name, path, d.path)}
			}
		}
	}
	return d, nil
}

// supported returns why a container cannot have edits.
func supported(e *specs.ContainerEdits) error {
	if len(e.NetDevices) > 0 {
		return errors.New("netDevices are not supported: the network of a pod is that of all its containers, and lasts longer than they do")
	}
	for _, n := range e.DeviceNodes {
		switch {
		case n.Type == "p":
			return fmt.Errorf("device node %s: FIFOs are not supported", n.Path)
		case !isClean(n.Path) || !strings.HasPrefix(n.Path, "/dev/"):
			return fmt.Errorf("device node %s: must be a path below /dev", n.Path)
		case n.HostPath != "" && !filepath.IsAbs(n.HostPath):
			return fmt.Errorf("device node %s: hostPath %s must be an absolute path", n.Path, n.HostPath)
		}
	}
	for _, m := range e.Mounts {
		switch {
		case !isClean(m.ContainerPath) || m.ContainerPath == "/":
			return fmt.Errorf("mount %s: must be an absolute path other than /", m.ContainerPath)
		case IsBind(m) && !filepath.IsAbs(m.HostPath):
			return fmt.Errorf("mount %s: hostPath %s must be an absolute path", m.ContainerPath, m.HostPath)
		}
	}
	for _, h := range e.Hooks {
		switch {
		case !filepath.IsAbs(h.Path):
			return fmt.Errorf("%s hook: %s must be an absolute path", h.HookName, h.Path)
		case h.Timeout != nil && *h.Timeout <= 0:
			return fmt.Errorf("%s hook: timeout must be greater than 0", h.HookName)
		}
	}
	return nil
}

func isClean(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }

// IsBind reports whether a mount is that of a file or directory of the host.
func IsBind(m *specs.Mount) bool {
	return m.Type == "" || m.Type == "bind" || m.Type == "none" || slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind")
}

// IsComplete reports whether a node can be made without that of the host.
func IsComplete(n *specs.DeviceNode) bool { return n.Type != "" && n.Major != 0 }

// required returns the files of the host without which edits cannot be applied. The OCI runtime finds programs of startContainer hooks in
// the container.
func required(e *specs.ContainerEdits) []string {
	var paths []string
	for _, n := range e.DeviceNodes {
		if path := n.HostPath; path != "" {
			paths = append(paths, path)
		} else if !IsComplete(n) {
			paths = append(paths, n.Path)
		}
	}
	for _, m := range e.Mounts {
		if IsBind(m) {
			paths = append(paths, m.HostPath)
		}
	}
	for _, h := range e.Hooks {
		if h.HookName != cdi.StartContainerHook {
			paths = append(paths, h.Path)
		}
	}
	return paths
}

// Merge returns the edits of all devices. Those of a specification are in it once. Devices that need different mounts, nodes or classes of
// service at one place conflict.
func Merge(devices []*Device) (*specs.ContainerEdits, error) {
	all := cdi.ContainerEdits{ContainerEdits: &specs.ContainerEdits{}}
	var of []*specs.ContainerEdits
	mounts, nodes := map[string]*specs.Mount{}, map[string]*specs.DeviceNode{}
	for _, d := range devices {
		for _, edits := range []*specs.ContainerEdits{d.common, d.own} {
			if slices.Contains(of, edits) {
				continue
			}
			of = append(of, edits)
			added := *edits
			if added.IntelRdt != nil && all.IntelRdt != nil && !reflect.DeepEqual(added.IntelRdt, all.IntelRdt) {
				return nil, fmt.Errorf("device %s: intelRdt is not that of another device", d.name)
			}
			var err error
			if added.Mounts, err = unique(mounts, added.Mounts, func(m *specs.Mount) string { return m.ContainerPath }); err == nil {
				added.DeviceNodes, err = unique(nodes, added.DeviceNodes, func(n *specs.DeviceNode) string { return n.Path })
			}
			if err != nil {
				return nil, fmt.Errorf("device %s: %w", d.name, err)
			}
			all.Append(&cdi.ContainerEdits{ContainerEdits: &added})
		}
	}
	return all.ContainerEdits, nil
}

// unique returns the entries of a list that are not known.
func unique[T any](known map[string]*T, list []*T, at func(*T) string) ([]*T, error) {
	var added []*T
	for _, one := range list {
		path := at(one)
		if other := known[path]; other == nil {
			known[path] = one
			added = append(added, one)
		} else if !reflect.DeepEqual(one, other) {
			return nil, fmt.Errorf("%s is not that of another device", path)
		}
	}
	return added, nil
}
