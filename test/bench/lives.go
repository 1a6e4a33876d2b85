package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/test/internal/rig"
)

// lives measures the life of a container that does nothing: bare runc, ours as in a restart within a pod, Debian's ctr, and a
// whole pod from the command line, in turn, so that all see the same machine.
func (b *bench) lives(ctx context.Context, r *report) error {
	return b.within(ctx, func(commands *rig.Rig) error {
		own, err := b.newOwn(ctx, commands)
		if err != nil {
			return err
		}
		bare, err := own.newBare(ctx)
		if err != nil {
			return errors.Join(err, own.close(ctx))
		}
		debian, err := startDebian(ctx, commands.Dir, b.archive)
		if err != nil {
			return errors.Join(err, own.close(ctx))
		}
		file, err := commands.WritePod("true", b.podFile("true", "Never", "true", nil))
		for i := range b.times(25) + 1 {
			for _, life := range []struct {
				series *series
				live   func() error
			}{
				{&r.bare, func() error { return bare.run(ctx) }},
				{&r.own, func() error { return own.run(ctx) }},
				{&r.ctr, func() error { return debian.run(ctx, i) }},
				{&r.pod, func() error { _, err := commands.Podstead(ctx, "run", file); return err }},
			} {
				began := time.Now()
				if err == nil {
					err = life.live()
				}
				if i > 0 { // the first of all finds cold caches
					life.series.since(began)
				}
			}
		}
		return errors.Join(err, own.close(ctx), debian.stop())
	})
}

// uid is the pod's of own.
const uid = "be000000-0000-4000-8000-000000000001"

// own is our runtime in this process, with a pod in it.
type own struct {
	*runtime.Runtime
	opts    runtime.Options
	pod     *spec.Pod
	attempt int
}

func (b *bench) newOwn(ctx context.Context, r *rig.Rig) (*own, error) {
	dir := filepath.Join(r.Dir, "o")
	r.Saw(uid)
	o := &own{
		opts: runtime.Options{
			StateDir: filepath.Join(dir, "lib"), RunDir: filepath.Join(dir, "r"), LogDir: filepath.Join(dir, "log"), ShimPath: r.Shim,
			CgroupDriver: runtime.CgroupFS, CgroupRoot: "/podstead-bench",
		},
		pod: &spec.Pod{Name: "life", ImageArchives: []string{b.archive}, Containers: []spec.Container{
			{Name: "c", Image: busybox, Command: []string{"true"}},
			{Name: "sleeper", Image: busybox, Command: []string{"sleep", "1000000"}},
		}},
	}
	var err error
	if o.Runtime, err = runtime.Start(ctx, o.opts); err != nil {
		return nil, err
	}
	_, err = o.PullImage(ctx, o.pod, "c", func(_, _ int64) {})
	if err == nil {
		_, err = o.StartSandbox(ctx, uid, o.pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	}
	if err == nil {
		_, err = o.start(ctx, "sleeper", 1)
	}
	if err != nil {
		return nil, errors.Join(err, o.close(ctx))
	}
	return o, nil
}

func (o *own) start(ctx context.Context, container string, attempt int) (lifecycle.Ref, error) {
	ref := lifecycle.Ref{Container: container, Round: 1, Attempt: attempt}
	_, err := o.StartContainer(ctx, uid, o.pod, lifecycle.StartContainer{Ref: ref, Sandbox: 1, Restarts: attempt - 1})
	return ref, err
}

// run is one life.
func (o *own) run(ctx context.Context) error {
	o.attempt++
	ref, err := o.start(ctx, "c", o.attempt)
	if err != nil {
		return err
	}
	if _, _, err := o.WaitContainer(ctx, uid, ref); err != nil {
		return err
	}
	return o.RemoveContainer(ctx, uid, o.pod, ref)
}

func (o *own) close(ctx context.Context) error {
	ref := lifecycle.Ref{Container: "sleeper", Round: 1, Attempt: 1}
	err := o.KillContainer(ctx, uid, ref)
	if err == nil {
		_, _, err = o.WaitContainer(ctx, uid, ref)
	}
	return errors.Join(err, o.RemovePod(ctx, uid, o.pod), o.Close())
}

// bare is runc with a container like ours, and nothing around it.
type bare struct{ root, bundle string }

// newBare takes the specification and the root file system of the container that sleeps.
func (o *own) newBare(ctx context.Context) (*bare, error) {
	bundles, err := filepath.Glob(filepath.Join(o.opts.RunDir, "engine", "io.containerd.runtime.v2.task", engine.Namespace, "*"))
	if err != nil || len(bundles) != 1 {
		return nil, fmt.Errorf("look for the bundle of one container: %v, %w", bundles, err)
	}
	text, err := os.ReadFile(filepath.Join(bundles[0], "config.json"))
	if err != nil {
		return nil, err
	}
	var config struct {
		Process map[string]any `json:"process"`
		Root    map[string]any `json:"root"`
		Linux   map[string]any `json:"linux"`
		rest
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	config.Process["args"] = []string{"true"}
	config.Root["path"] = filepath.Join(bundles[0], "rootfs")
	config.Linux["cgroupsPath"] = path.Join(o.opts.CgroupRoot, uid, "bare")
	b := &bare{root: filepath.Join(o.opts.RunDir, "bare"), bundle: filepath.Join(o.opts.StateDir, "bare")}
	if err := os.Mkdir(b.bundle, 0o700); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(config); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.bundle, "config.json"), text, 0o600); err != nil {
		return nil, err
	}
	return b, b.run(ctx)
}

// rest are the other parts of a specification.
type rest struct {
	Version  json.RawMessage `json:"ociVersion"`
	Hostname json.RawMessage `json:"hostname,omitempty"`
	Mounts   json.RawMessage `json:"mounts"`
}

func (b *bare) run(ctx context.Context) error {
	return quiet(exec.CommandContext(ctx, "runc", "--root", b.root, "run", "--bundle", b.bundle, "bare"))
}

// quiet runs a command; its error tells what the command said.
func quiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", cmd.Args, err, out)
	}
	return nil
}
