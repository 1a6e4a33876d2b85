package podfiles

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/generation"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// world is what a plan depends on.
type world struct {
	now       time.Time
	listed    time.Time     // when the newest listing began
	path      string        // of the directory
	removal   time.Duration // how long a file must be missing before its pod is deleted
	directory directory
	contents  map[string]*content // by path
	present   map[string]bool     // paths of all files, also of those whose content is not taken yet
	missing   map[string]absence  // pods whose file is missing or defines another pod, by name
	confirmed map[string]bool     // paths whose removal a client has confirmed
	unsettled bool                // the content of a file is not taken yet
	changing  map[string]*content // the newest content of files whose content is not taken yet, by path
	pods      map[string]pod      // by name
	attempts  map[string]attempt  // the newest ones, by name of the pod
	working   map[string]progress // what the workers are doing, by name of the pod
	between   func(p *pod, c *content) []change.Change
	instead   func(pod string) *generation.Instead // what runs in place of the file of a pod; nil: the file is carried out
	targets   map[string]*content                  // the same as contents
	newer     map[string]newer                     // requested by clients, by name of the pod
}

// newer is a request that a pod uses newer images of the same names. It is dropped when the pod uses them, and with the daemon: the client
// requests it again.
type newer struct {
	digest [32]byte // of the text of the file
	images map[string]lifecycle.Image
}

// newerFor returns the images that a client has requested for a pod with a content.
func (w *world) newerFor(p *pod, c *content) map[string]lifecycle.Image {
	if n, requested := w.newer[p.name]; requested && n.digest == c.digest {
		return n.images
	}
	return nil
}

// outdates reports whether a client has requested other images than a step is about to use.
func (w *world) outdates(s *step) bool {
	n, requested := w.newer[s.pod]
	return requested && n.digest == s.target.digest && !maps.Equal(n.images, s.newer)
}

// changes returns what has to change so that a pod runs a content: its definition and, if they are requested or those of an earlier
// generation, its images.
func (w *world) changes(p *pod, c *content) []change.Change {
	images := w.newerFor(p, c)
	if c.instead != nil && !c.instead.Completed {
		images = c.instead.Definition.Images
	}
	definition := w.between(p, c)
	if len(images) == 0 || p.snapshot == nil {
		return definition
	}
	list := slices.Concat(definition, supervisor.ImageChanges(p.snapshot, c.pod, images))
	change.Sort(list)
	return list
}

