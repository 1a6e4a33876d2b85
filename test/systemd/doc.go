// Package systemd boots the host's systemd in namespaces, on a disk of its own, and runs the installed service there. It takes a second,
// and shows what a virtual machine shows in a minute: a boot, a reboot, and a power cut that loses what was not synced.
//
// It owns the file of the disk, the processes of the namespaces and their cgroups. It isolates nothing from a hostile program, and has no
// controllers of cgroup v2: see package test/vm.
//
// The tests have the build tag e2e.
package systemd
