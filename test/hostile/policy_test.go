//go:build e2e

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// TestConfusedDeputy: a client that is not root, a member of the group of the socket, cannot have the daemon read or mount files that the
// client has no access to. It can use its own files, and those of its groups.
func TestConfusedDeputy(t *testing.T) {
	const uid, gid, group = 65534, 65533, 65532
	f := newFixture(t, options{})
	f.Check(os.Chown(f.Socket(), -1, gid))
	write := func(name, text string, mode os.FileMode, owner, group int) string {
		path := filepath.Join(f.Dir, name)
		f.Check(os.WriteFile(path, []byte(text), mode))
		f.Check(os.Chown(path, owner, group))
		return path
	}
	rootFile := write("root.env", "KEY="+secret+"\n", 0o600, 0, 0)
	ownFile := write("own.env", "KEY=own\n", 0o600, uid, gid)
	groupFile := write("group.env", "KEY=group\n", 0o640, 0, group)
	link := filepath.Join(f.Dir, "own-link.env")
	f.Check(os.Symlink(rootFile, link))
	f.Check(os.Mkdir(filepath.Join(f.Dir, "own"), 0o700))
	f.Check(os.Chown(filepath.Join(f.Dir, "own"), uid, gid))
	f.Check(os.Mkdir(filepath.Join(f.Dir, "rooted"), 0o755))
	f.Check(os.Mkdir(filepath.Join(f.Dir, "hidden"), 0o700))
	archive := filepath.Join(f.Dir, "intruder.tar")
	f.Check(copyFile(archive, f.Archive("intruder"), 0o644))

	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return dialAs(f.Socket(), uid, gid, group)
		},
	}}
	run := func(name, text string) error { // without the checks of the podstead command
		q := api.CreateRequest{
			File: filepath.Join(f.Dir, name+".toml"),
			Text: fmt.Sprintf("name = %q\nimageArchives = [%q]\nrestartPolicy = \"Never\"\n", name, archive) + text,
		}
		body, err := json.Marshal(q)
		f.Check(err)
		request, err := http.NewRequestWithContext(f.Ctx(), http.MethodPost, "http://podstead/v1/pods", bytes.NewReader(body))
		f.Check(err)
		response, err := client.Do(request)
		f.Check(err)
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		f.Check(err)
		if response.StatusCode >= 400 {
			return fmt.Errorf("%s: %s", response.Status, answer)
		}
		var created api.Created
		f.Check(json.Unmarshal(answer, &created))
		f.Saw(created.Pod.Metadata.UID)
		return nil
	}
	env := func(path string) string {
		return Play("c", "try", "wait 1ms") +
			fmt.Sprintf("envFrom = [{ configMapRef = { name = \"m\" } }]\n[[configMaps]]\nname = \"m\"\nenvFile = %q\n", path)
	}
	volume := func(path string) string {
		return Play("c", "try", "list /v") +
			fmt.Sprintf("volumeMounts = { v = { mountPath = \"/v\", readOnly = true } }\n[[volumes]]\nname = \"v\"\nhostPath = { "+
				"path = %q }\n",
				path)
	}
	device := func(path string) string {
		return Play("c", "try", "wait 1ms") + fmt.Sprintf("devices = [{ path = %q, containerPath = \"/dev/device\" }]\n", path)
	}
	f.Check(os.Symlink("/dev/null", filepath.Join(f.Dir, "own", "device")))
	for _, test := range []struct {
		name, text string
		refused    bool
	}{
		{"own-env", env(ownFile), false},
		{"group-env", env(groupFile), false},
		{"own-volume", volume(filepath.Join(f.Dir, "own")), false},
		{"own-new-volume", volume(filepath.Join(f.Dir, "own", "new")), false},
		{"root-env", env(rootFile), true},
		{"link-env", env(link), true},
		{"environ", env("/proc/self/environ"), true},
		{"root-archive", fmt.Sprintf("[[containers]]\nname = \"c\"\nimage = %q\n", Intruder), true},
		{"root-volume", volume("/root"), true},
		{"hidden-path", fmt.Sprintf("waitFor = [%q]\n", "path:"+filepath.Join(f.Dir, "hidden", "file")) + Play("c", "try"), true},
		{"known-path", fmt.Sprintf("waitFor = [%q]\n", "path:"+ownFile) + Play("c", "try"), false},
		{"listed-volume", volume("/etc"), true},
		{"new-volume", volume(filepath.Join(f.Dir, "rooted", "new")), true},
		{"device", device("/dev/null"), false},
		{"root-device", device("/dev/loop-control"), true},
		{"descriptor", device("/dev/fd/0"), true},
		{"later-device", device("/dev/none"), true},
		{"directory-of-devices", device("/dev/net"), true},
		{"own-link-to-device", device(filepath.Join(f.Dir, "own", "device")), true},
	} {
		if test.name == "root-archive" {
			f.Check(os.Chmod(archive, 0o600))
		}
		err := run(test.name, test.text)
		if test.name == "root-archive" {
			f.Check(os.Chmod(archive, 0o644))
		}
		switch {
		case !test.refused && err != nil:
			f.Errorf("%s: %v", test.name, err)
		case test.refused && (err == nil || !strings.Contains(err.Error(), "permission denied")):
			f.Errorf("%s: %v, want permission denied", test.name, err)
		case err != nil && strings.Contains(err.Error(), secret):
			f.Errorf("%s: the error shows the file: %v", test.name, err)
		}
	}
	f.MustRun("get") // as root: no thread of the daemon has kept the rights of the client
	if _, err := os.Stat(filepath.Join(f.Dir, "rooted", "new")); err == nil {
		f.Error("a directory was created for a user who cannot write there")
	}
}

// dialAs connects to a socket as another user, on a thread of its own.
func dialAs(socket string, uid, gid, group uint32) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and not unlocked: the thread ends with this goroutine
		for _, call := range [][4]uintptr{
			{unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&group))},
			{unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
			{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
		} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				err = errno
				return
			}
		}
		conn, err = net.Dial("unix", socket)
	}()
	<-done
	return conn, err
}

func copyFile(to, from string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
