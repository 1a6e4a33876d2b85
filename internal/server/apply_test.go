package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/state"
)

func applied(name, more string) api.ApplyRequest {
	q := file(name, more)
	return api.ApplyRequest{File: q.File, Text: q.Text}
}

func TestApply(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.files.Changes = []change.Change{
		{Path: "containers[0].image", Container: "main", Old: `"i"`, New: `"j"`, Effect: change.RestartContainer},
	}
	q := applied("web", app("main", "sleep 1000"))
	changed := q
	changed.Text = strings.Replace(q.Text, `image = "i"`, `image = "j"`, 1)
	dry := func(q api.ApplyRequest) api.ApplyRequest {
		q.DryRun = true
		return q
	}
	for _, step := range []struct {
		name string
		q    api.ApplyRequest
		want api.Outcome
	}{
		{"plan of a new file", dry(q), api.PodCreated},
		{"new file", q, api.PodCreated},
		{"same file", q, api.PodUnchanged},
		{"plan of a changed file", dry(changed), api.PodConfigured},
		{"same file after a plan", q, api.PodUnchanged},
		{"changed file", changed, api.PodConfigured},
	} {
		got, err := d.client.Apply(t.Context(), step.q)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		want := api.Applied{Pod: "web", File: "/pods.d/web.toml", Outcome: step.want, SpecHash: got.SpecHash}
		if step.want == api.PodConfigured {
			want.Changes = []api.Change{
				{Path: "containers[0].image", Container: "main", Old: `"i"`, New: `"j"`, Effect: api.EffectRestartContainer},
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || got.SpecHash == "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	pod, err := d.client.Pod(t.Context(), "web")
	if err != nil || pod.Status.File != "/pods.d/web.toml" || pod.Spec.Containers[0].Image != "j" {
		t.Errorf("pod %+v, %v", pod, err)
	}
}

func TestApplyInvalidFile(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := applied("web", "restartPolici = \"Never\"\n"+app("main", "exit 0"))
	_, err := d.client.Apply(t.Context(), q)
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusBadRequest || len(e.Problems) != 1 ||
		e.Problems[0].Line != 3 {
		t.Errorf("apply an invalid file: %+v, want 400 with a problem in line 3", err)
	}
	q.File = "web.toml"
	if _, err := d.client.Apply(t.Context(), q); !isStatus(err, http.StatusBadRequest) {
		t.Errorf("apply with a relative path: %v, want 400", err)
	}
	if text := d.files.Text("web"); text != "" {
		t.Errorf("the file was written: %s", text)
	}
}

// TestApplyNameTaken checks that the error contains who has created the pod.
func TestApplyNameTaken(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.create(t, file("web", app("main", "sleep 1000")))
	_, err := d.client.Apply(t.Context(), applied("web", app("main", "sleep 1")))
	if !isStatus(err, http.StatusConflict) || !strings.Contains(err.Error(), "podstead run, pid ") {
		t.Errorf("apply: %v, want 409 with the owner", err)
	}
}

// TestDeleteWithFile checks that the deletion of a pod removes its file, and that a stop does not.
func TestDeleteWithFile(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	if _, err := d.client.Apply(t.Context(), applied("web", app("main", "trap 'exit 0' TERM; sleep 1000"))); err != nil {
		t.Fatal(err)
	}
	pod, err := d.client.Pod(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	uid := pod.Metadata.UID
	d.await(t, uid, "container ready", ready)
	if err := d.client.Stop(t.Context(), "web", client.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	pod = d.await(t, uid, "pod at rest", atRest)
	if pod.Status.StoppedAt.IsZero() || d.files.Text("web") == "" {
		t.Errorf("stopped at %v, file %q", pod.Status.StoppedAt, d.files.Text("web"))
	}
	if _, err := d.client.Delete(t.Context(), "web", client.StopOptions{UID: "another"}); !isStatus(err, http.StatusNotFound) {
		t.Errorf("delete with another UID: %v, want 404", err)
	}
	got, err := d.client.Delete(t.Context(), "web", client.StopOptions{})
	if err != nil || got.File != "/pods.d/web.toml" || d.files.Text("web") != "" {
		t.Errorf("delete: %+v, %v, file %q", got, err, d.files.Text("web"))
	}
	d.await(t, uid, "deletion of the pod", func(c api.PodChange) bool {
		if at := c.Object.Status.StoppedAt; c.Type == api.Modified && !at.IsZero() {
			t.Errorf("a pod that is being deleted was stopped at %v", at)
		}
		return deleted(c)
	})
	if got, err := d.client.Delete(t.Context(), "web", client.StopOptions{}); !isStatus(err, http.StatusNotFound) {
		t.Errorf("second delete: %+v, %v, want 404", got, err)
	}
}

// TestDeleteKeepsOtherFile: the deletion of a pod of podstead run keeps the file that is refused because of that pod. Ctrl-C deletes it
// too.
func TestDeleteKeepsOtherFile(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("web", app("main", "sleep 1000"))).Metadata.UID
	d.files.Refuse(podfiles.File{Path: "/pods.d/web.toml", Pod: "web", Reason: api.ReasonRejected, Refused: errors.New("taken")})
	got, err := d.client.Delete(t.Context(), "web", client.StopOptions{UID: uid, Grace: new(time.Duration)})
	if err != nil || got.File != "" || len(d.files.Files()) != 1 {
		t.Errorf("delete: %+v, %v; files %v, want the file", got, err, d.files.Files())
	}
}

// TestSuspendedFiles: files are kept when pods are deleted at the end of the daemon.
func TestSuspendedFiles(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	if _, err := d.client.Apply(t.Context(), applied("web", app("main", "sleep 1000"))); err != nil {
		t.Fatal(err)
	}
	if err := d.client.SuspendFiles(t.Context()); err != nil || !d.files.Suspended() {
		t.Errorf("suspend: %v, suspended %v", err, d.files.Suspended())
	}
	got, err := d.client.Delete(t.Context(), "web", client.StopOptions{KeepFile: true})
	if err != nil || got.File != "" || d.files.Text("web") == "" {
		t.Errorf("delete: %+v, %v, file %q; want the file", got, err, d.files.Text("web"))
	}
}

// TestStoppedAt checks that a pod that completed before its stop does not count as stopped.
func TestStoppedAt(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("job", "restartPolicy = \"Never\"\n"+app("main", "exit 0"))).Metadata.UID
	d.await(t, uid, "pod at rest", atRest)
	if err := d.client.Stop(t.Context(), "job", client.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := d.client.Pod(t.Context(), "job")
	if err != nil || !pod.Status.StoppedAt.IsZero() {
		t.Errorf("stopped at %v, %v", pod.Status.StoppedAt, err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	d.create(t, file("run", app("main", "sleep 1000")))
	for _, name := range []string{"a", "b", "c"} {
		if _, err := d.client.Apply(t.Context(), applied(name, app("main", "sleep 1000"))); err != nil {
			t.Fatal(err)
		}
	}
	prune := func(q api.PruneRequest, want ...string) {
		t.Helper()
		list, err := d.client.Prune(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range list.Items {
			got = append(got, fmt.Sprintf("%s %s %s", p.Pod, p.Outcome, p.File))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("prune %+v (-want +got):\n%s", q, diff)
		}
	}
	prune(api.PruneRequest{Keep: []string{"a", "b", "c"}})
	prune(api.PruneRequest{Lost: true})
	prune(api.PruneRequest{Keep: []string{"a", "b"}, DryRun: true}, "c pruned /pods.d/c.toml")
	prune(api.PruneRequest{Keep: []string{"a", "b"}}, "c pruned /pods.d/c.toml")
	d.files.Lose()
	prune(api.PruneRequest{Lost: true, DryRun: true}, "a pruned /pods.d/a.toml", "b pruned /pods.d/b.toml")
	if pod, err := d.client.Pod(t.Context(), "run"); err != nil || pod.Metadata.DeletionTimestamp != nil {
		t.Errorf("pod of podstead run: %+v, %v", pod.Metadata, err)
	}
}

// TestPrunePartially checks that a file that cannot be removed does not keep the others, and that the error has the deleted pods.
func TestPrunePartially(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	for _, name := range []string{"a", "b", "c"} {
		if _, err := d.client.Apply(t.Context(), applied(name, app("main", "sleep 1000"))); err != nil {
			t.Fatal(err)
		}
	}
	d.files.OnRemove = func(pod string) error {
		if pod == "b" {
			return errors.New("read-only file system")
		}
		return nil
	}
	list, err := d.client.Prune(t.Context(), api.PruneRequest{})
	if !isStatus(err, http.StatusInternalServerError) || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("prune: %v", err)
	}
	if len(list.Items) != 2 || list.Items[0].Pod != "a" || list.Items[1].Pod != "c" {
		t.Errorf("pruned %+v, want a and c", list.Items)
	}
}

// TestUnresponsiveFileSystem checks that clients learn that a request can be repeated, and do not take the daemon for stopped.
func TestUnresponsiveFileSystem(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	if _, err := d.client.Apply(t.Context(), applied("a", app("main", "sleep 1000"))); err != nil {
		t.Fatal(err)
	}
	d.files.OnRemove = func(string) error { return disk.UnresponsiveError{} }
	_, err := d.client.Prune(t.Context(), api.PruneRequest{})
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != http.StatusServiceUnavailable || e.Reason != api.ReasonUnresponsive || e.Hint == "" ||
		errors.Is(err, api.ErrUnavailable) {
		t.Errorf("prune: %+v", err)
	}
	dialer := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.client.Socket())
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://podstead/v1/files/prune", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&http.Client{Transport: &http.Transport{DialContext: dialer, DisableKeepAlives: true}}).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if after := r.Header.Get("Retry-After"); r.StatusCode != http.StatusServiceUnavailable || after == "" {
		t.Errorf("status %d, Retry-After %q", r.StatusCode, after)
	}
}

// TestDeleteAfterFileWasRemoved checks that the error of a deletion names the file that was removed.
func TestDeleteAfterFileWasRemoved(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	pod, problems := spec.Parse("/pods.d/web.toml", []byte(file("web", app("main", "sleep 1000")).Text))
	if pod == nil {
		t.Fatal(problems)
	}
	if _, err := d.supervisor.Add(pod, state.Owner{By: "pods directory", File: "/pods.d/web.toml"}); err != nil {
		t.Fatal(err)
	}
	d.files.Refuse(podfiles.File{Path: "/pods.d/web.toml", Pod: "web", Reason: api.ReasonInvalidFile})
	d.files.OnRemove = func(string) error { return d.supervisor.Leave(t.Context()) }
	_, err := d.client.Delete(t.Context(), "web", client.StopOptions{})
	if err == nil || !strings.HasPrefix(err.Error(), "file /pods.d/web.toml was removed, but the pod was not deleted: ") {
		t.Errorf("delete: %v, want an error with the file that was removed", err)
	}
	if files := d.files.Files(); len(files) > 0 {
		t.Errorf("files: %v", files)
	}
}

// restarts records calls of Start and Restart.
type restarts struct {
	mu    sync.Mutex
	calls []string
}

func (r *restarts) Start(_ context.Context, name, uid, by string) error {
	return r.add("start %s %s, %s", name, uid, by)
}

func (r *restarts) Restart(_ context.Context, name, uid, container, by string) error {
	if container == "none" {
		return fmt.Errorf("container %q: %w", container, supervisor.ErrNotFound)
	}
	return r.add("restart %s %s %q, %s", name, uid, container, by)
}

func (r *restarts) add(format string, args ...any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
	return nil
}

// TestRestartNamesNewerImages checks that a restart, which keeps the images of a pod, says which containers have a newer one.
func TestRestartNamesNewerImages(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	text := file("web", app("main", "sleep 1000")+app("other", "sleep 1000"))
	uid := d.create(t, text).Metadata.UID
	d.await(t, uid, "ready", ready)
	for _, test := range []struct {
		retag     bool
		container string
		want      []string
	}{{false, "", nil}, {true, "", []string{"main", "other"}}, {false, "other", []string{"other"}}} {
		if test.retag {
			d.fake.Retag("i")
		}
		got, err := d.client.Restart(t.Context(), "web", uid, test.container)
		if err != nil || !slices.Equal(got.NewerImages, test.want) {
			t.Errorf("%+v: %+v, %v", test, got, err)
		}
	}
}

func TestStartAndRestart(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	uid := d.create(t, file("web", app("main", "sleep 1000"))).Metadata.UID
	start := func(name, uid string) error {
		_, err := d.client.Start(t.Context(), name, uid)
		return err
	}
	restart := func(name, uid, container string) error {
		_, err := d.client.Restart(t.Context(), name, uid, container)
		return err
	}
	for _, err := range []error{start("web", uid), start("web", ""), restart("web", uid, ""), restart("web", "", "main")} {
		if err != nil {
			t.Error(err)
		}
	}
	by := fmt.Sprintf("podstead run, pid %d, uid %d", os.Getpid(), os.Getuid())
	want := []string{
		"start web " + uid + ", " + by, "start web " + uid + ", " + by, "restart web " + uid + ` "", ` + by,
		"restart web " + uid + ` "main", ` + by,
	}
	if diff := cmp.Diff(want, d.restarts.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	for name, err := range map[string]error{
		"other UID": start("web", "another"), "no pod": restart("none", "", ""), "no container": restart("web", "", "none"),
	} {
		if !isStatus(err, http.StatusNotFound) {
			t.Errorf("%s: %v, want 404", name, err)
		}
	}
}
