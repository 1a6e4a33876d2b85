//go:build vm

package vm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/vm"
)

// payload is the directory of the programs in the virtual machine.
const payload = "/payload"

// deadline is for operations that take seconds on an idle host, and minutes on a loaded one.
const deadline = 5 * time.Minute

// pause is between two tries of what a test waits for. A command takes the time of the emulated CPU that the daemon needs.
const pause = 400 * time.Millisecond

// drivers are loaded before the tests. Loading them on demand for the first pod takes longer in an emulated machine than Podstead waits
// for a network.
const drivers = "overlay veth bridge nf_tables nft_chain_nat nft_ct nft_fib_inet nft_masq nft_nat nft_redir nft_reject_inet"

// driversFile makes systemd load the drivers at boot.
var driversFile = strings.ReplaceAll(drivers, " ", "\n") + "\n"

// repository is the root of the repository, and work the directory of the temporary files of this run.
var repository, work string

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
	if repository, err = rig.Repository(); err != nil {
		return 1, err
	}
	var remove func() error
	if work, remove, err = vm.WorkDir(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return m.Run(), nil
}

// tempDir returns a new directory, whose path is short because it contains sockets. It is removed at the end of the test.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(work, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// need returns a part that virtual machines are built from. The first test that needs it builds it.
func need[T any](t *testing.T, what string, build func() (T, error)) T {
	t.Helper()
	start := time.Now()
	part, err := build()
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Logf("%s: built in %.0f s", what, took.Seconds())
	}
	return part
}

// imageArchive returns the path of the archive of an image, which make images has built.
func imageArchive(name string) string {
	return filepath.Join(repository, "examples", "images", name+".tar")
}
