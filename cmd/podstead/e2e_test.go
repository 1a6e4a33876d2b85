//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/test/ownnet"
)

func init() { around = ownnet.Main }

// TestReal types the same commands on real containers, with the programs that `make build` has made.
func TestReal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("containers need root")
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		filepath.Join(bin, "podstead"), filepath.Join(bin, "containerd-shim-podstead-v1"), "../../examples/images/busybox.tar",
	} {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("%v: run make build images first", err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/e2e", UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			if err := places(env); err != nil {
				return err
			}
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			env.Defer(func() { // for a script that failed; another has stopped its daemon itself
				stop := exec.Command(filepath.Join(bin, "podstead"), "daemon", "stop", "--pods")
				stop.Env = env.Vars
				if out, err := stop.CombinedOutput(); err != nil {
					t.Logf("stop the daemon: %v: %s", err, out)
				}
			})
			env.Setenv("EXAMPLES", filepath.Join(env.Getenv("REPO"), "examples"))
			return os.Chmod(env.Getenv("MACHINE"), 0o755)
		},
	})
}
