//go:build vm

package vm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/installed"
	"github.com/podstead/podstead/test/vm"
)

// within is for a definition that fails at once. It gives the one that it returns to time to start.
const within = 5 * time.Minute

// TestBoot: pods that were copied into the pods directory outlast killed processes, an upgrade, a reboot, and a power cut in the middle of
// the boot and of a rollback. The programs and the unit are those of make install.
func TestBoot(t *testing.T) {
	h := newInstalled(t)
	h.Service()
	h.Boot(h.Reboot, &installed.Moments[2])
	h.Rollback(installed.BrokenStart, within, installed.Cuts{Rollback: true})
}

// TestShutdown: a shutdown of the host stops pods in order, with their hooks and in time.
func TestShutdown(t *testing.T) {
	newInstalled(t).Shutdown("systemd", 45*time.Second)
}

// newInstalled returns a virtual machine with an installed Podstead.
func newInstalled(t *testing.T) *installed.Host {
	t.Helper()
	return installed.New(t, newHost(t), installed.Options{
		Install: "mkdir -p " + payload + "; tar -C " + payload + " -xf /dev/vdb; cp -a --remove-destination " + payload + "/root/. /; ",
		Archive: payload + "/busybox.tar",
		Timeout: deadline,
	})
}

// host is a virtual machine with a disk of its own, which is turned off and on.
type host struct {
	dir, disk, payload string
	boots              int
	machine            *vm.Machine // nil while it is off
}

// newHost boots a virtual machine whose payload is what make install installs.
func newHost(t *testing.T) *host {
	t.Helper()
	tree := t.TempDir()
	for _, args := range [][]string{
		{"make", "--no-print-directory", "-C", "../..", "install", "DESTDIR=" + filepath.Join(tree, "root")},
		{"cp", filepath.Join(parts.tree, "busybox.tar"), tree},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	if err := writeDrivers(tree); err != nil {
		t.Fatal(err)
	}
	return newDisk(t, tree)
}

// newDisk boots a virtual machine with a disk of its own. Its payload is a directory.
func newDisk(t *testing.T, tree string) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "vm") // short, because it contains sockets
	if err != nil {
		t.Fatal(err)
	}
	h := &host{dir: dir, disk: filepath.Join(dir, "disk"), payload: filepath.Join(dir, "payload")}
	t.Cleanup(func() {
		if err := errors.Join(h.close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(vm.WritePayload(h.payload, tree), parts.image.CopyDisk(t.Context(), h.disk), h.boot(t.Context())); err != nil {
		t.Fatal(err)
	}
	return h
}

// writeDrivers makes systemd load the drivers at boot.
func writeDrivers(tree string) error {
	dir := filepath.Join(tree, "root/etc/modules-load.d")
	if err := os.MkdirAll(dir, 0o755); err != nil { // as in Debian
		return err
	}
	return os.WriteFile(filepath.Join(dir, "podstead.conf"), []byte(strings.ReplaceAll(drivers, " ", "\n")+"\n"), 0o644) // as in Debian
}

func (h *host) boot(ctx context.Context) error {
	h.boots++
	dir := filepath.Join(h.dir, fmt.Sprint(h.boots))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var err error
	h.machine, err = vm.Boot(ctx, parts.image, vm.Options{Dir: dir, Agent: parts.agent, Payload: h.payload, Disk: h.disk})
	return err
}

// close cuts the power.
func (h *host) close() error {
	if h.machine == nil {
		return nil
	}
	return h.machine.Close()
}

// Run runs a script. A virtual machine is unusable after a command that was cancelled, so the command has a timeout of its own.
func (h *host) Run(ctx context.Context, script string) (string, error) {
	if h.machine == nil {
		return "", errors.New("run script: the virtual machine is off")
	}
	var out strings.Builder
	err := h.machine.Run(context.WithoutCancel(ctx), &out, vm.Command{Args: []string{"sh", "-ec", script}, Timeout: deadline})
	return out.String(), err
}

// Reboot runs systemctl reboot, and boots again when the virtual machine has shut down.
func (h *host) Reboot(ctx context.Context) error {
	if out, err := h.Run(ctx, "systemctl --no-block reboot"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := h.machine.Wait(ctx); err != nil {
		return err
	}
	return h.Cut(ctx)
}

// Cut kills the virtual machine and boots it again.
func (h *host) Cut(ctx context.Context) error { return errors.Join(h.close(), h.boot(ctx)) }
