package podfiles

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// maxPods limits the number of pods in an event.
const maxPods = 10

// reportLoss emits that the directory is lost, once, and that it has files again. It returns when a loss is due to be reported: one that is
// short, as when a directory is moved and replaced, is none.
func (s *Set) reportLoss() time.Time {
	w := &s.world
	switch d := &w.directory; {
	case d.lost == nil && s.lost:
		s.lost = false
		s.add(event.PodsDirFound, "", "", event.Fields{"dir": s.dir})
	case d.lost == nil || s.lost:
	case w.now.Before(d.since.Add(w.removal)):
		return d.since.Add(w.removal)
	default:
		s.lost = true
		s.add(event.PodsDirLost, "", "", event.Fields{"error": capital(d.message(s.dir)), "dir": s.dir, "pods": s.ownedNames()})
	}
	return time.Time{}
}

// ownedNames lists the pods that follow files of the directory.
func (s *Set) ownedNames() string {
	var names []string
	for _, name := range sortedNames(s.world.pods) {
		if p := s.world.pods[name]; p.file != "" || s.world.orphaned(&p) {
			names = append(names, name)
		}
	}
	if more := len(names) - maxPods; more > 0 {
		names = append(names[:maxPods], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// emit emits events for the files whose state has changed. Progress is none.
func (s *Set) emit(files []File) {
	exists := map[string]bool{}
	for i := range files {
		f := &files[i]
		exists[f.Path] = true
		uid := ""
		if p := s.world.pods[f.Pod]; p.file != "" {
			uid = p.uid
		}
		kind, fields := eventOf(f, uid != "")
		waits, waiting := errors.AsType[*pending](f.Refused)
		state := string(kind) + fields["error"]
		switch last := s.reported[f.Path]; {
		case kind != "" && state != last:
			s.reported[f.Path] = state
			s.add(kind, f.Pod, uid, fields)
		case kind == "" && last != "" && (!waiting || waits.err != nil):
			delete(s.reported, f.Path)
			s.add(event.FileAccepted, f.Pod, uid, event.Fields{"file": f.Path})
		}
	}
	for path := range s.reported {
		if !exists[path] {
			delete(s.reported, path)
		}
	}
}

// eventOf returns the event for the state of a file; "": there is none.
func eventOf(f *File, podExists bool) (event.Kind, event.Fields) {
	waits, waiting := errors.AsType[*pending](f.Refused)
	_, byAdmission := errors.AsType[*supervisor.RefusedError](f.Refused)
	switch {
	case f.Reason == ReasonInvalidFile:
		then := "no pod is started"
		if podExists {
			then = "the pod keeps running"
		}
		return event.FileInvalid, event.Fields{"then": then, "error": firstError(f), "file": f.Path}
	case waiting && waits.err != nil:
		return event.UpdateWaiting, event.Fields{"error": waits.err.Error(), "file": f.Path}
	case f.Reason == ReasonRejected && (podExists || !byAdmission): // a new pod that is not admitted has an event of its own
		return event.FileRejected, event.Fields{"file": f.Path, "error": f.Refused.Error()}
	}
	return "", nil
}

// firstError is the first error of an invalid file, with line and column, and how many there are.
func firstError(f *File) string {
	if f.Refused != nil {
		return f.Refused.Error()
	}
	errs := f.Problems.Errors()
	if len(errs) == 0 {
		errs = spec.Problems{{File: f.Path, Line: 1, Column: 1, Message: "the file is invalid"}}
	}
	if n := len(errs); n > 1 {
		return fmt.Sprintf("%v (errors: %d)", errs[0], n)
	}
	return errs[0].String()
}

// add adds an event.
func (s *Set) add(kind event.Kind, pod, uid string, f event.Fields) {
	e := event.New(kind, time.Now(), pod, f)
	e.UID = uid
	s.events.Add(e)
}
