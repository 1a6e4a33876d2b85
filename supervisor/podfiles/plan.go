package podfiles

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// decision is what the facts require: what to do, what to show, and when to decide again.
type decision struct {
	records []record // what has become of generations, to be recorded before anything else: another decision follows
	files   []File
	reports []report // events about files whose state has changed, and about the directory
	steps   []step   // to be carried out, at most one for each pod
	cancel  []string // names of the pods whose step in progress has an outdated aim
	keep    []pod    // pods to be released that are held for a rollback
	used    []string // names of the pods that use the newer images that were requested

	targets map[string]*content // by name of the pod: what is to run, that of a file that is not refused or an earlier generation
	again   time.Time           // when to look again; zero: after the next change
}

// kind is what a step does.
type kind string

const (
	add      kind = "add"
	redefine kind = "redefine"
	replace  kind = "replace"
	remove   kind = "remove"
)

// step changes one pod.
type step struct {
	kind    kind
	pod     string
	uid     string   // of the pod that exists
	file    string   // that the pod follows
	target  *content // nil for remove
	newer   map[string]lifecycle.Image
	changes []change.Change
}

// key identifies what a step aims at: it is the same while neither the file nor the pod changes.
func (s *step) key() string {
	if s.target == nil {
		return "remove " + s.uid
	}
	var key strings.Builder
	fmt.Fprintf(&key, "%s %s %x", s.uid, s.target.path, s.target.digest)
	for _, container := range slices.Sorted(maps.Keys(s.newer)) {
		key.WriteString(" " + container + " " + s.newer[container].ID)
	}
	return key.String()
}

// pending is why a definition that is accepted does not run yet.
type pending struct {
	text string
	err  error // of the newest attempt; nil: it is in progress
}

func (p *pending) Error() string {
	if p.err != nil {
		return fmt.Sprintf("%s: %v", p.text, p.err)
	}
	return p.text
}

func (p *pending) Unwrap() error { return p.err }

// plan decides what the pods and the files need now. It is a pure function of the facts, and does not depend on how files and pods came to
// differ. Record what it returns in records, and decide again, before the rest is carried out.
//
//	pod         file                                     decision
//	-           valid                                    add
//	exists      the same definition                      none
//	exists      another definition                       redefine, or replace if the change requires that
//	exists      valid, an update of it was rolled back   as if the file had the definition of the earlier generation
//	exists      missing, or defines another pod          remove, after a delay
//	-           valid, with a schedule                   none: package schedule starts its runs
//	exists      of the same file, now with a schedule    remove, after a delay
//	exists      invalid, refused, or half-written        none
//	held        nothing else is about to run             keep
func (f *facts) plan() decision {
	if !f.unloaded.IsZero() { // a file may have failed before
		d := decision{again: f.now.Add(f.times.retry)}
		f.keepHeld(&d)
		return d
	}
	d := f.planFiles()
	f.oneByOne(&d)
	for _, name := range sortedNames(f.pods) {
		p := f.pods[name]
		if d.targets[name] == nil {
			f.end(&p, &d)
		}
		f.judge(&p, &d)
	}
	f.cancelOutdated(&d)
	f.keepHeld(&d)
	f.report(&d)
	d.lookAgain(f.settled)
	return d
}

// lookAgain makes the next decision at most as late as at; zero: no change.
func (d *decision) lookAgain(at time.Time) {
	if !at.IsZero() && (d.again.IsZero() || at.Before(d.again)) {
		d.again = at
	}
}

