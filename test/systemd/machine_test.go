//go:build e2e

package systemd_test

import (
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/systemd"
)

func TestMachine(t *testing.T) {
	repository, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m, err := systemd.New(t.Context(), dir, repository)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := m.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		out, err := m.Run(t.Context(), "systemctl is-system-running --wait; cat /proc/sys/kernel/random/boot_id /proc/self/cgroup; systemctl --failed; cat /mark || true; echo hello >> /mark; ls /sys/fs/cgroup; cat /proc/uptime")
		t.Logf("%v %s", err, out)
		switch i {
		case 0:
			err = m.Reboot(t.Context())
		case 1:
			err = m.Cut(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
