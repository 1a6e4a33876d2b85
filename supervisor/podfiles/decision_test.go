package podfiles

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles/watch"
)

// watched returns a pod that follows web.toml, with an image and what became of its newest request.
func watched(image string, outcome lifecycle.OutcomeState) pod {
	path := testDir + "/web.toml"
	p := running("web", "web.toml", image)
	p.definition = accept(path, []byte(updating(image, withinHour))).pod
	p.snapshot = &supervisor.Snapshot{Pod: p.definition, Outcome: lifecycle.Outcome{State: outcome, Message: "why"}}
	return p
}

// generationOf returns a generation of web.toml with an image.
func generationOf(number int, image string, outcome api.GenerationOutcome) Generation {
	c := accept(testDir+"/web.toml", []byte(updating(image, withinHour)))
	return Generation{Number: number, Digest: c.hex(), Outcome: outcome, Definition: &Definition{Pod: c.pod}}
}

func historyOf(list ...Generation) *History {
	return &History{Pod: "web", Last: len(list), Generations: list}
}

// rolledBackTo returns a history whose newest generation is not carried out.
func rolledBackTo(number int, by string, list ...Generation) *History {
	h := historyOf(list...)
	newest := h.Newest()
	h.Instead = &Instead{
		Digest: newest.Digest, Number: number, Failed: newest.Number, Why: "why", By: by, Definition: h.Find(number).Definition,
	}
	return h
}

