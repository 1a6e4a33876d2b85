package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// heartbeat asks the loop of a pod to answer. The loop closes the channel.
type heartbeat chan<- struct{}

// Heartbeat returns nil when the loop of each pod has handled a message, or has exited. If ctx ends before that, the error names the pods
// whose loops did not answer. A loop that waits for the disk, the container engine or a shim answers: such calls have goroutines of their
// own.
func (s *Supervisor) Heartbeat(ctx context.Context) error {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var silent []string
	for name, l := range s.running() {
		wait.Go(func() {
			if !l.answers(ctx) {
				mu.Lock()
				defer mu.Unlock()
				silent = append(silent, name)
			}
		})
	}
	wait.Wait()
	if len(silent) == 0 {
		return nil
	}
	slices.Sort(silent)
	return fmt.Errorf("no response from the supervisors of pods %s: %w", strings.Join(silent, ", "), context.Cause(ctx))
}

// running returns the loops by the name of their pod.
func (s *Supervisor) running() map[string]*loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	loops := make(map[string]*loop, len(s.pods))
	for name, l := range s.pods {
		if l != nil {
			loops[name] = l
		}
	}
	return loops
}

// answers reports whether the loop handles a message, or ends, before ctx ends.
func (l *loop) answers(ctx context.Context) bool {
	handled := make(chan struct{})
	l.mailbox.post(ctx, heartbeat(handled))
	select {
	case <-handled:
	case <-l.ended:
	case <-ctx.Done():
		return false
	}
	return true
}
