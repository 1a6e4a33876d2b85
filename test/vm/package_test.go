//go:build vm

package vm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/test/internal/installed"
)

// packaged is a virtual machine on which packages are installed. Its pod is examples/web.toml.
type packaged struct {
	*installed.Host
	install string // a command that installs, upgrades or downgrades to a version: %s
}

const (
	installDeb = `dpkg -i ` + payload + `/packages/podstead_%s-1_amd64.deb; `
	// Debian's rpm does not know what dpkg has installed.
	installRPM = `rpm -U --nodeps --oldpackage ` + payload + `/packages/podstead-%s-1.x86_64.rpm; `
)

// newPackaged boots a machine, and installs the previous version from a package for dpkg.
func newPackaged(t *testing.T) *packaged {
	t.Helper()
	tree := tempDir(t)
	if err := os.WriteFile(filepath.Join(tree, "drivers.conf"), []byte(driversFile), 0o600); err != nil {
		t.Fatal(err)
	}
	machine := newHost(t, tree, need(t, "packages", packages), filepath.Join(repository, "examples", "web.toml"), imageArchive("busybox"),
		imageArchive("testserver"))
	h := installed.New(t, machine, installed.Options{
		Install: unpack + "cp " + payload + "/drivers.conf /etc/modules-load.d/; modprobe -a " + drivers + "; " +
			fmt.Sprintf(installDeb, oldVersion),
		Enabled: true, Archive: payload + "/busybox.tar", Timeout: deadline, Pause: pause,
	})
	return &packaged{h, installDeb}
}

// to installs a version.
func (p *packaged) to(version string) {
	p.Helper()
	p.Sh(fmt.Sprintf(p.install, version) + `systemctl is-enabled podstead; systemctl is-active podstead; podstead version | grep v` +
		version)
}

// ready waits until the pod is ready.
func (p *packaged) ready() installed.Seen {
	p.Helper()
	p.Status("web", "2/2 Running")
	return p.Look()["web"]
}

// same checks that the pod is ready, and that nothing was restarted.
func (p *packaged) same(what string, before installed.Seen) {
	p.Helper()
	if diff := cmp.Diff(before, p.ready()); diff != "" {
		p.Errorf("%s: the pod (-before +after):\n%s", what, diff)
	}
}

// booted checks that the pod is ready after a boot, and that its containers were started again once.
func (p *packaged) booted(what string, before installed.Seen) {
	p.Helper()
	p.Eventually("the pod was started after "+what,
		fmt.Sprintf(`podstead get web > /tmp/get; cat /tmp/get; grep -qE ' 2/2 +Running ' /tmp/get
		podstead get web -o json | grep -q '"restartCount": *%d'`, before.Restarts+1))
	if after := p.ready(); after.UID != before.UID || after.Restarts != before.Restarts+1 || after.ID == before.ID {
		p.Errorf("%s: the pod was %+v and is %+v", what, before, after)
	}
}

// copyExample copies the example and its images, as a person does.
func (p *packaged) copyExample() {
	p.Helper()
	p.Sh(`mkdir -p /etc/podstead/pods.d/images; cp ` + payload + `/busybox.tar ` + payload +
		`/testserver.tar /etc/podstead/pods.d/images; cp ` + payload + `/web.toml /etc/podstead/pods.d; sync`)
	p.ready()
	p.Eventually("the example serves its page",
		`podstead logs web -c visitor > /tmp/logs; cat /tmp/logs; grep -q 'Written by the init container' /tmp/logs`)
}

// TestPackage installs packages on a clean Debian, and copies an example into the pods directory. The pod outlasts an upgrade from the
// previous version that fails, one that succeeds, and a reboot. Removal stops it and keeps its file; purge removes everything. Then the
// same with rpm, without the reboot, but with a downgrade.
func TestPackage(t *testing.T) {
	p := newPackaged(t)
	p.Sh(`getent group podstead podstead-ro; test -x /usr/libexec/podstead/containerd-shim-podstead-v1`)
	p.copyExample()
	before := p.ready()
	p.broken(before)
	p.to(newVersion)
	p.same("an upgrade", before)
	p.service()
	p.same("a crash of the daemon", before)
	p.Stops(func() { p.booted("a reboot", before) })

	before = p.ready()
	p.Sh(`dpkg -r podstead`)
	p.removed()
	p.to(newVersion)
	p.booted("a removal and an installation", before)
	p.Sh(`dpkg -P podstead`)
	p.gone()
	p.rpm()
}

