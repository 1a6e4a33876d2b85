package server

import (
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/podfiles"
)

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
