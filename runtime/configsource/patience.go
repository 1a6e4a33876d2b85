package configsource

import (
	"errors"
	"fmt"
	"time"
)

// Patience is how long a file system may take to give a config map, a secret or another small file of the configuration, 1 MiB at
// most.
const Patience = 10 * time.Second

// errNoAnswer is the error of a file system that hangs, such as that of a server that is gone.
var errNoAnswer = errors.New("its file system does not answer")

// reads has room for the reads that are under way, all pods' together. One that the kernel does not come back from keeps its
// place, and its goroutine, until it does: a bound on both.
var reads = make(chan struct{}, 64)

// InTime returns what read does, or gives it up after [Patience]. Its error then names the kind of what is read, and its name.
func InTime[T any](kind, name string, read func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	select {
	case reads <- struct{}{}:
	case <-limit.C:
		return none, fmt.Errorf("%s %q: too many others are waited for: %w", kind, name, errNoAnswer)
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-reads }()
		value, err := read()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-limit.C:
		return none, fmt.Errorf("%s %q: %w within %v", kind, name, errNoAnswer, Patience)
	}
}
