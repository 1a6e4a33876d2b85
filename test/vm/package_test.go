//go:build vm

package vm_test

import (
	"strings"
	"testing"
)

const packagedFile = `
name = "life"
imageArchives = ["` + payload + `/busybox.tar"]
[[initContainers]]
name = "first"
image = "localhost/podstead/busybox:1"
command = ["true"]
[[containers]]
name = "main"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"]
readinessProbe = { exec = { command = ["true"] }, periodSeconds = 1, timeoutSeconds = 20 }
`

// TestPackage installs the Debian package, and runs a pod from its pods directory. Upgrade, downgrade and a crash keep the container; removal
// stops it and keeps its file; purge removes everything.
func TestPackage(t *testing.T) {
	machine.sh(t, `rm -rf /run/systemd/system/podstead.service /var/lib/podstead /etc/podstead; systemctl daemon-reload`)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(machine.try(t, `journalctl --no-pager -u podstead | tail -n 100; systemctl status --no-pager podstead; /usr/bin/podstead get`))
		}
		_, _ = machine.try(t, `dpkg -P podstead`)
	})
	dpkg := func(version string) {
		t.Helper()
		machine.sh(t, `dpkg -i `+payload+`/packages/podstead_`+version+`-1_amd64.deb
			systemctl is-enabled podstead; systemctl is-active podstead; /usr/bin/podstead version | grep v`+version)
	}
	ready := func(what string) seen {
		t.Helper()
		machine.eventually(t, what, `/usr/bin/podstead get life > /tmp/life; grep -q ' 1/1 ' /tmp/life || { cat /tmp/life; false; }`)
		return look(t)
	}

	dpkg("0.1.0")
	machine.sh(t, `getent group podstead podstead-ro; test -x /usr/libexec/podstead/containerd-shim-podstead-v1; cat > /etc/podstead/pods.d/life.toml <<'E'
`+packagedFile+`E`)
	before := ready("the pod of pods.d is ready")
	same := func(what string) {
		t.Helper()
		if after := ready(what); after != before {
			t.Errorf("%s: the pod was %+v and is %+v", what, before, after)
		}
	}
	dpkg("0.2.0")
	same("the pod runs after the upgrade")
	dpkg("0.1.0")
	same("the pod runs after the downgrade")
	daemon := strings.TrimSpace(machine.sh(t, `systemctl show -P MainPID podstead`))
	machine.sh(t, `kill -KILL `+daemon)
	machine.eventually(t, "systemd starts the daemon again", `systemctl is-active podstead && [ "$(systemctl show -P MainPID podstead)" != `+daemon+` ]`)
	same("the pod runs after a crash of the daemon")

	machine.sh(t, `dpkg -r podstead; ! pgrep -f '^sh -c trap'; test -e /etc/podstead/pods.d/life.toml; test -d /var/lib/podstead`)
	dpkg("0.2.0")
	if after := ready("the pod runs after another installation"); after.pid == before.pid {
		t.Errorf("the process %s of the pod survived the removal of the package", after.pid)
	}
	machine.sh(t, `dpkg -P podstead`)
	machine.eventually(t, "nothing is left", `left=$(find / -xdev -name '*podstead*' -not -path '/payload*' -not -path '/usr/local/bin/podstead' -not -path '/tmp/*'
		find /sys/fs/cgroup -name '*podstead*' -not -path '/sys/fs/cgroup/podstead.slice'
		ip -o link | grep -v ' lo:' || true; nft list tables; getent group podstead podstead-ro || true; systemctl list-unit-files --no-legend 'podstead*' 'podstead-*' | grep -v '^podstead.slice' || true
		dpkg-query -W -f '${Package} ${db:Status-Status}\n' podstead 2>/dev/null || true); echo "$left"; [ -z "$left" ]`)
}
