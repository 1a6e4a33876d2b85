//go:build e2e

package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// mountTmpfs is the command `mount-tmpfs DIR`: it mounts an empty file system.
func mountTmpfs(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	ts.Defer(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // the script may have removed it
}

// startAnswers is the command `answers NAME STATUS BYTES [HEADER VALUE]`: it starts a registry that gives this response to every request,
// and sets $NAME to its address.
func startAnswers(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[1])
	ts.Check(err)
	size, err := strconv.Atoi(args[2])
	ts.Check(err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if len(args) > 4 {
			w.Header().Set(args[3], args[4])
		}
		w.WriteHeader(status)
		_, _ = w.Write(make([]byte, size)) // the client may close the connection
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.Listener.Addr().String())
}