// TestJudge has one row per situation of the newest generation of a pod. Each verdict is recorded, and the next decision follows.
func TestJudge(t *testing.T) {
	t.Parallel()
	const ready, complete = lifecycle.OutcomeReady, lifecycle.OutcomeComplete
	const failing, progressing = lifecycle.OutcomeFailed, lifecycle.OutcomeProgressing
	gen := generationOf
	isReady := func(g Generation) Generation {
		g.ReadyAt = lifecycle.Instant{Boot: "b", Mono: time.Second}
		return g
	}
	dropped := func(g Generation) Generation {
		g.Definition = nil
		return g
	}
	commented := func(f *facts) {
		path := testDir + "/web.toml"
		f.contents[path] = accept(path, []byte("# a comment\n"+updating("b", withinHour)))
	}
	for _, test := range []struct {
		name    string
		file    string // the image
		pod     pod
		history *History
		change  func(*facts)
		want    verdict
	}{
		{name: "no generation", file: "a", pod: watched("a", progressing), want: begun},
		{name: "not ready", file: "a", pod: watched("a", progressing), history: historyOf(gen(1, "a", api.GenerationProgressing))},
		{name: "ready", file: "a", pod: watched("a", ready), history: historyOf(gen(1, "a", api.GenerationProgressing)), want: "ready"},
		{name: "still ready", file: "a", pod: watched("a", ready), history: historyOf(isReady(gen(1, "a", api.GenerationProgressing)))},
		{
			name: "not ready any more", file: "a", pod: watched("a", progressing),
			history: historyOf(isReady(gen(1, "a", api.GenerationProgressing))), want: unready,
		},
		{
			name: "stayed ready", file: "a", pod: watched("a", complete), want: "complete",
			history: historyOf(isReady(gen(1, "a", api.GenerationProgressing))),
		},
		{name: "ready since long", file: "a", pod: watched("a", failing), history: historyOf(gen(1, "a", api.GenerationReady))},
		{
			name: "the first one failed", file: "a", pod: watched("a", failing),
			history: historyOf(gen(1, "a", api.GenerationProgressing)), want: failed,
		},
		{name: "failed before", file: "a", pod: watched("a", failing), history: historyOf(gen(1, "a", api.GenerationFailed))},
		{
			name: "ready after it has failed", file: "a", pod: watched("a", complete),
			history: historyOf(gen(1, "a", api.GenerationFailed)), want: "complete",
		},
		{
			name: "an update failed", file: "b", pod: watched("b", failing), want: rolledBack,
			history: historyOf(gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationProgressing)),
		},
		{
			name: "an update failed, the one before was never ready", file: "b", pod: watched("b", failing), want: failed,
			history: historyOf(gen(1, "a", api.GenerationFailed), gen(2, "b", api.GenerationProgressing)),
		},
		{
			name: "an update failed, the one before is not kept", file: "b", pod: watched("b", failing), want: failed,
			history: historyOf(dropped(gen(1, "a", api.GenerationReady)), gen(2, "b", api.GenerationProgressing)),
		},
		{
			name: "an update of a stopped pod", file: "b", pod: watched("b", failing).with(func(p *pod) { p.stopped = true }),
			history: historyOf(gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationProgressing)),
		},
		{
			name: "a pod that is being deleted", file: "b", pod: watched("b", failing).with(func(p *pod) { p.deleting = true }),
			history: historyOf(gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationProgressing)),
		},
		{
			name: "a pod that is not supervised", file: "b", pod: watched("b", failing).with(func(p *pod) { p.held = "crashed" }),
			history: historyOf(gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationProgressing)),
		},
		{
			name: "another text of the definition", file: "b", pod: watched("b", progressing), change: commented, want: renamed,
			history: historyOf(gen(1, "b", api.GenerationReady)),
		},
		{
			name: "a change that was not recorded", file: "b", pod: watched("b", progressing), want: begun,
			history: historyOf(gen(1, "a", api.GenerationReady)),
		},
		{
			name: "a generation that was rolled back is tried again", file: "b", pod: watched("b", progressing), want: begun,
			history: historyOf(gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationRolledBack)),
		},
		{
			name: "the file waits, the pod is ready", file: "b", pod: watched("a", ready), want: "ready",
			history: historyOf(gen(1, "a", api.GenerationProgressing)),
		},
		{
			name: "the file waits, the pod has stayed ready", file: "b", pod: watched("a", complete), want: "complete",
			history: historyOf(gen(1, "a", api.GenerationProgressing)),
		},
		{
			name: "the file waits, the pod fails", file: "b", pod: watched("a", failing),
			history: historyOf(gen(1, "a", api.GenerationProgressing)),
		},
		{
			name: "the file waits, the pod runs no generation", file: "b", pod: watched("c", ready),
			history: historyOf(gen(1, "a", api.GenerationProgressing)),
		},
		{
			name: "rolled back, the earlier one is not ready", file: "b", pod: watched("a", progressing),
			history: rolledBackTo(1, "", gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationRolledBack)),
		},
		{
			name: "rolled back, the earlier one is ready", file: "b", pod: watched("a", ready), want: returned,
			history: rolledBackTo(1, "", gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationRolledBack)),
		},
		{
			name: "rolled back, the newer one still runs", file: "b", pod: watched("b", failing),
			history: rolledBackTo(1, "", gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationRolledBack)),
		},
		{
			name: "rolled back, the file is changed and runs", file: "c", pod: watched("c", progressing), want: begun,
			history: rolledBackTo(1, "", gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationRolledBack)),
		},
		{
			name: "a step is in progress", file: "b", pod: watched("b", failing),
			history: historyOf(gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationProgressing)),
			change:  func(f *facts) { f.working["web"] = progress{step: step{kind: remove}} },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := factsOf(map[string]string{"web.toml": updating(test.file, withinHour)}, test.pod)
			f.between = effect(change.RestartContainer)
			if test.history != nil {
				f.histories["web"] = test.history
			}
			if test.change != nil {
				test.change(f)
			}
			var got verdict
			for _, r := range f.plan().records {
				got += r.verdict
				if why := map[bool]string{true: "why"}[r.verdict == failed || r.verdict == rolledBack]; r.why != why {
					t.Errorf("it failed because of %q, want %q", r.why, why)
				}
			}
			if got != test.want {
				t.Errorf("verdict %q, want %q", got, test.want)
			}
		})
	}
}

