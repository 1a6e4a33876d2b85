package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

// TestRunWaitsForNextDaemon stops the daemon on request while its pod runs. The run must not start a daemon.
func TestRunWaitsForNextDaemon(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	var started atomic.Bool
	connect := func(ctx context.Context) error {
		if !started.Load() {
			return &api.StoppedError{Pods: 1}
		}
		return h.connect(ctx)
	}
	result := h.start(Options{Printer: s, Connect: connect}, file("a", "trap 'exit 0' TERM; echo up; sleep 1000"))
	s.await(t, "the start", func() bool { return len(s.lines) > 0 })
	h.stop()
	s.await(t, "a notice", func() bool { return len(s.notices) > 0 })
	started.Store(true)
	if err := h.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := client.New(h.socket, "podstead delete")
	defer c.Close()
	if err := c.Stop(t.Context(), "a", client.StopOptions{Delete: true}); err != nil {
		t.Fatal(err)
	}
	if err := await(t, result); err != nil {
		t.Error(err)
	}
	if len(s.notices) == 0 || !strings.HasPrefix(s.notices[0], "the daemon was stopped") {
		t.Errorf("notices %q, want that the daemon was stopped", s.notices)
	}
}

// TestRunEndsIfPodsAreDeletedAndDaemonStopped stops the daemon, which leaves no pods, before the client has the final state.
func TestRunEndsIfPodsAreDeletedAndDaemonStopped(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	connect := func(context.Context) error { return &api.StoppedError{} }
	result := h.start(Options{Printer: s, Connect: connect}, file("a", "echo up; sleep 1000"))
	s.await(t, "the start", func() bool { return len(s.lines) > 0 })
	h.stop()
	if err := await(t, result); !errors.Is(err, ErrFailed) || len(s.notices) > 0 {
		t.Errorf("error %v, notices %q", err, s.notices)
	}
}

// eventsOf is a client whose event stream has these events only.
type eventsOf struct {
	*client.Client
	list []api.Event
}

func (c eventsOf) Events(_ context.Context, q *client.EventQuery) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for _, e := range c.list {
			if q.Follow && !yield(e, nil) {
				return
			}
		}
	}
}

// TestRunHintsAtFailedPulls checks that there is one hint for each image that cannot be pulled, after its second failure.
func TestRunHintsAtFailedPulls(t *testing.T) {
	t.Parallel()
	failed := func(kind api.EventKind, image, message string) api.Event {
		return api.Event{Kind: kind, Fields: map[string]string{"image": image, "error": message}}
	}
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	c := client.New(h.socket, "podstead run")
	defer c.Close()
	err := await(t, h.start(Options{Printer: s, Daemon: eventsOf{c, []api.Event{
		failed(api.EventImagePullFailed, "nginxx", "not found"),
		failed(api.EventImagePullFailed, "nginxx", "not found"),
		failed(api.EventImagePullFailed, "nginxx", "not found"),
		failed(api.EventImagePullFailed, "once", "connection refused"),
		failed(api.EventImageNeverPull, "db:2", "not present (imageArchives contain db:1)"),
		failed(api.EventImageNeverPull, "db:2", "not present (imageArchives contain db:1)"),
		failed(api.EventImagePullFailed, "app:1", `import image archive "/a.tar": open /a.tar: no such file or directory`),
		failed(api.EventImagePullFailed, "app:1", `import image archive "/a.tar": open /a.tar: no such file or directory`),
	}}}, file("a", "exit 0")))
	if err != nil {
		t.Error(err)
	}
	want := []string{
		`check the name and the tag of image "nginxx" in the pod file, and whether the registry is reachable; Ctrl-C stops the pod`,
		`check image "db:2" in the pod file: imageArchives contain db:1; Ctrl-C stops the pod`,
		`write the image archive "/a.tar", or correct imageArchives in the pod file: see docs/howto/make-an-image.md; Ctrl-C stops the pod`,
	}
	if diff := cmp.Diff(want, s.hints); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
}

// lateClient is a client that asks for the final state of a pod only after the pod was deleted.
type lateClient struct {
	*client.Client
	lost bool // the daemon has no final states, as after a restart
}

func (c lateClient) PodWithUID(ctx context.Context, name, uid string) (api.Pod, error) {
	for change, err := range c.Watch(ctx) {
		if err != nil {
			return api.Pod{}, err
		}
		if change.Type == api.Deleted && change.Object.Metadata.UID == uid {
			break
		}
		if change.Type == api.Listed {
			list, err := c.Pods(ctx)
			if err != nil || !slices.ContainsFunc(list.Items, func(p api.Pod) bool { return p.Metadata.UID == uid }) {
				break
			}
		}
	}
	if c.lost {
		uid = "of another pod"
	}
	return c.Client.PodWithUID(ctx, name, uid)
}

// TestRunReportsResultOfDeletedPod checks that the result of a pod reaches a client that asks after the pod was deleted.
func TestRunReportsResultOfDeletedPod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code int
		lost bool
		want error
	}{
		"succeeded":                   {code: 0},
		"failed":                      {code: 3, want: ErrFailed},
		"succeeded, final state lost": {lost: true},
		"failed, final state lost":    {code: 3, lost: true, want: ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := newHost(t, fakeruntime.Options{}), newRecorder()
			c := client.New(h.socket, "podstead delete")
			defer c.Close()
			result := h.start(Options{Printer: s, Daemon: lateClient{c, test.lost}},
				file("a", fmt.Sprintf("trap 'exit %d' TERM; echo up; sleep 1000", test.code)))
			s.await(t, "the start", func() bool { return len(s.lines) > 0 })
			if err := c.Stop(t.Context(), "a", client.StopOptions{Delete: true}); err != nil {
				t.Fatal(err)
			}
			if err := await(t, result); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if printed := len(s.terminated) == 1; printed == test.lost {
				t.Errorf("final state printed: %v, want %v", printed, !test.lost)
			}
		})
	}
}
