package supervisor_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const importSize = 1000

// importing returns a function that imports archives, each for a time, and reports the progress 10 times. It leaves pods without archives
// alone.
func importing(each time.Duration, archives ...string) func(context.Context, *spec.Pod, string, func(lifecycle.Progress)) error {
	return func(ctx context.Context, pod *spec.Pod, _ string, progress func(lifecycle.Progress)) error {
		if len(pod.ImageArchives) == 0 {
			return nil
		}
		for _, archive := range archives {
			for i := range int64(10) {
				progress(lifecycle.Progress{Archive: archive, Done: i * importSize / 10, Total: importSize})
				select {
				case <-time.After(each / 10):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		return nil
	}
}

// TestLongImportIsReported imports an archive for 4 s. All containers that wait for it report it, after a second.
func TestLongImportIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Fetch: importing(4*time.Second, "/shop.tar")})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 1000", "sleep 1000")
		p.ImageArchives = []string{"/shop.tar"}
		m.add(p)
		pulling := func() map[string]lifecycle.Progress {
			s, _ := m.Pod("p")
			return s.Pulling
		}
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if got := pulling(); len(got) > 0 {
			t.Errorf("progress after less than a second: %v", got)
		}
		m.expectEvents("PodAccepted", "SandboxReady")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		now := lifecycle.Progress{Archive: "/shop.tar", Done: 700, Total: importSize}
		if diff := cmp.Diff(map[string]lifecycle.Progress{"c0": now, "c1": now}, pulling()); diff != "" {
			t.Errorf("progress after 3 s (-want +got):\n%s", diff)
		}
		m.until("p", "running", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[1].State.Running != nil })
		synctest.Wait()
		if got := pulling(); len(got) > 0 {
			t.Errorf("progress after the import: %v", got)
		}
		events := m.emitted()
		if count(events, "ImageImporting c0") != 1 || count(events, "ImageImporting c1") != 1 || count(events, "ImagePulling c0") != 0 {
			t.Errorf("events %v, want one ImageImporting for each container", events)
		}
	})
}

// TestReportsOfImports has what is reported of several archives, and of a pull after them.
func TestReportsOfImports(t *testing.T) {
	slow, quick := importing(1500*time.Millisecond, "/a.tar", "/b.tar"), importing(900*time.Millisecond, "/a.tar")
	for name, c := range map[string]struct {
		fetch func(context.Context, *spec.Pod, string, func(lifecycle.Progress)) error
		want  []string
	}{
		"two archives":  {slow, []string{"/a.tar", "/b.tar"}},
		"quick archive": {quick, nil},
		"archive and pull": {func(ctx context.Context, p *spec.Pod, c string, progress func(lifecycle.Progress)) error {
			err := slow(ctx, p, c, progress)
			progress(lifecycle.Progress{})
			return err
		}, []string{"/a.tar", "/b.tar", "image"}},
		"quick archive and pull": {func(ctx context.Context, p *spec.Pod, c string, progress func(lifecycle.Progress)) error {
			err := quick(ctx, p, c, progress)
			progress(lifecycle.Progress{})
			return err
		}, []string{"image"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{Fetch: c.fetch})
				m.start()
				p := pod("p", spec.RestartAlways, "sleep 1000")
				p.ImageArchives = []string{"/a.tar", "/b.tar"}
				m.add(p)
				m.until("p", "ready", ready)
				events, _ := m.Events().Since(0)
				var got []string
				for _, e := range events {
					switch e.Kind { //nolint:exhaustive // other events are not reports
					case api.EventImageImporting:
						got = append(got, e.Fields["archive"])
					case api.EventImagePulling:
						got = append(got, e.Fields["image"])
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestEndOfImportIsReported has an image that is unpacked for some seconds after its archive was read.
func TestEndOfImportIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t,
			fakeruntime.Options{Fetch: func(ctx context.Context, p *spec.Pod, c string, progress func(lifecycle.Progress)) error {
				err := importing(4*time.Second, "/shop.tar")(ctx, p, c, progress)
				for _, done := range []int64{importSize - 1, importSize} {
					progress(lifecycle.Progress{Archive: "/shop.tar", Done: done, Total: importSize})
				}
				time.Sleep(5 * time.Second)
				return err
			}})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 1000")
		p.ImageArchives = []string{"/shop.tar"}
		m.add(p)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		want := lifecycle.Progress{Archive: "/shop.tar", Done: importSize, Total: importSize}
		if s, _ := m.Pod("p"); s.Pulling["c0"] != want {
			t.Errorf("progress after the import %+v, want %+v", s.Pulling, want)
		}
	})
}

// TestUnpackingIsReported pulls an image, unpacks it, which has no event, and continues with an image volume.
func TestUnpackingIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := []lifecycle.Progress{
			{Done: 4, Total: 9}, {Done: 2, Total: 8, Unpacking: true}, {Done: 3, Total: 8, Unpacking: true}, {Done: 1, Total: 9},
		}
		m := newMachine(t,
			fakeruntime.Options{Fetch: func(_ context.Context, _ *spec.Pod, _ string, progress func(lifecycle.Progress)) error {
				for _, p := range steps {
					progress(p)
					time.Sleep(time.Second)
				}
				return nil
			}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 1000"))
		time.Sleep(500 * time.Millisecond)
		for i, want := range steps {
			synctest.Wait()
			if s, _ := m.Pod("p"); s.Pulling["c0"] != want {
				t.Errorf("progress %d: %+v, want %+v", i, s.Pulling["c0"], want)
			}
			time.Sleep(time.Second)
		}
		if n := count(m.emitted(), "ImagePulling c0"); n != 1 {
			t.Errorf("%d pulls were reported, want 1", n)
		}
	})
}