// planFiles decides what becomes of the files, and of the pods that they define.
func (f *facts) planFiles() decision {
	d := decision{targets: map[string]*content{}}
	defined := map[string][]string{} // paths by name of the pod
	for c := range f.each() {
		if c.pod != nil {
			defined[c.pod.Name] = append(defined[c.pod.Name], c.path)
		}
	}
	for c := range f.each() {
		shown := File{Path: c.path, Pod: f.nameOf(c), Problems: c.problems}
		if c.pod != nil {
			shown.SpecHash, shown.Definition = c.pod.Hash, c.pod
		}
		switch same := defined[shown.Pod]; {
		case c.err != nil:
			shown.Reason, shown.Refused = api.ReasonInvalidFile, c.err
		case c.pod == nil:
			shown.Reason = api.ReasonInvalidFile
		case c.pod.Systemd != nil:
			shown.Refused = &pending{text: "started by podstead@" + c.pod.Name + ".service"}
		case len(same) > 1:
			shown.Reason, shown.Refused = api.ReasonRejected, fmt.Errorf("pod %q is defined by %s", shown.Pod, strings.Join(same, " and "))
		case c.pod.Schedule != nil:
			if p := f.pods[shown.Pod]; p.name != "" && p.file != c.path && !p.deleting && !p.inSession() {
				shown.Reason, shown.Refused = api.ReasonRejected, f.taken(&p, c)
			}
		default:
			f.converge(c, &shown, &d)
		}
		d.files = append(d.files, shown)
		if c.pod != nil || c.name != "" {
			continue
		}
		for _, other := range f.followers(c.path) { // of a file that defined several pods
			if also := shown; other != shown.Pod {
				also.Pod = other
				d.files = append(d.files, also)
			}
		}
	}
	return d
}

// converge adds the step that makes a pod run a definition, and why it does not run yet.
func (f *facts) converge(c *content, shown *File, d *decision) {
	p, exists := f.pods[c.pod.Name]
	if exists && p.file == "" && !p.deleting && (!p.unowned || p.held != "") {
		shown.Reason, shown.Refused = api.ReasonRejected, f.taken(&p, c)
		return
	}
	t := f.target(c)
	d.targets[c.pod.Name] = t
	if t.instead != nil {
		shown.Reason, shown.Refused = api.ReasonRolledBack, errors.New(t.instead.String())
		if t.instead.By != "" {
			shown.Reason = api.ReasonRolloutUndone
		}
	}
	s := step{kind: add, pod: c.pod.Name, target: t, file: c.path}
	if exists {
		if p.deleting {
			return // added after the deletion
		}
		s.uid, s.changes, s.newer = p.uid, f.changes(&p, t), f.newerFor(&p, t)
		if len(s.changes) == 0 && p.file == c.path {
			d.used = append(d.used, p.name)
			return
		}
		if p.held != "" {
			shown.Refused = &pending{text: "the pod is not supervised: " + p.held}
			return
		}
		before := f.attempts[p.name]
		s.kind = redefine
		if change.Largest(s.changes) == change.ReplacePod || before.replace && before.key == s.key() {
			s.kind = replace
		}
		if s.kind == replace && p.stopped {
			shown.Refused = &pending{text: "the pod is stopped, and is replaced after podstead start " + p.name}
			return
		}
	}
	f.attempt(s, shown, d)
}

// taken is why a file is not carried out whose name another pod has.
func (f *facts) taken(p *pod, c *content) error {
	return &supervisor.NameTakenError{Name: p.name, Holder: cmp.Or(p.by, "created earlier") + ", so " + c.path + " is not used"}
}

// attempt adds a step, unless it must wait since the newest attempt. The newest error stays visible until the step succeeds.
func (f *facts) attempt(s step, shown *File, d *decision) {
	before := f.attempts[s.pod]
	repeated := before.key == s.key()
	refused, isRefused := errors.AsType[*supervisor.RefusedError](before.err)
	switch doing, working := f.working[s.pod]; {
	case repeated && isRefused:
		shown.Reason, shown.Refused = api.ReasonRejected, refused
	case repeated && before.err != nil && s.kind == add:
		shown.Reason, shown.Refused = api.ReasonRejected, before.err
	case repeated && before.err != nil:
		shown.Refused = &pending{"update waits", before.err}
	case working && s.kind != add && shown.Reason == "": // why a file was rolled back stays visible
		shown.Refused, shown.Preparing = &pending{text: doing.text}, doing.preparing
	}
	next := before.next
	if isRefused && before.pods != f.fingerprint() {
		next = before.changed
	}
	if repeated && f.now.Before(next) {
		if s.kind == add && before.err != nil {
			shown.Next = next
		}
		d.lookAgain(next)
		return
	}
	d.steps = append(d.steps, s)
}

