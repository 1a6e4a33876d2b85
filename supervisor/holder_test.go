package supervisor_test

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// TestNameTakenByKeptPod expects that the next run of a file may replace the pod of an earlier one that was kept, after it has terminated.
func TestNameTakenByKeptPod(t *testing.T) {
	running, exited := state.ProcessOf(os.Getpid()), state.Process{PID: os.Getpid(), Started: "1"}
	for name, test := range map[string]struct {
		owner     state.Owner
		seconds   string
		dir, hash string
		replaced  bool
	}{
		"terminated":          {state.Owner{Session: "s", Process: exited, Keep: true}, "1", "/jobs", "", true},
		"with a changed file": {state.Owner{Session: "s", Process: exited, Keep: true}, "1", "/jobs", "v1:other", true},
		"of another file":     {state.Owner{Session: "s", Process: exited, Keep: true}, "1", "/other", "", false},
		"client running":      {state.Owner{Session: "s", Process: running, Keep: true}, "1", "/jobs", "", false},
		"running":             {state.Owner{Session: "s", Process: exited, Keep: true}, "100000", "/jobs", "", false},
		"of a pod file":       {state.Owner{File: "/pods.d/p.toml"}, "1", "/jobs", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.start()
				p := sleeper(test.seconds)
				p.Dir = "/jobs"
				before, err := m.Add(p, test.owner)
				if err != nil {
					t.Fatal(err)
				}
				m.untilPhase("p", "Running")
				time.Sleep(5 * time.Second)
				file := *p
				file.Dir, file.Hash = test.dir, test.hash
				_, err = m.Add(&file, state.Owner{})
				want := ""
				if test.replaced {
					want = before.Facts.UID
				}
				if taken, is := errors.AsType[*supervisor.NameTakenError](err); !is || taken.Terminated != want || taken.Stopping != "" {
					t.Errorf("%+v, want Terminated %q", err, want)
				}
			})
		})
	}
}

// TestNameTakenByStoppingPod expects that a client waits only if the name will become free.
func TestNameTakenByStoppingPod(t *testing.T) {
	running, exited := state.ProcessOf(os.Getpid()), state.Process{PID: os.Getpid(), Started: "1"}
	const by = "podstead run, pid 7"
	for name, test := range map[string]struct {
		owner    state.Owner
		stop     *supervisor.StopOptions
		hash     string
		stopping bool
		holder   string
	}{
		"running": {
			state.Owner{By: by, Session: "s", Process: exited}, nil, "", false, "created by podstead run (exited)",
		},
		"stopped, client exited": {
			state.Owner{By: by, Session: "s", Process: exited},
			&supervisor.StopOptions{}, "", true,
			"it is being stopped, created by podstead run (exited)",
		},
		"stopped, client running": {
			state.Owner{By: by, Session: "s", Process: running},
			&supervisor.StopOptions{}, "", false,
			"it is being stopped, created by podstead run, pid 7",
		},
		"stopped and kept": {
			state.Owner{By: by, Session: "s", Process: exited, Keep: true},
			&supervisor.StopOptions{}, "", false,
			"it is being stopped, created by podstead run (exited)",
		},
		"stopped, without session": {state.Owner{}, &supervisor.StopOptions{}, "", false, "it is being stopped, created earlier"},
		"deleted, client running": {
			state.Owner{By: by, Session: "s", Process: running},
			&supervisor.StopOptions{Delete: true}, "", true,
			"it is being deleted, created by podstead run, pid 7",
		},
		"deleted, a different file": {
			state.Owner{},
			&supervisor.StopOptions{Delete: true}, "v1:other", false,
			"it is being deleted, created earlier from a different pod file with container c (i)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.start()
				p := sleeper("100000")
				p.TerminationGracePeriodSeconds = 100
				before, err := m.Add(p, test.owner)
				if err != nil {
					t.Fatal(err)
				}
				m.untilPhase("p", "Running")
				if test.stop != nil {
					if err := m.Stop(t.Context(), "p", *test.stop); err != nil {
						t.Fatal(err)
					}
				}
				file := *p
				file.Hash = test.hash
				_, err = m.Add(&file, state.Owner{})
				taken, is := errors.AsType[*supervisor.NameTakenError](err)
				if !is {
					t.Fatalf("error %v, want that the name is taken", err)
				}
				want := ""
				if test.stopping {
					want = before.Facts.UID
				}
				if taken.Stopping != want || taken.Different != (test.hash != "") || taken.Holder != test.holder ||
					taken.File != test.owner.File || taken.Deleting != (test.stop != nil && test.stop.Delete) {
					t.Errorf("%+v, want stopping %q, holder %q", taken, want, test.holder)
				}
			})
		})
	}
}

// TestNameTakenByPodWithManyContainers expects that the first containers are named.
func TestNameTakenByPodWithManyContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := sleeper("100000")
		p.Hash = "v1:one"
		for _, name := range []string{"d", "e", "f"} {
			p.Containers = append(p.Containers, spec.Container{Name: name, Image: "i", Command: []string{"sleep", "100000"}})
		}
		m.add(p)
		_, err := m.Add(sleeper("1"), state.Owner{})
		if taken, is := errors.AsType[*supervisor.NameTakenError](err); !is ||
			taken.Holder != "created earlier from a different pod file with containers c (i), d (i), e (i), 1 more" {
			t.Errorf("error %v", err)
		}
	})
}
