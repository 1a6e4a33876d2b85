//go:build e2e

package systemd_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/installed"
	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/systemd"
)

// machine boots a machine, which exists until the end of the test.
func machine(t *testing.T) *systemd.Machine {
	t.Helper()
	repository, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(repository, "bin", "podstead")); err != nil {
		t.Fatalf("find programs: %v (run make build)", err)
	}
	m, err := systemd.New(t.Context(), t.TempDir(), repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := m.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// host returns a machine with an installed Podstead.
func host(t *testing.T) *installed.Host {
	t.Helper()
	return install(t, machine(t))
}

// install installs Podstead on a machine.
func install(t *testing.T, m *systemd.Machine) *installed.Host {
	t.Helper()
	return installed.New(t, m, installed.Options{
		Install: "make -s -C /src install >/dev/null; ",
		Archive: "/src/examples/images/busybox.tar",
		Timeout: time.Minute,
	})
}

// TestBoot: pods that were copied into the pods directory outlast killed processes, an upgrade, a reboot, and power cuts.
func TestBoot(t *testing.T) {
	h := host(t)
	h.Service()
	h.Boot(h.Reboot, nil)
	for _, m := range installed.Moments {
		h.Boot(h.Cut, &m)
	}
}
