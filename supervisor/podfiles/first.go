package podfiles

// CarriedOut returns a channel that is closed when the pods of the first listing of the directory were added, apart from those that failed.
// A daemon that has started then knows them.
func (s *Set) CarriedOut() <-chan struct{} { return s.first }

// carriedOut closes the channel if no pod is being added, and no file may be half-written. s.turn must be held.
func (s *Set) carriedOut() {
	for _, w := range s.workers {
		if w.step.kind == add {
			return
		}
	}
	if !s.settled.IsZero() {
		return
	}
	select {
	case <-s.first:
	default:
		close(s.first)
	}
}
