package main

// podDefences are against what a pod file requests.
func podDefences() []defence {
	const (
		spec    = "spec"
		rules   = "TestMountRules/containers[1].volumeMounts[0].mountPath_"
		accepts = "want one error, got:"
	)
	return []defence{
		{
			"limit of environment and arguments at admission",
			[]edit{constant(spec, "MaxProcessBytes", "1 << 27")},
			"./spec",
			"TestProcessTooLarge", false,
			[]attack{
				{"expand an environment of 1 kB to gigabytes", "", "env[22]"},
			},
		},
		{
			"the same, at the start",
			[]edit{never("runtime/oci", "Variables.expand", "v.size.Left() < 0")},
			"./runtime/oci",
			"TestResolveIsBounded", false,
			[]attack{
				{"expand arguments to gigabytes", "", `got <nil>, want an error of field "args[1]"`},
				{"expand a command to gigabytes", "", `got <nil>, want an error of field "command[0]"`},
			},
		},
		{
			"the same, with values of files",
			[]edit{constant(spec, "MaxProcessBytes", "1 << 27")},
			"./runtime/oci", "TestResolveIsBounded",
			false,
			[]attack{
				{"expand values of a config map to gigabytes", "", `got <nil>, want an error of field "envFrom[1] (twice)"`},
			},
		},
		{
			"quarantine after two crashes",
			[]edit{constant("supervisor/state", "maxCrashes", "1000")},
			"./supervisor/state", "TestJudge",
			false,
			[]attack{
				{"crash the daemon each time that it handles the pod", "TestJudge/a_pod_that_crashes_the_daemon_alone", `quarantined ""`},
			},
		},
		{
			"kills are not crashes",
			[]edit{without("supervisor/state", "Quarantine.Judge", `cause == ""`)},
			"./supervisor/state",
			"TestJudge", false,
			[]attack{
				{"be taken for the cause of a crash, or of a kill", "TestJudge/a_kill_between_two_crashes", `quarantined "a"`},
			},
		},
		{
			"reserved names",
			[]edit{replaced(spec, "isReserved", "slices.Contains(reservedNames, name)", "false && $")},
			"./spec",
			"TestReservedNames", false,
			[]attack{
				{"be named `localhost`", "", "a pod was named localhost by its file"},
				{"have the hostname `localhost`", "", "hostname = \"localhost\""},
			},
		},
		{"check of mount points", []edit{
			never(spec, "validator.outsideKernel", `atOrBelow(p, "/proc")`),
			never(spec, "validator.outsideKernel", `atOrBelow(p, "/sys")`),
			never(spec, "validator.outsideKernel", `p == "/dev"`),
			never(spec, "validator.outsideKernel", `strings.HasPrefix(p, "/dev/shm/")`),
			never(spec, "validator.outsideKernel", "runtimeDevices"),
			never(spec, "validator.nestedDevices", "atOrBelow(inner, outer)"),
		}, "./spec", "TestMountRules", false, []attack{
			{"mount a volume with a link `null` on `/dev`", rules + "/dev_is_set_up_by_the_OCI_runtime", accepts},
			{"mount a volume on `/proc`, or a file below it", rules + "below_/proc", accepts},
			{"mount a volume on `/sys` or below it", rules + "below_/sys", accepts},
			{"mount a volume on a device that the OCI runtime creates", rules + "/dev/null_is_set_up_by_the_OCI_runtime", accepts},
			{"mount a volume below `/dev/shm`, or below another volume in `/dev`", rules + "below_/dev/shm", accepts},
			{"write these paths with `..`, double slashes", rules + "below_/proc#01", accepts},
		}},
	}
}

