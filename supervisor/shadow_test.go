package supervisor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/state"
)

// TestShadowedImageIsReportedOnce checks that a pod reports once for each container that its image from an archive differs from another
// image of the name: when the container gets the image, not when it restarts.
func TestShadowedImageIsReportedOnce(t *testing.T) {
	for name, staged := range map[string]bool{"pulled": false, "staged": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{Shadowed: []string{"shadowed", "next"}})
				m.start()
				p := pod("p", spec.RestartAlways, "sleep 100", graceful)
				p.ImageArchives = []string{"/srv/shop.tar"}
				p.Containers[0].Image = "shadowed"
				add := func() { m.add(p) }
				if staged {
					add = func() {
						if _, err := m.AddStaged(p, state.Owner{}, m.stage(p)); err != nil {
							t.Fatal(err)
						}
					}
				}
				add()
				time.Sleep(10 * time.Minute)
				m.expectShadowed("c0: " + shadowed("shadowed"))
				if s, _ := m.Pod("p"); s.Status.ContainerStatuses[0].RestartCount == 0 {
					t.Error("the container has not restarted")
				}
				to := pod("p", spec.RestartAlways, "sleep 100", graceful)
				to.ImageArchives = p.ImageArchives
				to.Containers[0].Image, to.Containers[1].Image = "shadowed", "next"
				m.redefine(to)
				time.Sleep(10 * time.Minute)
				m.expectShadowed("c0: "+shadowed("shadowed"), "c1: "+shadowed("next"))
			})
		})
	}
}

// shadowed is the message for an image.
func shadowed(image string) string {
	return `Image "` + image +
		`" of archive "/srv/shop.tar" differs from the image of this name that is already present, only pods that list the archive use it`
}

// expectShadowed compares the containers and messages of all events of the kind ImageShadowed.
func (m *machine) expectShadowed(want ...string) {
	m.t.Helper()
	synctest.Wait()
	events, _ := m.Events().Since(0)
	var got []string
	for _, e := range events {
		if e.Kind == api.EventImageShadowed {
			got = append(got, e.Container+": "+e.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("events of shadowed images (-want +got):\n%s", diff)
	}
}
