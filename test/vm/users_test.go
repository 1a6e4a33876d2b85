//go:build vm

package vm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/installed"
)

// people are the ordinary users of [TestUsers].
var people = []string{"ada", "bob"}

// userFile is the pod of each user.
const userFile = `
name = "web"
imageArchives = ["` + payload + `/busybox.tar"]
[[containers]]
name = "httpd"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "trap 'exit 0' TERM; httpd -f -p 8080 -h /etc & wait"]
readinessProbe = { httpGet = ":8080/hostname", periodSeconds = 1, timeoutSeconds = 20 }
resources.limits.memory = "64Mi"
`

// limitsFile is a pod whose containers exceed their limits of memory and of processes.
const limitsFile = `
name = "limits"
restartPolicy = "Never"
shareProcessNamespace = true
pidsLimit = 16
imageArchives = ["` + payload + `/busybox.tar"]
[[containers]]
name = "memory"
image = "localhost/podstead/busybox:1"
command = ["tail", "/dev/zero"]
resources.limits.memory = "16Mi"
[[containers]]
name = "processes"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 1000 & done"]
`

// cpuFile is a pod with a limit of CPU, which needs a controller that not every systemd delegates to users.
const cpuFile = `
name = "cpu"
restartPolicy = "Never"
imageArchives = ["` + payload + `/busybox.tar"]
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["cat", "/sys/fs/cgroup/cpu.max"]
resources.limits.cpu = "250m"
`

// plainFile is a pod without limits.
const plainFile = `
name = "plain"
terminationGracePeriodSeconds = 0
imageArchives = ["` + payload + `/busybox.tar"]
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sleep", "12345"]
`

// TestUsers runs the daemons of two ordinary users beside that of the system, as services with lingering: they outlast a killed daemon and
// a reboot, and without lingering the pods of a user stop in order.
func TestUsers(t *testing.T) {
	h := newInstalled(t)
	h.Sh("modprobe tun; chmod 0666 /dev/net/tun; chmod -R a+rX " + payload)
	h.Copy("plain", plainFile)
	h.Status("plain", "1/1 Running")
	h.Sh("mkdir /pods")
	for name, text := range map[string]string{"web": userFile, "limits": limitsFile, "cpu": cpuFile, "plain": plainFile} {
		h.Sh("cat >/pods/" + name + ".toml <<'E'\n" + text + "E\nchmod -R a+rX /pods")
	}
	for _, name := range people {
		h.Sh("useradd --create-home --shell /bin/sh " + name + "; loginctl enable-linger " + name)
		h.Eventually("the systemd of "+name, as(name, "systemctl --user is-system-running --wait || true"))
		apply := "podstead apply --wait --timeout " + deadline.String() + " /pods/web.toml"
		if name == "bob" { // the daemon of a command
			withoutCgroups(h, name)
			h.Sh(as(name, apply))
			inScope(h, name)
			h.Sh("grep -x '" + scope + "daemon' /proc/$(pgrep --uid bob --full -- 'podstead daemon --on-demand')/cgroup")
			newCgroups(h, name)
			before := process(h, name)
			// Its daemon, holder, keeper and monitor. The last two start each other.
			h.Sh("while pkill --signal KILL --uid bob podstead; do sleep 0.1; done")
			h.Eventually("the next daemon starts the pod again", as(name, "podstead get | grep 1/1"))
			if process(h, name) == before {
				h.Fatalf("the container is still process %s", before)
			}
			inScope(h, name)
		}
		h.Sh(as(name, "systemctl --user enable --now podstead; "+apply))
		inScope(h, name)
	}
	limited(h, "ada")
	if got := h.Sh("podstead get -o name"); got != "pod/plain\n" { // those of users are not there
		h.Fatalf("pods of the system: %q", got)
	}
	for _, name := range people {
		h.Sh(as(name, "podstead get | grep 1/1"))
		before := process(h, name)
		h.Sh(as(name, "systemctl --user kill --signal=KILL --kill-whom=main podstead"))
		h.Eventually("systemd starts the daemon again", as(name, "systemctl --user is-active podstead && podstead get | grep 1/1"))
		same(h, name, before)
		h.Sh(as(name, "systemctl --user stop podstead; if systemctl --user is-active podstead; then exit 1; fi"))
		same(h, name, before)
		h.Sh(as(name, "systemctl --user start podstead"))
	}

	h.Reboot()
	for _, name := range people { // without a command of the user
		h.Eventually("the container of "+name, "pgrep --uid "+name+" --full --exact 'httpd -f -p 8080 -h /etc'")
		h.Eventually("the pod of "+name, as(name, "podstead get | grep 1/1"))
		h.Sh(as(name, "podstead events web; podstead events web | grep 'because of the shutdown of the daemon'; "+
			"podstead events web | grep 'Container exited with code 0'"))
	}

	h.Sh("loginctl disable-linger bob")
	h.Eventually("no process of bob", "if pgrep --uid bob; then exit 1; fi; [ ! -e /run/user/$(id -u bob) ]")
	h.Sh(as("ada", "podstead get | grep 1/1"))
}

