//go:build e2e

package runtime_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// devicesFile opens devices for reading and for writing. A program that opens /dev/net/tun has done nothing yet.
const devicesFile = `
hostUsers = @users
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	try() { sh -c "$2" 2> /tmp/error && echo "$1" || { grep -q 'not permitted' /tmp/error && echo "not $1" || cat /tmp/error; }; }
	for d in linked own dir/node dir/below/node dir/link; do
		try "$d: read" ": < /dev/$d"; try "$d: written" ": >> /dev/$d"
	done
	ls -1 /dev/dir /dev/away 2>&1; mknod /tmp/tun c 10 200 2> /tmp/error && try made ": < /tmp/tun" || echo no nodes
''']
devices = [
	{ path = "@dir/by-id/linked", containerPath = "/dev/linked" }, { path = "@dir/node", containerPath = "/dev/own", permissions = "r" },
	{ path = "@dir/tree", containerPath = "/dev/dir" }, { path = "@dir/none", containerPath = "/dev/away", optional = true },
]

[[containers]]
name = "none"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", ": < /dev/plugged && echo read"]
devices = [{ path = "@dir/none", containerPath = "/dev/plugged" }]

[[containers]]
name = "file"
image = "localhost/podstead/busybox:1"
devices = [{ path = "@dir/file", containerPath = "/dev/file" }]
`

// makeNode creates a node of a character device that any user may open. The path may be on a file system without devices.
func makeNode(t testing.TB, path string, major, minor uint32) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // without the umask
		t.Fatal(err)
	}
}

// TestFieldsDevices tests devices of the host in containers: nodes, links and directories, permissions, and devices that do not exist. In
// a user namespace nodes are mounted.
//
// fields: containers[].devices[].{path,containerPath,permissions,optional}
func TestFieldsDevices(t *testing.T) {
	for _, users := range []bool{true, false} {
		t.Run("hostUsers="+strconv.FormatBool(users), func(t *testing.T) {
			m := newTestHost(t)
			if !users {
				m = newUserNamespaceHost(t)
			}
			const tun, fuse, null = 10<<8 | 200, 10<<8 | 229, 1<<8 | 3
			for name, device := range map[string]uint32{"node": fuse, "linked": tun, "tree/node": tun, "tree/below/node": null} {
				makeNode(t, filepath.Join(m.dir, name), device>>8, device&0xff)
			}
			m.write("tree/file", "", 0o644)
			m.write("file", "", 0o644)
			for link, target := range map[string]string{"by-id/linked": "../linked", "tree/link": "../linked", "tree/dangling": "none"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(m.dir, link)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(target, filepath.Join(m.dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			p := newPod(m, m.parse(strings.NewReplacer("@users", strconv.FormatBool(users), "@dir", m.dir).Replace(devicesFile)))
			made := "made" // tun is allowed for other nodes of the container, with the permission m
			if !users {
				made = "no nodes"
			}
			wantLines(t, p.run("c"),
				"linked: read", "linked: written", "own: read", "not own: written", "dir/node: read", "dir/node: written",
				"dir/below/node: read", "dir/below/node: written", "dir/link: read", "dir/link: written",
				"ls: /dev/away: No such file or directory", "/dev/dir:", "below", "link", "node", made)

			_, err := p.begin("none")
			wantFailure(t, "a device that does not exist", err, lifecycle.ReasonDeviceMissing, "device "+m.dir+"/none does not exist")
			makeNode(t, filepath.Join(m.dir, "none"), tun>>8, tun&0xff)
			wantLines(t, p.run("none"), "read")
			_, err = p.begin("file")
			wantFailure(t, "a file", err, lifecycle.ReasonCreateConfigError, "must be a device node, or a directory with some")
		})
	}
}
