package main

// podDefences are against what a pod file requests.
func podDefences() []defence {
	const (
		kernel  = "spec/validate_kernel_path.go"
		rules   = "TestMountRules/containers[1].volumeMounts[0].mountPath_"
		accepts = "want one error, got:"
	)
	return []defence{
		{"limit of environment and arguments at admission", []edit{{"spec/reference.go", "const MaxProcessBytes = 1 << 20", "const MaxProcessBytes = 1 << 27"}}, "./spec", "TestProcessTooLarge", false, []attack{
			{"expand an environment of 1 kB to gigabytes", "", "env[22]"},
		}},
		{"the same, at the start", []edit{{"runtime/oci/env.go", "if v.size.Add(expanded[i]); !ok || v.size.Left() < 0 {", "if v.size.Add(expanded[i]); false && ok {"}}, "./runtime/oci", "TestResolveIsBounded", false, []attack{
			{"expand arguments to gigabytes", "", `got <nil>, want an error of field "args[1]"`},
			{"expand a command to gigabytes", "", `got <nil>, want an error of field "command[0]"`},
		}},
		{"the same, with values of files", []edit{{"spec/reference.go", "const MaxProcessBytes = 1 << 20", "const MaxProcessBytes = 1 << 27"}}, "./runtime/oci", "TestResolveIsBounded", false, []attack{
			{"expand values of a config map to gigabytes", "", `got <nil>, want an error of field "envFrom[1] (twice)"`},
		}},
		{"quarantine after two crashes", []edit{{"supervisor/quarantine/quarantine.go", "maxCrashes = 2", "maxCrashes = 1000"}}, "./supervisor/quarantine", "TestJudge", false, []attack{
			{"crash the daemon each time that it handles the pod", "TestJudge/a_pod_that_crashes_the_daemon_alone", `quarantined ""`},
		}},
		{"kills are not crashes", []edit{{"supervisor/quarantine/quarantine.go", "if cause == \"\" || !versioned", "if !versioned"}}, "./supervisor/quarantine", "TestJudge", false, []attack{
			{"be taken for the cause of a crash, or of a kill", "TestJudge/a_kill_between_two_crashes", `quarantined "a"`},
		}},
		{"reserved names", []edit{{"spec/reserved.go", "slices.Contains(reservedNames, name) ||", "slices.Contains(reservedNames, name) &&"}}, "./spec", "TestReservedNames", false, []attack{
			{"be named `localhost`", "", "a pod was named localhost by its file"},
			{"have the hostname `localhost`", "", "hostname = \"localhost\""},
		}},
		{"check of mount points", []edit{
			{kernel, `case atOrBelow(p, "/proc"):`, "case false:"},
			{kernel, `case atOrBelow(p, "/sys"):`, "case false:"},
			{kernel, `case p == "/dev":`, "case false:"},
			{kernel, `case strings.HasPrefix(p, "/dev/shm/"):`, "case false:"},
			{kernel, "if i := slices.IndexFunc(runtimeDevices, func(device string) bool { return atOrBelow(p, device) }); i >= 0 {", "if i := 0; false {"},
			{kernel, "if i != j && inner != outer &&", "if false &&"},
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
	const (
		rights    = "api/rights.go"
		protected = "runtime/volume/hostpath_protected.go"
	)
	unbindable := edit{"runtime/volume/mountpoint/unbindable.go", `unix.MS_UNBINDABLE, ""`, `unix.MS_PRIVATE, ""`}
	admitted := edit{"supervisor/admission/protected.go", "return below(v.HostPath.Path, path) || below(path, v.HostPath.Path)", `return path == "?"`}
	mounted := edit{
		protected, `if strings.HasPrefix(real, place+"/") || slices.ContainsFunc(regions, protected.Overlaps) {`,
		`if false && (strings.HasPrefix(real, place+"/") || slices.ContainsFunc(regions, protected.Overlaps)) {`,
	}
	return []defence{
		{"check of links to `/dev`, `/proc` and `/sys`", []edit{{"runtime/volume/place/place.go", "if inKernelFileSystem(p) &&", "if false &&"}}, "./test/hostile", "TestVolumeLedToDev", true, []attack{
			{"lead the mount point of a volume to `/dev` by a link", "", "pod led is not refused"},
		}},
		{"mount points inside of volumes are created below the volume", []edit{{"runtime/volume/tree/open.go", "unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS", "unix.RESOLVE_NO_MAGICLINKS"}}, "./runtime/volume", "TestNestRace", true, []attack{
			{"swap directories of a shared volume", "", "created outside"},
		}},
		{"unbindable mounts", []edit{unbindable}, "./runtime/volume", "TestUnbindable", true, []attack{{"copy the mounts of other pods by a host path above them", "", "mounts at and below the host path"}}},
		{"unbindable mounts, on real containers", []edit{unbindable}, "./test/hostile", "TestHostPathOverRunDirectory", true, []attack{
			{"mount the host's run directory, or `/`, while other pods are deleted", "", "pod host has the mount"},
		}},
		{"mounts are released when a container is created", []edit{{"runtime/container/container.go", ", s.config.Volumes.Release(ctx, labels[record.LabelUID], c.ID()))", ")"}}, "./test/hostile", "TestHostPathOverRunDirectory", true, []attack{
			{"restart often with such a mount", "", "the host has the mount"},
		}},
		{"directories of the daemon at admission", []edit{admitted}, "./supervisor/admission", "TestProtected", false, []attack{
			{"mount the state, run or log directory of the daemon", "", "/var/lib/podstead, unprivileged: []"},
			{"mount a directory above those of the daemon", "", "/, unprivileged: []"},
			{"mount the socket of the daemon", "", "/run/podstead/podstead.sock, unprivileged: []"},
		}},
		{"directories of the daemon at the mount", []edit{mounted}, "./runtime/volume", "TestProtectedHostPath", true, []attack{
			{"the same through a symbolic link", "", "hostPath link, allowed"},
			{"the same through a bind mount", "", "hostPath bound, allowed"},
		}},
		{"files are opened with the rights of the client", []edit{{rights, "if p.isTrusted() {\n\t\treturn f()", "if true {\n\t\treturn f()"}}, "./test/hostile", "TestConfusedDeputy", true, []attack{
			{"as a user in the group of the socket: read a file of root by `envFile`", "", "root-env: <nil>"},
			{"read a file of root by a link", "", "link-env: <nil>"},
			{"as that user: import an image archive that only root can read", "", "root-archive: <nil>"},
			{"as that user: mount a directory that it cannot write to", "", "root-volume: <nil>"},
			{"wait for a file in a directory that the user cannot read", "", "hidden-path: <nil>"},
		}},
	}
}

// textDefences are against text of containers.
func textDefences() []defence {
	const plain = "internal/plain/plain.go"
	text := edit{plain, "if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || r != '\\t' && Hidden(r) }) {", "if true {"}
	return []defence{
		{"text is escaped", []edit{text}, "./test/hostile", "TestUglyText", true, []attack{
			{"send terminal escape codes in termination messages", "", "podstead why ugly prints"},
			{"send text to the events of a pod", "", "podstead events ugly prints"},
		}},
		{"documents are escaped", []edit{{plain, "if bytes.IndexFunc(text, hidden) < 0 {", "if true {"}, {plain, "json.Marshal(marked(v))", "json.Marshal(v)"}}, "./test/hostile", "TestUglyText", true, []attack{
			{"break `get -o yaml` by DEL or C1", "", "podstead get ugly -o yaml"},
			{"send hidden characters to JSON documents", "", "podstead get ugly -o json prints"},
		}},
		{"bidirectional marks and format characters are hidden", []edit{{plain, "unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)", "false"}}, "./internal/plain", "TestText", false, []attack{
			{"reorder text by bidirectional marks", "", `\u202e`},
		}},
		{"run escapes output on a terminal", []edit{{"cmd/podstead/internal/view/printer.go", "if t.Escape {", "if false {"}}, "./test/hostile", "TestUglyRun", true, []attack{
			{"send terminal escape codes to a terminal in which `podstead run` prints", "", "on a terminal, want"},
		}},
	}
}
