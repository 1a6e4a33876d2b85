package podfiles

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// facts are what is known about the directory, the pods and what was done about them. A [decision] depends on nothing else. The methods
// read no file and no clock, take no lock and change nothing, apart from those that record what was observed.
type facts struct {
	now    time.Time // when the newest look began
	listed time.Time // when the newest listing began
	path   string    // of the directory
	times  times

	// Files.
	directory directory
	listError string              // why the newest listing failed; empty: it did not
	contents  map[string]*content // by path
	present   map[string]bool     // paths of all files, also of those whose content is not taken yet
	changing  map[string]*content // the newest content of files whose content is not taken yet, by path
	settled   time.Time           // when to look again at files that may be half-written; zero: there are none
	confirmed map[string]bool     // paths whose removal a client has confirmed
	applied   map[string]applied  // what the set has written, by path: never half-written
	scheduled bool                // a definition of the newest listing of the directory, which was not lost, has a schedule

	// Pods.
	pods    map[string]pod     // by name
	missing map[string]absence // pods whose file is missing or defines another pod, by name
	newer   map[string]newer   // requested by clients, by name of the pod

	// What is done.
	working   map[string]progress // what the workers are doing, by name of the pod
	attempts  map[string]attempt  // the newest ones, by name of the pod
	keeping   map[string]bool     // UIDs of the pods that are about to be kept
	suspended time.Time           // until when nothing is carried out
	lost      bool                // the event was emitted
	shown     []File              // what clients see of the files
	reported  map[string]string   // what the newest events of files say, by [File.key]

	// Generations.
	histories map[string]*History // by name of the pod. Values are not changed, but replaced
	unloaded  time.Time           // since when they cannot be read; zero: they were read

	// compare compares two definitions, and between what a pod runs with a content. Both are pure functions.
	compare func(from, to *spec.Pod) []change.Change
	between func(p *pod, c *content) []change.Change
}

// newFacts returns what is known at first: nothing.
func newFacts(path string, t times) facts {
	return facts{
		path: path, times: t,
		contents: map[string]*content{}, present: map[string]bool{}, changing: map[string]*content{}, confirmed: map[string]bool{},
		applied: map[string]applied{}, pods: map[string]pod{}, missing: map[string]absence{}, newer: map[string]newer{},
		working: map[string]progress{}, attempts: map[string]attempt{}, keeping: map[string]bool{}, reported: map[string]string{},
		histories: map[string]*History{},
	}
}

// unsettled reports whether the content of a file is not taken yet.
func (f *facts) unsettled() bool { return !f.settled.IsZero() }

// content is what a file was found to contain: a definition of a pod, and further ones.
type content struct {
	path string
	text [32]byte // SHA-256 of the text of the file
	// digest is that of the text that defines the pod: the file or, if that defines several pods, what [spec.Part.Text] returns, so that
	// a change of another pod is none of this one.
	digest   [32]byte
	name     string    // of the pod, in a file with several definitions; empty: the definition is invalid, and may be of any pod
	pod      *spec.Pod // nil: the definition is invalid
	problems spec.Problems
	err      error      // the file cannot be read
	others   []*content // the other definitions of the file, in its order

	// instead is set for the definition of an earlier generation, which runs in place of the file.
	instead *Instead
}

// all yields the definitions of a file. The content may be nil.
func (c *content) all() iter.Seq[*content] {
	return func(yield func(*content) bool) {
		if c == nil || !yield(c) {
			return
		}
		for _, other := range c.others {
			if !yield(other) {
				return
			}
		}
	}
}

// isValid reports whether all definitions of a file are valid.
func (c *content) isValid() bool {
	for d := range c.all() {
		if d.pod == nil {
			return false
		}
	}
	return true
}

// mayDefine reports whether a definition is that of a pod that runs, as far as is known.
func (c *content) mayDefine(pod string) bool {
	if c.pod != nil {
		return c.pod.Name == pod && c.pod.Schedule == nil
	}
	return c.name == "" || c.name == pod
}

// has reports whether one of the definitions of a file is that of a pod, with certainty.
func (c *content) has(pod string) bool {
	for d := range c.all() {
		if d.pod != nil && d.pod.Name == pod || d.name == pod {
			return true
		}
	}
	return false
}

