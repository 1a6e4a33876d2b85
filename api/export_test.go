package api

import (
	"testing"
	"time"
)

// Constants for tests.
const MaxReaders = maxReaders

// SetWriteTimeout changes the write timeout until all servers of a test are closed. Call it before the first one is started.
func SetWriteTimeout(t *testing.T, d time.Duration) {
	t.Helper()
	before := writeTimeout
	writeTimeout = d
	t.Cleanup(func() { writeTimeout = before })
}

// Connections returns the number of connections.
func (s *Server) Connections() int {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return s.conns.total
}