// TestPullsOfAnUpdateAreReported has what the clients of a pod see while two images of its next definition are pulled, one of them quickly.
func TestPullsOfAnUpdateAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := map[string]int64{"image": 0, "quick:1": 5, "slow:1": 10, "quick:2": 5, "slow:2": 10} // a part takes 100 ms
		m := newMachine(t,
			fakeruntime.Options{Fetch: func(ctx context.Context, p *spec.Pod, c string, progress func(lifecycle.Progress)) error {
				total := parts[p.Container(c).Image]
				for done := range total {
					progress(lifecycle.Progress{Done: done, Total: total})
					select {
					case <-time.After(100 * time.Millisecond):
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 1000", "sleep 1000"))
		m.until("p", "ready", ready)
		pulling := func() map[string]lifecycle.Progress {
			synctest.Wait()
			s, _ := m.Pod("p")
			return s.Pulling
		}
		for _, c := range []struct {
			quick, slow string
			timeout     time.Duration
			want        error
		}{{"quick:1", "slow:1", time.Minute, nil}, {"quick:2", "slow:2", 900 * time.Millisecond, context.DeadlineExceeded}} {
			to := pod("p", spec.RestartAlways, "sleep 1000", "sleep 1000")
			to.Containers[0].Image, to.Containers[1].Image = c.quick, c.slow
			synctest.Wait()
			m.emitted()
			var staging sync.WaitGroup
			staging.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				if _, err := m.Stage(ctx, to, nil, func(string, lifecycle.Progress) {}); !errors.Is(err, c.want) {
					t.Errorf("%s: %v", c.slow, err)
				}
			})
			slow := lifecycle.Progress{Total: 10, Image: c.slow}
			time.Sleep(260 * time.Millisecond) // the first report was after 250 ms
			slow.Done = 2
			want := map[string]lifecycle.Progress{"c0": {Done: 2, Total: 5, Image: c.quick}, "c1": slow}
			if diff := cmp.Diff(want, pulling()); diff != "" {
				t.Errorf("%s: progress of two (-want +got):\n%s", c.slow, diff)
			}
			time.Sleep(500 * time.Millisecond)
			slow.Done = 7
			if diff := cmp.Diff(map[string]lifecycle.Progress{"c1": slow}, pulling()); diff != "" {
				t.Errorf("%s: progress of one (-want +got):\n%s", c.slow, diff)
			}
			staging.Wait()
			if got := pulling(); len(got) > 0 {
				t.Errorf("%s: progress after the pull: %v", c.slow, got)
			}
			if events := m.emitted(); len(events) > 0 {
				t.Errorf("%s: events %v", c.slow, events)
			}
		}
	})
}

// TestStalledPullIsReported has a registry that sends a part soon after the first report, and then nothing for a while.
func TestStalledPullIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t,
			fakeruntime.Options{Fetch: func(_ context.Context, _ *spec.Pod, _ string, progress func(lifecycle.Progress)) error {
				for done := range int64(3) {
					progress(lifecycle.Progress{Done: done, Total: importSize})
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(20 * time.Second)
				progress(lifecycle.Progress{Done: 3, Total: importSize})
				progress(lifecycle.Progress{Done: 4, Total: importSize}) // is not reported after the end
				return nil
			}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 1000"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s, _ := m.Pod("p"); s.Pulling["c0"] != (lifecycle.Progress{Done: 2, Total: importSize}) {
			t.Errorf("progress of a pull that has stalled: %+v", s.Pulling)
		}
		m.until("p", "ready", ready)
		time.Sleep(time.Second)
		synctest.Wait()
		if s, _ := m.Pod("p"); len(s.Pulling) > 0 {
			t.Errorf("progress after the pull: %v", s.Pulling)
		}
	})
}
