//go:build e2e

package rootless_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/ocitar"
)

// kept is a pod whose user 1000 is the user who runs it. It takes the path of an image archive and a directory of that user. The init
// container is root, which is another user of the host then. The image has a home directory of user 1000, as which it runs.
const kept = `name = "kept"
imageArchives = [%q]
keepID = 1000
terminationGracePeriodSeconds = 1
securityContext = { fsGroup = 1000 }
configMaps = [{ name = "settings", data = { key = "value" } }]
volumes.src = { hostPath = { path = %q } }
volumes.scratch = {}
volumes.claim = { persistentVolumeClaim = { claimName = "shared" } }
volumes.memory = { emptyDir = { medium = "Memory" } }
volumes.image = { image = { reference = "localhost/kept:1" } }
volumes.settings = { configMap = { name = "settings", defaultMode = 256 } }

[[initContainers]]
name = "root"
image = "localhost/kept:1"
securityContext = { runAsUser = 0 }
command = ["sh", "-ec", """
test $(id -u):$(stat -c %%u:%%g /src/mine):$(stat -c %%u:%%g /bin/sh) = 0:1000:1000:1000:1000
cat /src/mine
echo of root >/src/root
echo of 7 >/src/seven
chown 7:7 /src/seven
mkdir /scratch/home
chown 1000:1000 /scratch/home
chmod 700 /scratch/home
"""]
volumeMounts = { src = "/src", scratch = "/scratch" }

[[containers]]
name = "app"
image = "localhost/kept:1"
command = ["sh", "-ec", """
test $(id -u):$(id -g):$(stat -c %%u:%%g /src):$(stat -c %%u /src/root /src/seven | tr '\\n' :) = 1000:1000:1000:1000:0:7:
cat /src/mine /settings/key
test $(stat -c %%u:%%g /home/app):$(stat -c %%a:%%u:%%g /home/app/program) = 1000:1000:4750:1000:1000
cat /proc/self/status | grep -q 'CapEff:.0000000000000000'
/home/app/cat /proc/self/status | grep -q 'CapEff:.0000000000000400'
echo home >/home/app/file
echo changed >>/src/mine
mkdir /src/made
echo made >/src/made/file
echo here >/scratch/home/file
for dir in /src /scratch /memory /claim; do
	cat /proc/self/mountinfo | grep -q " $dir [^ ]*nosuid"
done
test $(stat -c %%u:%%g /image/home/app):$(stat -c %%u:%%g /image/bin/busybox) = 0:0:1000:1000
echo memory >/memory/file
exec sleep 3600
"""]
readinessProbe = { exec = ["test", "-f", "/memory/file"], periodSeconds = 1 }
volumeMounts = { src = "/src", scratch = "/scratch", memory = "/memory", settings = "/settings", image = "/image", claim = "/claim" }
`

// otherPod is a pod without keepID that shares a volume with the pod kept. It takes the path of the image archive.
const otherPod = `name = "other"
imageArchives = [%q]
restartPolicy = "Never"
volumes.claim = { persistentVolumeClaim = { claimName = "shared" } }

[[containers]]
name = "app"
image = "localhost/kept:1"
command = ["grep", " /claim [^ ]*nosuid", "/proc/self/mountinfo"]
volumeMounts = { claim = "/claim" }
`

// TestKeepIDRanges tests a user whose IDs are two ranges, which end at different IDs for users and for groups.
func TestKeepIDRanges(t *testing.T) {
	p := newPerson(t)
	first, last, end := p.subIDs[0], p.subIDs[0]+p.subIDs[1]-1, p.subIDs[0]+p.subIDs[1]
	for i, flag := range []string{"uids", "gids"} {
		middle := first + 500 + 1000*i
		command(t, "usermod", fmt.Sprintf("--del-sub%s=%d-%d", flag, first, last), p.name)
		command(t, "usermod", fmt.Sprintf("--add-sub%s=%d-%d", flag, first, middle-1), p.name)
		command(t, "usermod", fmt.Sprintf("--add-sub%s=%d-%d", flag, middle+1, end-1), p.name)
	}
	file := filepath.Join(p.dir, "kept.toml")
	archive := filepath.Join(p.dir, "kept.tar")
	writeKept(t, archive)
	text := fmt.Sprintf(`name = "kept"
imageArchives = [%q]
keepID = 1000
restartPolicy = "Never"

[[containers]]
name = "app"
image = "localhost/kept:1"
command = ["sh", "-ec", "cat /proc/self/uid_map | tr -s ' '; test $(id -u):$(id -g) = 1000:1000"]
`, archive)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := "app |  0 1000 1\napp |  1 1 500\napp |  501 501 499\napp |  1000 0 1\napp |  1001 1001 64535\n"
	if out := p.run(t, "podstead", "run", file); out != want {
		t.Errorf("the map of users in the container: %q, want %q", out, want)
	}
	p.run(t, "podstead", "daemon", "stop")
	await(t, func() bool { return len(p.processes("")) == 0 })
}

