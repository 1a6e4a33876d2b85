package hostile

// boundsRows are attempts by the text of a pod file, and by text of containers.
func boundsRows() []Row {
	const (
		refused = "rejected: environment and arguments may have 1 MiB in total"
		dies    = "not bounded by Docker; the start fails"
		cluster = "bounded by the size of the object; the start fails"
		raw     = "prints it"
		escaped = "escaped, for example as "
		control = escaped + "`\\x1b`"
		file    = "only regular files are opened"
		none    = "has none"
	)
	return []Row{
		{"expand an environment of 1 kB to gigabytes by `$(A)$(A)`", refused, none, cluster, "TestExpansionBomb"},
		{"expand arguments to gigabytes", refused, none, cluster, "TestExpansionBomb"},
		{"expand a command to gigabytes", refused, none, cluster, "TestExpansionBomb"},
		{
			"expand values of a config map to gigabytes", "the container does not start (`CreateContainerConfigError`)", none, cluster,
			"TestExpansionBomb",
		},
		{
			"crash the daemon each time that it handles the pod", "quarantined after the second crash: other pods are supervised",
			"not applicable", "the kubelet crashes again", "TestQuarantine",
		},
		{
			"be taken for the cause of a crash, or of a kill, of the daemon",
			"cannot: a suspected pod is recovered alone, and kills of the daemon do not count", "not applicable", "not applicable",
			"TestQuarantine",
		},
		{
			"break `get -o yaml` by DEL or C1 in a termination message", "every document is valid", none, "kubectl escapes it",
			"TestUglyText",
		},
		{
			"send terminal escape codes in termination messages, and in the output of probes and hooks", control, raw,
			"kubectl escapes most", "TestUglyText",
		},
		{"reorder text by bidirectional marks", escaped + "`\\u202e`", raw, raw, "TestUglyText"},
		{"hide text by zero-width characters and tags", escaped + "`\\u200b`", raw, raw, "TestUglyText"},
		{"print bytes that are not UTF-8, NEL or line separators", escaped + "`\\u0085`", raw, raw, "TestUglyText"},
		{
			"send terminal escape codes to a terminal in which `podstead run` prints its output",
			control + "; unchanged in a pipe and in `logs`", raw, raw, "TestUglyRun",
		},
		{"have a pod file validated that is a link to `/dev/zero`, a FIFO or a device", file, "reads it", "reads it", "TestNamedFiles"},
		{"name a FIFO or a device as image archive", file, "reads it", none, "TestNamedFiles"},
		{"name `/proc/kmsg` or another file of the kernel as image archive", file, "reads it", none, "TestNamedFiles"},
		{"name a FIFO, a device or a file of the kernel as `envFile`", file, "reads it", none, "TestNamedFiles"},
		{
			"be named `localhost`, `ip6-loopback` or another name of the host", "rejected", "can", "can, without effect on other pods",
			"TestReservedNames",
		},
		{"have the hostname `localhost`", "rejected", "can", "can", "TestReservedNames"},
	}
}
