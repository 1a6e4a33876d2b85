package hostile

import "slices"

// Row is an attempt of a container with root inside, in the default configuration: no securityContext, no resources.
type Row struct {
	// Tries is the attempt, in a few words.
	Tries string
	// Here is the outcome.
	Here string
	// Docker is the outcome with Docker's defaults, Kubelet with those of the kubelet and containerd; "" is the same as Here.
	Docker, Kubelet string
	// Test is the name of the test of this row.
	Test string
}

const (
	unlimited = "no limit"
	noSeccomp = "system calls are not filtered unless `seccompDefault` is set"
)

// Rows returns the table.
func Rows() []Row {
	return append([]Row{
		{
			"change kernel settings: `/proc/sys`, `/sys`, `sysrq-trigger`, its cgroup, `release_agent`, `core_pattern`",
			"cannot: mounted read-only", "", "", "TestKernel",
		},
		{
			"mount, remount or unmount anything, also with `fsopen` and `open_tree`",
			"cannot: no CAP_SYS_ADMIN, and the calls are filtered", "", "cannot: no CAP_SYS_ADMIN", "TestKernel",
		},
		{
			"create a user namespace with all capabilities, join another namespace", "cannot: filtered", "", "can create one; " + noSeccomp,
			"TestKernel",
		},
		{
			"use rarely needed system calls: `bpf`, `perf_event_open`, `io_uring`, `userfaultfd`, `keyctl`, modules, `kexec`, `reboot`, " +
				"swap, quotas, the clock",
			"cannot: filtered, or no capability",
			"", noSeccomp + "; same capabilities", "TestKernel",
		},
		{"read the kernel's log, memory, keys and firmware", "cannot: masked, or no capability", "", "", "TestKernel"},
		{"have more than the 14 default capabilities", "cannot", "", "", "TestKernel"},
		{
			"create a device node of the host's disk, memory or console, and open it", "can create it (CAP_MKNOD), cannot open it", "", "",
			"TestDevices",
		},
		{"read files of the host through `/proc/*/root`, `..`, `chroot`, file handles, symbolic links", "cannot", "", "", "TestFiles"},
		{
			"find mounted directories of the host",
			"its volumes, `/etc/hosts`, `/etc/hostname`, `/etc/resolv.conf`, the termination log; the kernel shows their paths", "", "",
			"TestMounts",
		},
		{"see, signal or trace processes of the host or of other pods, or use their shared memory", "cannot", "", "", "TestProcesses"},
		{"connect to sockets of the host: abstract ones, containerd's, Docker's, Podstead's", "cannot", "", "", "TestSockets"},
		{
			"find file descriptors or environment variables of the daemon, the shim or the OCI runtime",
			"cannot: three descriptors, the environment of the pod and the image", "", "", "TestInheritance",
		},
		{
			"overwrite the OCI runtime's binary while a probe runs (CVE-2019-5736), or reach the host through its open files " +
				"(CVE-2024-21626)",
			"cannot, with an up-to-date OCI runtime", "", "", "TestRuntimeBinaryProtected",
		},
		{
			"use `/proc/self/fd/N`, or a link to it, as working directory", "the container does not start; a probe fails", "", "",
			"TestWorkingDirectory",
		},
		{"change its network's links, addresses, routes or rules", "cannot: no CAP_NET_ADMIN", "", "", "TestNetworkControl"},
		{"reach what listens on the host's 127.0.0.1, also by crafted packets", "cannot", "", "", "TestHostLoopback"},
		{
			"reach what listens on all addresses of the host, and all ports of other pods", "can: there are no network policies", "",
			"can, unless a network policy forbids it", "TestHostLoopback",
		},
		{
			"send packets with another pod's address, or claim its address or the host's (ARP, neighbour discovery; except IPv6 " +
				"link-local addresses)",
			"cannot, if the kernel has nftables for bridges; `podstead doctor` reports if not", "can", "can, with the bridge plug-in",
			"TestImpersonation",
		},
		{
			"write output that looks like log entries, or terminal escape codes",
			"`logs` shows it unchanged, as output of this container; all other commands quote it", "", "", "TestOutputEscaping",
		},
		{
			"write an endless termination message, or replace its file", "at most 4096 bytes are read; the file cannot be replaced",
			"has none", "", "TestTerminationLog",
		},
		{
			"fill the disk: its writable layer, volumes without a limit, `/etc/hosts`",
			"can; other containers keep running, the daemon responds, and deleting the pod frees the space", unlimited,
			"can, until pods are evicted", "TestDiskExhausted",
		},
		{"use all inodes of the disk", "can; as for the disk", unlimited, "can, until pods are evicted", "TestInodesExhausted"},
		{
			"fill an `emptyDir` with `sizeLimit`, also in deeply nested directories or with empty files; fill `/dev/shm`",
			"the pod is evicted within 10 s; in memory it cannot exceed the limit; `/dev/shm` has 64 MiB",
			"has none; same `/dev/shm`", "the same", "TestVolumeSizeLimit",
		},
		{"fill its log", "cannot: 5 files of 10 MiB", unlimited, "", "TestLogSizeLimit"},
		{
			"fork without end", "limited by `pods.pidsLimit` (default 2048); the pod can be deleted", unlimited,
			"limited by `podPidsLimit` (default none)", "TestForkBomb",
		},
		{
			"stop the OCI runtime when it enters the PID namespace, by `kill(-1, SIGSTOP)` without end",
			"the probe fails at `timeoutSeconds`, a command of `exec` fails after 10 s or ends with its client; " +
				"the runtime is killed from outside",
			"`exec` and health checks hang", "the probe hangs for two minutes", "TestStoppedRuntime",
		},
		{
			"allocate memory without end", "no limit unless `resources` sets one; only the container that exceeds it is killed", unlimited,
			"", "TestMemoryLimit",
		},
		{
			"swap directories of a shared volume with symbolic links while other pods use them as `subPath` or mount point",
			"cannot reach the directory of the host, nor create anything in it (CVE-2024-45310)", "no `subPath`",
			"`subPath`: cannot; mount points: depends on the OCI runtime", "TestSymlinkRace",
		},
		{
			"leave deep trees and symbolic links in its volumes, and swap them until it is killed",
			"they are removed, their targets are not", "", "", "TestVolumeCleanup",
		},
		{"leave a setuid program for users of the host", "they cannot reach it", "", "", "TestSetuidFilesInVolumes"},
		{
			"use sockets, ports or directories of the daemon",
			"sockets for root only, none of them abstract; no port; no directory that others can list",
			"a socket for the group `docker`", "port 10250, with authentication", "TestSurface",
		},
		{
			"have `hostUsers = false`, so that its root, a user of the host, must reach its root file system",
			"only that: the directories of the engine are closed to others", "", "the same, but they can enter the directories above it",
			"TestUserNamespacesKeepDirectoriesClosed",
		},
	}, slices.Concat(imageRows(), boundsRows(), daemonRows(), sharedFileRows())...)
}