// each yields what all files contain, sorted by path.
func (f *facts) each() iter.Seq[*content] {
	return func(yield func(*content) bool) {
		for _, path := range slices.Sorted(maps.Keys(f.contents)) {
			for c := range f.contents[path].all() {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// hex is the digest as text.
func (c *content) hex() string { return fmt.Sprintf("%x", c.digest) }

// unreadable is the content of a file that cannot be read.
func unreadable(path string, err error) *content { return &content{path: path, err: err} }

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

func podsOf(snapshots []supervisor.Snapshot) map[string]pod {
	pods := map[string]pod{}
	for i := range snapshots {
		p := &snapshots[i]
		stop := &p.Facts.Stop
		pods[p.Pod.Name] = pod{
			name: p.Pod.Name, uid: p.Facts.UID, file: p.Owner.File, by: holder(p), definition: p.Pod,
			unit:     p.Owner.Unit != "",
			unowned:  p.Owner.File == "" && p.Owner.By == "" && p.Owner.Session == "",
			orphaned: p.Owner.Orphan,
			held:     heldBecause(p), snapshot: p,
			stopped: !stop.Requested.IsZero() && !stop.Delete && stop.ByUser, deleting: stop.Delete, completed: p.AtRest,
		}
	}
	return pods
}

// heldBecause returns why a pod is not supervised; empty: it is.
func heldBecause(p *supervisor.Snapshot) string {
	switch p.Status.Reason {
	case lifecycle.ReasonQuarantined, lifecycle.ReasonSuspected, lifecycle.ReasonNewerState:
		return cmp.Or(strings.TrimPrefix(p.Status.Message, supervisor.NotSupervised), string(p.Status.Reason))
	}
	return ""
}

// holder describes how a pod came to be.
func holder(p *supervisor.Snapshot) string {
	if p.Owner.By != "" {
		return "created by " + p.Owner.String()
	}
	return p.Status.Message // of a pod that is not supervised
}

// inSession reports whether podstead run shows the pod, and deletes it when it has finished. A schedule of the name goes on: its runs have
// other names.
func (p *pod) inSession() bool { return p.snapshot != nil && p.snapshot.Owner.Session != "" }

// own returns the definition of a pod without ephemeral containers, which no file has.
func (p *pod) own() *spec.Pod {
	copied := *p.definition
	copied.EphemeralContainers = nil
	return &copied
}

// absence is that a pod follows a file which is missing, or which defines another pod.
type absence struct {
	file  string
	since time.Time
}

// newer is a request that a pod uses newer images of the same names. It is dropped when the pod uses them, and with the daemon: the client
// requests it again.
type newer struct {
	digest [32]byte // of the text of the file
	images map[string]lifecycle.Image
}

// applied is the client that has applied a file.
type applied struct {
	digest [32]byte
	client string
}

// progress is what a worker is doing.
type progress struct {
	step      step
	text      string
	preparing bool // see [File]
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

// findMissing records, after a listing that ended at a time, which pods have no file any more, and since when.
func (f *facts) findMissing(at time.Time) {
	missing := map[string]absence{}
	for name, p := range f.pods {
		if p.file == "" || f.defines(&p) {
			continue
		}
		a := absence{p.file, at}
		if before, known := f.missing[name]; known && before.file == p.file {
			a = before
		}
		missing[name] = a
	}
	f.missing = missing
}

// settleFirst records that the directory settles, as after a loss, if files of pods are missing in the first listing: it may be in the
// middle of being copied while the daemon starts.
func (f *facts) settleFirst() {
	if f.directory.lost != nil {
		return
	}
	for _, p := range f.pods {
		if a, missing := f.missing[p.name]; missing && filepath.Dir(a.file) == f.path || f.orphaned(&p) {
			f.directory.settles = f.now.Add(f.times.settle)
			return
		}
	}
}

// forget records that pods and files are gone which do not exist any more.
func (f *facts) forget() {
	names, followed := map[string]bool{}, map[string]bool{}
	for name, p := range f.pods {
		names[name], followed[p.file] = true, true
	}
	for c := range f.each() {
		if c.pod != nil {
			names[c.pod.Name] = true
		}
	}
	for name, w := range f.working {
		names[name], followed[w.step.file] = true, true
	}
	maps.DeleteFunc(f.attempts, func(name string, _ attempt) bool { return !names[name] })
	maps.DeleteFunc(f.confirmed, func(path string, _ bool) bool { return f.present[path] || !followed[path] })
	maps.DeleteFunc(f.applied, func(path string, _ applied) bool { return !f.present[path] })
	maps.DeleteFunc(f.newer, func(name string, _ newer) bool { return !names[name] })
}

// generationsOf returns the names of the pods whose generations are needed; known is false if there may be others.
func (f *facts) generationsOf() (names map[string]bool, known bool) {
	if f.listed.IsZero() || f.directory.lost != nil || f.listError != "" || f.unsettled() {
		return nil, false
	}
	names = map[string]bool{}
	for name := range f.pods {
		names[name] = true
	}
	for name := range f.working {
		names[name] = true
	}
	for c := range f.each() {
		if c.pod == nil && c.name == "" {
			return nil, false // it may be the file of any pod
		}
		names[f.nameOf(c)] = true
	}
	return names, true
}

// owned reports whether a pod follows a file of the directory whose removal was not confirmed, or did before its state file was lost, or
// whether a file has a schedule.
func (f *facts) owned() bool {
	if f.scheduled {
		return true
	}
	for _, p := range f.pods {
		if f.orphaned(&p) || p.file != "" && filepath.Dir(p.file) == f.path && !p.deleting && !f.confirmed[p.file] {
			return true
		}
	}
	return false
}

// hasSchedule reports whether a definition has a schedule.
func (f *facts) hasSchedule() bool {
	for c := range f.each() {
		if c.pod != nil && c.pod.Schedule != nil {
			return true
		}
	}
	return false
}

// orphaned reports whether a pod whose state file was lost came from a file of the directory. The definition in the labels of its
// containers has the directory, but not the file.
func (f *facts) orphaned(p *pod) bool {
	return p.orphaned && !p.deleting && p.definition.Dir == f.path
}

// defines reports whether the file of a pod still defines it, as far as is known: an invalid file may.
func (f *facts) defines(p *pod) bool {
	if !f.present[p.file] {
		return false
	}
	for c := range f.contents[p.file].all() {
		if c.mayDefine(p.name) {
			return true
		}
	}
	return f.contents[p.file] == nil
}

// defining returns the content that defines a pod; nil: there is none, or several.
func (f *facts) defining(pod string) *content {
	var found *content
	for c := range f.each() {
		if c.pod != nil && c.pod.Name == pod {
			if found != nil {
				return nil
			}
			found = c
		}
	}
	return found
}

// isContested reports whether several files define a pod, so that none of them is carried out.
func (f *facts) isContested(pod string) bool {
	same, _ := f.pathsOf(pod)
	return len(same) > 1
}

// nameOf is the name of the pod that a file defines. Without a definition, it is that of the pod that follows the file or, if there is
// none, that of the file.
func (f *facts) nameOf(c *content) string {
	if c.pod != nil {
		return c.pod.Name
	}
	return cmp.Or(c.name, f.follower(c.path), baseName(c.path))
}

// baseName is the name of a file without its extension.
func baseName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// followers returns the names of the pods that follow a file and are not being deleted.
func (f *facts) followers(path string) (names []string) {
	for _, name := range sortedNames(f.pods) {
		if p := f.pods[name]; p.file == path && !p.deleting {
			names = append(names, name)
		}
	}
	return names
}

// follower returns the name of the pod that follows a file, preferably of one that is not being deleted; empty: there is none.
func (f *facts) follower(path string) string {
	deleted := ""
	for _, name := range sortedNames(f.pods) {
		switch p := f.pods[name]; {
		case p.file != path:
		case p.deleting:
			deleted = name
		default:
			return name
		}
	}
	return deleted
}

// heldBy returns the name of another pod that runs from a file, and would be deleted with it; empty: there is none. A file that defines the
// pod and is accepted is held by no other. The other pods that it defines get files of their own.
func (f *facts) heldBy(path, pod string, d *decision) string {
	if d.carriesOut(path, pod) {
		return ""
	}
	for _, other := range f.followers(path) {
		if other != pod && !f.contents[path].has(other) {
			return other
		}
	}
	return ""
}

// newerFor returns the images that a client has requested for a pod with a content.
func (f *facts) newerFor(p *pod, c *content) map[string]lifecycle.Image {
	if n, requested := f.newer[p.name]; requested && n.digest == c.digest {
		return n.images
	}
	return nil
}

// outdates reports whether a client has requested other images than a step is about to use.
func (f *facts) outdates(s *step) bool {
	n, requested := f.newer[s.pod]
	return requested && n.digest == s.target.digest && !maps.Equal(n.images, s.newer)
}

// changes returns what has to change so that a pod runs a content: its definition and, if they are requested or those of an earlier
// generation, its images.
func (f *facts) changes(p *pod, c *content) []change.Change {
	images := f.newerFor(p, c)
	if c.instead != nil && !c.instead.Completed {
		images = c.instead.Definition.Images
	}
	definition := f.between(p, c)
	if len(images) == 0 || p.snapshot == nil {
		return definition
	}
	list := slices.Concat(definition, supervisor.ImageChanges(p.snapshot, c.pod, images))
	change.Sort(list)
	return list
}

// instead returns what runs in place of the file of a pod; nil: the file is carried out.
func (f *facts) instead(pod string) *Instead {
	if h := f.histories[pod]; h != nil {
		return h.Instead
	}
	return nil
}

// target returns what a pod is to run: the content of its file, or the generation that runs in its place.
func (f *facts) target(c *content) *content {
	instead := f.instead(c.pod.Name)
	if instead == nil || instead.Digest != c.hex() {
		return c
	}
	t := &content{path: c.path, text: c.text, digest: c.digest, pod: instead.Definition.Pod, instead: instead}
	t.digest[0] ^= 0xff // the attempts for the file are others
	return t
}

// requester returns who requested the definition of a file: the client that has applied it, or else by.
func (f *facts) requester(c *content, by string) string {
	if a := f.applied[c.path]; a.digest == c.digest {
		return a.client
	}
	return by
}

// fingerprint changes when a pod that was rejected because of other pods may be accepted. It is a hash, because each pod keeps one.
func (f *facts) fingerprint() string {
	h := sha256.New()
	for _, name := range sortedNames(f.pods) {
		p := f.pods[name]
		fmt.Fprintf(h, "%s %v %v %v\n", p.uid, p.stopped, p.deleting, p.completed)
	}
	return string(h.Sum(nil))
}

func sortedNames(pods map[string]pod) []string { return slices.Sorted(maps.Keys(pods)) }
