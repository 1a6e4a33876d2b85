//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/test/internal/rig"
)

// storm is a pods directory whose pods change while processes are killed.
type storm struct {
	*podsDir
	r      *rand.Rand
	number int // of the last definition
	// hostnames are parts of the definitions, by pod. A change restarts the pod in a new sandbox.
	hostnames map[string]int
}

// good returns a definition that becomes ready, and its marker.
func (s *storm) good(name string) (text, marker string) {
	s.number++
	marker = fmt.Sprintf("%s-%d-", name, s.number)
	if s.r.IntN(3) == 0 {
		s.hostnames[name] = s.number // a new sandbox
	}
	const late = 300 // s; a busy host takes long to start 30 pods at once
	return s.stormText(name, late, fmt.Sprintf(": marker=%s; trap 'exit 0' TERM; while :; do sleep 0.5; done", marker), busybox, ""), marker
}

// broken returns a definition that does not become ready.
func (s *storm) broken(name string) string {
	s.number++
	if s.r.IntN(3) == 0 {
		s.hostnames[name] = s.number
	}
	marker := fmt.Sprintf(": marker=%s-%d-; ", name, s.number)
	const late = 20 // s
	const runs = "trap 'exit 0' TERM; while :; do sleep 0.5; done"
	switch s.r.IntN(4) {
	case 0:
		return s.stormText(name, late, marker+runs, "registry.invalid/none:2", "")
	case 1:
		return s.stormText(name, late, marker+runs, busybox, "readinessProbe = { exec = { command = [\"false\"] }, periodSeconds = 1 }\n")
	case 2:
		return s.stormText(name, late, marker+runs, busybox, "lifecycle.postStart.exec.command = [\"false\"]\n")
	}
	return s.stormText(name, late, marker+"exit 3", busybox, "")
}

// stormText returns a definition that must be ready within some seconds.
func (s *storm) stormText(name string, late int, script, image, more string) string {
	return s.PodText(name, fmt.Sprintf(`labels.release = "%d"
hostname = "h%d"
terminationGracePeriodSeconds = 1
restartBackoff = { initialSeconds = 0.1, maxSeconds = 1 }
update = { readyWithinSeconds = %d, onFailure = "rollback" }

[[containers]]
name = "c"
image = %q
command = ["sh", "-c", %q]
%s`, s.number, s.hostnames[name], late, image, script, more))
}

// kill kills the daemon, which contains the engine, or a shim, the monitor or its keeper, or both. It starts the daemon again.
func (s *storm) kill() {
	s.Helper()
	<-time.After(time.Duration(s.r.IntN(700)) * time.Millisecond)
	what := s.r.IntN(4)
	if what != 0 {
		holders, err := s.Holders()
		s.Check(err)
		if len(holders) > 0 {
			if err := rig.Kill(s.Ctx(), holders[s.r.IntN(len(holders))].PID); !errors.Is(err, unix.ESRCH) { // it may have exited
				s.Check(err)
			}
		}
	}
	if what != 1 {
		s.MustRun("get")
		s.MustKillDaemon()
	}
	s.MustRun("get")
}

// TestUpdateStorm changes pods at random, to definitions that run and to broken ones, while the daemon and shims, or the monitor, are
// killed. After a quiet time each pod runs exactly what its file says or, where that is broken, its last definition that was ready.
func TestUpdateStorm(t *testing.T) {
	s := &storm{podsDir: newPodsDir(t), r: rig.Seeded(t), hostnames: map[string]int{}}
	s.Timeout = 3 * deadline // for 30 pods
	want := map[string]string{}
	names := make([]string, 30)
	for i := range names {
		names[i] = fmt.Sprintf("s%02d", i)
	}
	settle := func() {
		t.Helper()
		for _, name := range names {
			var text string
			text, want[name] = s.good(name)
			s.write(name, text)
		}
		s.until(want)
		for _, name := range names {
			s.Until(name, "ready", podReady)
			s.MustRun("rollout", "status", name) // a definition whose shim is killed before that counts as broken
		}
	}
	settle()
	for range 6 * rig.Times(t) {
		for range 8 {
			name := names[s.r.IntN(len(names))]
			text := s.broken(name)
			switch s.r.IntN(5) {
			case 0, 1:
				text, _ = s.good(name)
			case 2:
				s.remove(name)
				continue
			}
			s.write(name, text)
		}
		s.kill()
	}
	settle()
	broken := map[string]bool{}
	for _, i := range s.r.Perm(len(names))[:10] {
		s.write(names[i], s.broken(names[i]))
		broken[names[i]] = true
	}
	for range 3 {
		s.kill()
	}
	s.checkRest(want, broken)
}

// checkRest waits until each pod has the definition that it should have, and checks what led there.
func (s *storm) checkRest(want map[string]string, broken map[string]bool) {
	s.Helper()
	for name := range want {
		s.Until(name, fmt.Sprintf("ready, its file is broken: %t", broken[name]), func(p *api.Pod) bool {
			refused := slices.ContainsFunc(p.Status.Conditions, func(c api.Condition) bool { return c.Type == api.FileAccepted })
			return refused == broken[name] && podReady(p)
		})
	}
	s.until(want)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		s.process("marker=" + want[name]) // exactly one
		s.Await(func() error {
			pids, err := s.processes("marker=" + name + "-")
			if err == nil && len(pids) != 1 {
				err = fmt.Errorf("pod %s has the processes %v, want one", name, pids)
			}
			return err
		})
		s.checkEvents(name)
	}
	s.Await(func() error { // the daemon may be writing one: a temporary file
		entries, err := os.ReadDir(filepath.Join(s.StateDir(), "generations"))
		if err == nil && len(entries) != len(want) {
			err = fmt.Errorf("files of generations %v, want those of %d pods", entries, len(want))
		}
		return err
	})
}

// checkEvents checks the order of the events of a pod. A daemon that is killed may not have written its last events.
func (s *storm) checkEvents(name string) {
	s.Helper()
	last, rollback := uint64(0), false
	var before []string // events
	defer func() {
		if s.Failed() {
			log, _ := os.ReadFile(filepath.Join(engine.MonitorDir(filepath.Join(s.RunDir(), "engine")), "log"))
			s.Logf("log of the monitor:\n%s", log)
		}
	}()
	for e, err := range s.Client().Events(s.Ctx(), &client.EventQuery{Pod: name}) {
		s.Check(err)
		if e.Seq <= last {
			s.Errorf("event %d of pod %s after event %d", e.Seq, name, last)
		}
		const perDaemon = 1_000_000_000 // sequence numbers
		rollback = rollback || e.Seq/perDaemon != last/perDaemon
		last = e.Seq
		if e.Kind == api.EventRollbackCompleted && !rollback {
			s.Errorf("event %d of pod %s: a rollback was completed that has not started", e.Seq, name)
		}
		if e.Kind == api.EventSandboxChanged {
			s.Errorf("the death of the monitor or its keeper had an effect on pod %s: %+v, after\n%s", name, e, strings.Join(before, "\n"))
		}
		if e.Fields["message"] == "the pod sandbox was lost" {
			s.Errorf("the exit of a container of pod %s is not known: %+v, after\n%s", name, e, strings.Join(before, "\n"))
		}
		before = append(before, fmt.Sprintf("%d %s %s %d %s", e.Seq, e.Time.Format("05.000"), e.Container, e.Attempt, e.Message))
		rollback = (rollback || e.Kind == api.EventRollbackStarted) && e.Kind != api.EventRollbackCompleted
	}
}