// TestPlanOfRollback: a generation that runs in place of a file is what the pod is changed to, and the file shows why.
func TestPlanOfRollback(t *testing.T) {
	t.Parallel()
	list := []Generation{generationOf(1, "a", api.GenerationReady), generationOf(2, "b", api.GenerationRolledBack)}
	for _, test := range []struct {
		name    string
		file    string
		pod     pod
		history *History
		steps   string
		states  string
	}{
		{
			"failed update", "b", watched("b", lifecycle.OutcomeFailed), rolledBackTo(1, "", list...), "redefine web",
			"web RolledBack: generation 2 was rolled back: why; generation 1 runs",
		},
		{
			"it runs", "b", watched("a", lifecycle.OutcomeProgressing), rolledBackTo(1, "", list...), "",
			"web RolledBack: generation 2 was rolled back: why; generation 1 runs",
		},
		{
			"a person has requested it", "b", watched("b", lifecycle.OutcomeComplete), rolledBackTo(1, "uid 7", list...), "redefine web",
			"web RolloutUndone: generation 1 runs instead, requested by uid 7; the file still has generation 2",
		},
		{"the file was changed", "c", watched("a", lifecycle.OutcomeComplete), rolledBackTo(1, "", list...), "redefine web", ""},
	} {
		f := factsOf(map[string]string{"web.toml": updating(test.file, withinHour)}, test.pod)
		f.between, f.histories["web"] = effect(change.RestartContainer), test.history
		d := f.plan()
		if steps, states := stepsOf(d.steps), statesOf(d.files); steps != test.steps || states != test.states {
			t.Errorf("%s: steps %q, states %q; want %q, %q", test.name, steps, states, test.steps, test.states)
		}
	}
}

// TestPlanOfHeld: a pod that is held for a rollback is released, unless something else is about to run, or that is not known.
func TestPlanOfHeld(t *testing.T) {
	t.Parallel()
	text := func(image string) map[string]string {
		return map[string]string{"web.toml": updating(image, withinHour)}
	}
	list := []Generation{generationOf(1, "a", api.GenerationReady), generationOf(2, "b", api.GenerationRolledBack)}
	rolled := func(f *facts) { f.histories["web"] = rolledBackTo(1, "", list...) }
	for _, test := range []struct {
		name   string
		files  map[string]string
		change func(*facts)
		keep   bool
	}{
		{name: "an earlier generation replaces it", files: text("b"), change: rolled},
		{name: "no earlier generation replaces it", files: text("b"), keep: true},
		{name: "invalid file", files: map[string]string{"web.toml": "x = 1"}, keep: true},
		{name: "file that is not taken yet", files: text("b"), change: func(f *facts) { f.settled = f.now.Add(time.Second) }},
		{name: "another definition replaces it", files: text("c")},
		{
			name: "the other definition cannot run", files: text("c"), keep: true,
			change: func(f *facts) {
				s := f.plan().steps[0]
				f.attempts["web"] = attempt{key: s.key(), err: errors.New("no such image"), next: f.now.Add(time.Hour)}
			},
		},
		{
			name: "its change has not ended", files: text("b"),
			change: func(f *facts) {
				f.working["web"] = progress{step: step{kind: redefine, pod: "web", target: f.contents[testDir+"/web.toml"]}}
			},
		},
		{name: "it is about to be kept", files: text("b"), change: func(f *facts) { f.keeping["uid-web"] = true }},
		{name: "suspended", files: text("b"), change: func(f *facts) { f.suspended = f.now.Add(time.Second) }},
		{name: "directory lost a moment ago", change: func(f *facts) { f.directory.lost, f.directory.since = errNoFiles, f.now }},
		{
			name: "directory lost for long", keep: true,
			change: func(f *facts) { f.directory.lost, f.directory.since = errNoFiles, f.now.Add(-time.Hour) },
		},
		{name: "generations unread since a moment ago", files: text("b"), change: func(f *facts) { f.unloaded = f.now }},
		{name: "generations unread for long", files: text("b"), keep: true, change: func(f *facts) { f.unloaded = f.now.Add(-time.Hour) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := watched("b", lifecycle.OutcomeFailed)
			p.snapshot.Facts.Trial = lifecycle.NewTrial(time.Hour, 0, true, lifecycle.Instant{})
			p.snapshot.Facts.Trial.Failed = lifecycle.Instant{Boot: "b", Mono: 1}
			f := factsOf(test.files, p)
			f.times.settle, f.between = 10*time.Second, effect(change.RestartContainer)
			if test.change != nil {
				test.change(f)
			}
			d := f.plan()
			if keep := len(d.keep) == 1 && d.keep[0].name == "web"; keep != test.keep || len(d.keep) > 1 {
				t.Errorf("kept %v, want %v", d.keep, test.keep)
			}
			if !f.unloaded.IsZero() && (len(d.steps)+len(d.files)+len(d.records) > 0 || d.again.IsZero()) {
				t.Errorf("without generations: %+v", d)
			}
		})
	}
}

