//go:build e2e

package runtime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/apparmor"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// noChmod is a seccomp profile that denies only chmod.
const noChmod = `{ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
	{ "names": ["chmod", "fchmod", "fchmodat", "fchmodat2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95 }] }`

const seccompFileOfPod = `
securityContext.seccompProfile = { type = "Localhost", localhostProfile = "dir/no-chmod.json" }

[[containers]]
name = "pod"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]

[[containers]]
name = "default"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]
securityContext.seccompProfile.type = "RuntimeDefault"

[[containers]]
name = "unconfined"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]
securityContext.seccompProfile.type = "Unconfined"

[[containers]]
name = "admin"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]
securityContext = { seccompProfile.type = "RuntimeDefault", capabilities.add = ["SYS_ADMIN"] }

[[containers]]
name = "missing"
image = "localhost/podstead/busybox:1"
securityContext.seccompProfile = { type = "Localhost", localhostProfile = "none.json" }

[[containers]]
name = "broken"
image = "localhost/podstead/busybox:1"
securityContext.seccompProfile = { type = "Localhost", localhostProfile = "broken.json" }
`

// TestFieldsSeccomp tests seccomp profiles. The default profile denies user namespaces, unless the container has CAP_SYS_ADMIN.
//
// fields: securityContext.seccompProfile.{type,localhostProfile}, containers[].securityContext.seccompProfile.{type,localhostProfile}
func TestFieldsSeccomp(t *testing.T) {
	m := newTestHost(t)
	m.write("etc/seccomp/dir/no-chmod.json", noChmod, 0o600)
	m.write("etc/seccomp/broken.json", `{ "defaultAction": `, 0o600)
	const look = `grep Seccomp: /proc/self/status; touch /f; chmod 600 /f 2>&1 | sed 's/.*: //'; unshare -U true 2>&1 | sed 's/.*: //'`
	p := newPod(m, m.parse(strings.ReplaceAll(seccompFileOfPod, "@look", look)))
	wantLines(t, p.run("pod"), "Seccomp:\t2", "Operation not supported")
	wantLines(t, p.run("default"), "Seccomp:\t2", "Operation not permitted")
	wantLines(t, p.run("unconfined"), "Seccomp:\t0")
	wantLines(t, p.run("admin"), "Seccomp:\t2")

	// The next attempt uses the corrected file.
	_, err := p.begin("missing")
	wantFailure(t, "missing profile", err, lifecycle.ReasonCreateConfigError,
		filepath.Join(m.dir, "etc/seccomp/none.json")+": no such file or directory")
	m.write("etc/seccomp/none.json", noChmod, 0o600)
	if _, err := p.begin("missing"); err != nil {
		t.Error(err)
	}
	_, err = p.begin("broken")
	wantFailure(t, "invalid JSON", err, lifecycle.ReasonCreateConfigError,
		filepath.Join(m.dir, "etc/seccomp/broken.json")+": read JSON: unexpected end")
}

const appArmorFile = `
securityContext.appArmorProfile.type = "RuntimeDefault"

[[containers]]
name = "default"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]

[[containers]]
name = "unconfined"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]
securityContext.appArmorProfile.type = "Unconfined"

[[containers]]
name = "local"
image = "localhost/podstead/busybox:1"
securityContext.appArmorProfile = { type = "Localhost", localhostProfile = "podstead-test-none" }

[[containers]]
name = "loaded"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]
securityContext.appArmorProfile = { type = "Localhost", localhostProfile = "podstead-default" }
`

// TestFieldsAppArmor tests AppArmor profiles. On a host without AppArmor there is no profile, and a profile of type Localhost is refused.
//
// fields: securityContext.appArmorProfile.{type,localhostProfile}, containers[].securityContext.appArmorProfile.{type,localhostProfile}
func TestFieldsAppArmor(t *testing.T) {
	m := newTestHost(t)
	const look = `cat /proc/self/attr/apparmor/current /proc/self/attr/current 2>/dev/null | head -n 1 | tr -d '\\000'; echo`
	text := strings.ReplaceAll(appArmorFile, "@look", look)
	p := newPod(m, m.parse(text))
	confined, unconfined, refusal := "podstead-default (enforce)", "unconfined", "AppArmor profile podstead-test-none is not loaded"
	if !apparmor.HostSupports() {
		confined, unconfined, refusal = "", "", "the host does not support AppArmor"
		p.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: "Localhost", LocalhostProfile: new("podstead-default")}
		_, err := p.begin("default")
		wantFailure(t, "host without AppArmor", err, lifecycle.ReasonCreateConfigError, refusal)
		p.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: "RuntimeDefault"}
		const want = "AppArmor: securityContext.appArmorProfile: Cannot enforce AppArmor"
		if err := m.Admit(p.Pod); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("admission on a host without AppArmor: %v", err)
		}
		p.SecurityContext.AppArmorProfile = nil
	}
	if got := strings.TrimSpace(p.run("default")); got != confined {
		t.Errorf("by default: %q, want %q", got, confined)
	}
	if got := strings.TrimSpace(p.run("unconfined")); got != unconfined {
		t.Errorf("unconfined: %q, want %q", got, unconfined)
	}
	_, err := p.begin("local")
	wantFailure(t, "missing profile", err, lifecycle.ReasonCreateConfigError, refusal)
	if apparmor.HostSupports() {
		if got := strings.TrimSpace(p.run("loaded")); got != confined {
			t.Errorf("profile loaded on the host: %q, want %q", got, confined)
		}
	}
}

