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

// Spoken is what the probes of a pod have said, the stop signals that were sent, and the conditions then.
type Spoken struct {
	At         lifecycle.Instant        `json:"at"`
	Probes     []lifecycle.ProbeChanged `json:"probes,omitempty"`
	Signals    []lifecycle.SignalSent   `json:"signals,omitempty"`
	Conditions []lifecycle.Condition    `json:"conditions,omitempty"` // for their transition times
}

// onto folds what was kept into the facts that the disk has.
func (s Spoken) onto(f lifecycle.Facts) lifecycle.Facts {
	for _, verdict := range s.Probes {
		f = f.Apply(verdict)
	}
	for _, sent := range s.Signals {
		f = f.Apply(sent)
	}
	return f
}

// Verdicts keeps what the probes of pods have said, over a restart of the supervisor but not of the machine, so that
// status.started and status.ready do not flip; and which stop signals were sent, so that none is sent twice. Calls for one pod are never concurrent.
type Verdicts interface {
	// Load returns what is kept, by the UID of the pod.
	Load() (map[string]Spoken, error)
	// Save replaces what is kept of a pod.
	Save(uid string, s Spoken) error
	// Delete takes away what is kept of a pod. That there is nothing is no error.
	Delete(uid string) error
}

// DirVerdicts are [Verdicts] of one JSON file for each pod, in a folder that is meant to lie in memory: nothing is waited
// for until it is on a disk.
type DirVerdicts struct{ dir string }

// NewDirVerdicts returns verdicts in the folder, which it makes.
func NewDirVerdicts(dir string) (*DirVerdicts, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of verdicts: %w", err)
	}
	return &DirVerdicts{dir: dir}, nil
}

func (d *DirVerdicts) path(uid string) string { return filepath.Join(d.dir, uid+".json") }

// Load implements [Verdicts]. A file that cannot be read is left out, and the others are returned beside the error.
func (d *DirVerdicts) Load() (map[string]Spoken, error) {
	if err := atomicfile.Sweep(d.dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, fmt.Errorf("read verdicts: %w", err)
	}
	all := map[string]Spoken{}
	var errs []error
	for _, entry := range entries {
		uid, ours := strings.CutSuffix(entry.Name(), ".json")
		if !ours || !entry.Type().IsRegular() {
			continue
		}
		var said Spoken
		data, err := os.ReadFile(d.path(uid))
		if err == nil {
			err = json.Unmarshal(data, &said)
		}
		if err != nil {
			said = Spoken{}
			errs = append(errs, fmt.Errorf("read verdicts of %s: %w", uid, err))
		}
		all[uid] = said
	}
	return all, errors.Join(errs...)
}

// Save implements [Verdicts].
func (d *DirVerdicts) Save(uid string, s Spoken) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode verdicts: %w", err)
	}
	return atomicfile.WriteVolatile(d.path(uid), data, 0o600)
}

// Delete implements [Verdicts].
func (d *DirVerdicts) Delete(uid string) error {
	if err := os.Remove(d.path(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// loadVerdicts returns what is kept of these pods, and takes away what is of others. What cannot be read is found out again, or
// done again.
func (s *Supervisor) loadVerdicts(envelopes []Envelope) map[string]Spoken {
	if s.shared.verdicts == nil {
		return nil
	}
	all, err := s.shared.verdicts.Load()
	known := map[string]bool{}
	for _, e := range envelopes {
		known[e.Facts.UID] = true
	}
	for uid := range all {
		if !known[uid] {
			err = errors.Join(err, s.shared.verdicts.Delete(uid))
		}
	}
	if err != nil {
		s.shared.log.LogAttrs(s.ctx, slog.LevelWarn, "could not take up what probes have said and which signals were sent", slog.Any("error", err))
	}
	return all
}
