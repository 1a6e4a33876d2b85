package config

import (
	"errors"
	"fmt"
	"time"
)

// Patience is how long a file system may take to give a config map or a secret, 1 MiB at most.
const Patience = 10 * time.Second

// errNoAnswer is the error of a file system that hangs, such as that of a server that is gone.
var errNoAnswer = errors.New("its file system does not answer")

// reads has room for the reads that are under way, all pods' together. One that the kernel does not come back from keeps its
// place, and its goroutine, until it does: a bound on both.
var reads = make(chan struct{}, 64)

// inTime returns what read does, or gives it up.
func inTime(kind, name string, read func() (map[string][]byte, error)) (map[string][]byte, error) {
	type outcome struct {
		values map[string][]byte
		err    error
	}
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	select {
	case reads <- struct{}{}:
	case <-limit.C:
		return nil, fmt.Errorf("%s %q: too many others are waited for: %w", kind, name, errNoAnswer)
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-reads }()
		values, err := read()
		done <- outcome{values, err}
	}()
	select {
	case o := <-done:
		return o.values, o.err
	case <-limit.C:
		return nil, fmt.Errorf("%s %q: %w within %v", kind, name, errNoAnswer, Patience)
	}
}
