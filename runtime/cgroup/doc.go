// Package cgroup reads and writes the kernel's control groups, on cgroup v1, hybrid and v2: available controllers, the cgroup of a process,
// creation, limits and removal of cgroups, and OOM kills.
//
// The cgroups of containers are written by the OCI runtime, and slices by systemd. This package does not depend on pods, see package
// podcgroup. Paths of cgroups are relative to the mount points of the hierarchies.
package cgroup
