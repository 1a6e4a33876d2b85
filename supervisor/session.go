package supervisor

import (
	"context"
	"log/slog"
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
		if len(s.ofSession(id)) == 0 {
			delete(s.sessions, id)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

// ofSession returns the names of a session's pods. s.mu is held.
func (s *Supervisor) ofSession(id string) []string {
	var names []string
	for name, l := range s.pods {
		if l != nil && l.owner.Session == id {
			names = append(names, name)
		}
	}
	return names
}

func (s *Supervisor) end(ctx context.Context, id string) {
	s.mu.Lock()
	names := s.ofSession(id)
	s.mu.Unlock()
	for _, name := range names {
		err := s.Stop(ctx, name, StopOptions{Delete: true, By: "the supervisor: the client was lost"})
		if err != nil {
			s.shared.log.LogAttrs(ctx, slog.LevelWarn, "could not end a pod whose client was lost", slog.String("pod", name), slog.Any("error", err))
		}
	}
}
