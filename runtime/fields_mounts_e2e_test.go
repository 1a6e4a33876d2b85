//go:build e2e

package runtime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const mountsFile = `
volumes = [{ name = "data", emptyDir = {} }, { name = "other", emptyDir = {} }]

[[containers]]
name = "writes"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "mkdir -p /data/a/b; echo deep > /data/a/b/file; echo other > /other/file"]
volumeMounts = [{ name = "data", mountPath = "/data" }, { name = "other", mountPath = "/other" }]

[[containers]]
name = "reads"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	cat /sub/file /one /expr/file /other/file
	for f in /sub/x /one /data/x; do echo new 2>&1 >> $f | sed "s/.*: //"; done
	touch /made/by-us && stat -c %a /made''']
env = [{ name = "DIR", value = "b" }]
volumeMounts = [
	{ name = "data", mountPath = "/data", readOnly = true },
	{ name = "data", mountPath = "/sub", subPath = "a/b" },
	{ name = "data", mountPath = "/one", subPath = "a/b/file", readOnly = true },
	{ name = "data", mountPath = "/expr", subPathExpr = "a/$(DIR)" },
	{ name = "data", mountPath = "/made", subPath = "not/there" },
	{ name = "other", mountPath = "/other" },
]

[[containers]]
name = "after"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "cd /data; find . -type f | sort"]
volumeMounts = { data = "/data" }

[[containers]]
name = "unset"
image = "localhost/podstead/busybox:1"
command = ["true"]
volumeMounts = [{ name = "data", mountPath = "/x", subPathExpr = "$(NONE)" }]
`

// TestFieldsMounts tests paths, sub-paths and read-only mounts of volumes.
//
// fields: containers[].volumeMounts[].{name,mountPath,subPath,subPathExpr,readOnly}, volumes[].name
func TestFieldsMounts(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(mountsFile))
	p.run("writes")
	const refused = "Read-only file system"
	wantLines(t, p.run("reads"), "deep", "deep", "deep", "other", refused, refused, "777")
	wantLines(t, p.run("after"), "./a/b/file", "./a/b/x", "./not/there/by-us")
	_, err := p.begin("unset")
	wantFailure(t, "unset variable", err, lifecycle.ReasonCreateConfigError, "missing value for NONE")
}

const nestedFile = `
hostUsers = %t
volumes = [
	{ name = "etc", emptyDir = {} }, { name = "conf", configMap.name = "conf" }, { name = "disk", emptyDir = {} },
	{ name = "memory", emptyDir.medium = "Memory" },
]
configMaps = [{ name = "conf", data = { key = "value" } }]

[[containers]]
name = "nested"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	grep -c localhost /etc/hosts; cat /etc/conf/key; echo; stat -c %%u:%%a /etc/conf/more
	echo memory > /etc/conf/more/file && cat /etc/conf/more/file
	for f in /etc/conf/x /etc/disk/x; do echo new 2>&1 >> $f | sed "s/.*: //"; done
	echo new > /etc/new && ls /etc; echo message > /etc/message''']
terminationMessagePath = "/etc/message"
volumeMounts = [
	{ name = "etc", mountPath = "/etc" },
	{ name = "conf", mountPath = "/etc/conf" },
	{ name = "memory", mountPath = "/etc/conf/more" },
	{ name = "disk", mountPath = "/etc/disk", readOnly = true },
]
`

// TestFieldsNestedMounts tests mounts inside of volumes, of other volumes and of the files of the pod.
func TestFieldsNestedMounts(t *testing.T) {
	for _, host := range []bool{true, false} {
		t.Run(fmt.Sprintf("hostUsers=%t", host), func(t *testing.T) {
			m := newUserNamespaceHost(t)
			p := newPod(m, m.parse(fmt.Sprintf(nestedFile, host)))
			const refused = "Read-only file system"
			wantLines(t, p.run("nested"), "2", "value", "0:777", "memory", refused, refused, "conf", "disk", "hostname", "hosts",
				"message", "new", "resolv.conf")
		})
	}
}

