//go:build e2e

package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/test/internal/rig"
)

// killDaemon kills the daemon and returns when it is dead.
func (s *testPod) killDaemon() {
	s.Helper()
	if err := s.daemon.KillDaemon(s.ctx()); err != nil {
		s.Fatal(err)
	}
}

// startDaemon starts a daemon and returns when it answers.
func (s *testPod) startDaemon() {
	s.Helper()
	if _, err := s.daemon.Podstead(s.ctx(), "get", "-o", "name"); err != nil {
		s.Fatal(err)
	}
}

// state returns the status, which a restart of the daemon must not change, including times.
func (s *testPod) state() api.PodStatus {
	s.Helper()
	return s.pod().Status
}

// engine opens the container engine of a daemon that has been killed.
func (s *testPod) engine(use func(ctx context.Context, c *client.Client) error) {
	s.Helper()
	e, err := engine.Start(s.ctx(), engine.Options{
		Root: filepath.Join(s.daemon.StateDir(), "engine"), State: filepath.Join(s.daemon.RunDir(), "engine"), ShimPath: s.daemon.Shim,
		MonitorPath: s.daemon.Monitor,
	})
	if err != nil {
		s.Fatal(err)
	}
	s.check(errors.Join(use(namespaces.WithNamespace(s.ctx(), engine.Namespace), e.Client()), e.Close()))
}

// labelContainer is the engine's label with the name of the container in the pod file.
const labelContainer = "podstead.io/container"

// TestExitDuringPostStartHookWithoutDaemon: a container exits during its postStart hook while no daemon runs. That the hook cannot be
// repeated is not a failure of the hook.
func TestExitDuringPostStartHookWithoutDaemon(t *testing.T) {
	t.Parallel()
	g := newDaemon(t)
	s := g.runPod(t, "unobserved-exit", `
[[containers]]
@app until=end exit=3,0
lifecycle.postStart.exec = { @PostStart-app until=go }
`)
	s.await(s.started("app", "PostStart-app"))
	s.killDaemon()
	s.touch("end")
	s.await(s.exited("app", 1))
	s.unlink("end")
	s.touch("go")
	s.startDaemon()
	s.await(s.restarted("app", 1), s.running("app"))
	if end := s.container("app").LastState.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("last termination %s, want exit code 3", text(end))
	}
	if failures := s.events(api.EventPostStartFailed, "app"); len(failures) > 0 {
		t.Errorf("the hook was reported as failed: %v", failures)
	}
}

// TestDaemonRestartKeepsPods: after the daemon is killed or stopped, the next one starts and stops no container, and shows the same
// status. A later crash still leads to a restart.
func TestDaemonRestartKeepsPods(t *testing.T) {
	const probes = "periodSeconds = 0.3, timeoutSeconds = 100, failureThreshold = 10000"
	g := newDaemon(t)
	s := g.runPod(t, "daemon-restart", `
update = { minReadySeconds = 0 }
restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }
[[initContainers]]
@init run=0s
[[initContainers]]
@sidecar
restartPolicy = "Always"
startupProbe = { exec = { @Startup-sidecar if=up }, `+probes+` }
[[containers]]
@plain
[[containers]]
@startup
startupProbe = { exec = { @Startup-startup if=up }, `+probes+` }
[[containers]]
@readiness
readinessProbe = { exec = { @Readiness-readiness if=up }, `+probes+` }
[[containers]]
@both
startupProbe = { exec = { @Startup-both if=up }, `+probes+` }
readinessProbe = { exec = { @Readiness-both if=up }, `+probes+` }
[[containers]]
@crashes until=crash exit=1
`, "up")
	s.await(s.hasCondition(api.PodReady, "True"), s.isComplete())
	before, ran := s.state(), len(s.timeline().runs("Readiness-both"))
	for _, how := range []string{"killed", "killed, engine records of init deleted", "stopped"} {
		switch how {
		case "stopped":
			s.check(g.StopDaemon(s.ctx()))
		default:
			s.killDaemon()
		}
		if how == "killed, engine records of init deleted" {
			s.engine(func(ctx context.Context, c *client.Client) error {
				return deleteRecords(ctx, c, "init")
			})
		}
		s.startDaemon()
		if diff := cmp.Diff(before, s.state()); diff != "" {
			t.Errorf("%s, right after the restart (-before +after):\n%s", how, diff)
		}
		s.await(s.ran("Readiness-both", ran+3)) // the daemon supervises the pod again
		if diff := cmp.Diff(before, s.state()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", how, diff)
		}
		ran = len(s.timeline().runs("Readiness-both"))
	}
	for _, name := range []string{
		"init", "sidecar", "plain", "startup", "readiness", "both", "crashes", "Startup-startup", "Startup-both",
	} {
		s.check(s.timeline().HasNotRestarted(name))
	}
	s.touch("crash")
	s.await(s.restarted("crashes", 1), s.ran("crashes", 2))
	s.unlink("crash")
	s.checkRestarts(0, "init", "sidecar", "plain", "startup", "readiness", "both")
}

// deleteRecords deletes the engine's records of exited runs of a container. It fails if there are none.
func deleteRecords(ctx context.Context, c *client.Client, name string) error {
	all, err := c.Containers(ctx, fmt.Sprintf("labels.%q==%s", labelContainer, name))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("the engine has no container %q", name)
	}
	for _, one := range all {
		task, taskErr := one.Task(ctx, nil)
		if taskErr == nil {
			_, taskErr = task.Delete(ctx)
			err = errors.Join(err, taskErr)
		}
		err = errors.Join(err, one.Delete(ctx, client.WithSnapshotCleanup))
	}
	return err
}

