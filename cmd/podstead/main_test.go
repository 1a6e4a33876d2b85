package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/cmd/podstead/internal/daemon"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

var update = flag.Bool("update", false, "write what the scripts expect anew")

// fake is an engine in memory: a daemon of a test forgets its containers when it ends.
type fake struct{ *fakeruntime.Runtime }

func (fake) Close() error { return nil }

func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) { // as behind nohup: what a script starts must hear it again
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	testscript.Main(wrapped{m}, map[string]func(){
		"podstead": func() {
			start := func(_ context.Context, c *config.Config, _ logger) (daemon.Runtime, error) {
				return fake{fakeruntime.New(fakeruntime.Options{LogDir: c.LogDir})}, nil
			}
			a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, start: start}
			os.Exit(a.run(context.Background(), os.Args[1:]))
		},
	})
}

// wrapped runs the tests in what those on real containers need around them.
type wrapped struct{ *testing.M }

func (w wrapped) Run() int { return around(w.M.Run) }

// around is replaced where tests need more.
var around = func(run func() int) int { return run() }

// TestScripts types commands as a person does, on an engine in memory.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: places, UpdateScripts: *update, RequireExplicitExec: true})
}

// places gives a script a machine of its own, with short paths: a socket lies in one. Its daemon is stopped in the end.
func places(env *testscript.Env) error {
	dir, err := os.MkdirTemp("", "p") // short: sockets lie below it
	if err != nil {
		return err
	}
	env.Setenv("MACHINE", dir)
	env.Setenv("PODSTEAD_STATE_DIR", filepath.Join(dir, "lib"))
	env.Setenv("PODSTEAD_RUN_DIR", filepath.Join(dir, "r"))
	env.Setenv("PODSTEAD_LOG_DIR", filepath.Join(dir, "log"))
	env.Setenv("PODSTEAD_CONFIG", filepath.Join(dir, "podstead.toml"))
	// Should a script's own stop fail. The next command may take its time on a busy machine.
	env.Setenv("PODSTEAD_ENGINE_IDLE_TIMEOUT", "1m")
	env.Setenv("NO_COLOR", "1")
	repo, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	env.Setenv("REPO", repo)
	env.Defer(func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	return os.WriteFile(filepath.Join(dir, "podstead.toml"), nil, 0o644)
}
