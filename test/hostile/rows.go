package hostile

// Row is something that a container with root inside tries in the default configuration: no securityContext, no resources.
type Row struct {
	// Tries is what it tries, in a few words.
	Tries string
	// Here is what comes of it.
	Here string
	// Docker is what comes of it with Docker's defaults, and Kubelet with those of the kubelet and containerd; "" is the same as here.
	Docker, Kubelet string
	// Test is the name of the test that holds what is said of it here.
	Test string
}

const (
	unlimited = "no limit"
	noSeccomp = "system calls are not filtered, unless `seccompDefault` is set"
)

// Rows returns the table.
func Rows() []Row {
	return []Row{
		{
			"changes the kernel's settings: `/proc/sys`, `/sys`, `sysrq-trigger`, its cgroup, `release_agent`, `core_pattern`", "cannot: mounted read-only", "", "", "TestKernel",
		},
		{"mounts, remounts or unmounts anything, also by `fsopen` and `open_tree`", "cannot: no CAP_SYS_ADMIN, and the calls are filtered", "", "cannot: no CAP_SYS_ADMIN", "TestKernel"},
		{"makes a user namespace and has all capabilities in it, joins another namespace", "cannot: filtered", "", "can make one; " + noSeccomp, "TestKernel"},
		{
			"uses rarely needed calls: `bpf`, `perf_event_open`, `io_uring`, `userfaultfd`, `keyctl`, modules, `kexec`, `reboot`, swap, quotas, the clock", "cannot: filtered, or no capability",
			"", noSeccomp + "; capabilities as here", "TestKernel",
		},
		{"reads the kernel's log, memory, keys and firmware", "cannot: masked, or no capability", "", "", "TestKernel"},
		{"has more capabilities than the 14 that containers are used to", "cannot", "", "", "TestKernel"},
		{"makes a node of the machine's disk, memory or console, and opens it", "makes it (CAP_MKNOD), and cannot open it", "", "", "TestDevices"},
		{"reads the machine's files by `/proc/*/root`, `..`, `chroot`, file handles, links", "cannot", "", "", "TestFiles"},
		{"finds folders of the machine mounted", "its volumes, `/etc/hosts`, `/etc/hostname`, `/etc/resolv.conf`, its file of last words; the kernel shows their paths", "", "", "TestMounts"},
		{"sees, signals or traces processes of the machine and of other pods, or their shared memory", "cannot", "", "", "TestProcesses"},
		{"calls sockets of the machine: abstract ones, containerd's, Docker's, ours", "cannot", "", "", "TestSockets"},
		{"finds descriptors or variables of the daemon, the shim or the runtime", "finds none: three descriptors, the variables of the pod and the image", "", "", "TestInheritance"},
		{"overwrites the runtime's program while a probe runs (CVE-2019-5736), or finds the machine by what the runtime has open (CVE-2024-21626)", "cannot, with a runtime that is up to date", "", "", "TestRuntimeIsHunted"},
		{"has `/proc/self/fd/N` for its working directory, or a link to it", "does not start; a probe there fails", "", "", "TestWorkingDirectory"},
		{"changes its links, addresses, routes or rules", "cannot: no CAP_NET_ADMIN", "", "", "TestNetworkControl"},
		{"reaches what listens on the machine's 127.0.0.1, also by packets that it makes", "cannot", "", "", "TestLoopbackOfTheMachine"},
		{"reaches what listens on all addresses of the machine, and all ports of other pods", "can: there are no network policies", "", "can, unless a network policy says no", "TestLoopbackOfTheMachine"},
		{
			"sends packets in another pod's name, or claims its address or the machine's (ARP, neighbour discovery, but for IPv6's link-local ones)",
			"cannot, where the kernel has nftables for bridges; `podstead doctor` tells where not", "can", "can, with the bridge plug-in", "TestImpersonation",
		},
		{"writes what looks like log entries or steers a terminal", "`logs` shows it as it is, in entries of its own; all other commands quote it", "", "", "TestWords"},
		{"makes its last words endless, or no file", "no more than 4096 bytes are read, and it stays a file", "has none", "", "TestLastWords"},
		{
			"fills the disk: its writable layer, volumes without a limit, `/etc/hosts`",
			"can; nobody else ends for it, the daemon answers, and the room comes back with the pod's end", unlimited, "can, until pods are evicted", "TestDiskIsFilled",
		},
		{"takes all inodes of the disk", "can; the same", unlimited, "can, until pods are evicted", "TestInodesAreTaken"},
		{"fills an `emptyDir` with `sizeLimit`, also deeper than can be looked; `/dev/shm`", "the pod is evicted within 10 s; in memory it gets no more; `/dev/shm` has 64 MiB", "has none; `/dev/shm` as here", "the same", "TestVolumeIsFilled"},
		{"fills its log", "cannot: 5 files of 10 MiB", unlimited, "", "TestLogIsFilled"},
		{"forks without end", "up to `pods.pidsLimit`, which is 2048; the pod can be deleted", unlimited, "`podPidsLimit`, which is none", "TestForkBomb"},
		{"takes memory without end", "has no limit unless `resources` set one; beyond that it is killed, and nobody else", unlimited, "", "TestMemoryIsEaten"},
		{"swaps folders of a shared volume for links while other pods use them by `subPath` or mount something in them", "the machine's folder that they lead to is not reached", "no `subPath`", "", "TestLinksAreSwapped"},
		{"leaves trees of any depth and links in its volumes, and swaps them until it is killed", "they are removed, and nothing that they lead to", "", "", "TestLinksAreLeft"},
		{"leaves a setuid program for users of the machine", "they cannot get to it", "", "", "TestProgramsOfVolumes"},
		{
			"uses the surface of the supervisor: sockets, ports, folders", "sockets for root alone, none of them abstract, no port; no folder that others can list",
			"a socket that the group `docker` may use", "port 10250, with authentication", "TestSurface",
		},
	}
}