// TestPlanOfWorkers: a step is canceled when its pod is to run something else by now, and the removal of a pod never is.
func TestPlanOfWorkers(t *testing.T) {
	t.Parallel()
	path := testDir + "/web.toml"
	at := func(image string) *content { return accept(path, []byte(podText(image))) }
	for _, test := range []struct {
		name   string
		files  map[string]string
		step   step
		change func(*facts)
		cancel string
	}{
		{name: "the same definition", files: map[string]string{"web.toml": podText("b")}, step: step{kind: redefine, target: at("b")}},
		{
			name: "another definition", files: map[string]string{"web.toml": podText("c")},
			step: step{kind: redefine, target: at("b")}, cancel: "web",
		},
		{name: "invalid file", files: map[string]string{"web.toml": "x = 1"}, step: step{kind: redefine, target: at("b")}, cancel: "web"},
		{name: "removed file", step: step{kind: add, target: at("b")}, cancel: "web"},
		{name: "removal", files: map[string]string{"web.toml": podText("c")}, step: step{kind: remove}},
		{
			name: "other images are requested", files: map[string]string{"web.toml": podText("b")},
			step:   step{kind: redefine, target: at("b")},
			change: func(f *facts) { f.newer["web"] = newer{at("b").digest, map[string]lifecycle.Image{"app": {ID: "x"}}} }, cancel: "web",
		},
	} {
		f := factsOf(test.files, running("web", "web.toml", "a"))
		test.step.pod = "web"
		f.working["web"] = progress{step: test.step}
		if test.change != nil {
			test.change(f)
		}
		if got := strings.Join(f.plan().cancel, " "); got != test.cancel {
			t.Errorf("%s: canceled %q, want %q", test.name, got, test.cancel)
		}
	}
}

// TestPlanOfReports: an event is emitted when the state of a file or of the directory changes, once.
func TestPlanOfReports(t *testing.T) {
	t.Parallel()
	key := (&File{Path: testDir + "/web.toml", Pod: "web"}).key()
	invalid := map[string]string{"web.toml": "x = 1"}
	for _, test := range []struct {
		name   string
		files  map[string]string
		change func(*facts)
		want   []api.EventKind
	}{
		{name: "valid file", files: map[string]string{"web.toml": podText("a")}},
		{name: "invalid file", files: invalid, want: []api.EventKind{api.EventFileInvalid}},
		{
			name: "invalid file, reported", files: invalid,
			change: func(f *facts) { f.reported[key] = f.plan().reports[0].state },
		},
		{
			name: "corrected file", files: map[string]string{"web.toml": podText("a")}, want: []api.EventKind{api.EventFileAccepted},
			change: func(f *facts) { f.reported[key] = "FileInvalid" },
		},
		{name: "invalid file, shown", files: invalid, change: func(f *facts) { f.shown = f.plan().files }},
		{
			name: "directory lost a moment ago", files: map[string]string{"web.toml": podText("a")},
			change: func(f *facts) { f.directory.lost, f.directory.since = errNoFiles, f.now },
		},
		{
			name: "directory lost", files: map[string]string{"web.toml": podText("a")}, want: []api.EventKind{api.EventPodsDirLost},
			change: func(f *facts) { f.directory.lost, f.directory.since = errNoFiles, f.now.Add(-time.Minute) },
		},
		{
			name: "directory lost, reported", files: map[string]string{"web.toml": podText("a")},
			change: func(f *facts) {
				f.directory.lost, f.directory.since, f.lost = errNoFiles, f.now.Add(-time.Minute), true
			},
		},
		{
			name: "directory found", files: map[string]string{"web.toml": podText("a")}, want: []api.EventKind{api.EventPodsDirFound},
			change: func(f *facts) { f.lost = true },
		},
	} {
		f := factsOf(test.files, running("web", "web.toml", "a"))
		if test.change != nil {
			test.change(f)
		}
		var got []api.EventKind
		for _, r := range f.plan().reports {
			got = append(got, r.kind)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: events %v, want %v", test.name, got, test.want)
		}
	}
}

