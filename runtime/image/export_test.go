package image

import (
	"context"
	"io"
	"os"
	"testing"
	"time"
)

// WaitForWaiters waits until n callers share running work.
func WaitForWaiters(t *testing.T, s *Store, n int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		waiting := 0
		s.flights.mu.Lock()
		for _, fl := range s.flights.running {
			waiting += fl.waiters
		}
		s.flights.mu.Unlock()
		if waiting == n {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d callers wait, want %d", waiting, n)
		}
	}
}

// Peek returns the digest of the configuration of an image of an archive that has changed.
func (s *Store) Peek(ctx context.Context, f *os.File, origin, name string) (string, error) {
	return s.peekOnce(ctx, f, origin, name)
}

// Load imports an archive from a reader, so that a test can act in the middle of it.
func (s *Store) Load(ctx context.Context, r io.Reader) ([]Image, error) {
	return s.load(ctx, r, archive{records: recordPrefix + "test/", origin: "test"})
}

// Importing returns the number of imports that have a progress.
func (s *Store) Importing() int {
	s.reads.mu.Lock()
	defer s.reads.mu.Unlock()
	return len(s.reads.archives)
}

// SetPatience sets how long pods wait for an import that makes no progress.
func (s *Store) SetPatience(d time.Duration) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	s.files.stall.patience = d
}

// KeepByHand makes an image for a person, so that a test can remove it meanwhile.
func (s *Store) KeepByHand(ctx context.Context, record string, ensure func() error) error {
	return s.keepByHand(ctx, record, ensure)
}
