package lifecycle_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

// arrow leads from one state to another. What begins, or is there no longer, is "[*]".
type arrow struct{ from, to string }

// cause is why a state follows another.
type cause struct {
	arrow
	why  string
	rare bool // not in the worlds of TestStates, but among 4,000
}

const none = "[*]"

// states are the drawings of docs/design/states.md.
var states = struct{ pod, container, update []cause }{
	pod: []cause{
		{arrow: arrow{none, "Pending"}, why: "accepted"},
		{arrow: arrow{"Pending", "Running"}, why: "the init containers are done, and an app container has started"},
		{arrow: arrow{"Pending", "Succeeded"}, why: "every container has succeeded"},
		{arrow: arrow{"Pending", "Failed"}, why: "stopped, past its deadline, or an init container has failed for good"},
		{arrow: arrow{"Pending", "Unknown"}, why: "the engine does not answer"},
		{arrow: arrow{"Running", "Pending"}, why: "init containers run again: a new sandbox, or a restart of the pod"},
		{arrow: arrow{"Running", "Succeeded"}, why: "every container has succeeded"},
		{arrow: arrow{"Running", "Failed"}, why: "all have exited and one has failed, or the deadline has passed"},
		{arrow: arrow{"Running", "Unknown"}, why: "the engine does not answer", rare: true},
		{arrow: arrow{"Succeeded", "Pending"}, why: "started again or changed", rare: true},
		{arrow: arrow{"Succeeded", "Running"}, why: "a restart is requested", rare: true},
		{arrow: arrow{"Failed", "Pending"}, why: "started again or changed"},
		{arrow: arrow{"Failed", "Running"}, why: "a restart is requested", rare: true},
		{arrow: arrow{"Failed", "Succeeded"}, why: "a container that has failed is no longer in the definition", rare: true},
		{arrow: arrow{"Failed", "Unknown"}, why: "the same, and the engine does not answer", rare: true},
		{arrow: arrow{"Unknown", "Pending"}, why: "the engine answers"},
		{arrow: arrow{"Unknown", "Running"}, why: "the engine answers", rare: true},
		{arrow: arrow{"Unknown", "Failed"}, why: "stopped, or past its deadline", rare: true},
	},
	container: []cause{
		{arrow: arrow{none, "Waiting"}, why: "in the definition"},
		{arrow: arrow{none, "Terminated"}, why: "added to a pod that has completed", rare: true},
		{arrow: arrow{"Waiting", "Running"}, why: "started, and its postStart hook has succeeded"},
		{arrow: arrow{"Waiting", "Terminated"}, why: "it will not start: its pod ends"},
		{arrow: arrow{"Waiting", none}, why: "no longer in the definition"},
		{arrow: arrow{"Running", "Waiting"}, why: "exited, and waits for its restart"},
		{arrow: arrow{"Running", "Terminated"}, why: "exited"},
		{arrow: arrow{"Running", none}, why: "no longer in the definition", rare: true},
		{arrow: arrow{"Terminated", "Waiting"}, why: "waits for its restart"},
		{arrow: arrow{"Terminated", "Running"}, why: "restarted"},
		{arrow: arrow{"Terminated", none}, why: "no longer in the definition", rare: true},
	},
	update: []cause{
		{arrow: arrow{none, "Progressing"}, why: "applied"},
		{arrow: arrow{"Progressing", "Ready"}, why: "ready"},
		{arrow: arrow{"Progressing", "Complete"}, why: "succeeded, or ready again after it was complete"},
		{arrow: arrow{"Progressing", "Failed"}, why: "a run failed, the pod was not ready in time, or it has failed"},
		{arrow: arrow{"Ready", "Complete"}, why: "stayed ready for the minimum ready time"},
		{arrow: arrow{"Ready", "Progressing"}, why: "not ready any more", rare: true},
		{arrow: arrow{"Complete", "Progressing"}, why: "not ready any more, or the next request"},
		{arrow: arrow{"Complete", "Ready"}, why: "the next update", rare: true},
		{arrow: arrow{"Complete", "Failed"}, why: "the pod has failed", rare: true},
		{arrow: arrow{"Failed", "Progressing"}, why: "the next request"},
		{arrow: arrow{"Failed", "Complete"}, why: "kept in spite of it, and ready"},
	},
}

