package main

// copyDefences are against containers whose files are copied, and against archives that are copied to them.
func copyDefences() []defence {
	const (
		filecopy = "internal/filecopy"
		pkg      = "./internal/filecopy"
	)
	root := replaced(filecopy, "Root.open", "unix.RESOLVE_IN_ROOT", "0")
	entry := []edit{
		replaced(filecopy, "File.Lookup", "unix.O_NOFOLLOW", "0"),
		replaced(filecopy, "File.Lookup", "unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS", "0"),
	}
	covered := replaced(filecopy, "Root.Exclude", "true", "false")
	regular := replaced(filecopy, "File.Read", `return nil, &fs.PathError{Op: "open", Path: f.Name(), Err: ErrNotRegular}`,
		"flags |= unix.O_NONBLOCK")
	kind := replaced(filecopy, "Extractor.entry", `x.Warn("%q left out: not a regular file, directory or link", h.Name); return 0, nil`,
		"h.Typeflag = tar.TypeReg")
	return []defence{
		{"paths of a container are resolved below its root", []edit{root}, pkg, "TestLinksStayInTheRoot", false, []attack{
			{"have `cp` read a file of the host through a link", "", "want an error"},
		}},
		{"mount points without a volume are covered in containers that do not run", []edit{covered}, pkg, "TestExclude", false, []attack{
			{"have `cp` read or write what a mount hides, through a link of a container that does not run", "", "/dev/none: got"},
		}},
		{"links are not followed in directories that are copied", entry, pkg, "TestPackSwapped", false, []attack{
			{"exchange a directory with a link while it is copied from the container", "", "the archive contains the file of the host"},
		}},
		{"links are not followed in directories that are copied", entry, pkg, "TestSwappedDirectory", false, []attack{
			{"exchange a directory with a link while files are copied to the container", "", "created outside"},
		}},
		{"only regular files are read", []edit{regular}, pkg, "TestOtherFiles", false, []attack{
			{"have `cp` open a FIFO or a device", "", "FIFO: got"},
		}},
		{"archives create no devices and FIFOs", []edit{kind}, pkg, "TestHostileArchives", false, []attack{
			{"copy an archive with a device or a FIFO", "TestHostileArchives/devices", "created"},
		}},
	}
}

// clientDefences are against users of the sockets.
func clientDefences() []defence {
	const server = "internal/server"
	return []defence{
		{
			"connections of one user are limited",
			[]edit{replaced(server, "connections.isFull", "maxUserConnections", "10 * maxUserConnections")},
			"./internal/server",
			"TestUserConnections", false,
			[]attack{
				{"as a user: take all connections to the API", "", "uid 1000: rejected false"},
			},
		},
		{
			"connections are reserved for root",
			[]edit{without(server, "connections.isFull", "limit -= reservedConnections")},
			"./internal/server", "TestRootConnections", false,
			[]attack{
				{"as several users: take all connections, so that root has none", "", "uid 2000: rejected false"},
			},
		},
		{
			"sessions are limited",
			[]edit{replaced(server, "New", "semaphore.NewWeighted(api.MaxSessions)", "semaphore.NewWeighted(2 * api.MaxSessions)")},
			"./internal/server", "TestTooManySessions", false,
			[]attack{
				{"fill the memory of the daemon by sessions of `exec`", "", "session 65: <nil>"},
			},
		},
		{
			"endpoints of the read-only socket",
			[]edit{never(server, "Server.newMux", "isReadOnly(r) && !e.ReadOnly")},
			"./internal/server",
			"TestReadOnlySocket$", false,
			[]attack{
				{"change something over the read-only socket", "", "want 403 with a hint"},
			},
		},
		{
			"values are hidden from readers",
			[]edit{replaced(server, "visible", "c.Env[v].Value = api.Hidden", "_ = v")},
			"./internal/server", "TestReadOnlySocket$", false,
			[]attack{
				{"read passwords of environment variables over the read-only socket", "", "shows the password"},
			},
		},
	}
}
