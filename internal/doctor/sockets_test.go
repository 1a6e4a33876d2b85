package doctor

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSocketFiles: the file of an active socket unit may be missing, or of another socket.
func TestSocketFiles(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "ro.sock")
	listen := func() *net.UnixListener {
		t.Helper()
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	units := map[string]string{path: "podstead-ro.socket", "@abstract": "podstead.socket", "9000": "podstead.socket"}
	check := func(want Grade, detail string) {
		t.Helper()
		r := socketFiles(units)
		if r.grade != want || !strings.Contains(r.detail, detail) || (r.hint == "") != (want == OK) {
			t.Errorf("%+v, want %s with %q", r, want, detail)
		}
	}
	remove := func() {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	systemd := listen()
	check(OK, path)
	f, err := systemd.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, 0); n != 0 || err != nil {
		t.Errorf("%d connections, %v: the check would start the daemon", n, err)
	}
	remove()
	check(Warn, "podstead-ro.socket: "+path+" is missing")
	other := listen()
	check(Warn, path+" was replaced by another program")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	check(Warn, path+" was replaced by another program")
	remove()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check(Warn, path+" is not a socket")
	units = nil
	check(OK, "")
}
