package main

// copyDefences are against containers whose files are copied, and against archives that are copied to them.
func copyDefences() []defence {
	const (
		inroot = "internal/inroot/inroot.go"
		pkg    = "./internal/tartree"
	)
	root := edit{inroot, "f, err := openat2(r, r.dir, path, flags, unix.RESOLVE_IN_ROOT)", "f, err := openat2(r, r.dir, path, flags, 0)"}
	entry := edit{inroot, "return openat2(f.root, f.File, name, unix.O_NOFOLLOW, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)", "return openat2(f.root, f.File, name, 0, 0)"}
	covered := edit{inroot, "r.excludes, r.excluded = true, device", "r.excluded = device"}
	regular := edit{inroot, "return nil, &fs.PathError{Op: \"open\", Path: f.Name(), Err: ErrNotRegular}", "flags |= unix.O_NONBLOCK"}
	kind := edit{"internal/tartree/extract.go", "x.Warn(\"%q left out: not a regular file, directory or link\", h.Name)\n\t\treturn 0, nil", "h.Typeflag = tar.TypeReg"}
	return []defence{
		{"paths of a container are resolved below its root", []edit{root}, "./internal/inroot", "TestLinksStayInTheRoot", false, []attack{
			{"have `cp` read a file of the host through a link", "", "want an error"},
		}},
		{"mount points without a volume are covered in containers that do not run", []edit{covered}, "./internal/inroot", "TestExclude", false, []attack{
			{"have `cp` read or write what a mount hides, through a link of a container that does not run", "", "/dev/none: got"},
		}},
		{"links are not followed in directories that are copied", []edit{entry}, pkg, "TestPackSwapped", false, []attack{
			{"exchange a directory with a link while it is copied from the container", "", "the archive contains the file of the host"},
		}},
		{"links are not followed in directories that are copied", []edit{entry}, pkg, "TestSwappedDirectory", false, []attack{
			{"exchange a directory with a link while files are copied to the container", "", "created outside"},
		}},
		{"only regular files are read", []edit{regular}, "./internal/inroot", "TestOtherFiles", false, []attack{
			{"have `cp` open a FIFO or a device", "", "FIFO: got"},
		}},
		{"archives create no devices and FIFOs", []edit{kind}, pkg, "TestHostileArchives", false, []attack{
			{"copy an archive with a device or a FIFO", "TestHostileArchives/devices", "created"},
		}},
	}
}

// clientDefences are against users of the sockets.
func clientDefences() []defence {
	const limits = "api/limits.go"
	return []defence{
		{"connections of one user are limited", []edit{{limits, "!root && n.byUser[c.peer.uid] >= maxUserConnections", "false"}}, "./api", "TestUserConnections", false, []attack{
			{"as a user: take all connections to the API", "", "uid 1000: rejected false"},
		}},
		{"connections are reserved for root", []edit{{limits, "limit -= reservedConnections", "limit -= 0"}}, "./api", "TestRootConnections", false, []attack{
			{"as several users: take all connections, so that root has none", "", "uid 2000: rejected false"},
		}},
		{"sessions are limited", []edit{{"api/server.go", "sessions: semaphore.NewWeighted(MaxSessions)", "sessions: semaphore.NewWeighted(2 * MaxSessions)"}}, "./api", "TestTooManySessions", false, []attack{
			{"fill the memory of the daemon by sessions of `exec`", "", "session 65: <nil>"},
		}},
		{"endpoints of the read-only socket", []edit{{"api/endpoints.go", "if isReadOnly(r) && !e.ReadOnly {", "if false {"}}, "./api", "TestReadOnlySocket$", false, []attack{
			{"change something over the read-only socket", "", "want 403 with a hint"},
		}},
		{"values are hidden from readers", []edit{{"api/readonly.go", "container.Env[v].Value = Hidden", "_ = v"}}, "./api", "TestReadOnlySocket$", false, []attack{
			{"read passwords of environment variables over the read-only socket", "", "shows the password"},
		}},
	}
}