// TestPlanOfUndo has one row per request to undo a rollout.
func TestPlanOfUndo(t *testing.T) {
	t.Parallel()
	gen := generationOf
	two := historyOf(gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationReady))
	rolled := rolledBackTo(1, "", gen(1, "a", api.GenerationReady), gen(2, "b", api.GenerationRolledBack))
	web := watched("b", lifecycle.OutcomeComplete)
	for _, test := range []struct {
		name    string
		file    string
		pods    []pod
		history *History
		to      int
		want    int // 0: the file is tried again
		err     string
	}{
		{name: "the one before", file: "b", pods: []pod{web}, history: two, want: 1},
		{name: "by number", file: "b", pods: []pod{web}, history: two, to: 1, want: 1},
		{name: "the one that runs", file: "b", pods: []pod{web}, history: two, to: 2, err: "runs already"},
		{name: "no such generation", file: "b", pods: []pod{web}, history: two, to: 7, err: "has no generation 7"},
		{
			name: "the only one", file: "b", pods: []pod{web},
			history: historyOf(gen(1, "b", api.GenerationReady)), err: "no earlier generation that was ready",
		},
		{name: "no generation", file: "b", pods: []pod{web}, err: "has no earlier generation"},
		{name: "the file waits", file: "c", pods: []pod{web}, history: two, want: 2},
		{name: "one that was rolled back", file: "b", pods: []pod{watched("a", lifecycle.OutcomeReady)}, history: rolled, to: 2},
		{name: "no pod", file: "b", history: two, err: "is being replaced"},
		{name: "no pod and no file", err: "it does not exist"},
		{name: "invalid file", file: "\n", pods: []pod{web}, history: two, err: "no valid file"},
		{name: "pod of a client", pods: []pod{web.with(func(p *pod) { p.file = "" })}, err: "it has no file"},
		{
			name: "pod that is being deleted", file: "b",
			pods: []pod{web.with(func(p *pod) { p.deleting = true })}, history: two, err: "is being deleted",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{}
			if test.file != "" {
				files["web.toml"] = strings.Replace(updating(test.file, withinHour), `"\n"`, "", 1)
			}
			f := factsOf(files, test.pods...)
			f.between = effect(change.RestartContainer)
			if test.history != nil {
				f.histories["web"] = test.history
			}
			target, err := f.undo("web", test.to)
			if text(err) != "" && (test.err == "" || !strings.Contains(err.Error(), test.err)) || err == nil && test.err != "" {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err == nil && (target == nil) != (test.want == 0) || target != nil && target.Number != test.want {
				t.Errorf("generation %+v, want %d", target, test.want)
			}
		})
	}
}

// TestPermits: a step that was prepared is not carried out if the pod has changed meanwhile.
func TestPermits(t *testing.T) {
	t.Parallel()
	p := pod{name: "web", uid: "1"}
	for name, test := range map[string]struct {
		now             *pod
		remove, replace bool
	}{
		"unchanged":      {&p, true, true},
		"deleted":        {nil, true, false},
		"another":        {new(p.with(func(p *pod) { p.uid = "2" })), true, false},
		"stopped":        {new(p.with(func(p *pod) { p.stopped = true })), true, false},
		"being deleted":  {new(p.with(func(p *pod) { p.deleting = true })), true, false},
		"not supervised": {new(p.with(func(p *pod) { p.held = "crashed" })), false, false},
	} {
		for kind, want := range map[kind]bool{remove: test.remove, replace: test.replace, add: true, redefine: true} {
			if got := (&step{kind: kind, uid: "1"}).permits(test.now); got != want {
				t.Errorf("%s: %s %v, want %v", name, kind, got, want)
			}
		}
	}
}

