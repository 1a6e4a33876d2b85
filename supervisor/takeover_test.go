package supervisor_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

func TestTakeOver(t *testing.T) {
	running, exited := state.ProcessOf(os.Getpid()), state.Process{PID: os.Getpid(), Started: "1"}
	for name, test := range map[string]struct {
		owner state.Owner
		hash  string
		stop  bool
		want  bool
	}{
		"client killed":      {owner: state.Owner{Session: "old", Process: exited}, want: true},
		"client running":     {owner: state.Owner{Session: "old", Process: running}},
		"client not known":   {owner: state.Owner{Session: "old"}},
		"no session":         {owner: state.Owner{Process: exited}},
		"another file":       {owner: state.Owner{Session: "old", Process: exited}, hash: "v1:other"},
		"pod is terminating": {owner: state.Owner{Session: "old", Process: exited}, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.start()
				p := pod("p", spec.RestartAlways, "trap 'sleep 5' TERM; sleep 100000")
				if _, err := m.Add(p, test.owner); err != nil {
					t.Fatal(err)
				}
				if test.stop {
					m.delete("p")
				}
				file := *p
				if test.hash != "" {
					file.Hash = test.hash
				}
				if _, ok := m.TakeOver(t.Context(), &file, state.Owner{Session: "new", Process: running}); ok != test.want {
					t.Fatalf("taken over: %v, want %v", ok, test.want)
				}
				if !test.want {
					return
				}
				m.leave() // the new owner is saved
				m.start()
				for range 5 {
					time.Sleep(supervisor.SessionTimeout / 2)
					m.Touch("new")
				}
				if s, ok := m.Pod("p"); !ok || s.Owner.Session != "new" || !s.Facts.Stop.Requested.IsZero() {
					t.Errorf("pod %v, owner %+v, want that it runs in the new session", ok, s.Owner)
				}
				if m.Touch("old") {
					t.Error("the old session exists")
				}
			})
		})
	}
}
