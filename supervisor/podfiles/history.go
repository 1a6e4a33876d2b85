package podfiles

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// maxReadyGenerations is how many generations that were ready keep their definition, apart from the one that runs.
	maxReadyGenerations = 3
	// maxGenerations is how many generations are listed.
	maxGenerations = 20
)

// Generation is one definition of a pod.
type Generation struct {
	Number int `json:"generation"` // from 1, never used again for the pod
	// Digest is the SHA-256 digest of the text of the pod file, in hexadecimal.
	Digest string `json:"digest"`
	// Since is when the pod was changed to this definition.
	Since lifecycle.Instant `json:"since"`
	By    string            `json:"by,omitempty"` // who requested it, for people
	// Changes are the differences from the definition before; nil for the first generation.
	Changes []change.Change       `json:"changes,omitempty"`
	Outcome api.GenerationOutcome `json:"outcome"`
	// ReadyAt is when it was ready, and has stayed so since; zero: it is not ready.
	ReadyAt lifecycle.Instant `json:"readyAt,omitzero"`
	Message string            `json:"message,omitempty"` // why it failed
	// After is the generation that ran before in place of the file; 0: the one before this.
	After int `json:"after,omitempty"`
	// Definition is kept for the newest generation and for the last ones that were ready.
	Definition *Definition `json:"definition,omitempty"`
}

// Definition is what is needed to run a generation again without a network.
type Definition struct {
	Pod *spec.Pod
	// Images are those that the containers ran, by container.
	Images map[string]lifecycle.Image
	// PinnedConfig are the config maps and secrets outside of the pod file.
	Config PinnedConfig
}

// PinnedConfig are values of config maps and secrets by name and key.
type PinnedConfig struct {
	ConfigMaps map[string]map[string][]byte `json:"configMaps,omitempty"`
	Secrets    map[string]map[string][]byte `json:"secrets,omitempty"`
}

// String keeps the values out of logs and error messages.
func (PinnedConfig) String() string { return "[hidden]" }

// storedDefinition is the JSON of a [Definition]. The JSON of a pod omits the values of its secrets.
type storedDefinition struct {
	Pod     *spec.Pod                    `json:"pod"`
	Secrets map[string]map[string]string `json:"secrets,omitempty"`
	Images  map[string]lifecycle.Image   `json:"images,omitempty"`
	Config  PinnedConfig                 `json:"config,omitzero"`
}

// MarshalJSON includes the values of secrets: the result is secret.
func (d *Definition) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedDefinition{Pod: d.Pod, Secrets: d.Pod.SecretValues(), Images: d.Images, Config: d.Config})
}

// UnmarshalJSON reads what [Definition.MarshalJSON] writes.
func (d *Definition) UnmarshalJSON(text []byte) error {
	var in storedDefinition
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	if in.Pod == nil {
		in.Pod = &spec.Pod{}
	}
	*d = Definition{Pod: in.Pod.WithSecretValues(in.Secrets), Images: in.Images, Config: in.Config}
	return nil
}

// Instead is a generation that runs in place of what the pod file defines, until the file is changed.
type Instead struct {
	Digest string            `json:"digest"`     // of the text of the file that is not carried out
	Number int               `json:"generation"` // that runs
	Failed int               `json:"failed"`     // the generation of that file
	Why    string            `json:"why"`
	By     string            `json:"by,omitempty"` // the person who requested it; empty: the update failed
	At     lifecycle.Instant `json:"at"`
	// Completed is set when the generation was ready again.
	Completed bool `json:"completed,omitempty"`
	// Definition is that of the generation, with the config maps and secrets that differ from those of the host inline.
	Definition *Definition `json:"definition"`
}

// String is why the content of the file is not carried out. The file is never written back: a definition is kept, not the text of its file
// with the comments of a person.
func (i *Instead) String() string {
	if i.By == "" {
		return fmt.Sprintf("generation %d was rolled back: %s; generation %d runs", i.Failed, i.Why, i.Number)
	}
	has := fmt.Sprintf("generation %d", i.Failed)
	if i.Failed == 0 {
		has = "a definition that did not run"
	}
	return fmt.Sprintf("generation %d runs instead, requested by %s; the file still has %s", i.Number, i.By, has)
}

// Undo is the generation and the person who requested it; empty: no person, the update failed. A nil receiver is no person.
func (i *Instead) Undo() string {
	if i == nil || i.By == "" {
		return ""
	}
	return fmt.Sprintf("generation %d, requested by %s", i.Number, i.By)
}