// TestPlanChangesNothing: equal facts have equal decisions, and a decision changes no fact.
func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	f := factsOf(map[string]string{"web.toml": updating("b", withinHour), "bad.toml": "x = 1", "db.toml": podText("a")},
		watched("b", lifecycle.OutcomeFailed), running("old", "old.toml", "a"), running("db", "db.toml", "a"))
	f.between = effect(change.RestartContainer)
	f.histories["web"] = historyOf(generationOf(1, "a", api.GenerationReady), generationOf(2, "b", api.GenerationProgressing))
	f.newer["db"] = newer{digest: f.contents[testDir+"/db.toml"].digest}
	before := *f
	before.contents, before.pods, before.newer = maps.Clone(f.contents), maps.Clone(f.pods), maps.Clone(f.newer)
	before.missing, before.attempts, before.reported = maps.Clone(f.missing), maps.Clone(f.attempts), maps.Clone(f.reported)
	before.histories = map[string]*History{"web": f.histories["web"].Clone()}
	options := cmp.Options{
		cmp.AllowUnexported(
			facts{}, directory{}, content{}, pod{}, absence{}, newer{}, progress{}, step{}, attempt{}, times{},
			decision{}, record{}, report{},
		),
		cmpopts.IgnoreFields(facts{}, "compare", "between"), cmpopts.EquateComparable(watch.ID{}),
		cmp.Comparer(func(a, b error) bool { return text(a) == text(b) }),
	}
	first, second := f.plan(), f.plan()
	if len(first.records) == 0 || len(first.steps) == 0 || len(first.used) == 0 || len(first.reports) == 0 {
		t.Errorf("the decision is too small: %+v", first)
	}
	if diff := cmp.Diff(first, second, options); diff != "" {
		t.Errorf("the second decision differs (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(&before, f, options); diff != "" {
		t.Errorf("the decision has changed facts:\n%s", diff)
	}
}

// TestPlanOfApply has one row per situation in which a file is applied.
func TestPlanOfApply(t *testing.T) {
	t.Parallel()
	list := []Generation{generationOf(1, "a", api.GenerationReady), generationOf(2, "b", api.GenerationRolledBack)}
	web := watched("a", lifecycle.OutcomeComplete)
	for _, test := range []struct {
		name    string
		file    string // the image in the directory; empty: there is no file
		pods    []pod
		history *History
		text    string // the image that is applied
		create  bool
		want    api.Outcome
		instead string
		undone  string
		retry   bool
		err     string
	}{
		{name: "new pod", text: "a", want: api.PodCreated},
		{name: "new pod, created", text: "a", create: true, want: api.PodCreated},
		{name: "the same file", file: "a", pods: []pod{web}, text: "a", want: api.PodUnchanged},
		{name: "another file", file: "a", pods: []pod{web}, text: "b", want: api.PodConfigured},
		{name: "pod that exists, created", file: "a", pods: []pod{web}, text: "b", create: true, err: `pod "web" already exists`},
		{name: "file without a pod, created", file: "a", text: "b", create: true, err: `pod "web" already exists`},
		{
			name: "pod that is being deleted", file: "a", pods: []pod{web.with(func(p *pod) { p.deleting = true })}, text: "a",
			want: api.PodCreated,
		},
		{name: "pod of a client", pods: []pod{web.with(func(p *pod) { p.file = "" })}, text: "a", err: `pod "web" already exists`},
		{
			name: "a file that was rolled back", file: "b", pods: []pod{web}, history: rolledBackTo(1, "", list...), text: "b",
			want: api.PodUnchanged, instead: "generation 2 was rolled back: why; generation 1 runs",
		},
		{
			name: "another file after a rollback", file: "b", pods: []pod{web},
			history: rolledBackTo(1, "", list...), text: "c", want: api.PodConfigured,
		},
		{
			name: "a file that a person had undone", file: "b", pods: []pod{web}, history: rolledBackTo(1, "uid 7", list...), text: "b",
			want: api.PodConfigured, undone: "generation 1, requested by uid 7", retry: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{}
			if test.file != "" {
				files["web.toml"] = updating(test.file, withinHour)
			}
			f := factsOf(files, test.pods...)
			f.between = effect(change.RestartContainer)
			if test.history != nil {
				f.histories["web"] = test.history
			}
			next, replaced, err := f.place(acceptedFile(t, "/home/web.toml", updating(test.text, withinHour)))
			if err != nil || next.path != testDir+"/web.toml" || next.pod.Dir != testDir || len(replaced) > 0 {
				t.Fatalf("placed at %+v, replaces %v, %v", next, replaced, err)
			}
			a, err := f.apply(next, replaced, nil, lifecycle.Instant{}, test.create)
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			plan := &a.plan
			got := []any{plan.Outcome, plan.Instead, plan.Undone, a.retry}
			if want := []any{test.want, test.instead, test.undone, test.retry}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, %v; want %v", got, err, want)
			}
			if (len(plan.Changes) > 0) != (test.want == api.PodConfigured) {
				t.Errorf("changes %v", plan.Changes)
			}
		})
	}
}
