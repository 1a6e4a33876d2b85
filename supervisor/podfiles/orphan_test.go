package podfiles

import (
	"testing"
	"time"

	"github.com/podstead/podstead/spec/change"
)

// TestPlanOfOrphans has one row per situation of a pod whose state file was lost, like TestPlan.
func TestPlanOfOrphans(t *testing.T) {
	t.Parallel()
	a, b := podText("a"), podText("b")
	ours := func(*pod) {}
	elsewhere := func(p *pod) { p.definition.Dir = "/srv" }
	read := func(w *facts) { w.directory.read = true }
	web := func(set func(*pod)) pod {
		return running("web", "web.toml", "a").with(func(p *pod) { p.file, p.unowned, p.orphaned = "", true, true }).with(set)
	}
	for _, test := range []struct {
		name   string
		files  map[string]string
		pod    pod
		change func(*facts)
		steps  string
		states string
	}{
		{name: "orphan, directory not read", pod: web(ours)},
		{name: "orphan of a client, directory not read", pod: web(elsewhere)},
		{name: "orphan, without a file", pod: web(ours), change: read, steps: "remove web"},
		{name: "orphan of a client", pod: web(elsewhere), change: read, steps: "remove web"},
		{name: "orphan, with a changed file", files: map[string]string{"web.toml": b}, pod: web(ours), change: read, steps: "redefine web"},
		{name: "orphan, with a file", files: map[string]string{"web.toml": a}, pod: web(ours), change: read, steps: "redefine web"},
		{
			name: "orphan, with an invalid file", files: map[string]string{"other.toml": "x = 1"}, pod: web(ours),
			change: read, states: "other InvalidFile: ",
		},
		{
			name: "orphan of a client, with an invalid file", files: map[string]string{"other.toml": "x = 1"}, pod: web(elsewhere),
			change: read, steps: "remove web", states: "other InvalidFile: ",
		},
		{
			name: "orphan, with two files", files: map[string]string{"web.toml": a, "other.toml": named("web", "b")}, pod: web(ours),
			change: read,
			states: `web Rejected: pod "web" is defined by /etc/podstead/pods.d/other.toml and /etc/podstead/pods.d/web.toml; web ` +
				`Rejected: pod "web" is defined by /etc/podstead/pods.d/other.toml and /etc/podstead/pods.d/web.toml`,
		},
		{name: "orphan, lost directory", pod: web(ours), change: func(w *facts) { read(w); w.directory.lost = errNoFiles }},
		{name: "orphan, another file half-written", pod: web(ours), change: func(w *facts) { read(w); w.settled = w.now.Add(time.Second) }},
		{
			name: "orphan, directory that is being restored", pod: web(ours),
			change: func(w *facts) { read(w); w.directory.settles = w.now.Add(time.Second) },
		},
		{name: "orphan that is being deleted", pod: web(func(p *pod) { p.deleting = true }), change: read},
		{name: "orphan that is not supervised", pod: web(func(p *pod) { p.held = "the daemon crashed" }), change: read},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := factsOf(test.files, test.pod)
			w.between = effect(change.InPlace)
			if test.change != nil {
				test.change(w)
			}
			r := w.plan()
			if got := stepsOf(r.steps); got != test.steps {
				t.Errorf("steps %q, want %q", got, test.steps)
			}
			if got := statesOf(r.files); got != test.states {
				t.Errorf("states\n%s\nwant\n%s", got, test.states)
			}
		})
	}
}
