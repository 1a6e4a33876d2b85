//go:build e2e

package runtime_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// newUserNamespaceHost returns a host whose directories have the x permission for others.
func newUserNamespaceHost(t *testing.T) *testHost {
	t.Helper()
	m := newTestHost(t)
	if err := os.Chmod(m.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return m
}

const ownUsersFile = `
name = "users"
hostUsers = false
shareProcessNamespace = %v
securityContext.sysctls = [{ name = "kernel.shm_rmid_forced", value = "1" }, { name = "net.ipv4.ip_unprivileged_port_start", value = "81" }]

[[configMaps]]
name = "conf"
data = { key = "config " }

[[secrets]]
name = "key"
data = { key = "secret " }

[[containers]]
name = "ids"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", """
	for map in uid_map gid_map; do awk '{ print $1, $2, $3 }' /proc/self/$map; done
	id -u; stat -c '%%u:%%g' /bin/busybox /dev/shm /etc/hosts; hostname
	cat /proc/sys/net/ipv4/ip_unprivileged_port_start; cat /proc/sys/kernel/shm_rmid_forced
	ip -o link show lo | grep -c ,UP,; ip -4 -o addr show dev eth0 | wc -l
	echo to the log > /dev/stdout
	echo file > /root-file && rm /root-file
	echo '10.9.9.9 mine' >> /etc/hosts && grep -c mine /etc/hosts
	[ -r /etc/resolv.conf ] && [ -w /etc/hostname ] && echo yes
	echo message > /dev/termination-log; echo f > /dev/shm/f && rm /dev/shm/f
	mkdir /dir && chown 1000:1001 /dir && stat -c %%u:%%g /dir
	mknod /null b 8 0 2>&1 | grep -c 'not permitted'
	"""]

[[containers]]
name = "volumes"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", """
	cd /v
	for f in disk memory; do echo x > $f/root; echo x > $f/user; chown 1234:1235 $f/user; stat -c '%%u:%%g %%n' $f/root $f/user; done
	stat -L -c '%%u %%n' conf/key key/key down/name; cat conf/key key/key down/name; echo
	cat host/private; echo changed > host/private; stat -c '%%u %%n' host/private host/user host/stranger file host/below/f
	cat host/stranger 2>&1 | grep -c denied
	[ -d sub ] && echo x > sub/f && stat -c %%u sub sub/f
	echo kept > claim/f; stat -c %%u claim/f
	stat -c %%u image/bin image/bin/busybox; touch image/x 2>&1 | grep -c Read-only
	touch conf/x 2>&1 | grep -c Read-only; touch readonly/x 2>&1 | grep -c Read-only
	"""]

[containers.volumeMounts]
disk = "/v/disk"
memory = "/v/memory"
conf = "/v/conf"
key = "/v/key"
down = "/v/down"
claim = "/v/claim"
image = "/v/image"
file = "/v/file"
host = "/v/host"
sub = { mountPath = "/v/sub", subPath = "made" }
again = { mountPath = "/v/readonly", readOnly = true }

[[volumes]]
name = "disk"
emptyDir = {}

[[volumes]]
name = "memory"
emptyDir = { medium = "Memory" }

[[volumes]]
name = "conf"
configMap = { name = "conf" }

[[volumes]]
name = "key"
secret = { secretName = "key" }

[[volumes]]
name = "down"
downwardAPI = { items = [{ path = "name", fieldRef = { fieldPath = "metadata.name" } }] }

[[volumes]]
name = "host"
hostPath = { path = "%[2]s" }

[[volumes]]
name = "sub"
hostPath = { path = "%[2]s" }

[[volumes]]
name = "again"
hostPath = { path = "%[2]s" }

[[volumes]]
name = "file"
hostPath = { path = "%[2]s/private" }

[[volumes]]
name = "claim"
persistentVolumeClaim = { claimName = "users" }

[[volumes]]
name = "image"
image = { reference = "localhost/podstead/busybox:1" }
` + exitingContainers

// usersDir creates a directory on the host for a pod with a user namespace: with files of root, of a user, and of a user outside of the
// pod's ID range, and with another file system mounted in it.
func (m *testHost) usersDir() string {
	m.Helper()
	dir := filepath.Join(m.dir, "host")
	m.write("host/private", "of root\n", 0o600)
	m.write("host/user", "", 0o600)
	m.write("host/stranger", "not for you\n", 0o600)
	below := filepath.Join(dir, "below")
	err := errors.Join(
		os.Chown(filepath.Join(dir, "user"), 1234, 1234),
		os.Chown(filepath.Join(dir, "stranger"), 5*namespace.IDRangeSize, 5*namespace.IDRangeSize),
		os.Mkdir(below, 0o755), unix.Mount("below", below, "tmpfs", 0, "size=64k"), os.WriteFile(filepath.Join(below, "f"), nil, 0o644),
	)
	m.beforeCheck = func() {
		if err := unix.Unmount(below, unix.MNT_DETACH); err != nil {
			m.Error(err)
		}
	}
	if err != nil {
		m.Fatal(err)
	}
	return dir
}

// TestFieldsHostUsers tests a pod with a user namespace. Its root is not the root of the host, and owns the files of root in its volumes. A
// file system that is mounted in a volume is not mapped.
//
// fields: hostUsers
func TestFieldsHostUsers(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shareProcessNamespace=%v", shared), func(t *testing.T) {
			m := newUserNamespaceHost(t)
			dir := m.usersDir()
			p := newPod(m, m.parse(fmt.Sprintf(ownUsersFile, shared, dir)))
			first := fmt.Sprint(m.rootOf(uid))
			wantLines(t, p.run("ids"), "0 "+first+" 65536", "0 "+first+" 65536", "0", "0:0", "0:0", "0:0", "users", "81", "1", "1", "1",
				"to the log", "1", "yes", "1000:1001", "1")
			wantLines(t, p.run("volumes"), "0:0 disk/root", "1234:1235 disk/user", "0:0 memory/root", "1234:1235 memory/user",
				"0 conf/key", "0 key/key", "0 down/name", "config secret users",
				"of root", "0 host/private", "1234 host/user", "65534 host/stranger", "0 file", "65534 host/below/f", "1",
				"0", "0", "0", "0", "0", "1", "1", "1")
			p.wantOwners(dir)
			p.exitsWithChildren("leaves")
			p.checkFromHost("stays")
		})
	}
}