// end adds the step that deletes a pod whose file was removed, or defines another pod now. A pod that is not supervised is kept: a step
// would take it up, and that may be what crashes the daemon.
func (f *facts) end(p *pod, d *decision) {
	if p.file == "" && !p.orphaned || p.deleting || p.held != "" {
		return
	}
	switch c := f.contents[p.file]; {
	case p.orphaned:
		if !f.endsOrphan(p, d) {
			return
		}
	case f.confirmed[p.file] && !f.present[p.file]:
	case filepath.Dir(p.file) != f.path:
		return
	case f.isContested(p.name):
		return // the file is missing, and no other one may take its place
	case f.present[p.file] && !d.isCarriedOut(c):
		return // the file is invalid, refused, or not taken yet
	case f.directory.lost != nil || f.unsettled():
		return
	default:
		if due := f.endDue(p); f.listed.Before(due) {
			d.lookAgain(due)
			return
		}
	}
	s := step{kind: remove, pod: p.name, uid: p.uid, file: p.file}
	if before := f.attempts[p.name]; before.key == s.key() && f.now.Before(before.next) {
		d.lookAgain(before.next)
		return
	}
	d.steps = append(d.steps, s)
}

// endsOrphan reports whether a pod whose state file was lost ends, because the directory was read and no file defines the pod. A file that
// is invalid, or whose content is not taken yet, may define it.
func (f *facts) endsOrphan(p *pod, d *decision) bool {
	if !f.directory.read || f.directory.lost != nil || f.unsettled() {
		return false
	}
	for c := range f.each() {
		if f.nameOf(c) == p.name || c.pod == nil && c.name == "" && f.orphaned(p) {
			return false
		}
	}
	if f.listed.Before(f.directory.settles) {
		d.lookAgain(f.directory.settles)
		return false
	}
	return true
}

// isCarriedOut reports whether a file is valid, as far as it may define other pods than it says, and a pod runs because of it.
func (d *decision) isCarriedOut(c *content) bool {
	carried := false
	for definition := range c.all() {
		if definition.pod == nil && definition.name == "" {
			return false
		}
		carried = carried || definition.pod != nil && (definition.pod.Schedule != nil || d.carriesOut(c.path, definition.pod.Name))
	}
	return carried
}

// carriesOut reports whether a pod is to run because of a file.
func (d *decision) carriesOut(path, pod string) bool {
	t := d.targets[pod]
	return t != nil && t.path == path
}

// endDue returns when a pod ends that has no file any more, if a listing that begins then does not find one either. The directory is known
// as of the newest listing only: the file may have returned since, without a notification. Another file may also define the pod soon, as
// while git changes files one after the other.
func (f *facts) endDue(p *pod) time.Time {
	a, known := f.missing[p.name]
	if !known || a.file != p.file { // the pod has changed since the newest listing
		a.since = f.listed.Add(time.Nanosecond)
	}
	due := a.since.Add(f.times.removal)
	if due.Before(f.directory.settles) {
		due = f.directory.settles
	}
	return due
}

// cancelOutdated adds the pods whose step in progress aims at something else than what is to run now.
func (f *facts) cancelOutdated(d *decision) {
	for _, name := range slices.Sorted(maps.Keys(f.working)) {
		s := f.working[name].step
		if s.target == nil {
			continue
		}
		if want := d.targets[name]; want == nil || !want.isSame(s.target) || f.outdates(&s) {
			d.cancel = append(d.cancel, name)
		}
	}
}

// isSame reports whether two contents are the same definition in the same file.
func (c *content) isSame(other *content) bool {
	return c.path == other.path && c.digest == other.digest
}

// permits reports whether a step can still be carried out, with the pod as it is now; nil: it does not exist.
func (s *step) permits(now *pod) bool {
	switch s.kind {
	case remove:
		return now == nil || now.uid != s.uid || now.held == ""
	case replace:
		return now != nil && now.uid == s.uid && !now.stopped && !now.deleting && now.held == ""
	case add, redefine:
	}
	return true
}

