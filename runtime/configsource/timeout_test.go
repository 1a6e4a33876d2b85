package configsource

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A file system that does not answer blocks no caller for longer than Timeout, and the number of reads is limited.
func TestWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		stuck := func() (map[string][]byte, error) {
			<-answer
			return nil, nil
		}
		for range cap(reads) {
			go func() { _, _ = WithTimeout("secret", "db", stuck) }()
		}
		synctest.Wait()
		if len(reads) != cap(reads) {
			t.Fatalf("%d reads are in progress, want %d", len(reads), cap(reads))
		}
		time.Sleep(Timeout)
		synctest.Wait() // all callers have returned, but none of the reads
		close(answer)
		synctest.Wait()
		if len(reads) != 0 {
			t.Errorf("%d slots are used after all reads have returned", len(reads))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		start := time.Now()
		_, err := WithTimeout("secret", "db", func() (map[string][]byte, error) {
			<-answer
			return nil, nil
		})
		if !errors.Is(err, errNoAnswer) || time.Since(start) != Timeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if want := `secret "db": its file system does not answer within 10s`; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
		close(answer)
	})
}
