package rig

import "testing"

// TestForeignProcesses: what is not the rig's is never found to be, since what is found is killed. A pod that could not be made
// has no UID, and every text contains "".
func TestForeignProcesses(t *testing.T) {
	r := &Rig{Dir: t.TempDir()}
	r.open()
	for _, uid := range []string{"", "5b2f0c1e-0000-4000-8000-000000000000"} {
		r.Saw(uid)
	}
	if r.owns("/proc/self", r.podMarks()) {
		t.Errorf("the process of this test is taken for the rig's, by the marks %q", r.podMarks())
	}
	if !r.owns("/proc/self", append(r.podMarks(), ":/")) {
		t.Error("a mark that every cgroup has is not found: this test would not notice anything")
	}
}
