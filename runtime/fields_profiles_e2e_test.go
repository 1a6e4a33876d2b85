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

// noChmod is a profile that lets everything be done but changing modes.
const noChmod = `{ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
	{ "names": ["chmod", "fchmod", "fchmodat", "fchmodat2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95 }] }`

const seccompFileOfPod = `
securityContext.seccompProfile = { type = "Localhost", localhostProfile = "folder/no-chmod.json" }

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

// TestFieldsSeccomp: which system calls a container may make. With the default filter it cannot have a user namespace, but with
// the capability for it.
//
// fields: securityContext.seccompProfile.{type,localhostProfile}, containers[].securityContext.seccompProfile.{type,localhostProfile}
func TestFieldsSeccomp(t *testing.T) {
	m := newMachine(t)
	m.write("etc/seccomp/folder/no-chmod.json", noChmod, 0o600)
	m.write("etc/seccomp/broken.json", `{ "defaultAction": `, 0o600)
	const look = `grep Seccomp: /proc/self/status; touch /f; chmod 600 /f 2>&1 | sed 's/.*: //'; unshare -U true 2>&1 | sed 's/.*: //'`
	p := newPod(m, m.parse(strings.ReplaceAll(seccompFileOfPod, "@look", look)))
	wantLines(t, p.run("pod"), "Seccomp:\t2", "Operation not supported")
	wantLines(t, p.run("default"), "Seccomp:\t2", "Operation not permitted")
	wantLines(t, p.run("unconfined"), "Seccomp:\t0")
	wantLines(t, p.run("admin"), "Seccomp:\t2")

	// What is put right is seen at the next try.
	_, err := p.begin("missing")
	wantFailure(t, "no profile", err, lifecycle.ReasonCreateConfigError, filepath.Join(m.dir, "etc/seccomp/none.json")+": no such file or directory")
	m.write("etc/seccomp/none.json", noChmod, 0o600)
	if _, err := p.begin("missing"); err != nil {
		t.Error(err)
	}
	_, err = p.begin("broken")
	wantFailure(t, "no JSON", err, lifecycle.ReasonCreateConfigError, filepath.Join(m.dir, "etc/seccomp/broken.json")+": read JSON: unexpected end")
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

// TestFieldsAppArmor: the profile that the kernel holds a container to. On a machine without AppArmor there is none, and one
// that is asked for by its name is refused.
//
// fields: securityContext.appArmorProfile.{type,localhostProfile}, containers[].securityContext.appArmorProfile.{type,localhostProfile}
func TestFieldsAppArmor(t *testing.T) {
	m := newMachine(t)
	const look = `cat /proc/self/attr/apparmor/current /proc/self/attr/current 2>/dev/null | head -n 1 | tr -d '\\000'; echo`
	text := strings.ReplaceAll(appArmorFile, "@look", look)
	p := newPod(m, m.parse(text))
	confined, unconfined, refusal := "podstead-default (enforce)", "unconfined", "AppArmor profile podstead-test-none is not loaded"
	if !apparmor.HostSupports() {
		confined, unconfined, refusal = "", "", "the machine has no AppArmor"
		p.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: "Localhost", LocalhostProfile: new("podstead-default")}
		_, err := p.begin("default")
		wantFailure(t, "a pod without AppArmor", err, lifecycle.ReasonCreateConfigError, refusal)
		p.SecurityContext.AppArmorProfile = &spec.SecurityProfile{Type: "RuntimeDefault"}
	}
	if got := strings.TrimSpace(p.run("default")); got != confined {
		t.Errorf("by default: %q, want %q", got, confined)
	}
	if got := strings.TrimSpace(p.run("unconfined")); got != unconfined {
		t.Errorf("unconfined: %q, want %q", got, unconfined)
	}
	_, err := p.begin("local")
	wantFailure(t, "a profile that is not there", err, lifecycle.ReasonCreateConfigError, refusal)
	if apparmor.HostSupports() {
		if got := strings.TrimSpace(p.run("loaded")); got != confined {
			t.Errorf("the machine's: %q, want %q", got, confined)
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

// TestFieldsSysctls: the pod's kernel parameters are those of all its containers, and of nobody else.
//
// fields: securityContext.sysctls[].{name,value}
func TestFieldsSysctls(t *testing.T) {
	files := []string{
		"net/ipv4/ip_unprivileged_port_start", "net/ipv4/ip_local_port_range", "kernel/shm_rmid_forced", "kernel/msgmax", "fs/mqueue/msg_max",
	}
	machine := func() (values []string) {
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join("/proc/sys", f))
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, string(text))
		}
		return values
	}
	before := machine()
	m := newMachine(t)
	look := "cd /proc/sys; cat " + strings.Join(files[:4], " ") + "; cat /proc/sys/fs/mqueue/msg_max"
	p := newPod(m, m.parse(strings.ReplaceAll(sysctlsFile, "@look", look)))
	for _, name := range []string{"one", "two"} {
		wantLines(t, p.run(name), "1024", "20000\t30000", "1", "4096", "20")
	}
	if after := machine(); strings.Join(before, "") != strings.Join(after, "") {
		t.Errorf("the machine's were changed: %q, before: %q", after, before)
	}
	// With a value that the kernel does not take, or a name that it does not know, there is no sandbox, and nothing is left of one.
	for _, test := range []struct{ name, value, want string }{
		{"net.ipv4.podstead", "1", "set sysctl net.ipv4.podstead: not supported by the kernel"},
		{"net.ipv4.tcp_syncookies", "many", `set sysctl net.ipv4.tcp_syncookies to "many": `},
		{"kernel.panic", "1", "set sysctl kernel.panic: not in a namespace of the pod"},
	} {
		other := &spec.Pod{Name: "other", SecurityContext: &spec.PodSecurityContext{Sysctls: []spec.Sysctl{{Name: test.name, Value: test.value}}}}
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

// TestFieldsBidirectional: what a privileged container mounts in a volume appears in the machine, and in the pod's other
// containers; the pod's own volumes go with all that is mounted in them, and nothing is left of them.
//
// fields: containers[].volumeMounts[].mountPropagation
func TestFieldsBidirectional(t *testing.T) {
	m := newMachine(t)
	dir := m.hostMount(unix.MS_SHARED)
	p := newPod(m, m.parse(bidirectionalFile))
	// A machine whose mounts are shared has volumes that are; this one's need not be.
	own, err := filepath.Glob(filepath.Join(m.opts.RunDir, "volumes", uid, "*", "own"))
	if err != nil || len(own) != 1 {
		t.Fatalf("the volume in memory: %v, %v", own, err)
	}
	if err := unix.Mount("", own[0], "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	ref := p.serve("c")
	for _, seen := range []string{filepath.Join(dir, "made/again"), filepath.Join(own[0], "made/seen")} {
		if _, err := os.Stat(seen); err != nil {
			t.Errorf("what the container has mounted does not appear in the machine: %v", err)
		}
	}
	wantLines(t, p.run("sees"), "/host/made:", "again", "", "/own/made:", "seen")
	p.outputOf(ref)
	if _, err := os.Stat(filepath.Join(dir, "made/again")); !os.IsNotExist(err) {
		t.Errorf("what the container has unmounted is there: %v", err)
	}
	// The end of the test removes the pod and wants no mount below the machine's folder.
}