// TestStates checks that the pods of random worlds, the same in each run, take every way of the drawings that is not rare and no other one,
// and that docs/design/states.md has the drawings. This updates the page:
//
//	go test ./supervisor/lifecycle -run TestStates -update
func TestStates(t *testing.T) {
	o := observer{seen: map[string]map[arrow]bool{}}
	lived := 0
	for n := range 120 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			rapid.MakeFuzz(func(t *rapid.T) { // it skips the test if the input is too short
				o.last = situation{}
				observedWorld(t, o.step)
				lived++
			})(t, input(n))
		})
	}
	if lived != 120 {
		t.Fatalf("%d of 120 pods have lived: make the inputs longer", lived)
	}
	if way := o.unknown(); way != "" {
		t.Errorf("a way that is not drawn: %s", way)
	}
	page := "# States\n\nThe states of a pod, of a container and of an update, and what leads from one to another. They are " +
		"computed from the facts, see\n[lifecycle](lifecycle.md). These are the ways that pods took in 4,000 random worlds; " +
		"`TestStates` checks those that are not\nrare.\n"
	for _, d := range []struct {
		title  string
		causes []cause
	}{
		{"Pod", states.pod}, {"Container", states.container}, {"Update", states.update},
	} {
		page += "\n## " + d.title + "\n\n```mermaid\nstateDiagram-v2\n"
		for _, c := range d.causes {
			page += fmt.Sprintf("    %s --> %s: %s\n", c.from, c.to, c.why)
			if !c.rare && !o.seen[d.title][c.arrow] {
				t.Errorf("%s: no world has the way %s -> %s", d.title, c.from, c.to)
			}
		}
		page += "```\n"
	}
	const name = "../../docs/design/states.md"
	if *update {
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if diff := cmp.Diff(page, string(got)); diff != "" || err != nil {
		t.Errorf("%s is not up to date, run go test ./supervisor/lifecycle -run TestStates -update (-want +got):\n%s%v", name, diff, err)
	}
}

// situation has the states of a pod, its containers and its update.
type situation struct {
	pod, update string
	containers  map[string]string
}

func situationOf(s lifecycletest.Step, f lifecycle.Facts) situation {
	status := lifecycle.StatusOf(s.Pod, f, s.Now)
	all := situation{string(status.Phase), string(lifecycle.OutcomeOf(s.Pod, f, &status).State), map[string]string{}}
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses) {
		all.containers[c.Name] = stateOf(c.State)
	}
	return all
}

func stateOf(s lifecycle.State) string {
	switch {
	case s.Running != nil:
		return "Running"
	case s.Terminated != nil:
		return "Terminated"
	}
	return "Waiting"
}

// observer notes the ways that the pods of worlds take.
type observer struct {
	last situation
	seen map[string]map[arrow]bool // by the title of the drawing
}

// step notes what has changed since the last step.
func (o *observer) step(s lifecycletest.Step) {
	now := situationOf(s, s.After)
	o.way("Pod", o.last.pod, now.pod)
	o.way("Update", o.last.update, now.update)
	for name, state := range now.containers {
		o.way("Container", o.last.containers[name], state)
	}
	for name, state := range o.last.containers {
		if now.containers[name] == "" {
			o.way("Container", state, none)
		}
	}
	o.last = now
}

func (o *observer) way(title, from, to string) {
	if from == "" {
		from = none
	}
	if from == to {
		return
	}
	if o.seen[title] == nil {
		o.seen[title] = map[arrow]bool{}
	}
	o.seen[title][arrow{from, to}] = true
}

// unknown returns a way that is in no drawing.
func (o *observer) unknown() string {
	for title, causes := range map[string][]cause{"Pod": states.pod, "Container": states.container, "Update": states.update} {
		drawn := map[arrow]bool{}
		for _, c := range causes {
			drawn[c.arrow] = true
		}
		for a := range o.seen[title] {
			if !drawn[a] {
				return fmt.Sprintf("%s: %s -> %s", strings.ToLower(title), a.from, a.to)
			}
		}
	}
	return ""
}
