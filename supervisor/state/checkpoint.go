package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/format"
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
type CheckpointDir struct {
	dir string

	mu      sync.Mutex
	unknown map[string]format.Unknown // fields that a later version added, by UID
}

// NewCheckpointDir returns checkpoints in the directory, which it creates if needed.
func NewCheckpointDir(dir string) (*CheckpointDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create checkpoint directory: %w", err)
	}
	return &CheckpointDir{dir: dir, unknown: map[string]format.Unknown{}}, nil
}

func (d *CheckpointDir) path(uid string) string { return filepath.Join(d.dir, uid+".json") }

// Load implements [Checkpoints]. A file that cannot be read yields an empty checkpoint and an error, one of a later version only
// the error. Fields that a later version added are written back by Save.
func (d *CheckpointDir) Load() (map[string]Checkpoint, error) {
	if err := atomicfile.Sweep(d.dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint directory: %w", err)
	}
	all := map[string]Checkpoint{}
	var errs []error
	for _, entry := range entries {
		uid, isCheckpoint := strings.CutSuffix(entry.Name(), ".json")
		if !isCheckpoint || !entry.Type().IsRegular() {
			continue
		}
		var c Checkpoint
		data, err := os.ReadFile(d.path(uid))
		var unknown format.Unknown
		if err == nil {
			unknown, err = CheckpointFormat.Decode(data, &c)
		}
		if err != nil {
			c = Checkpoint{}
			errs = append(errs, fmt.Errorf("read checkpoint of pod %s: %w", uid, err))
		}
		if errors.Is(err, format.ErrNewer) {
			continue
		}
		all[uid] = c
		d.mu.Lock()
		d.unknown[uid] = unknown
		d.mu.Unlock()
	}
	return all, errors.Join(errs...)
}

// Save implements [Checkpoints].
func (d *CheckpointDir) Save(uid string, c Checkpoint) error {
	d.mu.Lock()
	unknown := d.unknown[uid]
	d.mu.Unlock()
	data, err := CheckpointFormat.Encode(c, unknown)
	if err != nil {
		return fmt.Errorf("encode checkpoint: %w", err)
	}
	return atomicfile.WriteVolatile(d.path(uid), data, 0o600)
}

// Delete implements [Checkpoints].
func (d *CheckpointDir) Delete(uid string) error {
	d.mu.Lock()
	delete(d.unknown, uid)
	d.mu.Unlock()
	if err := os.Remove(d.path(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
