package server

import (
	"net/http"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// TestRolloutOfSchedule: the hint of a pod that is in the pods directory does not ask to put it there.
func TestRolloutOfSchedule(t *testing.T) {
	for scheduled, want := range map[bool]string{
		true:  "apply the earlier file with podstead apply FILE: the next run has its definition",
		false: "apply the file of the pod with podstead apply FILE: pods of the pods directory have generations",
	} {
		e := asError(&podfiles.NoRolloutError{Pod: "backup", Why: "x", Scheduled: scheduled})
		if e.Hint != want || e.Status != http.StatusNotFound {
			t.Errorf("%+v, want %s", e, want)
		}
	}
}

// TestProgressOfReplica: the rollout of a replica has failed if another one was rolled back from the definition that both have.
func TestProgressOfReplica(t *testing.T) {
	const message = "pod web-0: generation 2 was rolled back: no memory; generation 1 runs; the pod keeps its definition"
	ready := &podfiles.History{Generations: []podfiles.Generation{{Number: 1, Outcome: api.GenerationReady}}}
	state, got := new(Server).progress(&podfiles.Rollout{Pod: "web-1", History: ready, Newer: true},
		&refusal{reason: api.ReasonRolledBack, rolledBack: true, message: message})
	if state != api.RolloutFailed || got != message {
		t.Errorf("%s: %s, want %s: %s", state, got, api.RolloutFailed, message)
	}
}
