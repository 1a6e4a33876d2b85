// Package cgroup is what Podstead itself does with the kernel's control groups, on cgroup v1, hybrid and pure v2: which
// controllers there are, where a process lies, the cgroups of pods with their limits, and whether the kernel has killed for
// want of memory.
//
// It owns the files of the cgroup file systems that Podstead writes. Those of containers are the OCI runtime's, and those of
// slices systemd's. It knows nothing of pods; paths are relative to the root of the hierarchies.
package cgroup
