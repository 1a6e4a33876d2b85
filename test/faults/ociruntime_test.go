//go:build e2e

package faults

import (
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/purecgroup"
)

// TestRuntimeChanges: when the OCI runtime of the configuration changes, containers keep the one that created them. Commands in them, their
// stop, restart and deletion use it. New containers use the new one.
func TestRuntimeChanges(t *testing.T) {
	purecgroup.Run(t, nil, func(t *testing.T) {
		f := newFixture(t)
		f.restartWith("runc")
		kept := map[string]api.ContainerStatus{} // the container of each pod
		creators := map[string]string{}          // and the OCI runtime that created it
		serve := func(pod, runtime string) {
			f.MustCreate(pod,
				"terminationGracePeriodSeconds = 5\n"+container("c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done"))
			kept[pod], creators[pod] = f.ready(pod).Status.ContainerStatuses[0], runtime
		}
		check := func() {
			t.Helper()
			for pod, was := range kept {
				now := f.ready(pod).Status.ContainerStatuses[0]
				if now.ContainerID != was.ContainerID {
					t.Errorf("pod %s: container %s was replaced with %s", pod, was.ContainerID, now.ContainerID)
				}
				if creator, err := f.Creator(now.ContainerID); creator != creators[pod] || err != nil {
					t.Errorf("pod %s: created by %s (%v), want %s", pod, creator, err, creators[pod])
				}
				if got := f.exec(nil, "-q", pod, "--", "sh", "-c",
					"echo in $HOSTNAME; exit 7"); got != (result{7, "in " + pod + "\n", ""}) {
					t.Errorf("command in pod %s: %+v", pod, got)
				}
			}
		}
		remove := func(pod string) {
			f.MustRun("delete", pod)
			delete(kept, pod)
		}
		serve("a", "runc")
		serve("b", "runc")
		check()

		f.restartWith("crun")
		serve("c", "crun")
		serve("d", "crun")
		check()
		remove("b")

		f.MustKillDaemon()
		f.restartWith("runc")
		check()
		remove("d")
		for pod, was := range kept { // the new container is one of the new runtime
			f.MustRun("restart", pod)
			f.Until(pod, "restarted", func(p *api.Pod) bool {
				c := p.Status.ContainerStatuses
				return len(c) == 1 && c[0].State.Running != nil && c[0].ContainerID != was.ContainerID
			})
			kept[pod], creators[pod] = f.ready(pod).Status.ContainerStatuses[0], "runc"
		}
		check()
		remove("a")
		remove("c")
	})
}

// restartWith stops the daemon, if one runs, and starts one with this OCI runtime.
func (f *fixture) restartWith(runtime string) {
	f.Helper()
	f.Check(f.StopDaemon(f.Ctx()))
	f.Env = append(f.Env, rig.RuntimeVariable+"="+runtime)
	f.MustRun("get")
	v, err := f.Client().Version(f.Ctx())
	f.Check(err)
	if v.Runtime != runtime {
		f.Fatalf("the daemon uses the OCI runtime %s, want %s", v.Runtime, runtime)
	}
}
