//go:build e2e

package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/installed"
	"github.com/podstead/podstead/test/internal/rig"
)

// TestPackages installs packages for dpkg and for rpm, of the previous version and of this one. A pod outlasts an upgrade that fails, one
// with a mistake in the configuration, a downgrade, and a removal. After a purge nothing is left.
func TestPackages(t *testing.T) {
	repository, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	packages, err := rig.BuildPackages(t.Context(), repository, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := machine(t)
	const dir = "/payload"
	target := filepath.Join(m.Root(), dir)
	if err := os.Mkdir(target, 0o755); err != nil { // as in a virtual machine
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-r", packages, target).CombinedOutput(); err != nil {
		t.Fatalf("copy packages: %v\n%s", err, out)
	}
	// The programs are the host's: a database of dpkg without them, and no policy of images that keeps services from starting.
	installed.NewPackaged(t, m, dir, `cp /src/examples/images/busybox.tar /src/examples/images/testserver.tar /src/examples/web.toml `+dir+`
		mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/rpm; rm -f /usr/sbin/policy-rc.d
		printf 'Package: runc\nStatus: install ok installed\nMaintainer: test\nArchitecture: amd64\nVersion: 1\nDescription: test\n\n' \
			> /var/lib/dpkg/status; touch /var/lib/dpkg/info/runc.list
		`, installed.Options{Timeout: 2 * time.Minute}).Upgrades()
}
