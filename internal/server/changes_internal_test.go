package server

import (
	"encoding/json"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec/change"
)

// TestChangesOf checks that changes have the same JSON and the same text on both sides of the API, with every effect.
func TestChangesOf(t *testing.T) {
	for effect, name := range map[change.Effect]api.Effect{
		change.InPlace: api.EffectInPlace, change.NextRound: api.EffectNextRound,
		change.RestartContainer: api.EffectRestartContainer, change.RestartPod: api.EffectRestartPod,
		change.ReplacePod: api.EffectReplacePod,
	} {
		from := change.Change{Path: "containers[0].image", Container: "app", Old: `"a"`, New: `"b"`, Effect: effect}
		got := changesOf([]change.Change{from})[0]
		if got.Effect != name || got.String() != from.String() {
			t.Errorf("got %s, %v; want %s, %v", got.Effect, got, name, from)
		}
		want, _ := json.Marshal(from)
		if text, err := json.Marshal(got); err != nil || string(text) != string(want) {
			t.Errorf("got %s, %v; want %s", text, err, want)
		}
	}
	if changesOf(nil) != nil {
		t.Error("no changes are not nil")
	}
	later := api.Change{Path: "labels.a", New: "1", Effect: "RestartHost"}
	if got, want := later.String(), "labels.a: 1 added (RestartHost)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