// mountDefences are against what containers reach by mounts and by files that a pod file names.
func mountDefences() []defence {
	unbindable := replaced("runtime/volume", "EnsureUnbindable", "unix.MS_UNBINDABLE", "unix.MS_PRIVATE")
	admitted := replaced("supervisor/admission", "review.protected", "below(v.HostPath.Path, path) || below(path, v.HostPath.Path)",
		"false && ($)")
	mounted := never("runtime/volume", "Set.checkProtected", "slices.ContainsFunc(regions, protected.Overlaps)")
	released := without("runtime/container", "Service.startProcess", "s.config.Volumes.Release(ctx, labels[record.LabelUID], c.ID())")
	return []defence{
		{
			"check of links to `/dev`, `/proc` and `/sys`",
			[]edit{never("runtime/volume", "placesOf", "inKernelFileSystem(p)")},
			"./test/hostile", "TestVolumeLedToDev", true,
			[]attack{
				{"lead the mount point of a volume to `/dev` by a link", "", "pod led is not refused"},
			},
		},
		{
			"mount points inside of volumes are created below the volume",
			[]edit{constant("runtime/volume", "resolveBelow", "unix.RESOLVE_NO_MAGICLINKS")},
			"./runtime/volume", "TestNestRace", true,
			[]attack{
				{"swap directories of a shared volume", "", "created outside"},
			},
		},
		{
			"unbindable mounts",
			[]edit{unbindable},
			"./runtime/volume", "TestUnbindable", true,
			[]attack{{"copy the mounts of other pods by a host path above them", "", "mounts at and below the host path"}},
		},
		{"unbindable mounts, on real containers", []edit{unbindable}, "./test/hostile", "TestHostPathOverRunDirectory", true, []attack{
			{"mount the host's run directory, or `/`, while other pods are deleted", "", "pod host has the mount"},
		}},
		{
			"mounts are released when a container is created",
			[]edit{released},
			"./test/hostile", "TestHostPathOverRunDirectory", true,
			[]attack{
				{"restart often with such a mount", "", "the host has the mount"},
			},
		},
		{"directories of the daemon at admission", []edit{admitted}, "./supervisor/admission", "TestProtected", false, []attack{
			{"mount the state, run or log directory of the daemon", "", "/var/lib/podstead, unprivileged: []"},
			{"mount a directory above those of the daemon", "", "/, unprivileged: []"},
			{"mount the socket of the daemon", "", "/run/podstead/podstead.sock, unprivileged: []"},
		}},
		{"directories of the daemon at the mount", []edit{mounted}, "./runtime/volume", "TestProtectedHostPath", true, []attack{
			{"the same through a symbolic link", "", "hostPath link, allowed"},
			{"the same through a bind mount", "", "hostPath bound, allowed"},
		}},
		{
			"files are opened with the rights of the client",
			[]edit{always("internal/server", "peer.do", "p.isTrusted()")},
			"./test/hostile",
			"TestConfusedDeputy", true,
			[]attack{
				{"as a user in the group of the socket: read a file of root by `envFile`", "", "root-env: <nil>"},
				{"read a file of root by a link", "", "link-env: <nil>"},
				{"as that user: import an image archive that only root can read", "", "root-archive: <nil>"},
				{"as that user: mount a directory that it cannot write to", "", "root-volume: <nil>"},
				{"wait for a file in a directory that the user cannot read", "", "hidden-path: <nil>"},
			},
		},
	}
}

// textDefences are against text of containers.
func textDefences() []defence {
	const plain = "internal/plain"
	text := always(plain, "Text", "strings.ContainsFunc")
	return []defence{
		{"text is escaped", []edit{text}, "./test/hostile", "TestUglyText", true, []attack{
			{"send terminal escape codes in termination messages", "", "podstead why ugly prints"},
			{"send text to the events of a pod", "", "podstead events ugly prints"},
		}},
		{
			"documents are escaped",
			[]edit{always(plain, "JSON", "bytes.IndexFunc(text, hidden) < 0"), replaced(plain, "YAML", "marked(v)", "v")},
			"./test/hostile",
			"TestUglyText", true,
			[]attack{
				{"break `get -o yaml` by DEL or C1", "", "podstead get ugly -o yaml"},
				{"send hidden characters to JSON documents", "", "podstead get ugly -o json prints"},
			},
		},
		{
			"bidirectional marks and format characters are hidden",
			[]edit{without(plain, "Hidden", "unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)")},
			"./internal/plain", "TestText", false,
			[]attack{
				{"reorder text by bidirectional marks", "", `\u202e`},
			},
		},
		{
			"run escapes output on a terminal",
			[]edit{never("internal/view", "Text.Line", "t.Escape")},
			"./test/hostile", "TestUglyRun",
			true,
			[]attack{
				{"send terminal escape codes to a terminal in which `podstead run` prints", "", "on a terminal, want"},
			},
		},
	}
}
