package state

import (
	"errors"
	"fmt"
	"slices"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Checkpoint is the part of a pod's state that is valid until the next boot only: starts, probe results, the stop signals that were sent,
// and the conditions at that time. It changes often, so it is not written to the disk.
type Checkpoint struct {
	At         lifecycle.Instant            `json:"at"`
	Starts     []lifecycle.ContainerStarted `json:"starts,omitempty"`
	Probes     []lifecycle.ProbeChanged     `json:"probes,omitempty"`
	Signals    []lifecycle.SignalSent       `json:"signals,omitempty"`
	Conditions []lifecycle.Condition        `json:"conditions,omitempty"` // for their transition times
	Escalation *lifecycle.Escalation        `json:"escalation,omitempty"`
}

// ApplyStarts folds the starts into the facts of the state file, which may be older.
func (c Checkpoint) ApplyStarts(f lifecycle.Facts) lifecycle.Facts {
	for _, started := range c.Starts {
		f = f.Apply(started)
	}
	return f
}

// Apply folds the rest of the checkpoint into the facts, which have what the engine has by then.
func (c Checkpoint) Apply(f lifecycle.Facts) lifecycle.Facts {
	for _, result := range c.Probes {
		f = f.Apply(result)
	}
	for _, sent := range c.Signals {
		f = f.Apply(sent)
	}
	if c.Escalation != nil {
		f = f.Escalated(*c.Escalation)
	}
	return f
}

// SetBack moves the instants of the checkpoint, see [lifecycle.Facts.SetBack].
func (c Checkpoint) SetBack(saved, now lifecycle.Instant) Checkpoint {
	c.At, c.Starts, c.Probes, c.Signals = c.At.SetBack(saved, now), slices.Clone(c.Starts), slices.Clone(c.Probes), slices.Clone(c.Signals)
	for i := range c.Starts {
		c.Starts[i].At = c.Starts[i].At.SetBack(saved, now)
	}
	for i := range c.Probes {
		c.Probes[i].At = c.Probes[i].At.SetBack(saved, now)
	}
	if c.Escalation != nil {
		moved := c.Escalation.SetBack(saved, now)
		c.Escalation = &moved
	}
	for i := range c.Signals {
		c.Signals[i].At = c.Signals[i].At.SetBack(saved, now)
	}
	return c
}

// Checkpoints stores checkpoints across restarts of the daemon. With them status.started and status.ready do not flip, and no stop
// signal is sent twice. Calls for one pod are never concurrent.
type Checkpoints interface {
	// Load returns all checkpoints by the UID of the pod. Beside an error it returns those that could be read.
	Load() (map[string]Checkpoint, error)
	// Save replaces the checkpoint of a pod.
	Save(uid string, c Checkpoint) error
	// Delete removes the checkpoint of a pod. It succeeds if there is none.
	Delete(uid string) error
}

// CheckpointDir is a [Checkpoints] with one JSON file per pod. Its directory should be on a tmpfs: nothing is synced.
type CheckpointDir struct{ files *statefile.Dir[Checkpoint] }

// NewCheckpointDir returns checkpoints in the directory, which it creates if needed.
func NewCheckpointDir(dir string) (*CheckpointDir, error) {
	d := &CheckpointDir{statefile.NewDir[Checkpoint](CheckpointFormat, dir)}
	return d, d.files.Make()
}

// Load implements [Checkpoints]. A file that cannot be read yields an empty checkpoint and an error, one of a later version only
// the error. Fields that a later version added are written back by Save.
func (d *CheckpointDir) Load() (map[string]Checkpoint, error) {
	files, err := d.files.Load(func(string, *Checkpoint) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("read checkpoint directory: %w", err)
	}
	all := map[string]Checkpoint{}
	var errs []error
	for i := range files {
		f := &files[i]
		if f.Err != nil {
			errs = append(errs, fmt.Errorf("read checkpoint of pod %s: %w", f.Name, f.Err))
		}
		if !errors.Is(f.Err, statefile.ErrNewer) {
			all[f.Name] = f.Value
		}
	}
	return all, errors.Join(errs...)
}

// Save implements [Checkpoints].
func (d *CheckpointDir) Save(uid string, c Checkpoint) error { return d.files.Save(uid, &c) }

// Delete implements [Checkpoints].
func (d *CheckpointDir) Delete(uid string) error { return d.files.Delete(uid) }
