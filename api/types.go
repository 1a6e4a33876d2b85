package api

import (
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Pod is a pod as kubectl shows one.
type Pod struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Metadata   Metadata  `json:"metadata"`
	Spec       PodSpec   `json:"spec"`
	Status     PodStatus `json:"status"`
}

// PodList is a list of pods as kubectl shows one.
type PodList struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Items      []Pod  `json:"items"`
}

// Metadata identifies a pod. As in Kubernetes a deletion timestamp is the end of the grace period of a pod that
// somebody has stopped or deleted, and the grace period beside it is in whole seconds, rounded up; one that ends at its deadline, or is
// evicted, has neither.
type Metadata struct {
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	CreationTimestamp time.Time         `json:"creationTimestamp"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`

	DeletionGracePeriodSeconds *int64 `json:"deletionGracePeriodSeconds,omitempty"`
}

// PodSpec is the pod file with its defaults, without what [Metadata] has.
type PodSpec struct {
	spec.Pod

	// These hide the fields of the pod that have their place elsewhere.
	Name        hidden `json:"name,omitzero"`
	Labels      hidden `json:"labels,omitzero"`
	Annotations hidden `json:"annotations,omitzero"`
	Dir         hidden `json:"podFileDir,omitzero"`
}

type hidden struct{}

// PodStatus is v1.PodStatus and what only Podstead knows.
type PodStatus struct {
	lifecycle.Status

	// Owner says on whose behalf the pod runs, for a person.
	Owner string `json:"owner,omitempty"`
	// StoppedBy says who asked the pod to end, for a person.
	StoppedBy string `json:"stoppedBy,omitempty"`
	// Pulling holds, by container, the pulls of images that are under way.
	Pulling map[string]supervisor.Progress `json:"pulling,omitempty"`
	// AtRest says that nothing of the pod runs, and nothing will of itself.
	AtRest bool `json:"atRest"`
	// NotDurable says that the newest state could not be written.
	NotDurable bool `json:"notDurable,omitempty"`
}

// PodChange is a line of a watch. The types are kubectl's.
type PodChange struct {
	Type   string `json:"type"`
	Object Pod    `json:"object"`
}

// The types of a [PodChange].
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	// Listed comes once, without a pod, when all that there were have been [Added].
	Listed = "BOOKMARK"
)

// Event is something that happened to a pod.
type Event = event.Event

// EventsMissed is the kind of a line that stands for events which are no longer kept. It belongs to no pod, and its field
// "missed" is their number.
const EventsMissed event.Kind = "EventsMissed"

// CreateRequest asks for a pod.
type CreateRequest struct {
	// File is the absolute path that the text was read from: relative paths in the text are seen from its folder. The
	// daemon does not read it, but the env files that the text names.
	File string `json:"file"`
	Text string `json:"text"`
	// Session, if set, is the client that the pod ends with.
	Session string `json:"session,omitempty"`
	// Keep says that what has ended with the session is not taken away.
	Keep bool `json:"keep,omitempty"`
}

// Created is the pod that a [CreateRequest] led to, and what was worth telling about its file.
type Created struct {
	Pod      Pod       `json:"pod"`
	Warnings []Problem `json:"warnings,omitempty"`
}

// Problem is a [spec.Problem].
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Warning bool   `json:"warning,omitempty"`
}

// problems puts the problems of a file in the form of the wire.
func problems(list spec.Problems) []Problem {
	out := make([]Problem, len(list))
	for i, p := range list {
		out[i] = Problem(p)
	}
	return out
}

// Line is a line of a container's output.
type Line struct {
	Container string    `json:"container"`
	Stream    string    `json:"stream"` // stdout or stderr
	Time      time.Time `json:"time"`   // at which the line began
	Attempt   int       `json:"attempt"`
	Line      string    `json:"line"`
	// Raw is the line where it is no UTF-8, which JSON cannot hold.
	Raw []byte `json:"raw,omitempty"`
}

// Position is how much of a container's output was read: all runs before Attempt, and the first Lines of that. Times find
// the place in a log whose beginning has been rotated away since.
type Position struct {
	Attempt int       `json:"attempt"`
	Lines   int       `json:"lines"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Positions is how much of a pod's output was read, by container.
type Positions map[string]Position

// Advance counts a line as read.
func (p Positions) Advance(l Line) {
	at := p[l.Container]
	if at.Attempt != l.Attempt || at.Lines == 0 {
		at = Position{Attempt: l.Attempt, First: l.Time}
	}
	at.Lines++
	at.Last = l.Time
	p[l.Container] = at
}

// Version says who answers.
type Version struct {
	Version    string `json:"version"`
	Containerd string `json:"containerd"`
	Runtime    string `json:"runtime"`
	PID        int    `json:"pid"`
	OnDemand   bool   `json:"onDemand"` // started by a command, ends when nobody needs it
	// Policy is what pods may ask for.
	Policy *admission.Policy `json:"policy,omitempty"`
	// Instance is another one after each start of the daemon. Sequence numbers of events go on over restarts, but for those
	// of a daemon whose journal is lost.
	Instance string `json:"instance"`
}
