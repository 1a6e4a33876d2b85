package rig

import "testing"

// What is the rig's is killed in the end, so nothing else may be taken for it.
func TestOnlyUIDsMark(t *testing.T) {
	r := &Rig{Dir: t.TempDir(), uids: map[string]bool{}}
	for _, uid := range []string{"", "-", "a", "podstead"} {
		r.Saw(uid)
	}
	if marks := r.podMarks(); len(marks) > 0 {
		t.Errorf("marks %q", marks)
	}
	if processes, err := r.Processes(); err != nil || len(processes) > 0 {
		t.Errorf("processes %v, %v of a rig that has none", processes, err)
	}
	r.Saw("0c5e4b1e-0000-4000-8000-000000000001")
	if marks := r.podMarks(); len(marks) != 2 {
		t.Errorf("marks %q", marks)
	}
}