// keepHeld adds the pods to be kept that start nothing because their definition failed, unless another one replaces it: their file is
// invalid or was removed, the other definition cannot run, or their generations were lost. What cannot be read is waited for.
func (f *facts) keepHeld(d *decision) {
	if f.now.Before(f.suspended) || f.unsettled() {
		return
	}
	if until := f.unread(); f.now.Before(until) {
		d.lookAgain(until)
		return
	}
	for _, name := range sortedNames(f.pods) {
		p, t := f.pods[name], d.targets[name]
		_, working := f.working[name]
		switch {
		case p.snapshot == nil || !p.snapshot.Facts.Trial.Holds() || f.keeping[p.uid]:
		case t != nil && f.replaces(&p, t):
		case t != nil && working && len(f.between(&p, t)) == 0: // it is judged when its change is done
		default:
			d.keep = append(d.keep, p)
		}
	}
}

// unread returns until when to wait for generations, or for a directory, that cannot be read; zero: they were read.
func (f *facts) unread() time.Time {
	since := f.directory.since
	if !f.unloaded.IsZero() {
		since = f.unloaded
	}
	if since.IsZero() {
		return time.Time{}
	}
	return since.Add(f.times.settle)
}

// replaces reports whether a content is about to run in place of what a pod has, and no attempt of that has failed.
func (f *facts) replaces(p *pod, t *content) bool {
	if t.instead == nil && len(f.changes(p, t)) == 0 {
		return false
	}
	s := step{uid: p.uid, target: t, newer: f.newerFor(p, t)}
	before := f.attempts[p.name]
	return before.err == nil || before.key != s.key()
}

// after returns the newest attempt for a pod after a step has ended at a time, which began with these other pods; ended is false if the
// step was not carried out, and another one follows.
func (f *facts) after(s *step, pods string, err error, at time.Time) (a attempt, ended bool) {
	if errors.Is(err, errOutdated) || errors.Is(err, supervisor.ErrNotFound) || errors.Is(err, supervisor.ErrLeaving) {
		return attempt{}, false
	}
	key := s.key()
	a = attempt{key: key, err: err, count: 1, next: at.Add(time.Second), pods: pods, replace: s.kind == replace}
	if before := f.attempts[s.pod]; before.key == key {
		a.count = before.count + 1
	}
	if _, must := errors.AsType[*supervisor.ReplaceError](err); must {
		a.err, a.next, a.replace = nil, at, true
	} else if err != nil {
		delay := f.delay(a.count)
		a.next, a.changed = at.Add(delay), at.Add(delay/10)
	}
	return a, true
}

// errOutdated ends a step because the pod has changed meanwhile. The next decision follows.
var errOutdated = errors.New("the pod has changed")

// delay is the time before a step is repeated that has failed count times.
func (f *facts) delay(count int) time.Duration {
	d := f.times.retry
	for range count - 1 {
		if d *= 2; d >= f.times.maxRetry {
			return f.times.maxRetry
		}
	}
	return d
}

// verdict is what has become of a generation.
type verdict string

const (
	begun      verdict = "begun"      // the pod runs a definition that was not recorded
	renamed    verdict = "renamed"    // the file has another text for the definition that runs
	ready      verdict = "ready"      // it is ready
	unready    verdict = "unready"    // it is not ready any more
	complete   verdict = "complete"   // it has stayed ready, or has succeeded
	failed     verdict = "failed"     // it failed, and is kept
	rolledBack verdict = "rolledBack" // it failed, and an earlier generation runs in its place from now on
	returned   verdict = "returned"   // the earlier generation that runs in its place is ready
)

// record is what has become of the newest generation of a pod.
type record struct {
	verdict verdict
	pod     pod
	target  *content // what the pod runs
	why     string   // it failed
}

// judge adds what has become of the generation that a pod runs, one thing at a time.
func (f *facts) judge(p *pod, d *decision) {
	t := d.targets[p.name]
	if t == nil || p.file != t.path || p.deleting || p.held != "" {
		return
	}
	h := f.histories[p.name]
	_, working := f.working[p.name]
	r := record{pod: *p, target: t}
	switch {
	case working || len(f.changes(p, t)) > 0:
		r.verdict = f.judgeOutdated(h, p)
	case t.instead != nil:
		state := p.snapshot.Outcome.State
		if !p.stopped && !h.Instead.Completed && (state == lifecycle.OutcomeReady || state == lifecycle.OutcomeComplete) {
			r.verdict = returned
		}
	default:
		if r.verdict = f.judgeText(h, p, t); r.verdict == "" && !p.stopped {
			r.verdict, r.why = judgeOutcome(h, p)
		}
	}
	if r.verdict != "" {
		d.records = append(d.records, r)
	}
}

