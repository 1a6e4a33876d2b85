package supervisor_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// TestNewerImages checks that a container restarts if its image in an archive is another one, and not because the archive has another name.
func TestNewerImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.CompareWith(change.Between)
		definition := func(archive string) *spec.Pod {
			p := pod("p", spec.RestartAlways, graceful, graceful, graceful)
			p.ImageArchives = []string{archive}
			p.Containers[1].Image, p.Containers[2].Image = "other", "other"
			p.Containers[2].ImagePullPolicy = spec.PullAlways
			return p
		}
		before := m.add(definition("/a.tar"))
		s := m.until("p", "running", allRunning)

		// change changes the definition, with newer images if they are requested, and returns what changes and which containers restart.
		change := func(to *spec.Pod, requested bool) (changes []string, restarted string) {
			t.Helper()
			was := ids(s)
			var newer map[string]lifecycle.Image
			var err error
			if requested {
				if newer, err = m.NewerImages(t.Context(), to); err != nil {
					t.Fatal(err)
				}
			}
			planned := append(between(s.Pod, to), supervisor.ImageChanges(&s, to, newer)...)
			staged, err := m.Stage(t.Context(), to, newer, func(string, lifecycle.Progress) {})
			if err != nil {
				t.Fatal(err)
			}
			done, err := m.Redefine(t.Context(), "", to, staged, state.Owner{By: "test"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(planned, done); requested && diff != "" {
				t.Errorf("planned and done (-planned +done):\n%s", diff)
			}
			time.Sleep(time.Minute)
			s = m.until("p", "running", allRunning)
			for name, id := range ids(s) {
				if was[name] != id {
					restarted += name
				}
			}
			if s.Facts.UID != before.Facts.UID {
				t.Error("the pod was replaced")
			}
			for _, c := range done {
				changes = append(changes, c.String())
			}
			return changes, restarted
		}
		want := func(step, list, containers string, changes []string, restarted string) {
			t.Helper()
			if got := fmt.Sprint(changes); got != list || restarted != containers {
				t.Errorf("%s: %s, restarted %q; want %s, %q", step, got, restarted, list, containers)
			}
		}
		for _, requested := range []bool{false, true} {
			for _, archive := range []string{"/b.tar", "/a.tar"} {
				old := s.Pod.ImageArchives[0]
				changes, restarted := change(definition(archive), requested)
				want("another name", fmt.Sprintf("[imageArchives: [%q] -> [%q] (in place)]", old, archive), "", changes, restarted)
			}
		}
		m.engine.Retag("other")
		changes, restarted := change(definition("/a.tar"), false)
		want("an image that nobody requested", "[]", "", changes, restarted)
		changes, restarted = change(definition("/a.tar"), true)
		want("the requested image", `[containers[1].image: "other" (sha256:other) -> "other" (sha256:other-1) (restarts container c1)]`,
			"c1", changes, restarted)
		changes, restarted = change(definition("/a.tar"), true)
		want("once more", "[]", "", changes, restarted)
		m.engine.Retag("image")
		changes, restarted = change(definition("/b.tar"), false)
		slices.Sort(changes)
		want("another archive with another image", `[containers[0].image: "image" (sha256:image) -> "image" (sha256:image-1) `+
			`(restarts container c0) imageArchives: ["/a.tar"] -> ["/b.tar"] (in place)]`, "c0", changes, restarted)
	})
}

// between compares two definitions as the supervisor does.
func between(from, to *spec.Pod) []change.Change { return change.Between(from, to) }