// TestKeepID tests that a container that runs as another user than root reads and writes the files of the person, and that what it writes
// belongs to the person.
//
// fields: keepID
func TestKeepID(t *testing.T) {
	p := newPerson(t)
	dir := filepath.Join(p.dir, "home/src")
	mine := filepath.Join(dir, "mine")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(mine, []byte("mine\n"), 0o600), os.Chown(dir, p.uid, p.gid),
		os.Chown(mine, p.uid, p.gid)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.dir, "kept.toml")
	archive := filepath.Join(p.dir, "kept.tar")
	writeKept(t, archive)
	text := fmt.Sprintf(kept, archive, dir)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p.run(t, "podstead", "apply", file, "--wait", "--timeout=3m")
	owner := func(name string, uid, gid int) {
		t.Helper()
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil || int(st.Uid) != uid || int(st.Gid) != gid {
			t.Errorf("the owner of %s is %d:%d, %v, want %d:%d", name, st.Uid, st.Gid, err, uid, gid)
		}
	}
	owner("mine", p.uid, p.gid)
	owner("made", p.uid, p.gid)
	owner("made/file", p.uid, p.gid)
	owner("root", p.subIDs[0]+999, p.subIDs[0]+999)
	owner("seven", p.subIDs[0]+6, p.subIDs[0]+6)
	if got, err := os.ReadFile(mine); string(got) != "mine\nchanged\n" {
		t.Errorf("the file of the user: %q, %v", got, err)
	}
	p.run(t, "podstead", "cp", "--no-preserve", mine, "kept:/scratch/home/copy")
	if out := p.run(t, "podstead", "exec", "kept", "--", "stat", "-c", "%u:%g", "/scratch/home/copy"); out != "1000:1000\n" {
		t.Errorf("the owner of a copied file in the container: %q", out)
	}
	other := filepath.Join(p.dir, "other.toml")
	text = fmt.Sprintf(otherPod, archive)
	if err := os.WriteFile(other, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p.run(t, "podstead", "run", other)
	kill(t, p.one(t, "podstead daemon"))
	if out := p.run(t, "podstead", "exec", "kept", "--", "sh", "-c", "id -u; cat /memory/file"); out != "1000\nmemory\n" {
		t.Errorf("after a restart of the daemon: %q", out)
	}
	p.run(t, "podstead", "delete", "--force", "kept")
	p.run(t, "podstead", "daemon", "stop")
	await(t, func() bool { return len(p.processes("")) == 0 })
}

// bindService is CAP_NET_BIND_SERVICE as the capability of a program, permitted and effective: a struct vfs_cap_data of version 2.
const bindService = "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// writeKept writes the archive of an image that runs as user 1000, which owns files in it.
func writeKept(t *testing.T, path string) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	const user = 1000
	layer := ocitar.Layer{{Path: "bin", Mode: fs.ModeDir | 0o755}, {Path: "bin/busybox", Mode: 0o755, Data: program}}
	for _, command := range []string{"cat", "chmod", "chown", "grep", "id", "mkdir", "sh", "sleep", "stat", "test", "tr"} {
		layer = append(layer, ocitar.File{Path: "bin/" + command, Link: "busybox"})
	}
	layer = append(layer, ocitar.File{Path: "home", Mode: fs.ModeDir | 0o755},
		ocitar.File{Path: "home/app", Mode: fs.ModeDir | 0o700, Owner: user},
		ocitar.File{Path: "home/app/link", Link: "/gone", Owner: user},
		ocitar.File{Path: "home/app/cat", Mode: 0o750, Owner: user, Data: program, Capabilities: bindService},
		ocitar.File{Path: "home/app/program", Mode: fs.ModeSetuid | 0o750, Owner: user})
	var archive bytes.Buffer
	if err := ocitar.WriteOCI(&archive, ocitar.Image{
		Name: "localhost/kept:1", Layers: []ocitar.Layer{layer},
		Config: ocispec.ImageConfig{User: "1000:1000", Env: []string{"PATH=/bin"}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, archive.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
