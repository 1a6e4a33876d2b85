package server

import (
	"testing"
	"time"
)

// Constants for tests.
const (
	MaxReaders  = maxReaders
	MaxForwards = maxForwards
)

// SetWriteTimeout changes the write timeout until all servers of a test are closed. Call it before the first one is started.
func SetWriteTimeout(t *testing.T, d time.Duration) {
	t.Helper()
	before := writeTimeout
	writeTimeout = d
	t.Cleanup(func() { writeTimeout = before })
}

// SetCopyTimeout changes the timeout of copies without progress until all servers of a test are closed. Call it before the first one is
// started.
func SetCopyTimeout(t *testing.T, d time.Duration) {
	t.Helper()
	before := copyTimeout
	copyTimeout = d
	t.Cleanup(func() { copyTimeout = before })
}

// SetSearchBounds changes the bounds of searches until all servers of a test are closed. Call it before the first one is started.
func SetSearchBounds(t *testing.T, size int64, d time.Duration) {
	t.Helper()
	beforeSize, beforeTime := maxSearchBytes, maxSearchTime
	maxSearchBytes, maxSearchTime = size, d
	t.Cleanup(func() { maxSearchBytes, maxSearchTime = beforeSize, beforeTime })
}

// Forward occupies n of the connections to ports of pods.
func (s *Server) Forward(n int64) bool { return s.forwards.TryAcquire(n) }

// Connections returns the number of connections.
func (s *Server) Connections() int {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return s.conns.total
}
