package repo_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
)

// TestMain runs the tests in the root of the repository, so that names of files are relative to it.
func TestMain(m *testing.M) {
	root, err := rig.Repository()
	if err == nil {
		err = os.Chdir(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
