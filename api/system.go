package api

import (
	"time"
)

// Version is the version of the daemon.
type Version struct {
	Version    string `json:"version"`
	Containerd string `json:"containerd"`
	Runtime    string `json:"runtime"` // OCI runtime of new containers: a name or an absolute path
	// RuntimeReason is why the OCI runtime was selected, if engine.runtime is auto.
	RuntimeReason string `json:"runtimeReason,omitempty"`
	// NoOverlayReason is why each container has a copy of the files of its image. Empty: overlayfs is used.
	NoOverlayReason string `json:"noOverlayReason,omitempty"`
	PID             int    `json:"pid"`
	OnDemand        bool   `json:"onDemand"` // started by a command, exits when it is idle
	// Policy is the configuration of admission.
	Policy *Policy `json:"policy,omitempty"`
	// Instance is unique for each start of the daemon. Sequence numbers of events continue after a restart, unless the journal is lost.
	Instance string `json:"instance"`
}

// DiskUsage is what Podstead has on the disk. All sizes are in bytes.
type DiskUsage struct {
	Filesystem Filesystem `json:"filesystem"` // of the state directory
	// Items are the kinds of data, always all of them in the same order.
	Items []DiskUsageItem `json:"items"`

	Images     []ImageUsage     `json:"images"`     // with all their names
	Containers []ContainerUsage `json:"containers"` // their writable layers
	Volumes    []VolumeUsage    `json:"volumes"`    // the persistent ones
}

// Filesystem is a file system. Without a fixed number of inodes, both numbers are 0.
type Filesystem struct {
	Path       string `json:"path"`
	Size       int64  `json:"size"` // without what is reserved for root
	Used       int64  `json:"used"`
	Inodes     int64  `json:"inodes"`
	InodesUsed int64  `json:"inodesUsed"`
	// HighPercent and LowPercent are the thresholds of image garbage collection.
	HighPercent int `json:"highPercent"`
	LowPercent  int `json:"lowPercent"`
}

// DiskUsageItem is the disk usage of a kind of data.
type DiskUsageItem struct {
	// Type is images, layers, containers, volumes, podVolumes, logs, state or journal.
	Type   string `json:"type"`
	Total  int    `json:"total"`
	Active int    `json:"active"` // in use
	Size   int64  `json:"size"`
	// Reclaimable is what a prune of everything that is not in use frees, with persistent volumes.
	Reclaimable int64 `json:"reclaimable"`
}

// ImageUsage is the disk usage of an image.
type ImageUsage struct {
	Names []string `json:"names"`
	// Size is that of the compressed content and the unpacked layers. Shared is the part that other images have too.
	Size   int64 `json:"size"`
	Shared int64 `json:"shared"`
	// Unused is for how many seconds nothing has used the image, as far as the daemon knows; 0: it is in use, or new.
	Unused int64 `json:"unused"`
	// Used is true if a pod, a pod file or a generation needs the image. Requested is true if a person has pulled or imported it.
	Used      bool `json:"used,omitempty"`
	Requested bool `json:"requested,omitempty"`
}

// ContainerUsage is the writable layer of a container.
type ContainerUsage struct {
	Pod       string `json:"pod"`
	Container string `json:"container"`
	ID        string `json:"id"`
	Size      int64  `json:"size"`
	Active    bool   `json:"active"` // the pod has not finished
}

// VolumeUsage is a persistent volume.
type VolumeUsage struct {
	Name string   `json:"name"`
	Pods []string `json:"pods,omitempty"` // that use it, also those of pod files
	Size int64    `json:"size"`
}

// SystemPrune selects what is removed.
type SystemPrune struct {
	// All removes also images that a person has requested.
	All bool
	// Volumes removes also persistent volumes that no pod uses, with their data. It cannot be combined with OlderThan.
	Volumes bool
	// OlderThan keeps pods that finished, and images that were used, within this time.
	OlderThan time.Duration
	DryRun    bool
}

// SystemPruned is what was removed.
type SystemPruned struct {
	Items []PrunedItem `json:"items"`
	Freed int64        `json:"freed"` // bytes, the sum of the items
	// Error is set if something was removed before an error.
	Error *Error `json:"error,omitempty"`
}

// PrunedItem is something that was removed.
type PrunedItem struct {
	// Type is pod, image, volume, or content, which has no name. Of a pod, containers, volumes and old logs are removed; its status is
	// kept.
	Type  string `json:"type"`
	Name  string `json:"name,omitempty"`
	Bytes int64  `json:"bytes"`
}

// RedactRequest has texts that may contain values of secrets.
type RedactRequest struct {
	Texts []string `json:"texts"`
}

// Redacted is the response to a [RedactRequest].
type Redacted struct {
	Texts []string `json:"texts"` // in the same order
	// Unreadable are the names of pods whose secrets cannot be read now. Their values are not replaced.
	Unreadable []string `json:"unreadable,omitempty"`
}

// Hidden replaces the values of environment variables in responses of the read-only socket.
const Hidden = "(hidden)"
