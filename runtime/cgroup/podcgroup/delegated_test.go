package podcgroup

import (
	"os"
	"testing"
)

// TestDelegated tests that pods have cgroups below a delegated one, apart from those that were started without, until they are started
// again.
func TestDelegated(t *testing.T) {
	const (
		root    = "/user.slice/podstead.scope"
		uid, id = "3f3a6a0e-2c1a-4d5c-9f52-3b8d5e0c7f11", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		earlier = "3f3a6a0e-2c1a-4d5c-9f52-3b8d5e0c7f12"
	)
	g, err := Delegated(root, func(string) int { return os.Getpid() })
	if err != nil {
		t.Fatal(err)
	}
	if g.None() || !g.IsDelegated() || g.Systemd() || g.Parent() != root || g.Monitor() != root+"/monitor" {
		t.Errorf("%+v: parent %s, monitor %s", g, g.Parent(), g.Monitor())
	}
	with := func(name, uid string) {
		t.Helper()
		for what, path := range map[string]string{"OCIPath": g.OCIPath(uid, id), "Container": g.Container(uid, id)} {
			if want := root + "/" + uid + "/" + id; path != want || g.Pod(uid) != root+"/"+uid || g.Without(uid) {
				t.Errorf("%s: %s %q, want %q", name, what, path, want)
			}
		}
	}
	with("a pod", uid)
	copied := g // as the parts of the runtime have it
	g.SetWithout(earlier)
	if copied.OCIPath(earlier, id)+copied.Container(earlier, id)+copied.Pod(earlier)+copied.ProcessDir(earlier, id) != "" ||
		!copied.Without(earlier) {
		t.Errorf("a pod that was started without cgroups has %q", copied.OCIPath(earlier, id))
	}
	with("another pod", uid)
	copied.SetWith(earlier)
	with("a pod that was started again", earlier)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if g := WithoutCgroups(func(string) int { return 0 }); !g.Without(uid) || g.IsDelegated() {
		t.Error("without cgroups, a pod has one")
	}
}
