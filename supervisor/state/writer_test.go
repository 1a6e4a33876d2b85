package state

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// slowStore is a store whose writes block until released, and then fail with err.
type slowStore struct {
	Store
	release chan struct{}
	err     error
	saved   []Pod
}

func (s *slowStore) Save(p Pod) error {
	<-s.release
	s.saved = append(s.saved, p)
	return s.err
}

// recorded is a [Checkpoints] of one pod.
type recorded struct {
	Checkpoints
	saved []Checkpoint
}

func (r *recorded) Save(_ string, c Checkpoint) error {
	r.saved = append(r.saved, c)
	return nil
}

// TestCheckpointWhileStateIsWritten expects that a hanging disk does not delay checkpoints, which are on a tmpfs.
func TestCheckpointWhileStateIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, checkpoints := &slowStore{release: make(chan struct{})}, &recorded{}
		w := NewWriter(store, checkpoints, "uid")
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx, func(error) {}) })
		written := w.Put(Pod{})
		synctest.Wait()
		w.Checkpoint(Checkpoint{Signals: []lifecycle.SignalSent{{}}})
		synctest.Wait()
		if len(checkpoints.saved) != 1 {
			t.Errorf("%d checkpoints were saved while a state was being written, want 1", len(checkpoints.saved))
		}
		stop()
		close(store.release)
		running.Wait()
		<-written.done
	})
}

func TestWriterSavesNewestStateOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{release: make(chan struct{}), err: errors.New("no space left on device")}
		w := NewWriter(store, nil, "uid")
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var reports []error
		running.Go(func() { w.Run(ctx, func(err error) { reports = append(reports, err) }) })
		w.Put(Pod{Owner: Owner{By: "first"}})
		time.Sleep(gatherTime)
		synctest.Wait() // the first write hangs
		replaced, last := w.Put(Pod{Owner: Owner{By: "second"}}), w.Put(Pod{Owner: Owner{By: "third"}})
		begun := time.Now()
		synctest.Wait()
		last.Wait(t.Context(), time.Minute)
		if waited := time.Since(begun); waited != time.Minute {
			t.Errorf("waited %v for a write that hangs, want the timeout of 1m", waited)
		}
		close(store.release)
		replaced.Wait(t.Context(), time.Minute)
		stop()
		running.Wait()
		if len(store.saved) != 2 || store.saved[1].Owner.By != "third" || len(reports) != 3 || !errors.Is(reports[0], ErrTimeout) ||
			errors.Is(reports[1], ErrTimeout) || reports[2] == nil {
			t.Errorf("saved %+v, reports %v; want the first and the third state, ErrTimeout and then an error for each", store.saved,
				reports)
		}
	})
}

// TestGather expects that states that nothing waits for are one write, and that a state is written at once when something waits for it,
// when the writer ends, and never if it is dropped.
func TestGather(t *testing.T) {
	tests := []struct {
		name string
		then func(w *Writer, stop func())
		want string // the owners of the saved states
	}{
		{"soon", func(w *Writer, _ func()) { w.Put(Pod{Owner: Owner{By: "b"}}); time.Sleep(gatherTime) }, "b"},
		{"not yet", func(w *Writer, _ func()) { w.Put(Pod{Owner: Owner{By: "b"}}); time.Sleep(gatherTime - 1) }, ""},
		{"waits", func(w *Writer, _ func()) {
			w.Put(Pod{Owner: Owner{By: "b"}}).Wait(context.Background(), time.Minute)
			w.Put(Pod{Owner: Owner{By: "c"}}).Wait(context.Background(), time.Minute)
			w.Put(Pod{Owner: Owner{By: "d"}})
		}, "bc"},
		{"ends", func(_ *Writer, stop func()) { stop() }, "a"},
		{"dropped", func(w *Writer, _ func()) { w.Drop(); w.Drop(); time.Sleep(time.Hour) }, ""},
		{"another after one that was dropped", func(w *Writer, _ func()) {
			w.Drop()
			w.Put(Pod{Owner: Owner{By: "b"}})
			time.Sleep(gatherTime)
		}, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &slowStore{release: make(chan struct{})}
				close(store.release)
				w := NewWriter(store, nil, "uid")
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { w.Run(ctx, func(error) {}) })
				w.Put(Pod{Owner: Owner{By: "a"}})
				synctest.Wait()
				began := time.Now()
				tt.then(w, stop)
				synctest.Wait()
				var got string
				for _, p := range store.saved {
					got += p.Owner.By
				}
				if got != tt.want || time.Since(began) > time.Hour {
					t.Errorf("saved %q after %v, want %q", got, time.Since(began), tt.want)
				}
				stop()
				running.Wait()
			})
		})
	}
}

// TestDroppedWrite expects that what begins to wait for a write while it is dropped does not wait.
func TestDroppedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(&slowStore{}, nil, "uid")
		dropped := w.Put(Pod{})
		w.Drop()
		began := time.Now()
		dropped.Wait(t.Context(), time.Minute)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestNoWriteToWaitFor(t *testing.T) {
	var none *Write
	none.Wait(t.Context(), time.Hour)
}