// judgeOutdated judges a pod whose file defines something else by now, such as while an update waits for an image. If the update fails, the
// pod can return to what it runs.
func (f *facts) judgeOutdated(h *History, p *pod) verdict {
	if h == nil || h.Instead != nil || p.stopped {
		return ""
	}
	g := h.Newest()
	if g == nil || g.Outcome == api.GenerationReady || !g.ReadyAt.IsZero() || g.Definition == nil || !f.runs(p, g.Definition) {
		return ""
	}
	switch p.snapshot.Outcome.State {
	case lifecycle.OutcomeComplete:
		return complete
	case lifecycle.OutcomeReady:
		return ready
	case lifecycle.OutcomeFailed, lifecycle.OutcomeProgressing:
	}
	return ""
}

// runs reports whether a pod has the definition of a generation, and uses its images as far as they are known.
func (f *facts) runs(p *pod, g *Definition) bool {
	return len(f.compare(g.Pod, p.own())) == 0 && len(supervisor.ImageChanges(p.snapshot, g.Pod, g.Images)) == 0
}

// judgeText compares the definition that a pod runs with the newest generation. It is new if it was changed in a way that needs no change
// of the pod, or by a daemon that did not record it.
func (f *facts) judgeText(h *History, p *pod, t *content) verdict {
	if h == nil || h.Instead != nil {
		return begun
	}
	last := h.Newest()
	switch {
	case last == nil || last.Definition == nil || last.Outcome == api.GenerationRolledBack: // it is tried again
		return begun
	case last.Digest == t.hex():
		return ""
	case len(f.compare(last.Definition.Pod, p.own())) == 0: // such as a comment
		return renamed
	}
	return begun
}

// judgeOutcome judges the newest generation of a pod, which the pod runs.
func judgeOutcome(h *History, p *pod) (v verdict, why string) {
	g, outcome := h.Newest(), p.snapshot.Outcome
	switch {
	case g.Outcome == api.GenerationReady:
	case outcome.State == lifecycle.OutcomeComplete:
		return complete, ""
	case outcome.State == lifecycle.OutcomeReady:
		if g.ReadyAt.IsZero() {
			return ready, ""
		}
	case outcome.State == lifecycle.OutcomeFailed:
		if g.Outcome != api.GenerationProgressing {
			return "", ""
		}
		if _, _, rollback := p.definition.UpdateRule(); rollback && h.Target(g.Number) != nil {
			return rolledBack, outcome.Message
		}
		return failed, outcome.Message
	case !g.ReadyAt.IsZero():
		return unready, ""
	}
	return "", ""
}

// judgeRefused reports whether an earlier generation runs in place of a definition that cannot be added because of the host or other pods,
// after the pod that ran before was deleted.
func (f *facts) judgeRefused(t *content) bool {
	h := f.histories[t.pod.Name]
	return t.instead == nil && h != nil && rollsBackIfFailed(h) && h.Newest().Digest == t.hex()
}

// aims reports whether a step still aims at what its pod is to run.
func (f *facts) aims(s *step) bool {
	c := f.defining(s.pod)
	return c != nil && f.target(c).isSame(s.target)
}

// beginning is what a pod is about to run.
type beginning struct {
	definition *spec.Pod
	digest     string                     // of the text of the file
	uid        string                     // of the pod that runs; empty: there is none
	by         string                     // who requested it
	images     map[string]lifecycle.Image // that its containers are about to use, as far as that is known
	changes    []change.Change            // those that only the images show
}

// beginning returns what a step is about to run with these images.
func (f *facts) beginning(s *step, images map[string]lifecycle.Image, by string) beginning {
	b := beginning{definition: s.target.pod, digest: s.target.hex(), uid: s.uid, by: f.requester(s.target, by), images: images}
	if p, exists := f.pods[s.pod]; exists && p.uid == s.uid && len(s.newer) > 0 {
		b.changes = supervisor.ImageChanges(p.snapshot, s.target.pod, images)
	}
	return b
}

