package installed

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/test/internal/rig"
)

// Commands that install, upgrade or downgrade to a version.
const (
	installDeb = `dpkg -i %[1]s/packages/podstead_%[2]s-1_amd64.deb; `
	// Debian's rpm does not know what dpkg has installed.
	installRPM = `rpm -U --nodeps --oldpackage %[1]s/packages/podstead-%[2]s-1.x86_64.rpm; `
)

// Packaged is a host on which packages are installed. Its pod is examples/web.toml, which outlasts upgrades and downgrades.
type Packaged struct {
	*Host
	dir     string // in the machine, with the directory packages, the archives of busybox and testserver, and web.toml
	command string // installs a version
}

// NewPackaged installs the previous version from a package for dpkg. prepare is a script that makes dir.
func NewPackaged(t *testing.T, machine Machine, dir, prepare string, o Options) *Packaged {
	t.Helper()
	p := &Packaged{dir: dir, command: installDeb}
	o.Install, o.Enabled, o.Archive = prepare+p.install(rig.OldVersion), true, dir+"/busybox.tar"
	p.Host = New(t, machine, o)
	return p
}

func (p *Packaged) install(version string) string { return fmt.Sprintf(p.command, p.dir, version) }

// To installs a version.
func (p *Packaged) To(version string) {
	p.Helper()
	p.Sh(p.install(version) + `systemctl is-enabled podstead; systemctl is-active podstead; podstead version | grep v` + version)
}

// Ready waits until the pod is ready.
func (p *Packaged) Ready() Seen {
	p.Helper()
	p.Status("web", "2/2 Running")
	return p.Look()["web"]
}

// Same checks that the pod is ready, and that nothing was restarted.
func (p *Packaged) Same(what string, before Seen) {
	p.Helper()
	if diff := cmp.Diff(before, p.Ready()); diff != "" {
		p.Errorf("%s: the pod (-before +after):\n%s", what, diff)
	}
}

// Booted checks that the pod is ready after a boot, and that its containers were started again once.
func (p *Packaged) Booted(what string, before Seen) {
	p.Helper()
	p.Eventually("the pod was started after "+what,
		fmt.Sprintf(`podstead get web > /tmp/get; cat /tmp/get; grep -qE ' 2/2 +Running ' /tmp/get
		podstead get web -o json | grep -q '"restartCount": *%d'`, before.Restarts+1))
	if after := p.Ready(); after.UID != before.UID || after.Restarts != before.Restarts+1 || after.ID == before.ID {
		p.Errorf("%s: the pod was %+v and is %+v", what, before, after)
	}
}

// CopyExample copies the example and its images, as a person does.
func (p *Packaged) CopyExample() {
	p.Helper()
	p.Sh(fmt.Sprintf(`mkdir -p %[2]s/images; cp %[1]s/busybox.tar %[1]s/testserver.tar %[2]s/images; cp %[1]s/web.toml %[2]s; sync`,
		p.dir, podsDir))
	p.Ready()
	p.Eventually("the example serves its page",
		`podstead logs web -c visitor > /tmp/logs; cat /tmp/logs; grep -q 'Written by the init container' /tmp/logs`)
}

// Upgrades tests upgrades, downgrades and removals of the packages for dpkg and for rpm, and leaves nothing of them.
func (p *Packaged) Upgrades() {
	p.Helper()
	p.Sh(`getent group podstead podstead-ro; test -x /usr/libexec/podstead/containerd-shim-podstead-v1`)
	p.CopyExample()
	before := p.Ready()
	p.broken(before)
	p.To(rig.NewVersion)
	p.Same("an upgrade", before)

	p.Sh(`dpkg -r podstead`)
	p.removed()
	p.To(rig.NewVersion)
	p.Booted("a removal and an installation", before)
	p.Purge()
	p.rpm()
}

