// Package state stores what the supervisor must find again after a restart, in two places for each pod:
//   - the state file ([Pod]) survives a reboot and a power failure. It holds the definition of the pod and the facts.
//   - the checkpoint ([Checkpoint]) survives a restart of the daemon but not of the host. It holds what changes often.
//
// It also records which pods are quarantined, since their handling crashes the daemon ([Quarantine]).
//
// The package does not interpret the facts: the supervisor merges state file, checkpoint and the inventory of the container engine.
package state

import (
	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The formats of this package.
var (
	// Format is that of the state file.
	Format = statefile.Format{Version: 1, Aside: ".unreadable"}
	// CheckpointFormat is that of the checkpoint.
	CheckpointFormat = statefile.Format{Version: 1, Unversioned: true, Loss: statefile.Volatile}
)

// Pod is the content of the state file of a pod.
type Pod struct {
	SavedAt    lifecycle.Instant     `json:"savedAt"`
	Pod        *spec.Pod             `json:"pod" format:"whole"`
	Secrets    secretValues          `json:"secrets,omitempty"`
	Owner      Owner                 `json:"owner"`
	Facts      lifecycle.Facts       `json:"facts"`
	Conditions []lifecycle.Condition `json:"conditions,omitempty"` // for their transition times
}

// secretValues are the values of the pod's inline secrets, which the JSON of a pod omits. The state file is the only file that
// contains them. Without them the pod could not be restarted.
type secretValues map[string]map[string]string

// String keeps the values out of logs and error messages.
func (secretValues) String() string { return "[hidden]" }

// Store stores state files. Calls for one name are never concurrent. Every call may block for as long as the disk does.
type Store interface {
	// Load returns all usable state files, and those that cannot be used.
	Load() (pods []Pod, unusable []Unusable, err error)
	// Save replaces the state file of the pod's name. It is durable when Save returns.
	Save(p Pod) error
	// Delete removes the state file of a name. It succeeds if there is none.
	Delete(name string) error
}

// Unusable is a state file that could not be used.
type Unusable struct {
	Name string // of the pod
	UID  string // of the pod; empty: not known
	File string // the path of the file after Load
	Err  error
	// Kept is set if a later version has written the file. It is left unchanged, and the pod's name is blocked. Other unusable files
	// are renamed.
	Kept bool
}