// wantOwners checks that files in volumes have the owners that they would have without a user namespace.
func (p *pod) wantOwners(dir string) {
	p.Helper()
	volumes := filepath.Join(p.opts.StateDir, "pods", uid, "volumes")
	for file, owner := range map[string]uint32{
		filepath.Join(volumes, "disk/root"): 0, filepath.Join(volumes, "disk/user"): 1234, filepath.Join(dir, "private"): 0,
		filepath.Join(dir, "made"): 0, filepath.Join(dir, "made/f"): 0, filepath.Join(p.opts.StateDir, "volumes/users/f"): 0,
	} {
		var s unix.Stat_t
		if err := unix.Stat(file, &s); err != nil || s.Uid != owner {
			p.Errorf("owner of %s: %d, want %d: %v", file, s.Uid, owner, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "private")); string(text) != "changed\n" {
		p.Errorf("file of root: %q, %v", text, err)
	}
}

// checkFromHost checks a container from the host: no process, including commands, runs as root of the host, and none is in a namespace of
// the host.
func (p *pod) checkFromHost(name string) {
	p.Helper()
	ref := p.serve(name)
	root := p.rootOf(uid)
	if code, out, err := p.exec(ref, 0, "id -u; cat /proc/self/uid_map; sleep 100000 >/dev/null 2>&1 &"); code != 0 || err != nil ||
		!strings.HasPrefix(out, "0\n") || !strings.Contains(out, fmt.Sprint(root)) {
		p.Errorf("command: %d, %q, %v", code, out, err)
	}
	pids := p.inCgroup(ref)
	if len(pids) < 2 {
		p.Errorf("processes of the container: %v", pids)
	}
	for _, pid := range pids {
		var s unix.Stat_t
		if err := unix.Stat("/proc/"+pid, &s); err == nil && s.Uid != root {
			p.Errorf("user of process %s: %d, want %d", pid, s.Uid, root)
		}
	}
	pid := p.pidOf(ref)
	for _, kind := range []string{"user", "net", "ipc", "uts", "pid", "mnt"} {
		if p.namespaceOf(pid, kind) == p.namespaceOf("self", kind) {
			p.Errorf("the container is in the %s namespace of the host", kind)
		}
	}
	if err := p.KillContainer(p.ctx(), uid, ref); err != nil {
		p.Fatal(err)
	}
	p.wait(ref)
	p.wantNoProcess(ref)
}

// rootOf returns the ID on the host of a pod's root.
func (m *testHost) rootOf(uid string) uint32 {
	m.Helper()
	ids, err := namespace.NewIDRanges(filepath.Join(m.opts.StateDir, "users.json"), "", "").Find(uid)
	if err != nil {
		m.Fatal(err)
	}
	return ids.First
}

// A pod keeps its ID range after a restart of the daemon and the loss of its sandbox, until it is removed.
func TestIDRangeOfPod(t *testing.T) {
	m := newUserNamespaceHost(t)
	host := false
	p := newPod(m, &spec.Pod{HostUsers: &host, Volumes: []spec.Volume{{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}}})
	c := sh("cat /proc/self/uid_map; echo x >> /data/f; wc -l < /data/f; sleep 100000")
	c.VolumeMounts = []spec.VolumeMount{{Name: "data", MountPath: "/data"}}
	ref, err := p.start(c)
	if err != nil {
		t.Fatal(err)
	}
	root := m.rootOf(uid)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.start()
	if code, out, err := p.exec(ref, 0, "cat /data/f"); code != 0 || out != "x\n" {
		t.Errorf("after a restart of the daemon: %d, %q, %v", code, out, err)
	}
	if err := p.RemoveSandbox(p.ctx(), uid, 1); err != nil {
		t.Fatal(err)
	}
	p.sandbox(2)
	second := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: ref.Container, Round: 2, Attempt: 2}, Sandbox: 2, Restarts: 0}
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, second); err != nil {
		t.Fatal(err)
	}
	if again := m.rootOf(uid); again != root {
		t.Errorf("root was %d and is %d", root, again)
	}
	if code, out, err := p.exec(second.Ref, 0, "until [ $(wc -l < /data/f) = 2 ]; do sleep 0.05; done; stat -c %u /data/f"); code != 0 ||
		out != "0\n" {
		t.Errorf("in the second sandbox: %d, %q, %v", code, out, err)
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(m.opts.StateDir, "users.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of ID ranges is left without pods: %v", err)
	}
}

