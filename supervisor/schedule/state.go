package schedule

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/spec"
)

// Format is that of the file of a [State].
var Format = statefile.Format{Version: 1, Aside: ".unreadable"}

// State is what is stored of a schedule.
type State struct {
	Pod      string `json:"pod"`
	Cron     string `json:"cron"`
	TimeZone string `json:"timeZone,omitempty"`
	// Since is the time up to which runs were started or left out, by the wall clock.
	Since time.Time `json:"since"`
	// Ahead is the time up to which runs were started before the clock was set back; zero: the clock has passed it.
	Ahead time.Time `json:"ahead,omitzero"`
	// Last is the time of the schedule of the last run that was started; zero: none.
	Last time.Time `json:"last,omitzero"`
	// Failure is why the newest run was not started; zero: it was.
	Failure Failure `json:"failure,omitzero"`
}

// Failure is a run that was not started.
type Failure struct {
	Scheduled time.Time `json:"scheduled"` // time of the schedule
	Cause     string    `json:"cause"`     // for people, without a full stop
}

func (f Failure) equal(other Failure) bool {
	return f.Scheduled.Equal(other.Scheduled) && f.Cause == other.Cause
}

// States stores schedules, one file for each in a directory. Its calls may block for as long as the disk does. They must not be concurrent.
type States struct {
	files *statefile.Dir[State]
	// later are the names of files that only a later version understands. They are never changed.
	later map[string]bool
}

// NewStates returns a store in a directory, which it creates when the first state is saved.
func NewStates(dir string) *States {
	return &States{files: statefile.NewDir[State](Format, dir), later: map[string]bool{}}
}

// load returns all states by name of the pod. It renames files that cannot be parsed, and leaves those of a later version; problems has an
// error for each.
func (s *States) load() (states map[string]State, problems []error, err error) {
	states = map[string]State{}
	files, err := s.files.Load(func(name string, state *State) error {
		if state.Pod == "" || spec.FileName(state.Pod) != name {
			return fmt.Errorf("not the schedule of pod %q", name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return states, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read schedules: %w", err)
	}
	for i := range files {
		f := &files[i]
		switch {
		case f.Err == nil:
			states[f.Value.Pod] = f.Value
		case errors.Is(f.Err, statefile.ErrNewer):
			s.later[f.Name] = true
			fallthrough
		default:
			problems = append(problems, fmt.Errorf("read %s: %w", f.Path, f.Err))
		}
	}
	return states, problems, nil
}

// save replaces the state of a schedule. It is durable when save returns.
func (s *States) save(state State) error {
	name := spec.FileName(state.Pod)
	if s.later[name] {
		return nil
	}
	if err := s.files.Make(); err != nil {
		return err
	}
	return s.files.Save(name, &state)
}

// remove removes the state of a schedule. It succeeds if there is none.
func (s *States) remove(pod string) error {
	name := spec.FileName(pod)
	if s.later[name] {
		return nil
	}
	return s.files.Delete(name)
}