// TestDeadContainers: for a container that fails often, one dead run is kept in the engine and as a log.
func TestDeadContainers(t *testing.T) {
	g := newDaemon(t)
	s := g.runPod(t, "dead", `
restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }
[[containers]]
@crashes run=0.1s exit=1,1,1,1,1,1
[[containers]]
@running
`)
	s.await(s.ran("crashes", 8), s.started("running"))
	s.await(func() error { // dead runs are removed while others run
		logs, err := filepath.Glob(filepath.Join(g.LogDir(), "*", "crashes", "*.log"))
		if len(logs) > 3 || len(logs) == 0 {
			err = errors.Join(err, fmt.Errorf("logs: %q", logs))
		}
		return err
	})
	s.killDaemon()
	s.engine(func(ctx context.Context, c *client.Client) error {
		all, err := c.Containers(ctx, fmt.Sprintf("labels.%q==crashes", labelContainer))
		if len(all) == 0 || len(all) > 3 { // the newest, the one before it, and one that is being removed
			err = errors.Join(err, fmt.Errorf("the engine has %d containers", len(all)))
		}
		return err
	})
	s.startDaemon()
}

// TestOrphan: orphaned containers in the engine are stopped, with their preStop hook and grace period.
func TestOrphan(t *testing.T) {
	g := newDaemon(t)
	s := g.runPod(t, "orphan", `
terminationGracePeriodSeconds = 100
[[containers]]
@app term=0.3s
lifecycle.preStop.exec = { @PreStop-app run=0.3s }
`)
	s.await(s.started("app"), s.running("app"))
	s.killDaemon()
	s.check(os.Remove(filepath.Join(g.StateDir(), "pods", "orphan.json")))
	s.startDaemon()
	s.await(s.hasEvents(api.EventOrphanFound, "", 1), s.exited("app", 1))
	s.check(s.timeline().EndsBeforeSignal("PreStop-app", "app"), s.timeline().HasNotRestarted("app"))
}

// TestStorm: while pods are created and deleted concurrently, no status reports a success that did not happen, or a start before the
// init containers are done.
func TestStorm(t *testing.T) {
	t.Parallel()
	const pods = 24
	ctx, cancel := context.WithTimeoutCause(t.Context(), deadline, errors.New("timed out"))
	defer cancel()
	stopWatch, awaitStatus := watchStorm(ctx, t)
	random := rand.New(rand.NewPCG(40, 2)) // the same in each run
	var storm sync.WaitGroup
	slots := make(chan struct{}, 6)
	dirs := map[string]string{}
	for i := range pods {
		name, dir, life := fmt.Sprintf("storm-%d", i), t.TempDir(), time.Duration(random.Int64N(int64(time.Second)))
		dirs[name] = dir
		text := expand(name, shared.Archive("actor"), dir, `
restartPolicy = "Never"
terminationGracePeriodSeconds = 1
[[initContainers]]
@init run=0.1s
[[containers]]
@app run=0.2s
[[containers]]
@long
`)
		slots <- struct{}{}
		storm.Go(func() {
			defer func() { <-slots }()
			p, err := shared.create(ctx, name, text)
			if err == nil && i%8 == 0 { // some pods get this far on a slow host, too
				err = awaitStatus(name + "/init succeeded")
			}
			if err == nil {
				<-time.After(life)
				err = shared.remove(ctx, name, p.Metadata.UID)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	storm.Wait()
	reported := stopWatch()
	for name, dir := range dirs {
		all, err := readTimeline(filepath.Join(dir, "log"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		for _, container := range []string{"init", "app", "long"} {
			run, _ := all.last(container)
			if reported[name+"/"+container+" succeeded"] && run.exiting.IsZero() {
				t.Errorf("%s of %s was reported as succeeded, but did not exit", container, name)
			}
		}
		if reported[name+" Succeeded"] {
			t.Errorf("%s was reported as succeeded, but one of its containers never exits", name)
		}
		if init, _ := all.last("init"); init.exiting.IsZero() && (reported[name+"/app started"] || reported[name+"/long started"]) {
			t.Errorf("a container of %s was reported as started before init exited", name)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(reported)), func(s string) bool { return strings.HasSuffix(s, " succeeded") }) {
		t.Error("no container succeeded, the test shows nothing")
	}
}

// watchStorm watches all pods. end stops the watch and returns every status that was reported; await waits for one.
func watchStorm(ctx context.Context, t *testing.T) (end func() map[string]bool, await func(what string) error) {
	t.Helper()
	if _, err := shared.Podstead(ctx, "get", "-o", "name"); err != nil {
		t.Fatal(err)
	}
	watching, stop := context.WithCancel(ctx)
	var mu sync.Mutex
	reported := map[string]bool{}
	var done sync.WaitGroup
	done.Go(func() {
		for change, err := range shared.Client().Watch(watching) {
			if err != nil {
				if watching.Err() == nil {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			record(reported, change)
			mu.Unlock()
		}
	})
	end = func() map[string]bool {
		stop()
		done.Wait()
		return reported
	}
	await = func(what string) error {
		return rig.Await(ctx, func() error {
			mu.Lock()
			defer mu.Unlock()
			if !reported[what] {
				return fmt.Errorf("not yet reported: %s", what)
			}
			return nil
		})
	}
	return end, await
}

// record adds the states in a change.
func record(reported map[string]bool, change api.PodChange) {
	p := change.Object
	reported[p.Metadata.Name+" "+string(p.Status.Phase)] = true
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		d := c.State.Terminated
		if c.State.Running != nil || d != nil && !d.StartedAt.IsZero() {
			reported[p.Metadata.Name+"/"+c.Name+" started"] = true
		}
		if d != nil && d.ExitCode == 0 {
			reported[p.Metadata.Name+"/"+c.Name+" succeeded"] = true
		}
	}
}
