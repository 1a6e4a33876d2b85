package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/compose/converter"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/test/parallel"
)

var update = flag.Bool("update", false, "update the scripts and the reference page")

// fakeEngine is an engine in memory. Its containers are lost when the daemon exits.
type fakeEngine struct {
	*fakeruntime.Runtime
	server.ContainerFiles // not possible in memory
	server.VolumeFiles    // as well
	server.PodPorts
	values configsource.Source
}

func (fakeEngine) Close() error { return nil }

// Stats measures nothing.
func (fakeEngine) Stats(_ context.Context, targets []stats.Target) []stats.Pod {
	return make([]stats.Pod, len(targets))
}

// OCIRuntime returns nothing: there is no OCI runtime.
func (fakeEngine) OCIRuntime() ociruntime.Choice { return ociruntime.Choice{} }

// NativeReason returns nothing: there are no files.
func (fakeEngine) NativeReason() string { return "" }

// Values are those of the configuration.
func (e fakeEngine) Values() configsource.Source { return e.values }

func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) { // as under nohup: child processes would inherit it, and scripts send SIGINT to them
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	testscript.Main(wrapped{m}, map[string]func(){
		"deaf": deaf,
		"podstead": func() {
			start := func(_ context.Context, c *config.Config, _ logger) (daemon.Runtime, error) {
				values := configsource.Source{Dir: c.ConfigDir, Decrypted: configsource.NewDecrypted()}
				return fakeEngine{Runtime: fakeruntime.New(fakeruntime.Options{LogDir: c.LogDir}), values: values}, nil
			}
			converter, _ := exec.LookPath(compose.Program) // a script without it is one of a host where it is missing
			a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, start: start, converter: func() string { return converter }}
			os.Exit(a.run(context.Background(), os.Args[1:]))
		},
		compose.Program: func() {
			if err := converter.Serve(context.Background(), version, os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				if errors.Is(err, compose.ErrVersion) {
					os.Exit(compose.StatusVersion)
				}
				os.Exit(1)
			}
		},
	})
}

// wrapped runs the tests inside [wrapRun].
type wrapped struct{ *testing.M }

func (w wrapped) Run() int { return wrapRun(w.M.Run) }

// wrapRun is replaced by tests on real containers, which need a network namespace.
var wrapRun = func(run func() int) int {
	parallel.Set()
	return run()
}

// TestScripts runs the scripts in testdata/script on an engine in memory.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, testscript.Params{
		Dir: "testdata/script", Setup: setupScript, UpdateScripts: *update, RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"answer-searches": answerSearches},
	})
}

// runScripts is [testscript.Run], which leaves its temporary directory if not all scripts run in this process.
func runScripts(t *testing.T, p testscript.Params) {
	t.Helper()
	var parent atomic.Pointer[string]
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		dir := filepath.Dir(env.WorkDir)
		parent.Store(&dir)
		return setup(env)
	}
	t.Cleanup(func() {
		if dir := parent.Load(); dir != nil {
			_ = os.Remove(*dir) // with -testwork it is not empty
		}
	})
	testscript.Run(t, p)
}

// setupScript creates the directories of a script's daemon, and sets the environment variables that commands use them by.
func setupScript(env *testscript.Env) error {
	dir, err := os.MkdirTemp("", "p") // the path of a socket in it must be short
	if err != nil {
		return err
	}
	env.Setenv("TESTDIR", dir)
	env.Setenv("PODSTEAD_STATE_DIR", filepath.Join(dir, "lib"))
	env.Setenv("PODSTEAD_RUN_DIR", filepath.Join(dir, "r"))
	env.Setenv("PODSTEAD_LOG_DIR", filepath.Join(dir, "log"))
	env.Setenv("PODSTEAD_CONFIG_DIR", filepath.Join(dir, "etc")) // with the pods directory
	env.Setenv("PODSTEAD_CONFIG", filepath.Join(dir, "podstead.toml"))
	// Stops the daemon of a script that failed. It is longer than the time between two commands on a loaded host.
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
