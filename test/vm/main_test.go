//go:build vm

package vm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/vm"
)

// payload is where the programs lie in the machine.
const payload = "/payload"

// machine is the one that all tests share. Booting takes longer than most of them.
var machine *vm.Machine

func TestMain(m *testing.M) {
	status, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func runTests(m *testing.M) (status int, err error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("these tests need root: they make a root file system")
	}
	dir, err := os.MkdirTemp("", "vm") // short, since a socket lies in it
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	start := time.Now()
	repository, err := rig.Repository()
	if err != nil {
		return 1, err
	}
	agent, disk := filepath.Join(dir, "init"), filepath.Join(dir, "payload.tar")
	if err := buildPayload(ctx, repository, dir, agent, disk); err != nil {
		return 1, err
	}
	image, err := vm.Build(ctx, filepath.Join(repository, ".cache", "vm"))
	if err != nil {
		return 1, err
	}
	built := time.Now()
	if machine, err = vm.Boot(ctx, image, dir, agent, disk); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, machine.Close()) }()
	unpack := vm.Command{Timeout: time.Minute, Args: []string{"sh", "-ec", "mkdir " + payload + "; tar -C " + payload + " -xf /dev/vdb"}}
	if err := machine.Run(ctx, os.Stderr, unpack); err != nil {
		return 1, err
	}
	fmt.Fprintf(os.Stderr, "machine: built in %.0f s, booted in %.0f s\n", built.Sub(start).Seconds(), time.Since(built).Seconds())
	return m.Run(), nil
}

// buildPayload compiles the agent, and what the tests run in the machine, for a machine without a compiler.
func buildPayload(ctx context.Context, repository, dir, agent, disk string) error {
	tree := filepath.Join(dir, "payload")
	for _, args := range [][]string{
		{"build", "-o", agent, "./test/vm/agent"},
		{"build", "-o", tree + "/", "./cmd/podstead", "./cmd/containerd-shim-podstead-v1"},
		{"run", "./test/images", "-o", tree},
		{"test", "-c", "-tags", "e2e", "-o", filepath.Join(tree, "runtime.test"), "./runtime"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = repository
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %v: %w\n%s", args, err, out)
		}
	}
	return vm.WritePayload(disk, tree)
}

// run runs a command in the machine, shows its output, and fails the test where the command fails.
func run(t *testing.T, timeout time.Duration, args ...string) {
	t.Helper()
	if err := machine.Run(t.Context(), os.Stdout, vm.Command{Args: args, Timeout: timeout}); err != nil {
		t.Fatal(err)
	}
}

// output runs a command in the machine and returns what it writes.
func output(t *testing.T, timeout time.Duration, w io.Writer, args ...string) error {
	t.Helper()
	return machine.Run(t.Context(), w, vm.Command{Args: args, Timeout: timeout})
}
