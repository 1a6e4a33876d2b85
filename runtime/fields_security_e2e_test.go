//go:build e2e

package runtime_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/pkg/apparmor"
	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/session"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Users, privileges and seccomp, as /proc/self in the container shows them.

// identity prints the users and groups of a process: real and effective IDs, and the groups in numerical order.
const identity = `awk '/^Uid:/ { u = $2 "/" $3 } /^Gid:/ { g = $2 "/" $3 } /^Groups:/ { $1 = ""; gs = $0 } END { print u, g, "in" gs }' ` +
	`/proc/self/status`

const usersFile = `
volumes = [{ name = "data", emptyDir = {} }, { name = "tools", emptyDir = {} }]
securityContext = { runAsUser = 1000, runAsGroup = 2000, supplementalGroups = [4000, 3000], fsGroup = 5000 }

[[containers]]
name = "pod"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''@identity; cat /proc/self/status | grep -c 'CapEff:.0000000000000000'; touch /data/f; stat -c %u:%g /data/f''']
volumeMounts.data = "/data"

[[containers]]
name = "own"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''@identity''']
securityContext = { runAsUser = 0, runAsGroup = 7 }

[[containers]]
name = "own-user"
image = "localhost/podstead/testserver:1"
command = ["/tools/sh", "-c", '''export PATH=/tools; @identity''']
volumeMounts = { tools = "/tools" }
securityContext = { runAsUser = 65534 }

[[containers]]
name = "install"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "cp -a /bin/* /tools/"]
volumeMounts = { tools = "/tools" }
securityContext = { runAsUser = 0 }
`

// file returns a pod file with its placeholders replaced by scripts.
func file(text string) string { return strings.ReplaceAll(text, "@identity", identity) }

// TestFieldsUsers tests the user and groups of containers, with defaults from the pod.
//
// fields: securityContext.{runAsUser,runAsGroup,supplementalGroups,fsGroup}, containers[].securityContext.{runAsUser,runAsGroup}
func TestFieldsUsers(t *testing.T) {
	m := newTestHost(t)
	m.pull(m.archive("testserver"), testserver)
	p := newPod(m, m.parse(file(usersFile)))
	wantLines(t, p.run("pod"), "1000/1000 2000/2000 in 2000 3000 4000 5000", "1", "1000:5000")
	wantLines(t, p.run("own"), "0/0 7/7 in 7 3000 4000 5000")
	p.run("install")
	wantLines(t, p.run("own-user"), "65534/65534 2000/2000 in 2000 3000 4000 5000")

	// Without a group in the pod, it is that of the user in the image's /etc/passwd, or 0.
	p.SecurityContext = nil
	for user, want := range map[int64]string{65534: "65534/65534 65534/65534 in 65534", 12345: "12345/12345 0/0 in 0", 0: "0/0 0/0 in 0"} {
		c := sh(identity)
		c.SecurityContext = &spec.SecurityContext{RunAsUser: &user}
		wantLines(t, p.output(c), want)
	}
}

const policyFile = `
securityContext = { runAsUser = 65534, supplementalGroups = [3000], supplementalGroupsPolicy = "@policy" }

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''@identity''']
`

// TestFieldsGroupsPolicy tests whether groups of the image are added to those of the pod.
//
// fields: securityContext.supplementalGroupsPolicy
func TestFieldsGroupsPolicy(t *testing.T) {
	m := newTestHost(t)
	for policy, want := range map[string]string{
		"Merge": "65534/65534 65534/65534 in 777 3000 65534", "Strict": "65534/65534 65534/65534 in 3000 65534",
	} {
		p := newPod(m, m.parse(file(strings.ReplaceAll(policyFile, "@policy", policy))))
		p.addToImage("etc/group", "root:x:0:\nnogroup:x:65534:\nmembers:x:777:nobody\n")
		wantLines(t, p.run("c"), want)
		if err := p.RemovePod(p.ctx(), uid, p.Pod); err != nil {
			t.Fatal(err)
		}
	}
}

