package hostile

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Try is an attempt of the program of [Intruder], and its outcome in the default configuration, or several with "|" between them.
type Try struct{ Attempt, Want string }

// Intruder is an image of test/images whose program makes attempts.
const Intruder = "localhost/podstead/intruder:1"

// Play returns the text of a container that makes attempts and exits ("try"), or keeps running ("stay").
func Play(container, how string, attempts ...string) string {
	quoted := make([]string, len(attempts))
	for i, a := range attempts {
		quoted[i] = fmt.Sprintf("%q", a)
	}
	return fmt.Sprintf("\n[[containers]]\nname = %q\nimage = %q\nargs = [%q, %s]\n", container, Intruder, how, strings.Join(quoted, ", "))
}

// Attempts returns the attempts of tries.
func Attempts(tries []Try) []string {
	all := make([]string, len(tries))
	for i, t := range tries {
		all[i] = t.Attempt
	}
	return all
}

// Outcomes returns the outcome of each attempt in the output of a container that has finished.
func Outcomes(output string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(output) {
		attempt, outcome, _ := strings.Cut(strings.TrimSpace(line), ": ")
		all[attempt] = outcome
	}
	return all
}

// Mismatches returns a line for each outcome that is not the one of a try.
func Mismatches(got map[string]string, tries []Try) (lines []string) {
	for _, t := range tries {
		if outcome := cmp.Or(got[t.Attempt], "no outcome"); !slices.Contains(strings.Split(t.Want, "|"), outcome) {
			lines = append(lines, fmt.Sprintf("%s: %s, want %s", t.Attempt, outcome, t.Want))
		}
	}
	return lines
}

// Kernel are attempts to change or read settings of the host's kernel.
func Kernel() []Try {
	cgroup := "/sys/fs/cgroup"
	if _, err := os.Stat(cgroup + "/cgroup.controllers"); err != nil { // cgroup v1 has a hierarchy for each controller
		cgroup += "/memory"
	}
	return []Try{
		{"capabilities CapEff", "00000000a80425fb"},
		{"capabilities CapBnd", "00000000a80425fb"},
		{"capabilities CapInh", "0000000000000000"},
		{"capabilities CapAmb", "0000000000000000"},
		{"write /proc/sys/kernel/core_pattern", "EROFS"},
		{"write /proc/sys/kernel/panic", "EROFS"},
		{"write /proc/sys/vm/panic_on_oom", "EROFS"},
		{"write /proc/sys/net/ipv4/ip_forward", "EROFS"},
		{"write /proc/sys/fs/binfmt_misc/register", "EROFS|ENOENT"},
		{"write /proc/sysrq-trigger", "EROFS|ENOENT"},
		{"write /proc/irq/default_smp_affinity", "EROFS"},
		{"write /sys/kernel/uevent_helper", "EROFS|ENOENT"},
		{"mkdir /sys/kernel/intruder", "EROFS"},
		{"mkdir " + cgroup + "/intruder", "EROFS"},
		{"write " + cgroup + "/cgroup.procs", "EROFS"},
		{"write " + cgroup + "/notify_on_release", "EROFS|ENOENT"},
		{"write " + cgroup + "/release_agent", "EROFS|ENOENT"},
		{"remount /sys", "EPERM"},
		{"remount /proc/sys", "EPERM"},
		{"unmount /proc/sys", "EPERM"},
		{"unmount /proc/timer_list", "EPERM"},
		{"mount proc /tmp/proc", "EPERM"},
		{"mount sysfs /tmp/sys", "EPERM"},
		{"mount cgroup:memory /tmp/cgroup", "EPERM"},
		{"mount cgroup2 /tmp/cgroup2", "EPERM"},
		{"mount binfmt_misc /tmp/binfmt", "EPERM"},
		{"mount debugfs /tmp/debug", "EPERM"},
		{"mount tmpfs /tmp/tmpfs", "EPERM"},
		{"mount overlay /tmp/overlay", "EPERM"},
		{"new-fs tmpfs", "EPERM"},
		{"open-tree /", "EPERM"},
		{"pivot", "EPERM"},
		{"unshare user", "EPERM"},
		{"unshare mount", "EPERM"},
		{"unshare net", "EPERM"},
		{"unshare pid", "EPERM"},
		{"unshare cgroup", "EPERM"},
		{"enter /proc/1/ns/net", "EPERM"},
		{"enter /proc/1/ns/mnt", "EPERM"},
		{"read /proc/kcore", "0 bytes|ENOENT"},
		{"read /proc/keys", "0 bytes"},
		{"read /proc/timer_list", "0 bytes"},
		{"list /proc/acpi", "0 entries|ENOENT"},
		{"list /proc/scsi", "0 entries|ENOENT"},
		{"list /sys/firmware", "0 entries"},
		{"read /proc/kmsg", "EPERM"},
		{"kernel-log", "EPERM"},
		{"hostname", "EPERM"},
		{"clock", "EPERM"},
		{"reboot", "EPERM"},
		{"module", "EPERM"},
		{"kexec", "EPERM"},
		{"bpf", "EPERM"},
		{"perf", "EPERM"},
		{"userfault", "EPERM"},
		{"uring", "EPERM"},
		{"fanotify", "EPERM"},
		{"accounting", "EPERM"},
		{"quota", "EPERM"},
		{"swap-on /dev/zero", "EPERM"},
		{"add-key", "EPERM"},
		{"keyring", "EPERM"},
		{"nice", "EACCES"},
	}
}

