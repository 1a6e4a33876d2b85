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
`

// TestUsers runs the daemons of two ordinary users beside that of the system, as services with lingering: they outlast a killed daemon and
// a reboot, and without lingering the pods of a user stop in order.
func TestUsers(t *testing.T) {
	h := newInstalled(t)
	h.Sh("modprobe tun; chmod 0666 /dev/net/tun; chmod -R a+rX " + payload)
	h.Copy("web", installed.Web("web", ""))
	h.Status("web", "0/1 Running")
	h.Sh("mkdir /pods; cat >/pods/web.toml <<'E'\n" + userFile + "E\nchmod -R a+rX /pods")
	for _, name := range people {
		h.Sh("useradd --create-home --shell /bin/sh " + name + "; loginctl enable-linger " + name)
		h.Eventually("the systemd of "+name, as(name, "systemctl --user is-system-running --wait || true"))
		h.Sh(as(name, "systemctl --user enable --now podstead; podstead apply --wait --timeout "+deadline.String()+" /pods/web.toml"))
	}
	h.Sh("podstead get -o name | grep -x pod/web; podstead get | grep 0/1")
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
		h.Sh(as(name, "podstead events web | grep 'because of the shutdown of the daemon'; "+
			"podstead events web | grep 'Container exited with code 0'"))
	}

	h.Sh("loginctl disable-linger bob")
	h.Eventually("no process of bob", "if pgrep --uid bob; then exit 1; fi; [ ! -e /run/user/$(id -u bob) ]")
	h.Sh(as("ada", "podstead get | grep 1/1"))
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