// sharedFileRows are about files and mounts that a container shares with the host.
func sharedFileRows() []Row {
	return []Row{
		{
			"hold a write lease on its `/etc/hosts`, `/etc/hostname` or `/etc/resolv.conf`, so that a process that opens it waits 45 s",
			"other pods start and stop at once", "", "", "TestLeasesOnPodFiles",
		},
		{"the same, while another container of the pod starts", "it gets new files", "", "", "TestLeasesOnPodFiles"},
		{"hold a lease on a file of a config map", "the volume is written again", "", "", "TestLeasesOnPodFiles"},
		{"hold leases with a user namespace of its own", "the same as without", "", "", "TestLeasesOnPodFiles"},
		{"hold a lease on its files while its pod is deleted", "the pod is deleted at once", "", "", "TestLeasesOnPodFiles"},
		{
			"hold a lease on the termination message of another container of its pod",
			"the exit is reported at once, with an error in place of the message", "has none", "", "TestLeaseOnTerminationMessage",
		},
		{
			"mount a file system that never answers, such as FUSE or that of a file server that does not respond (needs `hostPath`)",
			"only its pod waits, also to be deleted; other pods start and stop", "", "", "TestSilentFileSystem",
		},
		{
			"mount the host's run directory, or `/`, while other pods are deleted (needs `hostPath`)",
			"the other pods' mounts are not in it, and the pods are deleted", "", "", "TestHostPathOverRunDirectory",
		},
		{"the same, with `hostPaths` restricted to some directories", "the same", "has no such policy", "", "TestHostPathOverRunDirectory"},
		{"the same, with a user namespace", "the same", "", "", "TestHostPathOverRunDirectory"},
		{"the same, while the daemon is killed", "the same", "", "", "TestHostPathOverRunDirectory"},
		{
			"restart often with such a mount, so that the host's mount table doubles each time",
			"the host keeps no mount of a container that has been created", "", "", "TestHostPathOverRunDirectory",
		},
		{
			"mount a volume with a link `null` on `/dev`, so that files of `/proc` are not masked (CVE-2025-31133)", "rejected",
			"depends on the OCI runtime", "depends on the OCI runtime", "TestVolumesOnKernelFileSystems",
		},
		{
			"mount a volume on `/proc`, or a file below it other than those of lxcfs", "rejected", "depends on the OCI runtime",
			"depends on the OCI runtime", "TestVolumesOnKernelFileSystems",
		},
		{
			"mount a volume on `/sys` or below it; a host path may be mounted at its own path", "rejected", "can", "can",
			"TestVolumesOnKernelFileSystems",
		},
		{
			"mount a volume on a device that the OCI runtime creates, such as `/dev/null` or `/dev/pts`", "rejected", "can", "can",
			"TestVolumesOnKernelFileSystems",
		},
		{
			"mount a volume below `/dev/shm`, or below another volume in `/dev`, where a link can lead it elsewhere", "rejected", "can",
			"can", "TestVolumesOnKernelFileSystems",
		},
		{
			"use `terminationMessagePath` for a file of `/proc`, `/sys` or `/dev`",
			"rejected; `/dev/termination-log` and other new names are allowed", "has none", "can", "TestVolumesOnKernelFileSystems",
		},
		{
			"write these paths with `..`, double slashes, or in an ephemeral or init container", "rejected", "", "",
			"TestVolumesOnKernelFileSystems",
		},
		{
			"lead the mount point of a volume to `/dev` by a link in another volume or in the image", "refused",
			"depends on the OCI runtime", "depends on the OCI runtime", "TestVolumeLedToDev",
		},
	}
}
