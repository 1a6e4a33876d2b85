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
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/test/internal/rig"
)

// killDaemon kills the supervisor and returns when it is dead.
func (s *scene) killDaemon() {
	s.Helper()
	if err := s.stage.KillDaemon(s.ctx()); err != nil {
		s.Fatal(err)
	}
}

// startDaemon has a daemon that answers.
func (s *scene) startDaemon() {
	s.Helper()
	if _, err := s.stage.Podstead(s.ctx(), "get", "-o", "name"); err != nil {
		s.Fatal(err)
	}
}

// state is what must not change over a restart of the supervisor: all that is shown, the times at which it changed included.
func (s *scene) state() api.PodStatus {
	s.Helper()
	return s.pod().Status
}

// engine opens the engine of a stage whose daemon is dead.
func (s *scene) engine(use func(ctx context.Context, c *client.Client) error) {
	s.Helper()
	e, err := engine.Start(s.ctx(), engine.Options{
		Root: filepath.Join(s.stage.StateDir(), "engine"), State: filepath.Join(s.stage.RunDir(), "engine"), ShimPath: s.stage.Shim,
	})
	if err != nil {
		s.Fatal(err)
	}
	s.check(errors.Join(use(namespaces.WithNamespace(s.ctx(), engine.Namespace), e.Client()), e.Close()))
}

// labelContainer is the label of a container of the engine that says of which of the pod file it is a run.
const labelContainer = "podstead.io/container"

// TestUnseenEnd: a container that ends in the middle of its postStart hook while there is no supervisor has ended of itself; that
// the hook cannot be run again is not its failure.
func TestUnseenEnd(t *testing.T) {
	t.Parallel()
	g := ownStage(t)
	s := g.play(t, "unseen", `
[[containers]]
@app until=end exit=3,0
lifecycle.postStart.exec = { @PostStart-app until=go }
`)
	s.until(s.awake("app", "PostStart-app"))
	s.killDaemon()
	s.touch("end")
	s.until(s.over("app", 1))
	s.unlink("end")
	s.touch("go")
	s.startDaemon()
	s.until(s.restarted("app", 1), s.runs("app"))
	if end := s.container("app").LastState.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("the last end is %s, want 3", text(end))
	}
	if told := s.events(event.PostStartFailed, "app"); len(told) > 0 {
		t.Errorf("the hook is said to have failed: %v", told)
	}
}