// History is the definitions that a pod of the pods directory has had, so that it can return to one that was ready. It decides what is kept
// of them and which one the pod can return to, but not whether it returns. Its methods change it in place; [History.Clone] returns one that
// they can change.
type History struct {
	Pod         string       `json:"pod"`
	Last        int          `json:"last"` // the highest number used
	Generations []Generation `json:"generations"`
	Instead     *Instead     `json:"instead,omitempty"`
}

// Clone returns a copy. Definitions are shared, they are immutable.
func (h *History) Clone() *History {
	c := *h
	c.Generations = slices.Clone(h.Generations)
	return &c
}

// Newest returns the generation with the highest number; nil: there is none.
func (h *History) Newest() *Generation {
	if len(h.Generations) == 0 {
		return nil
	}
	return &h.Generations[len(h.Generations)-1]
}

// Find returns the generation with a number; nil: it is not listed.
func (h *History) Find(number int) *Generation {
	if i := slices.IndexFunc(h.Generations, func(g Generation) bool { return g.Number == number }); i >= 0 {
		return &h.Generations[i]
	}
	return nil
}

// Running returns the generation that runs, or is to run; nil: there is none.
func (h *History) Running() *Generation {
	if h.Instead != nil {
		return h.Find(h.Instead.Number)
	}
	return h.Newest()
}

// Carried returns the digest of the newest content of the file that was carried out or rolled back; empty: there is none.
func (h *History) Carried() string {
	if h.Instead != nil {
		return h.Instead.Digest
	}
	if g := h.Newest(); g != nil {
		return g.Digest
	}
	return ""
}

// Begin adds a generation, which runs from now on. One that is not ready is superseded.
func (h *History) Begin(g Generation) {
	if last := h.Running(); last != nil {
		last.supersede()
	}
	if h.Instead != nil {
		g.After = h.Instead.Number
	}
	h.Instead = nil
	h.Last++
	g.Number, g.Outcome = h.Last, api.GenerationProgressing
	h.Generations = append(h.Generations, g)
	h.Trim()
}

// supersede ends what is known of a generation that another one follows.
func (g *Generation) supersede() {
	switch {
	case g.Outcome != api.GenerationProgressing:
	case g.ReadyAt.IsZero():
		g.Outcome = api.GenerationSuperseded
	default:
		g.Outcome = api.GenerationReady
	}
}

// Return makes an earlier generation run in place of the file, whose newest generation failed if why is not empty.
func (h *History) Return(i Instead) {
	switch last := h.Running(); {
	case i.By != "" && last != nil:
		last.supersede()
	case i.By == "" && h.Find(i.Failed) != nil:
		failed := h.Find(i.Failed)
		failed.Outcome, failed.Message = api.GenerationRolledBack, i.Why
	}
	h.Instead = &i
	h.Trim()
}

// Retry makes the file run again that another generation runs in place of. A generation of it that was rolled back is followed by a new
// one.
func (h *History) Retry() {
	h.Instead = nil
}

// Target returns the last generation that ran before the one with a number, was ready, and whose definition is kept; nil: there is none.
func (h *History) Target(before int) *Generation {
	if next := h.Find(before); next != nil && next.After != 0 {
		if g := h.Find(next.After); g != nil && g.Outcome == api.GenerationReady && g.Definition != nil {
			return g
		}
	}
	for i := len(h.Generations) - 1; i >= 0; i-- {
		if g := &h.Generations[i]; g.Number < before && g.Outcome == api.GenerationReady && g.Definition != nil {
			return g
		}
	}
	return nil
}

// Images returns the images that must be kept, without duplicates, in a stable order.
func (h *History) Images() []lifecycle.Image {
	var list []lifecycle.Image
	for i := range h.Generations {
		if d := h.Generations[i].Definition; d != nil {
			list = slices.AppendSeq(list, maps.Values(d.Images))
		}
	}
	order.Sort(list, func(a, b lifecycle.Image) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(list, func(a, b lifecycle.Image) bool { return a.ID == b.ID })
}

// Trim limits the list, and removes definitions that are not needed any more.
func (h *History) Trim() {
	if surplus := len(h.Generations) - maxGenerations; surplus > 0 {
		list := h.Generations[:0]
		for i, g := range h.Generations {
			if i >= surplus || h.Instead != nil && g.Number == h.Instead.Number {
				list = append(list, g)
			}
		}
		h.Generations = list
	}
	ready := 0
	for i := len(h.Generations) - 1; i >= 0; i-- {
		g := &h.Generations[i]
		if h.Instead != nil && g.Number == h.Instead.Number {
			continue
		}
		if g.Outcome == api.GenerationReady {
			ready++
		}
		if i < len(h.Generations)-1 && (g.Outcome != api.GenerationReady || ready > maxReadyGenerations && g.Number != h.Newest().After) {
			g.Definition = nil
		}
	}
}
