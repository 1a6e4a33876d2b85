package podfiles

import "time"

// absence is that a pod follows a file which is missing, or which defines another pod.
type absence struct {
	file  string
	since time.Time
}

// findMissing records, after a listing that ended at a time, which pods have no file any more, and since when.
func (w *world) findMissing(at time.Time) {
	missing := map[string]absence{}
	for name, p := range w.pods {
		if p.file == "" || w.defines(&p) {
			continue
		}
		a := absence{p.file, at}
		if before, known := w.missing[name]; known && before.file == p.file {
			a = before
		}
		missing[name] = a
	}
	w.missing = missing
}

// defines reports whether the file of a pod still defines it, as far as is known: an invalid file may.
func (w *world) defines(p *pod) bool {
	c := w.contents[p.file]
	return w.present[p.file] && (c == nil || c.pod == nil || c.pod.Name == p.name)
}

// carriesOut reports whether the definition in a file is carried out.
func (w *world) carriesOut(path string, r *result) bool {
	c := w.contents[path]
	return c != nil && c.pod != nil && r.desired[c.pod.Name] == c
}

// endDue returns when a pod ends that has no file any more, if a listing that begins then does not find one either. The directory is known
// as of the newest listing only: the file may have returned since, without a notification. Another file may also define the pod soon, as
// while git changes files one after the other.
func (w *world) endDue(p *pod) time.Time {
	a, known := w.missing[p.name]
	if !known || a.file != p.file { // the pod has changed since the newest listing
		a.since = w.listed.Add(time.Nanosecond)
	}
	due := a.since.Add(w.removal)
	if due.Before(w.directory.settles) {
		due = w.directory.settles
	}
	return due
}