const sysctlsFile = `
[securityContext]
sysctls = [
	{ name = "net.ipv4.ip_unprivileged_port_start", value = "1024" },
	{ name = "net/ipv4/ip_local_port_range", value = "20000 30000" },
	{ name = "kernel.shm_rmid_forced", value = "1" },
	{ name = "kernel.msgmax", value = "4096" },
	{ name = "fs.mqueue.msg_max", value = "20" },
]

[[containers]]
name = "one"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]

[[containers]]
name = "two"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@look"]
`

// TestFieldsSysctls tests that sysctls apply to all containers of the pod, and not to the host.
//
// fields: securityContext.sysctls[].{name,value}
func TestFieldsSysctls(t *testing.T) {
	files := []string{
		"net/ipv4/ip_unprivileged_port_start", "net/ipv4/ip_local_port_range", "kernel/shm_rmid_forced", "kernel/msgmax",
		"fs/mqueue/msg_max",
	}
	hostValues := func() (values []string) {
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join("/proc/sys", f))
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, string(text))
		}
		return values
	}
	before := hostValues()
	m := newTestHost(t)
	look := "cd /proc/sys; cat " + strings.Join(files[:4], " ") + "; cat /proc/sys/fs/mqueue/msg_max"
	p := newPod(m, m.parse(strings.ReplaceAll(sysctlsFile, "@look", look)))
	for _, name := range []string{"one", "two"} {
		wantLines(t, p.run(name), "1024", "20000\t30000", "1", "4096", "20")
	}
	if after := hostValues(); strings.Join(before, "") != strings.Join(after, "") {
		t.Errorf("the values of the host changed: %q, before: %q", after, before)
	}
	// With an invalid value or name there is no sandbox, and nothing is left of it.
	for _, test := range []struct{ name, value, want string }{
		{"net.ipv4.podstead", "1", "set sysctl net.ipv4.podstead: not supported by the kernel"},
		{"net.ipv4.tcp_syncookies", "many", `set sysctl net.ipv4.tcp_syncookies to "many": `},
		{"kernel.panic", "1", "set sysctl kernel.panic: not in a namespace of the pod"},
	} {
		other := &spec.Pod{
			Name: "other", SecurityContext: &spec.PodSecurityContext{Sysctls: []spec.Sysctl{{Name: test.name, Value: test.value}}},
		}
		const otherUID = "0c5e4b1e-1111-4000-8000-000000000002"
		_, err := m.StartSandbox(m.ctx(), otherUID, other, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
		wantFailure(t, test.name, err, "", test.want)
		if err := m.RemovePod(m.ctx(), otherUID, other); err != nil {
			t.Error(err)
		}
	}
}

const bidirectionalFile = `
volumes = [{ name = "host", hostPath.path = "host" }, { name = "own", emptyDir.medium = "Memory" }, { name = "go", emptyDir = {} }]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	for d in /host /own; do mkdir $d/made && mount -t tmpfs tmpfs $d/made && touch $d/made/seen || exit 1; done
	umount /host/made && mount -t tmpfs tmpfs /host/made && touch /host/made/again
	echo ready; until [ -e /go/on ]; do sleep 0.05; done; umount /host/made''']
securityContext.privileged = true
volumeMounts = { host = { mountPath = "/host", mountPropagation = "Bidirectional" }, own = { mountPath = "/own", mountPropagation = "Bidirectional" }, go = "/go" }

[[containers]]
name = "sees"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "ls /host/made /own/made; touch /go/on"]
volumeMounts = { host = { mountPath = "/host", mountPropagation = "HostToContainer" }, own = { mountPath = "/own", mountPropagation = "HostToContainer" }, go = "/go" }
`

// TestFieldsBidirectional tests that a mount in a volume by a privileged container appears on the host and in other containers of the pod.
// Volumes of the pod are removed with the mounts in them.
//
// fields: containers[].volumeMounts[].mountPropagation
func TestFieldsBidirectional(t *testing.T) {
	m := newTestHost(t)
	dir := m.hostMount(unix.MS_SHARED)
	p := newPod(m, m.parse(bidirectionalFile))
	// Volumes are shared mounts only if the mounts of the host are.
	own, err := filepath.Glob(filepath.Join(m.opts.RunDir, "volumes", uid, "*", "own"))
	if err != nil || len(own) != 1 {
		t.Fatalf("volume in memory: %v, %v", own, err)
	}
	if err := unix.Mount("", own[0], "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	ref := p.serve("c")
	for _, seen := range []string{filepath.Join(dir, "made/again"), filepath.Join(own[0], "made/seen")} {
		if _, err := os.Stat(seen); err != nil {
			t.Errorf("the mount of the container does not appear on the host: %v", err)
		}
	}
	wantLines(t, p.run("sees"), "/host/made:", "again", "", "/own/made:", "seen")
	p.outputOf(ref)
	if _, err := os.Stat(filepath.Join(dir, "made/again")); !os.IsNotExist(err) {
		t.Errorf("the mount was not removed on the host: %v", err)
	}
	// The cleanup of the test removes the pod and checks that no mount is left.
}