// novelty is whether what a pod is about to run is the newest generation.
type novelty string

const (
	newGeneration novelty = "new"
	interrupted   novelty = "interrupted" // it is, and is not ready yet
	known         novelty = "known"       // it is, and was ready
)

// compare compares what a pod is about to run with the newest generation. The same text with other images is a generation of its own.
func (b *beginning) compare(h *History) novelty {
	last := h.Newest()
	switch {
	case last == nil || last.Digest != b.digest || h.Instead != nil || b.usesOthers(last):
	case last.Outcome == api.GenerationProgressing:
		return interrupted
	case last.Outcome == api.GenerationReady:
		return known
	}
	return newGeneration
}

// usesOthers reports whether newer images are requested for a generation than it has.
func (b *beginning) usesOthers(g *Generation) bool {
	return slices.ContainsFunc(b.changes, func(c change.Change) bool {
		return g.Definition == nil || g.Definition.Images[c.Container].ID != b.images[c.Container].ID
	})
}

// rollsBackIfFailed reports whether an earlier generation replaces the newest one if it fails.
func rollsBackIfFailed(h *History) bool {
	g := h.Newest()
	if g == nil || h.Instead != nil || g.Definition == nil || g.Outcome != api.GenerationProgressing {
		return false
	}
	_, _, rollback := g.Definition.Pod.UpdateRule()
	return rollback && h.Target(g.Number) != nil
}

// definitionOf is the definition that a pod runs, or ran before; nil: it is not known.
func definitionOf(h *History) *spec.Pod {
	if h.Instead != nil {
		return h.Instead.Definition.Pod
	}
	g := h.Newest()
	if g != nil && g.Outcome == api.GenerationRolledBack { // it is tried again
		g = h.Target(g.Number)
	}
	if g != nil && g.Definition != nil {
		return g.Definition.Pod
	}
	return nil
}

// failedWith reports whether the generation of a file that was rolled back had these images.
func failedWith(h *History, images map[string]lifecycle.Image) bool {
	if h == nil || h.Instead == nil {
		return false
	}
	g := h.Find(h.Instead.Failed)
	for name, image := range images {
		if g == nil || g.Definition == nil || g.Definition.Images[name].ID != image.ID {
			return false
		}
	}
	return true
}

// undo decides which generation runs in place of a file that a person undoes; nil: the one that was rolled back is tried again. Generation
// 0 is the last one before the running one that was ready, or the running one if the file waits to be carried out. The error is a
// [*ConflictError], or a [*NoRolloutError] if the pod has no file.
func (f *facts) undo(pod string, to int) (*Generation, error) {
	if _, err := f.rollout(pod); err != nil {
		return nil, err
	}
	p, exists := f.pods[pod]
	c := f.defining(pod)
	switch {
	case !exists:
		return nil, conflictf("pod %q is being replaced", pod)
	case c == nil:
		return nil, conflictf("no valid file of the pods directory defines pod %q alone", pod)
	case p.deleting:
		return nil, conflictf("pod %q is being deleted", pod)
	}
	h := f.histories[pod]
	if h == nil || h.Running() == nil {
		return nil, conflictf("pod %q has no earlier generation", pod)
	}
	if h.Instead != nil && h.Instead.Digest == c.hex() && to != 0 && to == h.Instead.Failed {
		return nil, nil
	}
	waits := f.target(c) == c && len(f.changes(&p, c)) > 0
	running, target := h.Running(), h.Find(to)
	if to == 0 {
		target = h.Target(running.Number)
		if waits && running.Digest != c.hex() {
			target = running
		}
	}
	switch {
	case target == nil && to == 0:
		return nil, conflictf("pod %q has no earlier generation that was ready", pod)
	case target == nil:
		return nil, conflictf("pod %q has no generation %d", pod, to)
	case target == running && !waits:
		return nil, conflictf("generation %d of pod %q runs already", target.Number, pod)
	case target.Definition == nil:
		return nil, conflictf("generation %d of pod %q is not kept any more", target.Number, pod)
	}
	return target, nil
}

// report is an event about a file or about the directory.
type report struct {
	kind     api.EventKind
	pod, uid string
	fields   event.Fields
	file     string // its [File.key]; empty: about the directory
	state    string // what the event says of the file; empty: the file is accepted
}