// A user namespace that the host does not support is refused.
func TestUserNamespaceRefused(t *testing.T) {
	host := false
	t.Run("parent directory without x permission", func(t *testing.T) {
		m := newTestHost(t) // its directory has mode 0700
		err := m.Admit(&spec.Pod{HostUsers: &host})
		if err == nil || !strings.Contains(err.Error(), "can pass through "+m.dir) {
			t.Errorf("admitted: %v", err)
		}
		if err := m.Admit(&spec.Pod{}); err != nil {
			t.Errorf("pod without a user namespace: %v", err)
		}
		if err := os.Chmod(m.dir, 0o711); err != nil {
			t.Fatal(err)
		}
		if err := m.Admit(&spec.Pod{HostUsers: &host}); err != nil {
			t.Errorf("directory with x permission: %v", err)
		}
	})
	t.Run("file system without id-mapped mounts", func(t *testing.T) {
		m := newUserNamespaceHost(t)
		p := newPod(m,
			&spec.Pod{HostUsers: &host, Volumes: []spec.Volume{{Name: "proc", HostPath: &spec.HostPathVolume{Path: "/proc/sys/kernel"}}}})
		c := sh("id")
		c.VolumeMounts = []spec.VolumeMount{{Name: "proc", MountPath: "/kernel"}}
		_, err := p.start(c)
		wantFailure(t, "volume without id-mapped mounts", err, lifecycle.ReasonCreateConfigError,
			"not supported by the file system (type 0x9fa0)")
	})
}

// An unreadable file of ID ranges does not block the removal of pods. Pods that need an ID range fail.
func TestUnreadableIDRanges(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, &spec.Pod{})
	if got := p.output(sh("echo here")); got != "here\n" {
		t.Fatalf("output %q", got)
	}
	if err := os.Chmod(m.dir, 0o711); err != nil { // like /var/lib: root of a user namespace passes through
		t.Fatal(err)
	}
	ranges := filepath.Join(m.opts.StateDir, "users.json")
	if err := os.WriteFile(ranges, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
	host := false
	_, err := m.StartSandbox(m.ctx(), uid, &spec.Pod{Name: "p", HostUsers: &host}, lifecycle.StartSandbox{Sandbox: 2})
	if err == nil || !strings.Contains(err.Error(), ranges) {
		t.Errorf("pod with a user namespace: %v, want an error with the path of the file", err)
	}
	if err := os.Remove(ranges); err != nil {
		t.Fatal(err)
	}
}
