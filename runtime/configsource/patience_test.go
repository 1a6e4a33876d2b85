package configsource

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A file system that hangs holds up nobody for longer than Patience, however often it is asked, and what it holds is bounded.
func TestAFileSystemThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		hang := func() (map[string][]byte, error) {
			<-answer
			return nil, nil
		}
		for range cap(reads) {
			go func() { _, _ = InTime("secret", "db", hang) }()
		}
		synctest.Wait()
		if len(reads) != cap(reads) {
			t.Fatalf("%d reads are under way, want %d", len(reads), cap(reads))
		}
		time.Sleep(Patience)
		synctest.Wait() // all have given up, and none of the reads has ended
		close(answer)
		synctest.Wait()
		if len(reads) != 0 {
			t.Errorf("%d places are taken when all reads have ended", len(reads))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		begun := time.Now()
		_, err := InTime("secret", "db", func() (map[string][]byte, error) {
			<-answer
			return nil, nil
		})
		if !errors.Is(err, errNoAnswer) || time.Since(begun) != Patience {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if want := `secret "db": its file system does not answer within 10s`; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
		close(answer)
	})
}
