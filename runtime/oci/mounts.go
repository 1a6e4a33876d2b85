package oci

import (
	"cmp"
	"path"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/order"
)

// mounts lists the mounts of a container. Volumes and the pod's files outside of /dev, /proc and /sys come first, then the default mounts,
// which are on the kernel's file systems, then the rest. So a link in the image or in a volume that leads a mount point into one of these
// file systems has no effect: the file system is mounted over it. Within the first and the last group the order is by depth, so that no
// mount hides another. A volume replaces another mount at the same path.
func mounts(in *Input, defaults []specs.Mount) []specs.Mount {
	volumes := slices.Clone(in.Mounts)
	over := map[string]bool{"/run": true} // containerd's client mounts a tmpfs there, the CRI plug-in does not
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
		options := []string{"rbind", "rprivate", "rw"}
		if f.Program || f.WithRoot && isTrue(contextOf(in.Container).ReadOnlyRootFilesystem) {
			options[2] = "ro"
		}
		if f.Program {
			options = append(options, "nosuid", "nodev")
		}
		volumes = append(volumes, specs.Mount{Destination: f.Path, Type: "bind", Source: f.Source, Options: options})
	}
	list = slices.DeleteFunc(list, func(m specs.Mount) bool {
		return over[m.Destination] || over["/dev"] && strings.HasPrefix(m.Destination, "/dev/")
	})
	depth := func(m specs.Mount) int { return strings.Count(m.Destination, "/") }
	order.Sort(volumes, func(a, b specs.Mount) int { return cmp.Compare(depth(a), depth(b)) })
	var first, last []specs.Mount
	for _, v := range volumes {
		if inKernelFileSystem(v.Destination) {
			last = append(last, v)
		} else {
			first = append(first, v)
		}
	}
	return slices.Concat(first, list, last)
}

// inKernelFileSystem reports whether a path is at or below one of the file systems that the OCI runtime mounts in a container.
func inKernelFileSystem(name string) bool {
	return slices.ContainsFunc([]string{"/dev", "/proc", "/sys"},
		func(dir string) bool { return name == dir || isBelow(name, dir) })
}

// isBelow reports whether a path is below a directory.
func isBelow(name, dir string) bool {
	return strings.HasPrefix(name, strings.TrimSuffix(path.Clean(dir), "/")+"/")
}
