//go:build vm

package vm_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/vm"
)

// guest is a virtual machine that runs the scripts of tests.
type guest struct{ *vm.Machine }

// boot starts a virtual machine, whose files are in dir. With disk it has a disk of its own; see [vm.Options].
func boot(ctx context.Context, dir, disk string) (guest, error) {
	m, err := vm.Boot(ctx, parts.image, vm.Options{Dir: dir, Agent: parts.agent, Payload: parts.payload, Disk: disk})
	return guest{m}, err
}

// install copies the programs into a virtual machine that was booted for the first time.
func (g guest) install(ctx context.Context) error {
	return g.Run(ctx, os.Stderr, vm.Command{Timeout: deadline, Args: []string{
		"sh", "-ec", "mkdir " + payload + "; tar -C " + payload + " -xf /dev/vdb; ln -s " + payload + "/podstead /usr/local/bin/podstead; modprobe -a " + drivers,
	}})
}

// sh runs a script in the virtual machine and returns its output. The test fails if the script fails.
func (g guest) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := g.try(t, script)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return out
}

// try runs a script in the virtual machine until its first command that fails.
func (g guest) try(t *testing.T, script string) (string, error) {
	t.Helper()
	var out strings.Builder
	ctx := context.WithoutCancel(t.Context()) // also works while a failed test collects its logs
	err := g.Run(ctx, &out, vm.Command{Args: []string{"sh", "-ec", script}, Timeout: deadline})
	return out.String(), err
}

// eventually retries a script in the virtual machine until it succeeds.
func (g guest) eventually(t *testing.T, what, script string) {
	t.Helper()
	for end := time.Now().Add(deadline); ; <-time.After(100 * time.Millisecond) {
		out, err := g.try(t, script)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for: %s: %v\n%s", what, err, out)
		}
	}
}
