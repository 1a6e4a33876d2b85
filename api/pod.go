package api

import (
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
