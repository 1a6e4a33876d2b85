package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// envelopeVersion is the version of the state file that this binary writes.
const envelopeVersion = 1

// Envelope is the state file of a pod.
type Envelope struct {
	Version    int                   `json:"version"`
	SavedAt    lifecycle.Instant     `json:"savedAt"`
	Pod        *spec.Pod             `json:"pod"`
	Secrets    secretValues          `json:"secrets,omitempty"`
	Owner      Owner                 `json:"owner"`
	Facts      lifecycle.Facts       `json:"facts"`
	Conditions []lifecycle.Condition `json:"conditions,omitempty"` // for their transition times
}

// secretValues are the values of the pod's inline secrets, which the JSON of a pod leaves out. The state file is the one
// place on disk where they are: without them the pod could not start again.
type secretValues map[string]map[string]string

// String hides the values from whatever prints an envelope.
func (secretValues) String() string { return "[hidden]" }

// Owner says on whose behalf a pod runs.
type Owner struct {
	Session string `json:"session,omitempty"` // of the `podstead run` that the pod ends with
	Keep    bool   `json:"keep,omitempty"`    // what has ended is kept when the session ends
	By      string `json:"by,omitempty"`      // who asked, for a person: "podstead run, pid 4711, uid 0"
}

// Store keeps envelopes over restarts. Calls for one name are never concurrent; every call may block for as long as the
// disk does.
type Store interface {
	// Load returns what is kept, and by name what is there and cannot be used.
	Load() (envelopes []Envelope, unusable []Unusable, err error)
	// Save replaces the envelope of the pod's name. It is durable when Save returns.
	Save(e Envelope) error
	// Delete takes the envelope of a name away. One that is not there is no error.
	Delete(name string) error
}

// Unusable is a state file that could not be used.
type Unusable struct {
	Name string // of the pod
	File string // where it lies now
	Err  error
	// Kept means that the file is of a later version, and left as it is: the name is taken. Else it was set aside.
	Kept bool
}

// DirStore is a [Store] of one JSON file for each pod, in one folder.
type DirStore struct{ dir string }

// NewDirStore returns a store in the folder, which it makes.
func NewDirStore(dir string) (*DirStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make state folder: %w", err)
	}
	return &DirStore{dir: dir}, nil
}

func (s *DirStore) path(name string) string { return filepath.Join(s.dir, name+".json") }

// Load implements [Store]. Files that cannot be read as an envelope are renamed, so that the pod's next state has room
// and nothing is lost.
func (s *DirStore) Load() (envelopes []Envelope, unusable []Unusable, err error) {
	if err := atomicfile.Sweep(s.dir); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read state folder: %w", err)
	}
	for _, entry := range entries {
		name, isState := strings.CutSuffix(entry.Name(), ".json")
		if !isState || !entry.Type().IsRegular() {
			continue
		}
		e, err := s.read(name)
		switch {
		case errors.Is(err, errLater):
			unusable = append(unusable, Unusable{Name: name, File: s.path(name), Err: err, Kept: true})
		case err != nil:
			aside := s.path(name) + ".unreadable"
			err = errors.Join(err, os.Rename(s.path(name), aside))
			unusable = append(unusable, Unusable{Name: name, File: aside, Err: err})
		default:
			envelopes = append(envelopes, e)
		}
	}
	return envelopes, unusable, nil
}

var errLater = errors.New("written by a later version")

func (s *DirStore) read(name string) (Envelope, error) {
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return Envelope{}, err
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Envelope{}, err
	}
	if head.Version > envelopeVersion {
		return Envelope{}, fmt.Errorf("%w: %d, this is %d", errLater, head.Version, envelopeVersion)
	}
	var e Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return Envelope{}, err
	}
	if e.Version < 1 || e.Pod == nil || e.Pod.Name != name || e.Facts.UID == "" || e.SavedAt.IsZero() {
		return Envelope{}, errors.New("not the state of this pod")
	}
	e.Pod, e.Secrets = e.Pod.WithSecretValues(e.Secrets), nil
	return e, nil
}

// Save implements [Store].
func (s *DirStore) Save(e Envelope) error {
	e.Version, e.Secrets = envelopeVersion, e.Pod.SecretValues()
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	return atomicfile.Write(s.path(e.Pod.Name), data, 0o600)
}

// Delete implements [Store].
func (s *DirStore) Delete(name string) error { return atomicfile.Remove(s.path(name)) }
