package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/test/internal/rig"
)

// life is one way to run a container that does nothing.
type life struct {
	series *series
	live   func(context.Context) error
}

// lifetimes measures the lifetime of a container that does nothing: runc and crun in one command and in three, our runtime as in a
// restart, Debian's ctr, Podman, and a whole pod from the command line. They alternate, so that all see the same load.
func (b *bench) lifetimes(ctx context.Context, r *report) error {
	return b.within(ctx, func(commands *rig.Rig) error {
		own, err := b.newOwn(ctx, commands)
		if err != nil {
			return err
		}
		bare, err := own.newBare(ctx)
		if err != nil {
			return errors.Join(err, own.close(ctx))
		}
		crun, err := bare.with(ctx, "crun")
		if err != nil {
			return errors.Join(err, own.close(ctx))
		}
		beside, err := newPodman(ctx, filepath.Join(commands.Dir, "podman"), b.archive)
		if errors.Is(err, errMissing) {
			err = nil
		}
		if err != nil {
			return errors.Join(err, own.close(ctx))
		}
		debian, err := startDebian(ctx, commands.Dir, b.archive)
		if err != nil {
			return errors.Join(err, own.close(ctx))
		}
		file, err := commands.WritePod("true", b.podFile("true", "Never", "true", nil))
		for i := range b.times(25) + 1 {
			lives := []life{
				{&r.bare, bare.run},
				{&r.steps, bare.steps},
				{&r.own, own.run},
				{&r.ctr, func(ctx context.Context) error { return debian.run(ctx, i) }},
				{&r.pod, func(ctx context.Context) error { _, err := commands.Podstead(ctx, "run", file); return err }},
			}
			if crun != nil {
				lives = append(lives, life{&r.crun, crun.run}, life{&r.crunSteps, crun.steps})
			}
			if beside != nil {
				lives = append(lives, life{&r.podman, beside.run})
			}
			for _, life := range lives {
				began := time.Now()
				if err == nil {
					err = life.live(ctx)
				}
				if i > 0 { // the first one warms up caches
					life.series.since(began)
				}
			}
		}
		return errors.Join(err, own.close(ctx), debian.stop(), beside.close(ctx))
	})
}

// uid is the UID of own's pod.
const uid = "be000000-0000-4000-8000-000000000001"

// own is our runtime in this process, with a pod.
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
			StateDir: filepath.Join(dir, "lib"), RunDir: filepath.Join(dir, "r"), LogDir: filepath.Join(dir, "log"),
			ShimPath: r.Shim, MonitorPath: r.Monitor, CgroupDriver: runtime.CgroupFS, CgroupRoot: "/podstead-bench", RuntimeBinary: "runc",
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
	_, err = o.PullImage(ctx, o.pod, lifecycle.PullImage{Container: "c"}, func(lifecycle.Progress) {})
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

// run is one container lifetime.
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