// broken upgrades to a version whose daemon does not start, because of a variable of the unit: the pod keeps running, and the previous
// version takes it over again. A mistake in the configuration file does not keep the daemon from starting.
func (p *Packaged) broken(before Seen) {
	p.Helper()
	const dropIn = `/etc/systemd/system/podstead.service.d`
	p.Sh(`pgrep -f ^/bin/testserver > /tmp/before; mkdir -p ` + dropIn + `
		printf '[Service]\nEnvironment=PODSTEAD_ENGINE_IDLE_TIMEOUT=never\n' > ` + dropIn + `/broken.conf`)
	p.Sh(p.install(rig.NewVersion) + `if systemctl is-active podstead; then exit 1; fi
		journalctl --no-pager -u podstead | grep 'PODSTEAD_ENGINE_IDLE_TIMEOUT="never": must be a duration'
		pgrep -f ^/bin/testserver | cmp - /tmp/before; rm -r ` + dropIn + `; systemctl daemon-reload`)
	p.To(rig.OldVersion)
	p.Same("a version that does not start", before)
	p.Sh(`printf '[engine]\nnextKey = true\n' > /etc/podstead/podstead.toml`)
	p.To(rig.NewVersion)
	p.Same("an upgrade with a mistake in the configuration", before)
	p.Sh(`podstead doctor > /tmp/doctor || true; grep '/etc/podstead/podstead.toml:2:1: engine.nextKey: unknown field' /tmp/doctor
		rm /etc/podstead/podstead.toml`)
	p.To(rig.OldVersion)
}

// rpm tests the packages for rpm. The commands are those of docs/howto/upgrade.md and docs/howto/install-the-packages.md.
func (p *Packaged) rpm() {
	p.Helper()
	p.command = installRPM
	p.To(rig.NewVersion)
	p.CopyExample()
	before := p.Ready()
	p.Sh(`systemctl stop podstead.socket podstead-ro.socket`) // the previous version can be one without sockets
	p.Sh(p.install(rig.OldVersion) + `systemctl restart podstead.service; podstead version | grep v` + rig.OldVersion)
	p.Same("a downgrade with rpm", before)
	p.To(rig.NewVersion)
	p.Same("an upgrade with rpm", before)
	p.Sh(`rpm -e podstead`)
	p.removed()
	p.Sh(`[ ! -e /usr/bin/podstead ]; rm -rf /etc/podstead /var/lib/podstead /var/log/podstead /run/podstead; groupdel podstead; ` +
		`groupdel podstead-ro`)
	p.gone()
}

// removed checks that no process is left of a removed package and its pods, and that its files are kept.
func (p *Packaged) removed() {
	p.Helper()
	p.Eventually("no process is left",
		`left=$(pgrep -a -x 'podstead|containerd-shim|podstead-monito|testserver' || true); echo "$left"; [ -z "$left" ]`)
	p.Sh(`test -e /etc/podstead/pods.d/web.toml; test -d /var/lib/podstead`)
}

// Purge purges the package for dpkg, and checks that nothing is left.
func (p *Packaged) Purge() {
	p.Helper()
	p.Sh(`dpkg -P podstead`)
	p.gone()
}

// gone checks that nothing is left of the package, its pods and its state. The virtual machine has nft.
func (p *Packaged) gone() {
	p.Helper()
	p.Eventually("nothing is left", `left=$(find / -xdev -name '*podstead*' -not -path '`+p.dir+`*' -not -path '/tmp/*'
		find /run /sys/fs/cgroup -name '*podstead*'
		systemctl list-units --all --plain --no-legend 'podstead-*.scope' 'podstead*.slice'; systemctl --failed --no-legend
		ip -o link | grep -v ' lo:' || true; if command -v nft >/dev/null; then nft list tables; fi
		getent group podstead podstead-ro || true
		systemctl list-unit-files --no-legend 'podstead*' || true; pgrep -x podstead || true
		dpkg-query -W -f '${Package} ${db:Status-Status}\n' podstead 2>/dev/null || true
		rpm -q podstead 2>/dev/null | grep -v 'not installed' || true); echo "$left"; [ -z "$left" ]`)
}
