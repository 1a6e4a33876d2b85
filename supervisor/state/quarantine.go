package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/statefile"
)

// The quarantine finds the pods whose handling crashes the daemon. It records which pods are being handled, and after a crash
// which of these were suspected before. It does not know why a daemon ended, and supervises nothing.
//
// The record of what is being handled is on a tmpfs: it survives the daemon, but not the host, so that a power failure accuses no pod.
// A daemon that was killed or stopped has not crashed, and accuses no pod either. After a crash, all pods that were being handled are
// suspects. The next daemon handles suspects one after the other. A suspect is quarantined if it is the only one being handled in a second
// crash within an hour.
//
// Entries of daemons of another version, and what they were handling, do not count: a defect of a new version must not keep pods from the
// previous one, and an upgrade that repairs the defect releases them.

const (
	// maxCrashes is the number of crashes after which a pod is quarantined.
	maxCrashes = 2
	// maxShared is the number of crashes for pods that were always handled at the same time as other suspects.
	maxShared = 4
	// memory is how long a crash counts. A pod that is still handled at a crash long after its first one is not the likely cause.
	memory = time.Hour
)

// QuarantineFormat is that of the file of an [QuarantineEntry].
var QuarantineFormat = statefile.Format{Version: 1, Unversioned: true}

// QuarantineEntry is a suspect, or a pod in quarantine.
type QuarantineEntry struct {
	UID     string    `json:"uid"`
	Crashes int       `json:"crashes"`          // in which the pod was being handled
	Cause   string    `json:"cause"`            // of the last one
	At      time.Time `json:"at"`               // of the daemon that noticed it
	Daemon  string    `json:"daemon,omitempty"` // its version
	Held    bool      `json:"held,omitempty"`   // in quarantine
	New     bool      `json:"-"`                // since this start of the daemon
	Pod     string    `json:"pod"`              // its name
}

// Quarantine keeps suspects in files. Its methods are safe for concurrent use. A nil Quarantine keeps nothing.
type Quarantine struct {
	// Version is that of this daemon. It must not change after Judge.
	Version string

	suspects *statefile.Dir[QuarantineEntry]
	handling string

	mu     sync.Mutex
	active map[string]int // by UID: how many times the pod is being handled
}

// NewQuarantine returns the suspects in a directory, with what is being handled in another, which should be on a tmpfs. It creates both.
func NewQuarantine(suspects, handling string) (*Quarantine, error) {
	for _, dir := range []string{suspects, handling} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create quarantine directory: %w", err)
		}
	}
	return &Quarantine{
		suspects: statefile.NewDir[QuarantineEntry](QuarantineFormat, suspects), handling: handling, active: map[string]int{},
	}, nil
}

// Judge returns the suspects and the pods in quarantine by UID, after the end of the last daemon. The cause is why that crashed; "": it did
// not. Judge must be called once, before the other methods. Beside an error it returns what could be read.
func (d *Quarantine) Judge(cause string, now time.Time) (map[string]QuarantineEntry, error) {
	if d == nil {
		return nil, nil
	}
	entries, err := d.load()
	for uid, e := range entries {
		if e.Daemon != d.Version {
			delete(entries, uid)
			err = errors.Join(err, d.Forget(uid))
		}
	}
	handled, listErr := os.ReadDir(d.handling)
	err = errors.Join(err, listErr)
	var accused []string
	for _, f := range handled {
		text, readErr := os.ReadFile(filepath.Join(d.handling, f.Name()))
		err = errors.Join(err, readErr, os.Remove(filepath.Join(d.handling, f.Name())))
		version, name, versioned := strings.Cut(string(text), "\n")
		if cause == "" || !versioned || version != d.Version {
			continue
		}
		e := entries[f.Name()]
		if !e.Held && now.Sub(e.At) > memory {
			e.Crashes = 0
		}
		e.UID, e.Pod, e.Cause, e.At, e.Daemon, e.Crashes = f.Name(), name, cause, now, d.Version, e.Crashes+1
		entries[e.UID] = e
		if e.Crashes >= maxCrashes && !e.Held {
			accused = append(accused, e.UID)
		}
	}
	for _, uid := range accused {
		e := entries[uid]
		e.Held = len(accused) == 1 || e.Crashes >= maxShared
		e.New = e.Held
		entries[uid] = e
	}
	for uid, e := range entries {
		switch {
		case cause != "":
			err = errors.Join(err, d.suspects.Save(uid, &e))
		case !e.Held: // the last daemon did not crash
			delete(entries, uid)
			err = errors.Join(err, d.Forget(uid))
		}
	}
	return entries, err
}

func (d *Quarantine) load() (map[string]QuarantineEntry, error) {
	entries := map[string]QuarantineEntry{}
	files, err := d.suspects.Load(func(uid string, e *QuarantineEntry) error {
		if e.UID != uid {
			return errors.New("not of this pod")
		}
		return nil
	})
	for _, f := range files {
		if f.Err == nil {
			entries[f.Name] = f.Value
			continue
		}
		err = errors.Join(err, fmt.Errorf("read quarantine of pod with UID %s: %w", f.Name, f.Err))
		if !errors.Is(f.Err, statefile.ErrNewer) { // that is kept until this version suspects the pod
			err = errors.Join(err, d.Forget(f.Name))
		}
	}
	return entries, err
}

// Forget deletes the entry of a pod that was removed. It succeeds if there is none.
func (d *Quarantine) Forget(uid string) error {
	if d == nil {
		return nil
	}
	err := os.Remove(d.suspects.Path(uid)) // not synced: an entry without a pod has no effect
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Begin records that a pod is being handled until the returned function is called, once. If it cannot be recorded, as on a full
// disk, a crash does not accuse the pod.
func (d *Quarantine) Begin(uid, pod string) (end func()) {
	if d == nil {
		return func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	path := filepath.Join(d.handling, uid)
	if d.active[uid]++; d.active[uid] == 1 {
		_ = os.WriteFile(path, []byte(d.Version+"\n"+pod), 0o600)
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.active[uid]--; d.active[uid] == 0 {
			delete(d.active, uid)
			_ = os.Remove(path)
		}
	}
}

// Handling reports whether a pod is being handled.
func (d *Quarantine) Handling(uid string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.active[uid] > 0
}
