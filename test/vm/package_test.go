//go:build vm

package vm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/test/internal/installed"
	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/vm"
)

// packaged is a virtual machine on which packages are installed.
type packaged struct {
	*installed.Packaged
}

// TestPackage installs the package on a clean Debian, and copies an example into the pods directory. The pod outlasts an upgrade from the
// previous version, a crash of the daemon, and a reboot. Purge removes everything. The other upgrades are in TestPackages of test/systemd,
// where a command takes a fifth of the time.
func TestPackage(t *testing.T) {
	tree := tempDir(t)
	if err := os.WriteFile(filepath.Join(tree, "drivers.conf"), []byte(driversFile), 0o600); err != nil {
		t.Fatal(err)
	}
	machine := newHost(t, tree, vm.Options{}, need(t, "packages", packages), filepath.Join(repository, "examples", "web.toml"),
		imageArchive("busybox"), imageArchive("testserver"))
	p := &packaged{installed.NewPackaged(t, machine, payload,
		unpack+"cp "+payload+"/drivers.conf /etc/modules-load.d/; modprobe -a "+drivers+"; ",
		installed.Options{Timeout: deadline, Pause: pause})}
	p.CopyExample()
	before := p.Ready()
	p.To(rig.NewVersion)
	p.Same("an upgrade", before)
	p.service()
	p.Same("a crash of the daemon", before)
	p.Stops(func() { p.Booted("a reboot", before) })
	p.Purge()
}