// pod is a pod that exists.
type pod struct {
	name, uid  string
	file       string // that it follows; empty: it was created by a client
	by         string
	definition *spec.Pod
	stopped    bool // by a person
	deleting   bool
	completed  bool
	unit       bool   // its systemd unit created it
	unowned    bool   // its creator is not known: its state file was lost
	orphaned   bool   // so was the state file itself: the pod ends unless a file defines it
	held       string // why it is not supervised; empty: it is
	snapshot   *supervisor.Snapshot
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

// attempt is the newest completed step for a pod.
type attempt struct {
	key     string
	err     error
	count   int
	next    time.Time // of the same step
	changed time.Time // of the same step if it was refused and other pods have changed, which may be often
	pods    string    // when the step began, see fingerprint
	replace bool      // the pod must be replaced
}

// result is what to do, and what to show.
type result struct {
	steps   []step
	files   []File
	desired map[string]*content // by name of the pod: contents that are not refused
	targets map[string]*content // by name of the pod: what is to run, the same or an earlier generation
	again   time.Time           // when to look again; zero: after the next change
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

// plan compares files and pods. It does not depend on how they came to differ.
func (w *world) plan() result {
	r := result{desired: map[string]*content{}, targets: map[string]*content{}}
	defines := map[string][]*content{}
	for _, path := range slices.Sorted(maps.Keys(w.contents)) {
		if c := w.contents[path]; c.pod != nil {
			defines[c.pod.Name] = append(defines[c.pod.Name], c)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(w.contents)) {
		c := w.contents[path]
		f := File{Path: path, Pod: w.nameOf(c), Problems: c.problems}
		if c.pod != nil {
			f.SpecHash, f.Definition = c.pod.Hash, c.pod
		}
		switch same := defines[f.Pod]; {
		case c.err != nil:
			f.Reason, f.Refused = ReasonInvalidFile, c.err
		case c.pod == nil:
			f.Reason = ReasonInvalidFile
		case c.pod.Systemd != nil:
			f.Refused = &pending{text: "started by podstead@" + c.pod.Name + ".service"}
		case len(same) > 1:
			f.Reason, f.Refused = ReasonRejected, conflict(f.Pod, same)
		default:
			w.converge(c, &f, &r)
		}
		r.files = append(r.files, f)
	}
	for _, name := range sortedNames(w.pods) {
		if p := w.pods[name]; r.desired[name] == nil {
			w.end(&p, &r)
		}
	}
	return r
}

func conflict(name string, files []*content) error {
	paths := make([]string, len(files))
	for i, c := range files {
		paths[i] = c.path
	}
	return fmt.Errorf("pod %q is defined by %s", name, strings.Join(paths, " and "))
}

// converge adds the step that makes a pod run a definition, and why it does not run yet.
func (w *world) converge(c *content, f *File, r *result) {
	p, exists := w.pods[c.pod.Name]
	if exists && p.file == "" && !p.deleting && (!p.unowned || p.held != "") {
		f.Reason, f.Refused = ReasonRejected, &supervisor.NameTakenError{Name: p.name, Holder: cmp.Or(p.by, "created earlier") + ", so " + c.path + " is not used"}
		return
	}
	t, instead := w.target(c)
	r.desired[c.pod.Name], r.targets[c.pod.Name] = c, t
	if instead != nil {
		f.Reason, f.Refused, f.Undone = ReasonRolledBack, instead, t.instead.By != ""
	}
	s := step{kind: add, pod: c.pod.Name, target: t, file: c.path}
	if exists {
		if p.deleting {
			return // added after the deletion
		}
		s.uid, s.changes, s.newer = p.uid, w.changes(&p, t), w.newerFor(&p, t)
		if len(s.changes) == 0 && p.file == c.path {
			delete(w.newer, p.name)
			return
		}
		if p.held != "" {
			f.Refused = &pending{text: "the pod is not supervised: " + p.held}
			return
		}
		before := w.attempts[p.name]
		s.kind = redefine
		if change.Largest(s.changes) == change.ReplacePod || before.replace && before.key == s.key() {
			s.kind = replace
		}
		if s.kind == replace && p.stopped {
			f.Refused = &pending{text: "the pod is stopped, and is replaced after podstead start " + p.name}
			return
		}
	}
	w.attempt(s, f, r)
}

// attempt adds a step, unless it must wait since the newest attempt. The newest error stays visible until the step succeeds.
func (w *world) attempt(s step, f *File, r *result) {
	before := w.attempts[s.pod]
	repeated := before.key == s.key()
	refused, isRefused := errors.AsType[*supervisor.RefusedError](before.err)
	switch doing, working := w.working[s.pod]; {
	case repeated && isRefused:
		f.Reason, f.Refused = ReasonRejected, refused
	case repeated && before.err != nil && s.kind == add:
		f.Reason, f.Refused = ReasonRejected, before.err
	case repeated && before.err != nil:
		f.Refused = &pending{"update waits", before.err}
	case working && s.kind != add && f.Reason == "": // why a file was rolled back stays visible
		f.Refused, f.Preparing = &pending{text: doing.text}, doing.preparing
	}
	next := before.next
	if isRefused && before.pods != w.fingerprint() {
		next = before.changed
	}
	if repeated && w.now.Before(next) {
		r.lookAgain(next)
		return
	}
	r.steps = append(r.steps, s)
}

// end adds the step that deletes a pod whose file was removed, or defines another pod now. A pod that is not supervised is kept: a step
// would take it up, and that may be what crashes the daemon.
func (w *world) end(p *pod, r *result) {
	if p.file == "" && !p.orphaned || p.deleting || p.held != "" {
		return
	}
	switch {
	case p.orphaned:
		if !w.endsOrphan(p, r) {
			return
		}
	case w.confirmed[p.file] && !w.present[p.file]:
	case filepath.Dir(p.file) != w.path:
		return
	case w.present[p.file] && !w.carriesOut(p.file, r):
		return // the file is invalid, refused, or not taken yet
	case w.directory.lost != nil || w.unsettled:
		return
	default:
		if due := w.endDue(p); w.listed.Before(due) {
			r.lookAgain(due)
			return
		}
	}
	s := step{kind: remove, pod: p.name, uid: p.uid, file: p.file}
	if before := w.attempts[p.name]; before.key == s.key() && w.now.Before(before.next) {
		r.lookAgain(before.next)
		return
	}
	r.steps = append(r.steps, s)
}

// lookAgain makes the next comparison at most as late as at; zero: no change.
func (r *result) lookAgain(at time.Time) {
	if !at.IsZero() && (r.again.IsZero() || at.Before(r.again)) {
		r.again = at
	}
}

// fingerprint changes when a pod that was rejected because of other pods may be accepted.
func (w *world) fingerprint() string {
	var b strings.Builder
	for _, name := range sortedNames(w.pods) {
		p := w.pods[name]
		fmt.Fprintf(&b, "%s %v %v %v\n", p.uid, p.stopped, p.deleting, p.completed)
	}
	return b.String()
}

func sortedNames(pods map[string]pod) []string { return slices.Sorted(maps.Keys(pods)) }
