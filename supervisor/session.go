package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// SessionTimeout is how long a client may be silent before the pods of its session are stopped. It is longer than a restart of the daemon,
// which clients survive.
const SessionTimeout = 30 * time.Second

// watchSession starts to watch a session, if id is not empty and the session is not watched yet. s.mu must be held.
func (s *Supervisor) watchSession(id string) {
	if id == "" || s.sessions[id] != nil || s.leaving {
		return
	}
	watched := &session{keepalive: make(chan struct{}, 1), final: map[string]Snapshot{}}
	s.sessions[id] = watched
	s.loops.Go(func() { s.runSession(s.ctx, id, watched) })
}

// Touch keeps a session alive. It reports whether the session has pods, or final states of deleted pods.
func (s *Supervisor) Touch(id string) bool {
	s.mu.Lock()
	watched := s.sessions[id]
	s.mu.Unlock()
	if watched == nil {
		return false
	}
	select {
	case watched.keepalive <- struct{}{}:
	default:
	}
	return true
}

// EndSession discards the final states of the session's deleted pods. The client does not need them any more.
func (s *Supervisor) EndSession(id string) {
	s.mu.Lock()
	if watched := s.sessions[id]; watched != nil {
		clear(watched.final)
	}
	s.mu.Unlock()
	s.Touch(id) // runSession returns if the session has no pods
}

// Final returns the final state of a deleted pod. It is kept until the session of the pod ends, so that its client sees how the pod has
// terminated, regardless of the client that deletes it.
func (s *Supervisor) Final(uid string) (Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, watched := range s.sessions {
		if final, ok := watched.final[uid]; ok {
			return final, true
		}
	}
	return Snapshot{}, false
}

// FinalStates returns the number of deleted pods whose final state is kept.
func (s *Supervisor) FinalStates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, watched := range s.sessions {
		n += len(watched.final)
	}
	return n
}

// runSession stops the pods of a session that times out. It returns when the session has no pods left, and when the client has ended the
// session or timed out.
func (s *Supervisor) runSession(ctx context.Context, id string, watched *session) {
	timeout := time.NewTimer(SessionTimeout)
	defer timeout.Stop()
	for {
		timedOut := false
		select {
		case <-watched.keepalive:
		case <-timeout.C:
			timedOut = true
			s.stopSession(ctx, id)
		case <-ctx.Done():
			return
		}
		timeout.Reset(SessionTimeout)
		s.mu.Lock()
		if len(s.sessionPods(id)) == 0 && (timedOut || len(watched.final) == 0) {
			delete(s.sessions, id)
			s.mu.Unlock()
			s.notify()
			return
		}
		s.mu.Unlock()
	}
}

// sessionPods returns the loops of the pods of a session, except those that have completed and are kept. s.mu must be held.
func (s *Supervisor) sessionPods(id string) []*loop {
	var pods []*loop
	for _, l := range s.pods {
		if l == nil {
			continue
		}
		if p := l.snapshot.Load(); p.Owner.Session == id && (!p.AtRest || !p.Owner.Keep) {
			pods = append(pods, l)
		}
	}
	return pods
}

func (s *Supervisor) stopSession(ctx context.Context, id string) {
	s.mu.Lock()
	pods := s.sessionPods(id)
	s.mu.Unlock()
	var stops sync.WaitGroup
	defer stops.Wait()
	for _, l := range pods {
		stops.Go(func() {
			err := s.request(ctx, "stop", l, func(l *loop, now lifecycle.Instant) error {
				if l.owner.Session != id {
					return nil // another client has taken it over
				}
				return l.stop(StopOptions{Delete: !l.owner.Keep, By: "the supervisor (client disconnected)"}, now)
			})
			if err != nil && !errors.Is(err, ErrNotFound) {
				s.shared.log.LogAttrs(ctx, slog.LevelWarn, "could not stop a pod whose client disconnected",
					slog.String("pod", l.name), slog.Any("error", err))
			}
		})
	}
}