// Devices are attempts to open devices. Disk is an attempt with that of the host, and names are the nodes in /dev.
func Devices(disk, names string) []Try {
	return []Try{
		{"devices", names},
		{"read /dev/core", "0 bytes|ENOENT"},
		{disk, "EPERM"},
		{"device b 7 0", "EPERM"},    // a loop device
		{"device c 1 1", "EPERM"},    // memory
		{"device c 1 4", "EPERM"},    // I/O ports
		{"device c 1 11", "EPERM"},   // the kernel log
		{"device c 4 0", "EPERM"},    // the console
		{"device c 10 229", "EPERM"}, // fuse
		{"device c 10 232", "EPERM"}, // kvm
		{"device c 1 3", "0 bytes"},  // null
		{"read /dev/kmsg", "ENOENT"},
	}
}

// Files are attempts to reach a directory of the host, and others of its files. The volume data is mounted at /data.
func Files(victim string) []Try {
	return []Try{
		{"read " + victim + "/a", "ENOENT"},
		{"read /proc/1/root" + victim + "/a", "ENOENT"},
		{"read /proc/self/root" + victim + "/a", "ENOENT"},
		{"above " + victim + "/a", "not found"},
		{"handle /data", "EPERM"},
		{"handle /etc/hosts", "EPERM"},
		{"handle /", "EPERM"},
		{"find / podstead", "nothing"},
		{"find / .sock", "nothing"},
		{"find / containerd", "nothing"},
		{"symlink " + victim + " /data/link", "done"},
		{"read /data/link/a", "ENOENT"},
		{"remove /etc/hosts", "EBUSY"},
		{"remove /dev/termination-log", "EBUSY"},
		{"unmount /etc/hosts", "EPERM"},
		{"unmount /data", "EPERM"},
		{"chroot-up " + victim + "/a", "not found"}, // last, because it leaves the root directory
	}
}

// FileVolume is the text of the volume for [Files], after the container.
const FileVolume = "volumeMounts = { data = \"/data\" }\n[[volumes]]\nname = \"data\"\nemptyDir = {}\n"

// Processes are attempts to reach a process in another pod, and one of the host.
func Processes(other, host int) []Try {
	return []Try{
		{"processes", "intruder"},
		{fmt.Sprint("signal ", other), "ESRCH"},
		{fmt.Sprint("trace ", other), "ESRCH"},
		{fmt.Sprint("peek ", other), "ESRCH"},
		{fmt.Sprint("signal ", host), "ESRCH"},
		{fmt.Sprint("read /proc/", other, "/environ"), "ENOENT"},
		{fmt.Sprint("list /proc/", other, "/root"), "ENOENT"},
	}
}

// Sockets are attempts to connect to sockets of the host: an abstract one, one with a path, and that of the daemon.
func Sockets(abstract, path, daemon string) []Try {
	return []Try{
		{"sockets", "none"},
		{"dial unix " + abstract, "ECONNREFUSED"},
		{"dial unix " + path, "ENOENT"},
		{"dial unix " + daemon, "ENOENT"},
		{"dial unix /run/podstead/podstead.sock", "ENOENT"},
		{"dial unix /run/containerd/containerd.sock", "ENOENT"},
		{"dial unix /var/run/docker.sock", "ENOENT"},
	}
}

// Control are attempts to change the network of the pod. Address is that of another pod.
func Control(address string) []Try {
	return []Try{
		{"add-link", "EPERM"},
		{"link-down eth0", "EPERM"},
		{"add-ip eth0 " + address + "/32", "EPERM"},
		{"add-route 127.0.0.0/8 eth0", "EPERM"},
		{"add-route 198.51.100.0/24 eth0", "EPERM"},
		{"firewall", "EPERM"},
		{"write /proc/sys/net/ipv4/conf/all/route_localnet", "EROFS"},
		{"listen tcp 127.0.0.1:80", "done"}, // on its own loopback
		{"raw-socket", "done"},              // CAP_NET_RAW is in the default set, as with Docker and the kubelet
	}
}