// report adds the events for the files whose state has changed, and for the loss of the directory, once. A loss that is short, as when a
// directory is moved and replaced, is none.
func (f *facts) report(d *decision) {
	switch lost := f.directory.lost != nil; {
	case !lost && f.lost:
		d.reports = append(d.reports, report{kind: api.EventPodsDirFound, fields: event.Fields{"dir": f.path}})
	case !lost || f.lost:
	case f.now.Before(f.directory.since.Add(f.times.removal)):
		d.lookAgain(f.directory.since.Add(f.times.removal))
	default:
		fields := event.Fields{"error": capital(f.directory.message(f.path)), "dir": f.path, "pods": f.ownedNames()}
		d.reports = append(d.reports, report{kind: api.EventPodsDirLost, fields: fields})
	}
	if slices.EqualFunc(f.shown, d.files, same) {
		return
	}
	for i := range d.files {
		f.reportFile(&d.files[i], d)
	}
}

// reportFile adds the event for a file whose state has changed. Progress is none.
func (f *facts) reportFile(shown *File, d *decision) {
	r := report{pod: shown.Pod, file: shown.key()}
	if p := f.pods[shown.Pod]; p.file != "" {
		r.uid = p.uid
	}
	r.kind, r.fields = eventOf(shown, r.uid != "")
	r.state = string(r.kind) + r.fields["error"]
	waits, waiting := errors.AsType[*pending](shown.Refused)
	switch last := f.reported[shown.key()]; {
	case r.kind != "" && r.state != last:
		d.reports = append(d.reports, r)
	case r.kind == "" && last != "" && (!waiting || waits.err != nil):
		r.kind, r.fields = api.EventFileAccepted, event.Fields{"file": shown.Path}
		d.reports = append(d.reports, r)
	}
}

// eventOf returns the event for the state of a file; "": there is none.
func eventOf(shown *File, podExists bool) (api.EventKind, event.Fields) {
	waits, waiting := errors.AsType[*pending](shown.Refused)
	_, byAdmission := errors.AsType[*supervisor.RefusedError](shown.Refused)
	switch {
	case shown.Reason == api.ReasonInvalidFile:
		then := "no pod is started"
		if podExists {
			then = "the pod keeps running"
		}
		return api.EventFileInvalid, event.Fields{"then": then, "error": firstError(shown), "file": shown.Path}
	case waiting && waits.err != nil:
		return api.EventUpdateWaiting, event.Fields{"error": waits.err.Error(), "file": shown.Path}
	case shown.Reason == api.ReasonRejected && (podExists || !byAdmission): // a new pod that is not admitted has an event of its own
		return api.EventFileRejected, event.Fields{"file": shown.Path, "error": shown.Refused.Error()}
	}
	return "", nil
}

// firstError is the first error of an invalid file, with line and column, and how many there are.
func firstError(shown *File) string {
	if shown.Refused != nil {
		return shown.Refused.Error()
	}
	errs := shown.Problems.Errors()
	if len(errs) == 0 {
		errs = spec.Problems{{File: shown.Path, Line: 1, Column: 1, Message: "the file is invalid"}}
	}
	if n := len(errs); n > 1 {
		return fmt.Sprintf("%v (errors: %d)", errs[0], n)
	}
	return errs[0].String()
}

// maxPods limits the number of pods in an event.
const maxPods = 10

// ownedNames lists the pods that follow files of the directory.
func (f *facts) ownedNames() string {
	var names []string
	for _, name := range sortedNames(f.pods) {
		if p := f.pods[name]; p.file != "" || f.orphaned(&p) {
			names = append(names, name)
		}
	}
	if more := len(names) - maxPods; more > 0 {
		names = append(names[:maxPods], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// key identifies what a file says of a pod.
func (f *File) key() string { return f.Path + "\x00" + f.Pod }

// same reports whether two states of a file are the same for clients.
func same(a, b File) bool {
	return a.Path == b.Path && a.Pod == b.Pod && a.Reason == b.Reason && text(a.Refused) == text(b.Refused) &&
		a.Definition == b.Definition && reflect.DeepEqual(a.Problems, b.Problems)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
