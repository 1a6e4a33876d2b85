//go:build vm

package vm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/vm"
)

// payload is the directory of the programs in the virtual machine.
const payload = "/payload"

// deadline is for operations that take seconds on an idle host, and minutes on a loaded one.
const deadline = 5 * time.Minute

// drivers are loaded before the tests. Loading them on demand for the first pod takes longer in an emulated machine than Podstead waits
// for a network.
const drivers = "overlay veth bridge nf_tables nft_chain_nat nft_ct nft_fib_inet nft_masq nft_nat nft_redir nft_reject_inet"

// machine is shared by the tests that leave nothing behind. Booting takes longer than most of them.
var machine guest

// parts are what virtual machines are built from.
var parts struct {
	image                vm.Image
	agent, payload, tree string // tree is the directory that the payload was made of
}

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
		return 1, errors.New("these tests must run as root: they build a root file system")
	}
	dir, err := os.MkdirTemp("", "vm") // short, because it contains a socket
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	start := time.Now()
	repository, err := rig.Repository()
	if err != nil {
		return 1, err
	}
	parts.agent, parts.payload, parts.tree = filepath.Join(dir, "init"), filepath.Join(dir, "payload.tar"), filepath.Join(dir, "payload")
	if err := buildPayload(ctx, repository, parts.tree, parts.agent, parts.payload); err != nil {
		return 1, err
	}
	if parts.image, err = vm.Build(ctx, filepath.Join(repository, ".cache", "vm")); err != nil {
		return 1, err
	}
	built := time.Now()
	if machine, err = boot(ctx, dir, ""); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, machine.Close()) }()
	if err := machine.install(ctx); err != nil {
		return 1, err
	}
	fmt.Fprintf(os.Stderr, "virtual machine: built in %.0f s, booted in %.0f s\n", built.Sub(start).Seconds(), time.Since(built).Seconds())
	return m.Run(), nil
}

// buildPayload compiles the agent, and the programs and tests that run in the virtual machine.
func buildPayload(ctx context.Context, repository, tree, agent, disk string) error {
	for _, args := range [][]string{
		{"build", "-o", agent, "./test/vm/agent"},
		{"build", "-o", tree + "/", "./cmd/podstead", "./cmd/containerd-shim-podstead-v1", "./test/vm/keep"},
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
	if out, err := exec.CommandContext(ctx, "cp", filepath.Join(repository, "examples", "web.toml"), tree).CombinedOutput(); err != nil {
		return fmt.Errorf("copy example: %w\n%s", err, out)
	}
	if err := buildPackages(ctx, repository, filepath.Join(tree, "packages")); err != nil {
		return err
	}
	return vm.WritePayload(disk, tree)
}

// Versions of the packages that are tested: of the previous version from git, and of the current one.
const oldVersion, newVersion = "0.1.0", "0.2.0"

// buildPackages builds packages of both versions.
func buildPackages(ctx context.Context, repository, output string) error {
	dir, err := os.MkdirTemp("", "previous")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	previous, err := rig.UnpackPrevious(ctx, repository, dir)
	if err != nil {
		return err
	}
	if previous.Warning != "" {
		fmt.Fprintln(os.Stderr, previous.Warning)
	}
	for version, source := range map[string]string{oldVersion: previous.Dir, newVersion: repository} {
		cmd := exec.CommandContext(ctx, filepath.Join(source, "packaging", "build"), "package", output, "amd64")
		cmd.Env = append(os.Environ(), "VERSION=v"+version, "SOURCE_DATE_EPOCH=1700000000")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build package %s: %w\n%s", version, err, out)
		}
	}
	return nil
}
