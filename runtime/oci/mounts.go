package oci

import (
	"cmp"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// mounts lists the mounts of a container in an order in which none hides another: the default mounts, then the container's
// volumes and the pod's files, ordered by depth. A volume replaces another mount at the same path.
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
		volumes = append(volumes, specs.Mount{
			Destination: f.Path, Type: "bind", Source: f.Source, Options: []string{"rbind", "rprivate", "rw"},
		})
	}
	list = slices.DeleteFunc(list, func(m specs.Mount) bool {
		return over[m.Destination] || over["/dev"] && strings.HasPrefix(m.Destination, "/dev/")
	})
	depth := func(m specs.Mount) int { return strings.Count(m.Destination, "/") }
	slices.SortStableFunc(volumes, func(a, b specs.Mount) int { return cmp.Compare(depth(a), depth(b)) })
	return append(list, volumes...)
}