// hostMount creates a mount on the host with another mount in it, and returns its directory.
func (m *testHost) hostMount(flags uintptr) (dir string) {
	m.Helper()
	dir = filepath.Join(m.dir, "host")
	inner := filepath.Join(dir, "inner")
	must := func(err error) {
		m.Helper()
		if err != nil {
			m.Fatal(err)
		}
	}
	must(os.MkdirAll(dir, 0o755))
	must(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	m.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			m.Error(err)
		}
	})
	must(unix.Mount("", dir, "", flags, ""))
	must(os.Mkdir(inner, 0o755))
	must(unix.Mount("tmpfs", inner, "tmpfs", 0, "size=1m"))
	return dir
}

const recursiveFile = `
volumes = [{ name = "host", hostPath = { path = "host", type = "Directory" } }]

[[containers]]
name = "disabled"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "touch /host/x 2>/dev/null || echo refused; touch /host/inner/x && echo written"]
volumeMounts.host = { mountPath = "/host", readOnly = true, recursiveReadOnly = "Disabled" }

[[containers]]
name = "enabled"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "touch /host/inner/y 2>&1 | sed 's/.*: //'"]
volumeMounts.host = { mountPath = "/host", readOnly = true, recursiveReadOnly = "Enabled" }

[[containers]]
name = "possible"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "touch /host/inner/z 2>&1 | sed 's/.*: //'"]
volumeMounts.host = { mountPath = "/host", readOnly = true, recursiveReadOnly = "IfPossible" }
`

// TestFieldsRecursiveReadOnly tests whether mounts in a read-only volume are read-only. The OCI runtime of the host must support it.
//
// fields: containers[].volumeMounts[].recursiveReadOnly, volumes[].hostPath.{path,type}
func TestFieldsRecursiveReadOnly(t *testing.T) {
	m := newTestHost(t)
	m.hostMount(unix.MS_PRIVATE)
	p := newPod(m, m.parse(recursiveFile))
	wantLines(t, p.run("disabled"), "refused", "written")
	wantLines(t, p.run("enabled"), "Read-only file system")
	wantLines(t, p.run("possible"), "Read-only file system")
}

const propagationFile = `
volumes = [{ name = "host", hostPath.path = "host" }, { name = "go", emptyDir = {} }]

[[containers]]
name = "none"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo ready; until [ -e /go/on ]; do sleep 0.05; done; ls /host/later"]
volumeMounts = { host = { mountPath = "/host", mountPropagation = "None" }, go = "/go" }

[[containers]]
name = "host-to-container"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo ready; until [ -e /go/on ]; do sleep 0.05; done; ls /host/later"]
volumeMounts = { host = { mountPath = "/host", mountPropagation = "HostToContainer" }, go = "/go" }

[[containers]]
name = "goes-on"
image = "localhost/podstead/busybox:1"
command = ["touch", "/go/on"]
volumeMounts.go = "/go"

[[containers]]
name = "shared"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "grep ' /host ' /proc/self/mountinfo | grep -o ' shared:' "]
securityContext.privileged = true
volumeMounts.host = { mountPath = "/host", mountPropagation = "Bidirectional" }

[[containers]]
name = "last"
image = "localhost/podstead/busybox:1"
`

// TestFieldsMountPropagation tests whether a container sees later mounts of the host. Bidirectional needs a privileged container.
//
// fields: containers[].volumeMounts[].mountPropagation
func TestFieldsMountPropagation(t *testing.T) {
	m := newTestHost(t)
	dir := m.hostMount(unix.MS_SHARED)
	later := filepath.Join(dir, "later")
	if err := os.Mkdir(later, 0o755); err != nil {
		t.Fatal(err)
	}
	p := newPod(m, m.parse(propagationFile))
	none, slave := p.serve("none"), p.serve("host-to-container")
	if err := unix.Mount("tmpfs", later, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(later, "seen"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.run("goes-on")
	if out := p.outputOf(none); out != "ready\n" {
		t.Errorf("without propagation: output %q", out)
	}
	wantLines(t, p.outputOf(slave), "ready", "seen")
	wantLines(t, p.run("shared"), " shared:")

	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"HostToContainer", "Bidirectional"} {
		c := sh("true")
		c.VolumeMounts = []spec.VolumeMount{{Name: "host", MountPath: "/host", MountPropagation: mode}}
		_, err := p.start(c)
		if wantFailure(t, mode, err, lifecycle.ReasonCreateConfigError, "is not a shared"); err != nil &&
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%s: the error does not contain the path: %v", mode, err)
		}
	}
}
