//go:build e2e

package systemd_test

import (
	"testing"
)

// TestMachine checks what the other tests rely on: nothing fails at boot, a reboot keeps files, and a power cut loses what was not synced.
func TestMachine(t *testing.T) {
	m := machine(t)
	run := func(script, want string) {
		t.Helper()
		if out, err := m.Run(t.Context(), script); err != nil || out != want {
			t.Errorf("%s: %v, %q, want %q", script, err, out, want)
		}
	}
	run("systemctl is-system-running --wait; systemctl --failed --no-legend; cp /proc/sys/kernel/random/boot_id /boot-1; echo kept > /mark",
		"running\n")
	if err := m.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	run("cat /mark; cmp -s /boot-1 /proc/sys/kernel/random/boot_id || echo another boot; echo synced > /mark; sync; echo lost >> /mark",
		"kept\nanother boot\n")
	if err := m.Cut(t.Context()); err != nil {
		t.Fatal(err)
	}
	run("cat /mark", "synced\n")
}