// TestRow40: a supervisor that is killed, or ends and comes back, finds its pods as they were: nothing is started or ended, and
// nothing is shown otherwise. A crash after that is followed by a restart as ever.
func TestRow40(t *testing.T) {
	const probes = "periodSeconds = 0.3, timeoutSeconds = 100, failureThreshold = 10000"
	g := ownStage(t)
	s := g.play(t, "row40", `
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
	s.until(s.is(lifecycle.PodReady, "True"))
	before, ran := s.state(), len(s.tale().runs("Readiness-both"))
	for _, how := range []string{"killed", "killed, without the records of init", "stopped"} {
		switch how {
		case "stopped":
			s.check(g.StopDaemon(s.ctx()))
		default:
			s.killDaemon()
		}
		if how == "killed, without the records of init" {
			s.engine(func(ctx context.Context, c *client.Client) error {
				return deleteRecords(ctx, c, "init")
			})
		}
		s.startDaemon()
		if diff := cmp.Diff(before, s.state()); diff != "" {
			t.Errorf("%s, at first (-before +after):\n%s", how, diff)
		}
		s.until(s.ran("Readiness-both", ran+3)) // it is supervised
		if diff := cmp.Diff(before, s.state()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", how, diff)
		}
		ran = len(s.tale().runs("Readiness-both"))
	}
	for _, name := range []string{"init", "sidecar", "plain", "startup", "readiness", "both", "crashes", "Startup-startup", "Startup-both"} {
		s.check(s.tale().HasNotRestarted(name))
	}
	s.touch("crash")
	s.until(s.restarted("crashes", 1), s.ran("crashes", 2))
	s.unlink("crash")
	s.counts(0, "init", "sidecar", "plain", "startup", "readiness", "both")
}

// deleteRecords deletes what the engine knows of the runs of a container that have ended. There must be some.
func deleteRecords(ctx context.Context, c *client.Client, name string) error {
	all, err := c.Containers(ctx, fmt.Sprintf("labels.%q==%s", labelContainer, name))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("the engine knows no container %q", name)
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

// TestDeadContainers: of a container that fails often one dead run is kept, in the engine and as a log.
func TestDeadContainers(t *testing.T) {
	g := ownStage(t)
	s := g.play(t, "dead", `
restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }
[[containers]]
@crashes run=0.1s exit=1,1,1,1,1,1
[[containers]]
@lives
`)
	s.until(s.ran("crashes", 8), s.awake("lives"))
	s.until(func() error { // what is over is taken away beside what runs
		logs, err := filepath.Glob(filepath.Join(g.LogDir(), "*", "crashes", "*.log"))
		if len(logs) > 3 || len(logs) == 0 {
			err = errors.Join(err, fmt.Errorf("there are logs %q", logs))
		}
		return err
	})
	s.killDaemon()
	s.engine(func(ctx context.Context, c *client.Client) error {
		all, err := c.Containers(ctx, fmt.Sprintf("labels.%q==crashes", labelContainer))
		if len(all) == 0 || len(all) > 3 { // the newest, the one before it, and one that was being taken away
			err = errors.Join(err, fmt.Errorf("the engine knows %d containers", len(all)))
		}
		return err
	})
	s.startDaemon()
}

// TestOrphan: what the engine runs for a pod of which the supervisor knows nothing is ended, with its hook and its grace period.
func TestOrphan(t *testing.T) {
	g := ownStage(t)
	s := g.play(t, "orphan", `
terminationGracePeriodSeconds = 100
[[containers]]
@app term=0.3s
lifecycle.preStop.exec = { @PreStop-app run=0.3s }
`)
	s.until(s.awake("app"), s.runs("app"))
	s.killDaemon()
	s.check(os.Remove(filepath.Join(g.StateDir(), "pods", "orphan.json")))
	s.startDaemon()
	s.until(s.told(event.OrphanFound, "", 1), s.over("app", 1))
	s.check(s.tale().EndsBeforeSignal("PreStop-app", "app"), s.tale().HasNotRestarted("app"))
}

// TestStorm: whatever is said of pods that are created and deleted at any time, none is said to have succeeded that has not,
// and none to have started whose turn had not come.
func TestStorm(t *testing.T) {
	t.Parallel()
	const pods = 24
	ctx, cancel := context.WithTimeoutCause(t.Context(), deadline, errors.New("the storm takes too long"))
	defer cancel()
	seen, awaitSaid := watchStorm(ctx, t)
	random := rand.New(rand.NewPCG(40, 2)) //nolint:gosec // the same each time
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
			if err == nil && i%8 == 0 { // so that some come far, however slow the machine is
				err = awaitSaid(name + "/init succeeded")
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
	said := seen()
	for name, dir := range dirs {
		all, err := readTale(filepath.Join(dir, "log"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		for _, container := range []string{"init", "app", "long"} {
			run, _ := all.last(container)
			if said[name+"/"+container+" succeeded"] && run.exiting.IsZero() {
				t.Errorf("%s of %s was said to have succeeded, and has not", container, name)
			}
		}
		if said[name+" Succeeded"] {
			t.Errorf("%s was said to have succeeded, with a container that never ends", name)
		}
		if init, _ := all.last("init"); init.exiting.IsZero() && (said[name+"/app started"] || said[name+"/long started"]) {
			t.Errorf("a container of %s was said to have started, and init had not ended", name)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(said)), func(s string) bool { return strings.HasSuffix(s, " succeeded") }) {
		t.Error("no container succeeded: this storm shows nothing")
	}
}

// watchStorm follows the pods of a storm. The functions that it returns end that, and return what was ever said, and wait until
// something was said.
func watchStorm(ctx context.Context, t *testing.T) (end func() map[string]bool, await func(what string) error) {
	t.Helper()
	if _, err := shared.Podstead(ctx, "get", "-o", "name"); err != nil {
		t.Fatal(err)
	}
	watching, stop := context.WithCancel(ctx)
	var mu sync.Mutex
	said := map[string]bool{}
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
			note(said, change)
			mu.Unlock()
		}
	})
	end = func() map[string]bool {
		stop()
		done.Wait()
		return said
	}
	await = func(what string) error {
		return rig.Await(ctx, func() error {
			mu.Lock()
			defer mu.Unlock()
			if !said[what] {
				return fmt.Errorf("nobody has said %s", what)
			}
			return nil
		})
	}
	return end, await
}

// note keeps what a change says.
func note(said map[string]bool, change api.PodChange) {
	p := change.Object
	said[p.Metadata.Name+" "+string(p.Status.Phase)] = true
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		d := c.State.Terminated
		if c.State.Running != nil || d != nil && !d.StartedAt.IsZero() {
			said[p.Metadata.Name+"/"+c.Name+" started"] = true
		}
		if d != nil && d.ExitCode == 0 {
			said[p.Metadata.Name+"/"+c.Name+" succeeded"] = true
		}
	}
}
