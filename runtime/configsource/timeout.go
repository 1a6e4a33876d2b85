package configsource

import (
	"errors"
	"fmt"
	"time"
)

// Timeout is for reading a config map, a secret or another small file of the configuration, which is at most 1 MiB.
const Timeout = 10 * time.Second

// errNoAnswer is the error of a file system that does not answer, such as that of an unreachable server.
var errNoAnswer = errors.New("its file system does not answer")

// reads limits the number of concurrent reads for all pods. A read that is stuck in the kernel keeps its slot and its goroutine until it
// returns, so that the number of both is limited.
var reads = make(chan struct{}, 64)

// WithTimeout returns the result of read, or an error with kind and name after [Timeout]. It does not stop read.
func WithTimeout[T any](kind, name string, read func() (T, error)) (T, error) {
	var none T
	timeout := time.NewTimer(Timeout)
	defer timeout.Stop()
	select {
	case reads <- struct{}{}:
	case <-timeout.C:
		return none, fmt.Errorf("%s %q: too many reads are in progress: %w", kind, name, errNoAnswer)
	}
	value, answered, err := await(timeout.C, func() (T, error) {
		defer func() { <-reads }()
		return read()
	})
	if !answered {
		return none, fmt.Errorf("%s %q: %w within %v", kind, name, errNoAnswer, Timeout)
	}
	return value, err
}

// await returns the result of run, and whether it returned before the timeout. It does not stop run.
func await[T any](timeout <-chan time.Time, run func() (T, error)) (value T, answered bool, err error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := run()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, true, o.err
	case <-timeout:
		return value, false, nil
	}
}
