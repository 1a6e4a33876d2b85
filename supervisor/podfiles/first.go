package podfiles

// CarriedOut returns a channel that is closed when the first listing of the directory was carried out, apart from what failed: a daemon that has
// started then knows the pods.
func (s *Set) CarriedOut() <-chan struct{} { return s.first }

// carriedOut closes the channel if no worker is left, and no file may be half-written. s.turn must be held.
func (s *Set) carriedOut() {
	if len(s.workers) > 0 || !s.settled.IsZero() {
		return
	}
	select {
	case <-s.first:
	default:
		close(s.first)
	}
}