// scope matches the start of a line of /proc/PID/cgroup for a process in the scope that the systemd of a user has delegated. inPod matches
// that of a container in it.
const (
	scope = `0::/user[.]slice/user-[0-9]*[.]slice/user@[0-9]*[.]service/app[.]slice/podstead-[0-9a-f]*[.]scope/`
	inPod = scope + `[0-9a-f-]*/[0-9a-f]*`
)

// inScope checks that all processes for the pods of a user are in the scope, so that the end of a session does not kill them, and that top
// shows what the container uses.
func inScope(h *installed.Host, name string) {
	h.Helper()
	h.Sh("grep -x '" + inPod + "' /proc/" + process(h, name) + "/cgroup")
	for program, leaf := range map[string]string{
		"podstead-monitor (keeper|monitor)": "monitor", "podstead-holder": "daemon", "podstead-monitor forwarder": "daemon",
		"pasta --config-net": "daemon",
	} {
		h.Sh("for pid in $(pgrep --uid " + name + " --full '" + program + "'); do grep -x '" + scope + leaf + "' /proc/$pid/cgroup; done")
	}
	h.Eventually("top measures the pod", as(name, "podstead top; podstead top | grep -E \"^web +[0-9]+m +[0-9]+Mi +64Mi\""))
	h.Sh(as(name, "podstead doctor | grep \"cgroups *delegated by the systemd\""))
}

// withoutCgroups starts a pod with a daemon that does not reach the systemd of the user. The pod keeps running without a cgroup, also after
// a restart of its container, when a later daemon has cgroups.
func withoutCgroups(h *installed.Host, name string) {
	h.Helper()
	const socket = "$XDG_RUNTIME_DIR/systemd/private"
	h.Sh(as(name, "mv "+socket+" "+socket+".hidden; podstead apply --wait --timeout "+deadline.String()+" /pods/plain.toml"))
	h.Sh("if " + as(name, "podstead run /pods/web.toml") + " >/run/refused 2>&1; then exit 1; fi; cat /run/refused; " +
		"grep 'containers.0..resources.limits.memory: .* the limit needs a delegated cgroup: connect to the systemd' /run/refused")
	pid := "$(pgrep --uid " + name + " --full --exact 'sleep 12345')"
	before := h.Sh("echo " + pid)
	h.Sh(as(name, "podstead daemon stop; mv "+socket+".hidden "+socket+"; podstead get plain | grep 1/1"))
	if after := h.Sh("echo " + pid); after != before {
		h.Fatalf("the container is process %s, was %s", after, before)
	}
	h.Sh("kill -9 " + pid)
	h.Eventually("the container is started again", as(name, "podstead get plain | grep \"1/1 *Running *1\""))
	h.Sh("if grep -x '" + inPod + "' /proc/" + pid + "/cgroup; then exit 1; fi")
}

// newCgroups checks that a pod that ran without cgroups has them when it was deleted and applied again.
func newCgroups(h *installed.Host, name string) {
	h.Helper()
	h.Sh(as(name, "podstead delete plain; podstead apply --wait --timeout "+deadline.String()+" /pods/plain.toml"))
	h.Sh("grep -x '" + inPod + "' /proc/$(pgrep --uid " + name + " --full --exact 'sleep 12345')/cgroup")
	h.Sh(as(name, "podstead delete plain"))
}

// limited checks that limits of memory and processes are enforced, and those of CPU unless they are refused.
func limited(h *installed.Host, name string) {
	h.Helper()
	h.Sh(as(name, "podstead apply /pods/limits.toml"))
	h.Eventually("limits are exceeded", as(name, "podstead get limits -o json | grep '\"OOMKilled\"'; "+
		"podstead events limits | grep -i OOM; podstead logs limits -c processes | grep fork"))
	h.Sh(as(name, "podstead delete limits"))
	script := as(name, "podstead run /pods/cpu.toml")
	if h.Sh("cat /sys/fs/cgroup/user.slice/user-$(id -u "+name+").slice/user@*.service/cgroup.controllers | grep -w cpu || true") == "" {
		h.Sh("if " + script + " >/run/refused 2>&1; then exit 1; fi; grep 'controller cpu, which is not delegated' /run/refused")
		return
	}
	h.Sh(script + " | grep '25000 100000'")
}

// as returns a command that runs a script in a session of a user.
func as(name, script string) string {
	return fmt.Sprintf("runuser -l %s -c 'set -e; %s'", name, strings.ReplaceAll(script, "'", `'\''`))
}

// same checks that the container of a user is the same process.
func same(h *installed.Host, name, before string) {
	h.Helper()
	if after := process(h, name); after != before {
		h.Fatalf("the container of %s is process %s, was %s\n%s", name, after, before,
			h.Sh(as(name, "podstead events web")+"; journalctl --no-pager _UID=$(id -u "+name+"); systemd-cgls --no-pager"))
	}
}

// process returns the PID of the container of a user.
func process(h *installed.Host, name string) string {
	h.Helper()
	return strings.TrimSpace(h.Sh("pgrep --uid " + name + " --full --exact 'httpd -f -p 8080 -h /etc'"))
}
