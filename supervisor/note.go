package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Note is what of a pod's state holds until the next boot: what its probes have said, the stop signals that were sent, and the
// conditions then.
type Note struct {
	At         lifecycle.Instant        `json:"at"`
	Probes     []lifecycle.ProbeChanged `json:"probes,omitempty"`
	Signals    []lifecycle.SignalSent   `json:"signals,omitempty"`
	Conditions []lifecycle.Condition    `json:"conditions,omitempty"` // for their transition times
}

// onto folds the note into the facts that the disk has.
func (n Note) onto(f lifecycle.Facts) lifecycle.Facts {
	for _, verdict := range n.Probes {
		f = f.Apply(verdict)
	}
	for _, sent := range n.Signals {
		f = f.Apply(sent)
	}
	return f
}

// Notes keeps notes over a restart of the supervisor but not of the machine, so that status.started and status.ready do not flip,
// and no stop signal is sent twice. Calls for one pod are never concurrent.
type Notes interface {
	// Load returns all notes, by the UID of the pod.
	Load() (map[string]Note, error)
	// Save replaces the note of a pod.
	Save(uid string, n Note) error
	// Delete takes away the note of a pod. That there is none is no error.
	Delete(uid string) error
}

// DirNotes are [Notes] of one JSON file for each pod, in a folder that is meant to lie in memory: nothing is waited
// for until it is on a disk.
type DirNotes struct{ dir string }

// NewDirNotes returns notes in the folder, which it makes.
func NewDirNotes(dir string) (*DirNotes, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of notes: %w", err)
	}
	return &DirNotes{dir: dir}, nil
}

func (d *DirNotes) path(uid string) string { return filepath.Join(d.dir, uid+".json") }

// Load implements [Notes]. A file that cannot be read is left out, and the others are returned beside the error.
func (d *DirNotes) Load() (map[string]Note, error) {
	if err := atomicfile.Sweep(d.dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	all := map[string]Note{}
	var errs []error
	for _, entry := range entries {
		uid, ours := strings.CutSuffix(entry.Name(), ".json")
		if !ours || !entry.Type().IsRegular() {
			continue
		}
		var n Note
		data, err := os.ReadFile(d.path(uid))
		if err == nil {
			err = json.Unmarshal(data, &n)
		}
		if err != nil {
			n = Note{}
			errs = append(errs, fmt.Errorf("read notes of %s: %w", uid, err))
		}
		all[uid] = n
	}
	return all, errors.Join(errs...)
}

// Save implements [Notes].
func (d *DirNotes) Save(uid string, n Note) error {
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode notes: %w", err)
	}
	return atomicfile.WriteVolatile(d.path(uid), data, 0o600)
}

// Delete implements [Notes].
func (d *DirNotes) Delete(uid string) error {
	if err := os.Remove(d.path(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// loadNotes returns the notes of these pods, and takes away those of others. What cannot be read is found out again, or
// done again.
func (s *Supervisor) loadNotes(envelopes []Envelope) map[string]Note {
	if s.shared.notes == nil {
		return nil
	}
	all, err := s.shared.notes.Load()
	known := map[string]bool{}
	for _, e := range envelopes {
		known[e.Facts.UID] = true
	}
	for uid := range all {
		if !known[uid] {
			err = errors.Join(err, s.shared.notes.Delete(uid))
		}
	}
	if err != nil {
		s.shared.log.LogAttrs(s.ctx, slog.LevelWarn, "could not read what probes have said and which signals were sent", slog.Any("error", err))
	}
	return all
}
