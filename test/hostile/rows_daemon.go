package hostile

// daemonRows are attempts on the files of the daemon, and on the daemon as a whole.
func daemonRows() []Row {
	return []Row{
		{
			"as a privileged container with the log directory: replace its next log by a symbolic link to a file of the host, also a " +
				"dangling one",
			"nothing is written there; the lines of the log are lost", "", "can, as a privileged container", "TestLogFileReplaced",
		},
		{
			"the same with a hard link to the log of another container", "nothing is written there", "", "can, as a privileged container",
			"TestLogFileReplaced",
		},
		{
			"the same with a FIFO or a directory", "the container is not blocked; the lines of the log are lost; the pod can be deleted",
			"", "", "TestLogFileReplaced",
		},
		{
			"the same with a link instead of the directory of its logs", "nothing is written there", "", "can, as a privileged container",
			"TestLogFileReplaced",
		},
		{
			"the same with write access for others to the directory of its logs", "nothing is written to the directory", "",
			"can, as a privileged container", "TestLogFileReplaced",
		},
		{
			"as a privileged container: have `logs`, `why`, `get` or the termination message show a file of the host by a link instead " +
				"of its log",
			"they show nothing", "", "can, as a privileged container", "TestLogFileRead",
		},
		{
			"the same with a link instead of a rotated log, or instead of the directory of its logs", "they show nothing", "",
			"can, as a privileged container", "TestLogFileRead",
		},
		{"block `logs` and its own exit by a FIFO instead of its log", "cannot", "", "", "TestLogFileRead"},
		{
			"mount the state, run or log directory of the daemon, its socket, or a directory that contains one, also `/`",
			"cannot, unless it is privileged", "can", "can, if it may use hostPath", "TestStateVolumes",
		},
		{"the same through a symbolic link", "cannot, unless it is privileged", "can", "can, if it may use hostPath", "TestStateVolumes"},
		{
			"as a user in the group of the socket: read a file of root by `envFile`, also through a link, or the daemon's environment",
			"cannot: files are opened with the rights of the user", "can: equivalent to root", "can: equivalent to root",
			"TestConfusedDeputy",
		},
		{
			"as that user: import an image archive that only root can read", "cannot", "can: equivalent to root", "can: equivalent to root",
			"TestConfusedDeputy",
		},
		{
			"as that user: mount a directory that it cannot write to, or create one where it cannot", "cannot", "can: equivalent to root",
			"can: equivalent to root", "TestConfusedDeputy",
		},
		{
			"as that user: get a device of the host that it cannot open, by a link, or when it is plugged in later", "cannot",
			"can: equivalent to root", "can: equivalent to root", "TestConfusedDeputy",
		},
		{
			"exhaust the memory of the host by a defect of the daemon", "the daemon has a cgroup with the limit `engine.memoryLimit`",
			"no limit", "no limit", "TestDaemonMemoryLimit",
		},
		{
			"in four pods that `restricted` admits, at once for two minutes: floods of output and termination messages, crash loops, " +
				"processes up to the limit, probes that flood or hang, leases, links and FIFOs",
			"other pods start, restart and are deleted as usual; the daemon uses less than 150 MiB", "", "", "TestStorm",
		},
	}
}