// broken upgrades to a version whose daemon does not start, because of a variable of the unit: the pod keeps running, and the previous
// version takes it over again. A mistake in the configuration file does not keep the daemon from starting.
func (p *packaged) broken(before installed.Seen) {
	p.Helper()
	const dropIn = `/etc/systemd/system/podstead.service.d`
	p.Sh(`pgrep -f ^/bin/testserver > /tmp/before; mkdir -p ` + dropIn + `
		printf '[Service]\nEnvironment=PODSTEAD_ENGINE_IDLE_TIMEOUT=never\n' > ` + dropIn + `/broken.conf`)
	p.Sh(fmt.Sprintf(p.install, newVersion) + `if systemctl is-active podstead; then exit 1; fi
		journalctl --no-pager -u podstead | grep 'PODSTEAD_ENGINE_IDLE_TIMEOUT="never": must be a duration'
		pgrep -f ^/bin/testserver | cmp - /tmp/before; rm -r ` + dropIn + `; systemctl daemon-reload`)
	p.to(oldVersion)
	p.same("a version that does not start", before)
	p.Sh(`printf '[engine]\nnextKey = true\n' > /etc/podstead/podstead.toml`)
	p.to(newVersion)
	p.same("an upgrade with a mistake in the configuration", before)
	p.Sh(`podstead doctor | grep '/etc/podstead/podstead.toml:2:1: engine.nextKey: unknown field'; rm /etc/podstead/podstead.toml`)
	p.to(oldVersion)
}

// rpm tests the packages for rpm. The commands are those of docs/howto/upgrade.md and docs/howto/install-the-packages.md.
func (p *packaged) rpm() {
	p.Helper()
	p.install = installRPM
	p.to(newVersion)
	p.copyExample()
	before := p.ready()
	p.Sh(`systemctl stop podstead.socket podstead-ro.socket`) // the previous version can be one without sockets
	p.Sh(fmt.Sprintf(p.install, oldVersion) + `systemctl restart podstead.service; podstead version | grep v` + oldVersion)
	p.same("a downgrade with rpm", before)
	p.to(newVersion)
	p.same("an upgrade with rpm", before)
	p.Sh(`rpm -e podstead`)
	p.removed()
	p.Sh(`[ ! -e /usr/bin/podstead ]; rm -rf /etc/podstead /var/lib/podstead /var/log/podstead /run/podstead; groupdel podstead; ` +
		`groupdel podstead-ro`)
	p.gone()
}

// removed checks that no process is left of a removed package and its pods, and that its files are kept.
func (p *packaged) removed() {
	p.Helper()
	p.Eventually("no process is left",
		`left=$(pgrep -a -x 'podstead|containerd-shim|podstead-monito|testserver' || true); echo "$left"; [ -z "$left" ]`)
	p.Sh(`test -e /etc/podstead/pods.d/web.toml; test -d /var/lib/podstead`)
}

// gone checks that nothing is left of the package, its pods and its state.
func (p *packaged) gone() {
	p.Helper()
	p.Eventually("nothing is left", `left=$(find / -xdev -name '*podstead*' -not -path '`+payload+`*' -not -path '/tmp/*'
		find /run /sys/fs/cgroup -name '*podstead*'
		systemctl list-units --all --plain --no-legend 'podstead-*.scope' 'podstead*.slice'; systemctl --failed --no-legend
		ip -o link | grep -v ' lo:' || true; nft list tables; getent group podstead podstead-ro || true; systemctl list-unit-files --no-legend 'podstead*' || true
		pgrep -x podstead || true; dpkg-query -W -f '${Package} ${db:Status-Status}\n' podstead 2>/dev/null || true; rpm -q podstead 2>/dev/null | grep -v 'not installed' || true); echo "$left"; [ -z "$left" ]`)
}
