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

// unpack is a script that copies the payload into the virtual machine.
const unpack = "mkdir -p " + payload + "; tar -C " + payload + " -xf /dev/vdb; "

// newInstalled returns a virtual machine with what make install installs, and with more files in its payload.
func newInstalled(t *testing.T, files ...string) *installed.Host {
	t.Helper()
	host, _ := newInstalledOn(t, vm.Options{}, files...)
	return host
}

// newInstalledOn is newInstalled with options of the virtual machine; see newHost.
func newInstalledOn(t *testing.T, o vm.Options, files ...string) (*installed.Host, *host) {
	t.Helper()
	tree := tempDir(t)
	root := filepath.Join(tree, "root")
	if out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", repository, "install",
		"DESTDIR="+root).CombinedOutput(); err != nil {
		t.Fatalf("make install: %v\n%s", err, out)
	}
	dir := filepath.Join(root, "etc/modules-load.d") // for the next boots
	if err := os.MkdirAll(dir, 0o755); err != nil {  // as in Debian
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "podstead.conf"), []byte(driversFile), 0o644); err != nil { // as in Debian
		t.Fatal(err)
	}
	machine := newHost(t, tree, o, append(files, imageArchive("busybox"))...)
	return installed.New(t, machine, installed.Options{
		Install: unpack + "cp -al --remove-destination " + payload + "/root/. /; modprobe -a " + drivers + "; ",
		Archive: payload + "/busybox.tar",
		Timeout: deadline, Pause: pause,
	}), machine
}

// host is a virtual machine with a disk of its own, which is turned off and on.
type host struct {
	image   vm.Image
	options vm.Options // of each boot, with another directory
	dir     string
	boots   int
	machine *vm.Machine // nil while it is off
}

// newHost boots a virtual machine. Its payload is a directory, to which it moves nothing and copies files. It sets the required options.
func newHost(t *testing.T, tree string, o vm.Options, files ...string) *host {
	t.Helper()
	for _, file := range files {
		if out, err := exec.CommandContext(t.Context(), "cp", "-r", file, tree).CombinedOutput(); err != nil {
			t.Fatalf("copy %s: %v\n%s", file, err, out)
		}
	}
	dir := tempDir(t)
	o.Agent, o.Disk, o.Payload = need(t, "agent", agent), filepath.Join(dir, "disk"), filepath.Join(dir, "payload")
	h := &host{image: need(t, "image", image), options: o, dir: dir}
	t.Cleanup(func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	})
	if err := vm.WritePayload(o.Payload, tree); err != nil {
		t.Fatal(err)
	}
	// An emulated boot has hung for five minutes, with an empty console. Nothing of Podstead runs in the first one.
	ctx, cancel := context.WithTimeout(t.Context(), firstBoot)
	defer cancel()
	err := h.bootNew(ctx)
	if err != nil {
		t.Logf("first boot, trying again: %v", err)
		err = h.bootNew(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// firstBoot is the time after which another boot is tried. A boot takes ten seconds on an idle host.
const firstBoot = 2 * time.Minute

// bootNew boots with a new disk.
func (h *host) bootNew(ctx context.Context) error {
	if err := h.image.CopyDisk(ctx, h.options.Disk); err != nil {
		return err
	}
	return h.boot(ctx)
}

func (h *host) boot(ctx context.Context) error {
	h.boots++
	o := h.options
	o.Dir = filepath.Join(h.dir, fmt.Sprint(h.boots))
	err := os.Mkdir(o.Dir, 0o700)
	if err == nil {
		h.machine, err = vm.Boot(ctx, h.image, o)
	}
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
