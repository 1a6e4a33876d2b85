package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// SessionTimeout is how long a session may be silent before its pods end. It is longer than a restart of the
// supervisor, which a client survives.
const SessionTimeout = 30 * time.Second

// session is a client whose pods end with it, like a `podstead run` in a terminal.
type session struct {
	seen chan struct{} // takes a sign of life
}

// attend begins to listen for a session's signs of life, if there is a session and nobody listens. s.mu is held.
func (s *Supervisor) attend(id string) {
	if id == "" || s.sessions[id] != nil || s.leaving {
		return
	}
	listener := &session{seen: make(chan struct{}, 1)}
	s.sessions[id] = listener
	s.loops.Go(func() { s.listen(s.ctx, id, listener) })
}

// Touch is a session's sign of life. It reports whether the session has any pods.
func (s *Supervisor) Touch(id string) bool {
	s.mu.Lock()
	listener := s.sessions[id]
	s.mu.Unlock()
	if listener == nil {
		return false
	}
	select {
	case listener.seen <- struct{}{}:
	default:
	}
	return true
}

// listen ends the pods of a session that was silent for too long, and returns when it has none left.
func (s *Supervisor) listen(ctx context.Context, id string, listener *session) {
	silence := time.NewTimer(SessionTimeout)
	defer silence.Stop()
	for {
		select {
		case <-listener.seen:
		case <-silence.C:
			s.end(ctx, id)
		case <-ctx.Done():
			return
		}
		silence.Reset(SessionTimeout)
		s.mu.Lock()
		if len(s.ofSession(id)) == 0 { // none that still has to end
			delete(s.sessions, id)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

// ofSession returns the pods of a session, but for those that have ended and are kept. s.mu is held.
func (s *Supervisor) ofSession(id string) []Snapshot {
	var pods []Snapshot
	for _, l := range s.pods {
		if l == nil || l.owner.Session != id {
			continue
		}
		if p := l.snapshot.Load(); !p.AtRest || !p.Owner.Keep {
			pods = append(pods, *p)
		}
	}
	return pods
}

func (s *Supervisor) end(ctx context.Context, id string) {
	s.mu.Lock()
	pods := s.ofSession(id)
	s.mu.Unlock()
	var stops sync.WaitGroup
	defer stops.Wait()
	for _, p := range pods {
		stops.Go(func() {
			err := s.Stop(ctx, p.Pod.Name, StopOptions{UID: p.Facts.UID, Delete: !p.Owner.Keep, By: "the supervisor: the client was lost"})
			if err != nil && !errors.Is(err, ErrNotFound) {
				s.shared.log.LogAttrs(ctx, slog.LevelWarn, "could not end a pod whose client was lost",
					slog.String("pod", p.Pod.Name), slog.Any("error", err))
			}
		})
	}
}
