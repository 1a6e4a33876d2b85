package main

// fileDefences are against what containers put in the place of files of the daemon, and against files that containers hold.
func fileDefences() []defence {
	const (
		pkg    = "./internal/crilog"
		crilog = "internal/crilog"
		writes = "TestWriterFollowsNoLinks/"
		reads  = "TestReaderFollowsNoLinks/"
		follow = "TestWriterFollowsNoLinks|TestReaderFollowsNoLinks"
	)
	path := replaced(crilog, "openPath", "unix.RESOLVE_NO_SYMLINKS", "unix.RESOLVE_NO_MAGICLINKS")
	links := []edit{
		without(crilog, "directory.open", "unix.O_NOFOLLOW"),
		never(crilog, "directory.open", "flags&unix.O_CREAT == 0 || !errors.Is(err, fs.ErrNotExist)"),
	}
	count := never(crilog, "directory.open", "stat.Nlink > 1")
	regular := never(crilog, "checkRegular", "stat.Mode&unix.S_IFMT != unix.S_IFREG")
	owner := never(crilog, "directory.checkOwner", "stat.Mode&0o022 != 0")
	all := append([]edit{path, count, regular, owner}, links...)
	return []defence{
		{"no links in the path of a log", []edit{path}, pkg, follow + "|TestMagicLinks|TestSwappedDirectory", false, []attack{
			{
				"the same with a link instead of the directory of its logs", writes + "link_instead_of_the_directory",
				"files of the host are",
			},
			{
				"the same with a link instead of the directory of all logs of the pod", writes + "link_instead_of_the_pod's_directory",
				"lost 0 lines",
			},
			{"read a file of the host by a link instead of the directory of logs", reads + "link_instead_of_the_directory", "read "},
			{"exchange the directory of logs with a link while it is opened", "", "behind the link were created"},
		}},
		{
			"no magic links in the path of a log",
			[]edit{replaced(crilog, "openPath", "unix.RESOLVE_NO_SYMLINKS", "0")},
			pkg,
			"TestMagicLinks", false,
			[]attack{
				{"use a link of /proc as directory of logs", "", "want is a symbolic link"},
			},
		},
		{"no link instead of a log", links, pkg, follow, false, []attack{
			{
				"as a privileged container with the log directory: replace its next log by a symbolic link", writes + "link_to_a_file",
				"files of the host are",
			},
			{"replace a log by a relative link", writes + "relative_link_to_a_file", "files of the host are"},
			{"replace a log by a dangling link", writes + "dangling_link", "files of the host are"},
			{
				"as a privileged container: have `logs`, `why`, `get` or the termination message show a file of the host",
				reads + "link_to_a_file", "read ",
			},
			{"the same with a link instead of a rotated log", reads + "link_to_a_file.1", "read "},
		}},
		{
			"no hard link instead of a log",
			[]edit{count},
			pkg, follow, false,
			[]attack{{"the same with a hard link to the log of another container", writes + "hard_link", "files of the host are"}},
		},
		{"only regular files as logs", []edit{regular}, pkg, follow, false, []attack{
			{"the same with a FIFO or a directory", writes + "FIFO", "lost 1 lines (illegal seek)"},
			{"block `logs` and its own exit by a FIFO", reads + "FIFO", "illegal seek"},
		}},
		{"logs only in directories of root", []edit{owner}, pkg, follow, false, []attack{
			{
				"the same with write access for others to the directory of its logs", writes + "directory_that_others_can_write",
				"lost 0 lines",
			},
		}},
		{"all of these, on real containers", all, "./test/hostile", "TestLogFileReplaced", true, []attack{
			{"write a file of the host by a link instead of a log", "", "files of the host have changed"},
		}},
		{
			"all of these, on real containers", all, "./test/hostile", "TestLogFileRead", true,
			[]attack{{"read a file of the host by `logs`", "", "swordfish-of-the-host"}},
		},
	}
}

// heldDefences are against files that a container holds, and mounts that it copies.
func heldDefences() []defence {
	const guard, spec, special = "internal/guard", "spec", "./spec"
	wait := without(guard, "OpenFile", "unix.O_NONBLOCK")
	patient := constant(guard, "fileTimeout", "500 * time.Second")
	one := replaced("runtime/sandbox", "EtcFiles.withHosts", "f.pods.Lock(ctx, uid)", `f.pods.Lock(ctx, "")`)
	each := replaced("runtime/volume", "withPod", `exclusive(ctx, &s.locks, "pod/"+uid, f)`, `exclusive(ctx, &s.locks, "pod/", f)`)
	return []defence{
		{
			"open without waiting for a lease",
			[]edit{wait},
			"./internal/guard", "TestOpenFile", false,
			[]attack{{"hold a write lease on a file that the daemon opens", "TestOpenFile/write_lease", "want the file is held"}},
		},
		{
			"deadline for held files",
			[]edit{patient},
			"./internal/guard", "TestUseFile", false,
			[]attack{{"hold a file that the daemon uses", "", "delayed by"}},
		},
		{"both", []edit{wait, patient}, "./runtime/sandbox", "TestHeldFiles", false, []attack{
			{"hold a write lease on its `/etc/hosts`", "", "hosts was not replaced"},
		}},
		{
			"both",
			[]edit{wait, patient},
			"./runtime/exit", "TestHeldFile", false,
			[]attack{{"hold a lease on the termination message of another container", "", "held file: <nil>"}},
		},
		{
			"both, and a lock for each pod, on real containers",
			[]edit{wait, patient, one},
			"./test/hostile", "TestLeasesOnPodFiles", true,
			[]attack{
				{"the same, while another container of the pod starts", "", "a lease delays it by"},
			},
		},
		{"a lock for each pod's volumes", []edit{each}, "./test/hostile", "TestSilentFileSystem", true, []attack{
			{"mount a file system that never answers", "", "start of another pod took"},
		}},
		{
			"only regular files are opened",
			[]edit{never(spec, "OpenFile", "!info.Mode().IsRegular()")},
			special, "TestSpecialFiles", false,
			[]attack{
				{"have a pod file validated that is a link to `/dev/zero`", "", "/dev/zero was opened"},
				{"name a FIFO or a device as image archive", "", "image archive /dev/zero was accepted"},
			},
		},
		{"no files of the kernel", []edit{never(spec, "checkFileSystem", "kernelFiles")}, special, "TestSpecialFiles", false, []attack{
			{"name `/proc/kmsg` or another file of the kernel as image archive", "", "/proc/kmsg was opened"},
			{"have the daemon wait for the log of the kernel", "", "/proc/kmsg blocks"},
		}},
		{
			"open without waiting for a FIFO",
			[]edit{without(spec, "OpenFile", "unix.O_NONBLOCK")},
			special, "TestSpecialFiles", false,
			[]attack{
				{"name a FIFO as pod file", "", "fifo blocks"},
			},
		},
	}
}