// addToImage appends to a file of the only unpacked image.
func (p *pod) addToImage(name, text string) {
	p.Helper()
	files, err := filepath.Glob(filepath.Join(p.opts.StateDir, "engine/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs", name))
	if err != nil || len(files) != 1 {
		p.Fatalf("%s of the image: %v, %v", name, files, err)
	}
	if err := os.WriteFile(files[0], []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

const nonRootFile = `
securityContext.runAsNonRoot = true

[[containers]]
name = "root"
image = "localhost/podstead/busybox:1"

[[containers]]
name = "name"
image = "localhost/podstead/testserver:1"

[[containers]]
name = "says-root"
image = "localhost/podstead/busybox:1"
securityContext.runAsUser = 0

[[containers]]
name = "user"
image = "localhost/podstead/busybox:1"
command = ["id", "-u"]
securityContext.runAsUser = 1000

[[containers]]
name = "may"
image = "localhost/podstead/busybox:1"
command = ["id", "-u"]
securityContext.runAsNonRoot = false
`

// TestFieldsNonRoot tests that a container that would or might run as root is refused, and that a corrected image is used by the next
// attempt.
//
// fields: securityContext.runAsNonRoot, containers[].securityContext.runAsNonRoot
func TestFieldsNonRoot(t *testing.T) {
	m := newTestHost(t)
	m.pull(m.archive("testserver"), testserver)
	p := newPod(m, m.parse(nonRootFile))
	for name, want := range map[string]string{
		"root": `container has runAsNonRoot and image will run as root (pod: "pod_default(` + uid + `)", container: root)`,
		"name": "container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root",

		"says-root": "container's runAsUser breaks non-root policy",
	} {
		for range 2 {
			_, err := p.begin(name)
			wantFailure(t, name, err, lifecycle.ReasonCreateConfigError, want)
		}
	}
	wantLines(t, p.run("user"), "1000")
	wantLines(t, p.run("may"), "0")
}

const capabilitiesFile = `
securityContext.runAsNonRoot = false

[[containers]]
name = "default"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@caps"]

[[containers]]
name = "drop-all-add"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@caps; chown 1 /tmp 2>&1 | sed 's/.*: //'"]
securityContext.capabilities = { drop = ["ALL"], add = ["NET_ADMIN"] }

[[containers]]
name = "add-all-drop"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@caps"]
securityContext.capabilities = { add = ["ALL"], drop = ["CHOWN"] }

[[containers]]
name = "add"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@caps; ip link set lo down && echo down"]
securityContext.capabilities = { add = ["NET_ADMIN"], drop = ["MKNOD"] }

[[containers]]
name = "user"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@caps"]
securityContext = { capabilities.add = ["NET_ADMIN"], runAsUser = 1000 }

[[containers]]
name = "absent"
image = "localhost/podstead/busybox:1"
securityContext.capabilities.add = ["@absent"]
`

// defaultCaps are the default capabilities of containers.
const (
	defaultCaps = uint64(0xa80425fb)
	capChown    = uint64(1) << 0
	capNetAdmin = uint64(1) << 12
	capMknod    = uint64(1) << 27
)

const privilegesFile = `
[[containers]]
name = "default"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "grep NoNewPrivs: /proc/self/status; touch /x && echo written"]

[[containers]]
name = "limited"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "grep NoNewPrivs: /proc/self/status; for f in /x /etc/hostname /etc/resolv.conf; do (echo > $f) 2>&1 | sed 's/.*: //'; done; touch /data/x /dev/shm/x /etc/hosts && echo written"]
volumeMounts.data = "/data"
securityContext = { allowPrivilegeEscalation = false, readOnlyRootFilesystem = true }

[[containers]]
name = "allowed"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "grep NoNewPrivs: /proc/self/status; touch /x && echo written"]
securityContext = { allowPrivilegeEscalation = true, readOnlyRootFilesystem = false }

[[containers]]
name = "install"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "cp /bin/busybox /data/su && chmod 4755 /data/su"]
volumeMounts.data = "/data"

[[containers]]
name = "suid"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "/data/su </dev/null 2>&1 | grep -c 'must be suid' || true"]
volumeMounts.data = "/data"
securityContext.runAsUser = 1000

[[containers]]
name = "no-suid"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "/data/su </dev/null 2>&1 | grep -c 'must be suid' || true"]
volumeMounts.data = "/data"
securityContext = { runAsUser = 1000, allowPrivilegeEscalation = false }

[[volumes]]
name = "data"
emptyDir = {}
`

const privilegedFile = `
securityContext.runAsNonRoot = false
volumes = [{ name = "host", hostPath.path = "host" }]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	grep -E "^(CapEff|CapBnd|Seccomp|NoNewPrivs):" /proc/self/status | tr -d "\t"
	awk '$5 == "/sys" || $5 == "/sys/fs/cgroup" { split($6, o, ","); print $5, o[1] }' /proc/self/mountinfo
	grep -c -E " /proc/(kcore|sys|bus|keys) | /sys/firmware " /proc/self/mountinfo
	mkdir /m && mount -t tmpfs tmpfs /m && echo mounted
	ls -d @device && head -c 1 /dev/zero | wc -c''']
securityContext.privileged = true

[[containers]]
name = "not"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	mkdir /m; mount -t tmpfs tmpfs /m 2>&1 | sed "s/.*: //"
	ls @device 2>&1 | sed "s/.*: //"
	mknod /d @node && head -c 1 /d 2>&1 | sed "s/.*: //"''']
securityContext.privileged = false
`

// TestFieldsProcMount tests masked and read-only paths of /proc. (A pod file can use Unmasked only with a user namespace.)
//
// fields: containers[].securityContext.procMount
func TestFieldsProcMount(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{})
	const look = `awk '$5 ~ "^/proc/" || $5 ~ "^/sys/(firmware|devices)" { split($6, o, ","); print $5, o[1] }' /proc/self/mountinfo | sort`
	readOnly := sh(`for f in bus fs irq sys sysrq-trigger; do [ ! -e /proc/$f ] || grep " /proc/$f ro," /proc/self/mountinfo >/dev/null || echo $f; done
		for f in acpi scsi asound; do ls /proc/$f 2>/dev/null; done; ls /sys/firmware 2>/dev/null
		for f in interrupts kcore keys latency_stats timer_list sched_debug; do [ ! -e /proc/$f ] || head -c 1 /proc/$f 2>/dev/null; done; echo end`)
	readOnly.SecurityContext = &spec.SecurityContext{ProcMount: "Default"}
	wantLines(t, p.output(readOnly), "end")
	unmasked := sh(look + "; head -c 1 /proc/interrupts | wc -c")
	unmasked.SecurityContext = &spec.SecurityContext{ProcMount: "Unmasked"}
	wantLines(t, p.output(unmasked), "1")
}

// execFile has a container without default privileges.
const execFile = `
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "@status; echo ready; exec sleep 100000"]

[containers.securityContext]
runAsUser = 1000
runAsGroup = 2000
allowPrivilegeEscalation = false
readOnlyRootFilesystem = true
capabilities = { drop = ["ALL"], add = ["CHOWN"] }
seccompProfile = { type = "Localhost", localhostProfile = "no-chmod.json" }
`

// status prints the privileges of a process.
const status = `exec 2>&1; grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp):' /proc/self/status; cat /proc/self/attr/current ` +
	`2>/dev/null; cd /tmp; touch /x; touch /dev/shm/f; chmod 600 /dev/shm/f; true`

// Commands of probes and hooks, and sessions with and without a terminal, have the privileges of their container.
func TestExecPrivileges(t *testing.T) {
	m := newTestHost(t)
	m.write("etc/seccomp/no-chmod.json", noChmod, 0o600)
	p := newPod(m, m.parse(strings.ReplaceAll(execFile, "@status", status)))
	ref := p.serve("c")
	want := strings.TrimSuffix(p.log(ref), "ready\n") // one stream keeps the order of lines
	code, got, err := p.exec(ref, time.Minute, status)
	if err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	wantLines(t, got, strings.Split(strings.TrimSuffix(want, "\n"), "\n")...)
	parts := []string{"Uid:\t1000\t", "Gid:\t2000\t", "CapBnd:\t0000000000000001", "NoNewPrivs:\t1", "Seccomp:\t2"}
	if apparmor.HostSupports() { // in the virtual machine
		parts = append(parts, "podstead-default (enforce)")
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in the status of the command:\n%s", part, got)
		}
	}
	for _, tty := range []bool{false, true} {
		var output bytes.Buffer
		code, err := p.Session(p.ctx(), uid, ref,
			session.Command{Args: []string{"sh", "-c", status}, Stdout: &output, Stderr: &output, TTY: tty})
		if err != nil || code != 0 {
			t.Fatalf("session with terminal %v: exit %d, %v", tty, code, err)
		}
		if got := strings.ReplaceAll(output.String(), "\r\n", "\n"); got != want {
			t.Errorf("session with terminal %v (-container +session):\n%s", tty, cmp.Diff(want, got))
		}
	}
}

// The security context of an ephemeral container overrides that of the pod.
func TestEphemeralPrivileges(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m,
		m.parse("securityContext = { runAsUser = 1000, supplementalGroups = [3000] }\n[[containers]]\nname = \"c\"\nimage = \"i:1\"\n"))
	c, problems := spec.ParseEphemeral("debug.toml", []byte(file(`
name = "debug"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''@identity; grep NoNewPrivs: /proc/self/status''']
securityContext = { runAsGroup = 7, allowPrivilegeEscalation = false }
`)), p.Pod)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p.EphemeralContainers = []spec.Container{*c}
	wantLines(t, p.run("debug"), "1000/1000 7/7 in 7 3000", "NoNewPrivs:\t1")
}
