package api

import (
	"fmt"
	"time"

	"github.com/podstead/podstead/spec"
)

// Pod is a pod in the structure that kubectl prints.
type Pod struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Metadata   Metadata  `json:"metadata"`
	Spec       PodSpec   `json:"spec"`
	Status     PodStatus `json:"status"`
}

// PodList is a list of pods in the structure that kubectl prints.
type PodList struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Items      []Pod  `json:"items"`
}

// Metadata is the part of metav1.ObjectMeta that podstead has. As in Kubernetes, DeletionTimestamp is the end of the grace period of a pod
// that a client has stopped or deleted. DeletionGracePeriodSeconds is rounded up. A pod that exceeded its deadline or was evicted has
// neither. Generation is 1 for a new pod and counts the changes of its spec. A pod that replaces
// another one begins at 1 again, unlike the generations of a [Rollout].
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`     // always "default"
	UID               string            `json:"uid,omitempty"` // empty: a file of the pods directory that is refused
	Generation        int64             `json:"generation,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	CreationTimestamp time.Time         `json:"creationTimestamp,omitzero"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`

	DeletionGracePeriodSeconds *int64 `json:"deletionGracePeriodSeconds,omitempty"`
}

// PodSpec is the pod file with defaults, without the fields of [Metadata].
type PodSpec struct {
	spec.Pod
	// NodeName is the host name of the host.
	NodeName string `json:"nodeName,omitempty"`

	// These hide the fields of spec.Pod that are in Metadata, or internal.
	Name        hidden `json:"name,omitzero"`
	Labels      hidden `json:"labels,omitzero"`
	Annotations hidden `json:"annotations,omitzero"`
	Dir         hidden `json:"podFileDir,omitzero"`
}

type hidden struct{}

// PodChange is a value of a watch. The types are those of kubectl.
type PodChange struct {
	Type   string `json:"type"`
	Object Pod    `json:"object"`
}

// The types of a [PodChange].
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	// Listed is sent once, without a pod, after all existing pods were sent as [Added].
	Listed = "BOOKMARK"
)

// CreateRequest requests a pod.
type CreateRequest struct {
	// File is the absolute path of the pod file. Relative paths in the text are relative to its directory. The daemon does not read the
	// file, but it reads the env files that the text refers to.
	File string `json:"file"`
	Text string `json:"text"`
	// Suffix completes metadata.generateName. A request that is repeated must have the same one. Default: a random one.
	Suffix string `json:"suffix,omitempty"`
	// Interactive changes a container for a client that attaches to it.
	Interactive *Interactive `json:"interactive,omitempty"`
	// Session, if set, is the session of the client. The daemon stops the pod when the session expires.
	Session string `json:"session,omitempty"`
	// Keep reports that a pod is not deleted after its session has expired and it has terminated.
	Keep bool `json:"keep,omitempty"`
	// Unit is the systemd unit that the pod belongs to, `podstead@NAME.service`. The client is its main process. The pod is deleted at
	// boot: the unit starts it.
	Unit string `json:"unit,omitempty"`
	// Reload changes the pod of the unit to the definition in the text, as far as this does not replace the pod.
	Reload bool `json:"reload,omitempty"`
}

// Interactive gives a container standard input, and makes it one that does not restart. If the text does not set restartPolicy, it is
// Never.
type Interactive struct {
	// Container is the name of a container in containers.
	Container string `json:"container"`
	// TTY gives the container a terminal.
	TTY bool `json:"tty,omitempty"`
	// Name makes the pod one with this name that runs Command in the container and nothing else, without the other containers, ports and
	// probes of the text. Empty: the pod runs what the text defines.
	Name    string   `json:"name,omitempty"`
	Command []string `json:"command,omitempty"`
}

// Created is the response to a [CreateRequest]: the pod, and the warnings about its file.
type Created struct {
	Pod      Pod       `json:"pod"`
	Warnings []Problem `json:"warnings,omitempty"`
	// TakenOver reports that the pod existed: it was created from the same file by a client that was killed.
	TakenOver bool `json:"takenOver,omitempty"`
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

// Line is a line of a container's output.
type Line struct {
	Container string    `json:"container"`
	Stream    string    `json:"stream"` // stdout or stderr
	Time      time.Time `json:"time"`   // of the first byte
	Attempt   int       `json:"attempt"`
	Line      string    `json:"line"`
	// Raw is the line if it is not valid UTF-8, which JSON cannot represent.
	Raw []byte `json:"raw,omitempty"`
	// Partial means that the line has no newline: the output ends, or the next line of the stream is the rest of a line of more than 1 MiB.
	Partial bool `json:"partial,omitempty"`
}

// Position is a position in the output of a container: all runs before Attempt, and the first Lines of Attempt, are read. If the start
// of the log was rotated away since, the times of the first and the last line that was read determine the position.
type Position struct {
	Attempt int       `json:"attempt"`
	Lines   int       `json:"lines"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Positions are positions in the output of a pod, by container.
type Positions map[string]Position

// Advance marks a line as read.
func (p Positions) Advance(l Line) {
	at := p[l.Container]
	if at.Attempt != l.Attempt || at.Lines == 0 {
		at = Position{Attempt: l.Attempt, First: l.Time}
	}
	at.Lines++
	at.Last = l.Time
	p[l.Container] = at
}

// OutputRecord is a value of a stream of output. A record without a stream has no line, only a start.
type OutputRecord struct {
	Line
	// Start, if set, is the position before the line. It is sent for the first record of a container that is followed, and wherever lines
	// are left out, so that a client can continue after the last line of the daemon's log that it has seen.
	Start *Position `json:"start,omitempty"`
	// Skipped, if set, is what precedes the next line of a run that is followed, but was removed before it could be sent: the client reads
	// more slowly than the container writes. The record has no stream.
	Skipped *Skipped `json:"skipped,omitempty"`
}

// Skipped is a part of a log that was removed before it was read.
type Skipped struct {
	Lines int64 `json:"lines"`           // -1: unknown, the log is written by an earlier version
	Bytes int64 `json:"bytes,omitempty"` // in the files of the log; 0: unknown
}

// String returns such as "12 lines (345 bytes)", or "lines" for an unknown number.
func (s Skipped) String() string {
	switch {
	case s.Lines < 0:
		return "lines"
	case s.Bytes <= 0:
		return fmt.Sprintf("%d lines", s.Lines)
	}
	return fmt.Sprintf("%d lines (%d bytes)", s.Lines, s.Bytes)
}

// Version is the version of the daemon.
type Version struct {
	Version    string `json:"version"`
	Containerd string `json:"containerd"`
	Runtime    string `json:"runtime"` // OCI runtime of new containers: a name or an absolute path
	// RuntimeReason is why the OCI runtime was selected, if engine.runtime is auto.
	RuntimeReason string `json:"runtimeReason,omitempty"`
	PID           int    `json:"pid"`
	OnDemand      bool   `json:"onDemand"` // started by a command, exits when it is idle
	// Policy is the configuration of admission.
	Policy *Policy `json:"policy,omitempty"`
	// Instance is unique for each start of the daemon. Sequence numbers of events continue after a restart, unless the journal is lost.
	Instance string `json:"instance"`
}
