package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// withSecret returns a pod with an inline secret of a name.
func withSecret(name string) *spec.Pod { return &spec.Pod{Secrets: []spec.Secret{{Name: name}}} }

// size returns the number of redactors in memory.
func (r *redactors) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// TestRedactorsFollowSecrets: the secrets of a pod are read once for all requests of a short time, and then again. Nothing remains in
// memory.
func TestRedactorsFollowSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, value, failure := 0, "first-value", error(nil)
		r := &redactors{list: map[redactorKey]*podRedactor{}, read: func(context.Context, *spec.Pod) ([]string, error) {
			reads++
			return []string{value}, failure
		}}
		web, key := withSecret("a"), redactorKey{"1", true}
		text := func() string {
			if redactor := r.of(t.Context(), web, key); redactor != nil {
				return redactor.Text("first-value second-value")
			}
			return "withheld"
		}
		want := func(text, wantText string, wantReads int) {
			t.Helper()
			if text != wantText || reads != wantReads {
				t.Errorf("%q after %d reads, want %q after %d", text, reads, wantText, wantReads)
			}
		}
		want(text(), "[redacted] second-value", 1)
		value = "second-value"
		want(text(), "[redacted] second-value", 1)
		time.Sleep(redactorLife + 1)
		synctest.Wait()
		if n := r.size(); n > 0 {
			t.Errorf("%d redactors remain in memory", n)
		}
		want(text(), "first-value [redacted]", 2)
		web, value = withSecret("b"), "first-value" // another secret
		want(text(), "[redacted] second-value", 3)
		time.Sleep(redactorLife + 1)
		failure = errors.New("the disk fails")
		want(text(), "withheld", 4)
		want(text(), "withheld", 4)
		failure = nil
		time.Sleep(redactorLife + 1)
		want(text(), "[redacted] second-value", 5)
		web = &spec.Pod{} // without secrets
		want(text(), "first-value second-value", 5)
		time.Sleep(redactorLife + 1)
	})
}

// TestRedactorsWaitForTheirRequest: a request that ends does not end the read, and a file system that does not answer delays no other user.
func TestRedactorsWaitForTheirRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, reads := make(chan struct{}), 0
		r := &redactors{list: map[redactorKey]*podRedactor{}, read: func(ctx context.Context, _ *spec.Pod) ([]string, error) {
			if reads++; reads > 1 {
				return nil, nil
			}
			select {
			case <-answer:
				return []string{"planted-value"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		reader := redactorKey{"1", true}
		if r.of(ctx, withSecret("a"), reader) != nil {
			t.Error("a request that has ended has a redactor")
		}
		synctest.Wait()
		if r.of(t.Context(), withSecret("a"), redactorKey{"1", false}) == nil {
			t.Error("root waits for a reader")
		}
		close(answer)
		if got := r.of(t.Context(), withSecret("a"), reader); got == nil || got.Text("planted-value") != "[redacted]" || reads != 2 {
			t.Errorf("%v after %d reads", got, reads)
		}
		time.Sleep(redactorLife + 1)
	})
}

// TestRedactorsAreLimited: the number of redactors in memory has a limit, and further pods are redacted too.
func TestRedactorsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &redactors{
			list: map[redactorKey]*podRedactor{},
			read: func(context.Context, *spec.Pod) ([]string, error) { return []string{"planted-value"}, nil },
		}
		for i := range maxRedactors + 10 {
			if got := r.of(t.Context(), withSecret("a"), redactorKey{fmt.Sprint(i), true}); got == nil ||
				got.Text("planted-value") != "[redacted]" {
				t.Fatalf("pod %d is not redacted", i)
			}
		}
		if n := r.size(); n != maxRedactors {
			t.Errorf("%d redactors, want %d", n, maxRedactors)
		}
		time.Sleep(redactorLife + 1)
	})
}

// heldSecrets counts the secrets that are being read until release is closed.
type heldSecrets struct {
	reading atomic.Int32
	release chan struct{}
}

func (s *heldSecrets) Secret(*spec.Pod, string) (map[string][]byte, error) {
	s.reading.Add(1)
	<-s.release
	return nil, nil
}

// TestReadersLeaveSecretReadsToRoot: readers cannot occupy the slots that other requests need.
func TestReadersLeaveSecretReadsToRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &heldSecrets{release: make(chan struct{})}
		s := &Server{
			o: Options{Secrets: source}, secretReads: semaphore.NewWeighted(maxSecretReads),
			readerReads: semaphore.NewWeighted(maxReaderReads),
		}
		pod := &spec.Pod{}
		for i := range 2 * maxSecretReads {
			pod.Secrets = append(pod.Secrets, spec.Secret{Name: fmt.Sprint(i)})
		}
		var requests sync.WaitGroup
		read := func(ctx context.Context) {
			requests.Go(func() {
				if _, err := s.secretsOf(ctx, pod); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		read(withConn(t.Context(), &conn{readOnly: true}))
		if n := source.reading.Load(); n != maxReaderReads {
			t.Errorf("a reader reads %d secrets at the same time, want %d", n, maxReaderReads)
		}
		read(withConn(t.Context(), &conn{}))
		if n := source.reading.Load(); n != maxReaderReads+maxSecretReads {
			t.Errorf("%d secrets are being read, want %d for each", n, maxReaderReads)
		}
		close(source.release)
		requests.Wait()
	})
}

// TestWatchShowsOnlyChangedPods: a change of a pod does not read the secrets of other pods, and a message that cannot be redacted any more
// is no change.
func TestWatchShowsOnlyChangedPods(t *testing.T) {
	w, readable := watcher{}, true
	pod := func(name, message string) api.Pod {
		return api.Pod{Metadata: api.Metadata{Name: name, UID: name}, Status: api.PodStatus{Message: message}}
	}
	var shown []string
	show := func(_ context.Context, pods []api.Pod) map[string]bool {
		unreadable := map[string]bool{}
		for i := range pods {
			shown = append(shown, pods[i].Metadata.Name)
			if !readable {
				pods[i].Status.Message, unreadable[pods[i].Metadata.UID] = withheld, true
			}
		}
		return unreadable
	}
	for _, step := range []struct {
		readable      bool
		message       string // of the second pod
		shown, change []string
	}{
		{true, "one", []string{"a", "b"}, []string{"ADDED one", "ADDED one"}},
		{false, "one", nil, nil},
		{true, "two", []string{"b"}, []string{"MODIFIED two"}},
		{false, "three", []string{"b"}, []string{"MODIFIED " + withheld}},
		{false, "three", []string{"b"}, nil},
		{true, "three", []string{"b"}, []string{"MODIFIED three"}},
		{false, "three", nil, nil},
	} {
		shown, readable = nil, step.readable
		changes, err := w.changes(t.Context(), []api.Pod{pod("a", "one"), pod("b", step.message)}, show)
		var got []string
		for _, c := range changes {
			got = append(got, c.Type+" "+c.Object.Status.Message)
		}
		if err != nil || !slices.Equal(got, step.change) || !slices.Equal(shown, step.shown) {
			t.Errorf("%+v: changes %q, shown %q, %v", step, got, shown, err)
		}
	}
}
