package podfiles

// orphaned reports whether a pod whose state file was lost came from a file of the directory. The definition in the labels of its
// containers has the directory, but not the file.
func (w *world) orphaned(p *pod) bool {
	return p.orphaned && !p.deleting && p.definition.Dir == w.path
}

// endsOrphan reports whether a pod whose state file was lost ends, because the directory was read and no file defines the pod. A file that
// is invalid, or whose content is not taken yet, may define it.
func (w *world) endsOrphan(p *pod, r *result) bool {
	if !w.directory.read || w.directory.lost != nil || w.unsettled {
		return false
	}
	for _, c := range w.contents {
		if w.nameOf(c) == p.name || c.pod == nil && w.orphaned(p) {
			return false
		}
	}
	if w.listed.Before(w.directory.settles) {
		r.lookAgain(w.directory.settles)
		return false
	}
	return true
}
