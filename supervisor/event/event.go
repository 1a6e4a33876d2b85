// Package event has the event table, and keeps events: the newest in memory ([Ring]), and those of each pod on the disk ([Journal]). It
// does not decide which events are emitted.
package event

import (
	"slices"
	"strings"
	"time"
)

// Level is the severity of an event: the type of a Kubernetes event.
type Level string

// The levels.
const (
	Normal  Level = "Normal"
	Warning Level = "Warning"
)

// Event is something that happened to a pod. Clients, the journal and the log receive each event once.
type Event struct {
	Seq   uint64    `json:"seq"`             // increases, also across restarts of the daemon, which continue at the next multiple of 1e9
	Cause uint64    `json:"cause,omitempty"` // the Seq of the event that led to this one; 0: none, or not known
	Time  time.Time `json:"time"`
	// Boot and Mono are the boot ID and the monotonic clock at that time. [Ring] corrects Time with them.
	Boot string        `json:"boot,omitempty"`
	Mono time.Duration `json:"mono,omitempty"`

	Level     Level  `json:"type"`
	Kind      Kind   `json:"kind"`   // the row of the table
	Reason    string `json:"reason"` // the kubelet's, where it has one
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Container string `json:"container,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Fields    Fields `json:"fields,omitempty"`
	Message   string `json:"message"`
}

// Fields are the values for the fields of an [Entry].
type Fields map[string]string

// Kind names a row of the event table.
type Kind string

// Entry is a row of the event table. Log lines, events in the API and the reference page are generated from it.
type Entry struct {
	Kind     Kind
	Reason   string
	Level    Level  // of a container that was stopped on request, the exit is Normal
	Sentence string // with {field} for each of Fields
	Fields   []string
	// More has fields that are not in the sentence. They may be empty.
	More []string
	// Kept is set if the [Journal] stores the event and those that led to it. It stores other events only as causes.
	Kept bool
}

// The kinds of events.
const (
	PodAccepted              Kind = "PodAccepted"
	PodRejected              Kind = "PodRejected"
	PodRecovered             Kind = "PodRecovered"
	StateLost                Kind = "StateLost"
	StateUnsupported         Kind = "StateUnsupported"
	OrphanFound              Kind = "OrphanFound"
	EngineDamaged            Kind = "EngineDamaged"
	CgroupCleared            Kind = "CgroupCleared"
	HostRebooted             Kind = "HostRebooted"
	UncleanShutdown          Kind = "UncleanShutdown"
	PodWaiting               Kind = "PodWaiting"
	ConditionMet             Kind = "ConditionMet"
	SandboxReady             Kind = "SandboxReady"
	SandboxFailed            Kind = "SandboxFailed"
	SandboxChanged           Kind = "SandboxChanged"
	VolumeFailed             Kind = "VolumeFailed"
	PodEvicted               Kind = "PodEvicted"
	NodeShutdown             Kind = "NodeShutdown"
	RemovalFailed            Kind = "RemovalFailed"
	ImageImporting           Kind = "ImageImporting"
	ImagePulling             Kind = "ImagePulling"
	PullSecretsMissing       Kind = "PullSecretsMissing"
	ImagePulled              Kind = "ImagePulled"
	ImagePresent             Kind = "ImagePresent"
	ImageShadowed            Kind = "ImageShadowed"
	ImagePullFailed          Kind = "ImagePullFailed"
	ImageBackOff             Kind = "ImageBackOff"
	ImageError               Kind = "ImageError"
	ContainerCreateFailed    Kind = "ContainerCreateFailed"
	ContainerStartFailed     Kind = "ContainerStartFailed"
	ContainerCreated         Kind = "ContainerCreated"
	ContainerStarted         Kind = "ContainerStarted"
	ContainerSucceeded       Kind = "ContainerSucceeded"
	ContainerFailed          Kind = "ContainerFailed"
	ContainerBackOff         Kind = "ContainerBackOff"
	ContainerStopping        Kind = "ContainerStopping"
	ContainerSandboxChanged  Kind = "ContainerSandboxChanged"
	ContainerLivenessFailed  Kind = "ContainerLivenessFailed"
	ContainerStartupFailed   Kind = "ContainerStartupFailed"
	ContainerPostStartFailed Kind = "ContainerPostStartFailed"
	ContainerKilled          Kind = "ContainerKilled"
	ProbeFailed              Kind = "ProbeFailed"
	ProbeErrored             Kind = "ProbeErrored"
	ProbeWarned              Kind = "ProbeWarned"
	PostStartFailed          Kind = "PostStartFailed"
	PreStopFailed            Kind = "PreStopFailed"
	HookWarned               Kind = "HookWarned"
	SignalFailed             Kind = "SignalFailed"
	EngineUnavailable        Kind = "EngineUnavailable"
	PodRestarting            Kind = "PodRestarting"
	PodEscalated             Kind = "PodEscalated"
	RebootRequested          Kind = "RebootRequested"
	RebootHeldBack           Kind = "RebootHeldBack"
	RebootFailed             Kind = "RebootFailed"
	PodDeadlineExceeded      Kind = "PodDeadlineExceeded"
	PodStopping              Kind = "PodStopping"
	PodStartRequested        Kind = "PodStartRequested"
	PodRestartRequested      Kind = "PodRestartRequested"
	RestartRequested         Kind = "RestartRequested"
	DefinitionChanged        Kind = "DefinitionChanged"
	ContainerChanged         Kind = "ContainerChanged"
	ContainerDropped         Kind = "ContainerDropped"
	PodSucceeded             Kind = "PodSucceeded"
	PodFailed                Kind = "PodFailed"
	PodStopped               Kind = "PodStopped"
	PodCollected             Kind = "PodCollected"
	PodRemoved               Kind = "PodRemoved"
	StateNotDurable          Kind = "StateNotDurable"
	StateDurable             Kind = "StateDurable"
	ShimUnresponsive         Kind = "ShimUnresponsive"
	ShimResponding           Kind = "ShimResponding"
	VolumesNotUpdated        Kind = "VolumesNotUpdated"
	VolumesUpdated           Kind = "VolumesUpdated"
	InternalError            Kind = "InternalError"
	PodQuarantined           Kind = "PodQuarantined"
	ContainerAdded           Kind = "ContainerAdded"
	ContainerGivenUp         Kind = "ContainerGivenUp"
	ConditionChanged         Kind = "ConditionChanged"
	JournalNotDurable        Kind = "JournalNotDurable"
	ImageNeverPull           Kind = "ImageNeverPull"
	ImageInspectFailed       Kind = "ImageInspectFailed"
	FileInvalid              Kind = "FileInvalid"
	FileRejected             Kind = "FileRejected"
	FileAccepted             Kind = "FileAccepted"
	UpdateWaiting            Kind = "UpdateWaiting"
	UpdateCompleted          Kind = "UpdateCompleted"
	UpdateFailed             Kind = "UpdateFailed"
	RollbackStarted          Kind = "RollbackStarted"
	RollbackCompleted        Kind = "RollbackCompleted"
	RolloutUndone            Kind = "RolloutUndone"
	RolloutResumed           Kind = "RolloutResumed"
	PodsDirLost              Kind = "PodsDirLost"
	PodsDirFound             Kind = "PodsDirFound"
	ImageArchiveImported     Kind = "ImageArchiveImported"
	ImageArchiveFailed       Kind = "ImageArchiveFailed"
	DaemonCrashed            Kind = "DaemonCrashed"
	ConfigReloaded           Kind = "ConfigReloaded"
	ConfigRestartRequired    Kind = "ConfigRestartRequired"
	ConfigInvalid            Kind = "ConfigInvalid"
	ImageRemoved             Kind = "ImageRemoved"
	ImageGCFailed            Kind = "ImageGCFailed"
	FreeDiskSpaceFailed      Kind = "FreeDiskSpaceFailed"
	DiskSpaceAvailable       Kind = "DiskSpaceAvailable"
	LogsRemoved              Kind = "LogsRemoved"
)

// Entries returns the event table, in the order of the life of a pod. Where the kubelet emits the same event, Reason and Sentence
// are the kubelet's.
func Entries() []Entry { return slices.Concat(lives(), requests(), troubles()) }

// lives are the entries of the lives of pods and containers.
func lives() []Entry {
	return []Entry{
		{PodAccepted, "Accepted", Normal, "Pod accepted", nil, []string{"by"}, true},
		{PodRejected, "FailedAdmission", Warning, "Pod rejected: {error}", []string{"error"}, []string{"hint", "by", "file"}, true}, // Reason is that of the first refusal
		{PodRecovered, "Recovered", Normal, "Recovered after a restart of the daemon, {containers} running", []string{"containers"}, nil, true},
		{StateLost, "StateLost", Warning, "State file could not be read and was renamed to {file}: {error}. Recovering the pod from container labels", []string{"file", "error"}, nil, true},
		{StateUnsupported, "StateUnsupported", Warning, "Ignored state file {file}: {error}", []string{"file", "error"}, nil, true},
		{PodQuarantined, "Quarantined", Warning, "Pod is not supervised, the daemon crashed {count} times while it handled this pod: {error}", []string{"count", "error"}, nil, true},
		{OrphanFound, "OrphanFound", Warning, "Found orphaned containers, they are stopped unless a pod file defines their pod", nil, nil, true},
		{EngineDamaged, "EngineDamaged", Warning, "Damaged file {file} of the container engine was set aside: {error}. Containers that depend on it were killed and will be restarted", []string{"file", "error"}, []string{"aside"}, true},
		{
			CgroupCleared, "CgroupCleared", Warning,
			"Removed leftovers in the cgroup of the pod: {what}",
			[]string{"what"},
			nil, true,
		},
		{HostRebooted, "Rebooted", Normal, "Host has been rebooted{how}", []string{"how"}, nil, true},
		{PodWaiting, "WaitingFor", Normal, "Waiting for {conditions}", []string{"conditions"}, nil, true},
		{ConditionMet, "ConditionMet", Normal, "{condition} was met after {duration}", []string{"condition", "duration"}, nil, true},
		{SandboxReady, "SandboxStarted", Normal, "Pod sandbox {sandbox} started", []string{"sandbox"}, nil, true},
		{SandboxFailed, "FailedCreatePodSandBox", Warning, "Failed to create pod sandbox: {error}", []string{"error"}, nil, true},
		{VolumeFailed, "FailedMount", Warning, "Unable to mount volumes: {error}", []string{"error"}, nil, true},
		{SandboxChanged, "SandboxChanged", Normal, "Pod sandbox changed, {then}: {error}", []string{"then", "error"}, nil, true},
		{RemovalFailed, "FailedKillPod", Warning, "Failed to remove {what}: {error}", []string{"what", "error"}, nil, true},
		{ImageImporting, "Importing", Normal, "Importing image archive \"{archive}\"", []string{"archive"}, nil, false}, // only if it takes over a second
		{ImagePulling, "Pulling", Normal, "Pulling image \"{image}\"", []string{"image"}, nil, false},
		{ImagePulled, "Pulled", Normal, "Successfully pulled image \"{image}\" in {duration}", []string{"image", "duration"}, nil, true},
		{ImagePresent, "Pulled", Normal, "Container image \"{image}\" already present on machine", []string{"image"}, nil, true},
		{ImageShadowed, "ImageShadowed", Normal, "Image \"{image}\" of archive \"{archive}\" differs from the image of this name that is already present, only pods that list the archive use it", []string{"image", "archive"}, nil, true},
		{ImagePullFailed, "Failed", Warning, "Failed to pull image \"{image}\": {error}", []string{"image", "error"}, []string{"reason"}, true},
		{ImageNeverPull, "ErrImageNeverPull", Warning, "Container image \"{image}\" is not present with pull policy of Never", []string{"image"}, []string{"reason", "error"}, true},
		{ImageInspectFailed, "InspectFailed", Warning, "Failed to inspect image \"{image}\": {error}", []string{"image", "error"}, []string{"reason"}, true},
		{ImageBackOff, "BackOff", Normal, "Back-off pulling image \"{image}\" for {delay}", []string{"image", "delay"}, nil, true},
		{ImageError, "Failed", Warning, "Error: {error}", []string{"error"}, nil, false}, // the kubelet's second event for an image that it cannot get
		{ContainerAdded, "EphemeralContainerAdded", Normal, "Ephemeral container {container} added, requested by {by}", []string{"container", "by"}, nil, true},
		{
			ContainerGivenUp, "EphemeralContainerRemoved", Normal,
			"Ephemeral container {container} removed, its image cannot be pulled: {error}",
			[]string{"container", "error"},
			nil, true,
		},
		{ContainerCreateFailed, "Failed", Warning, "Error: {error}", []string{"error"}, []string{"reason"}, true},
		{ContainerStartFailed, "Failed", Warning, "Error: failed to start container: {error}", []string{"error"}, nil, true},
		{ContainerCreated, "Created", Normal, "Container created", nil, nil, false},
		{ContainerStarted, "Started", Normal, "Container started", nil, nil, true},
		{PostStartFailed, "FailedPostStartHook", Warning, "PostStartHook failed", nil, nil, true},
		{PreStopFailed, "FailedPreStopHook", Warning, "PreStopHook failed", nil, nil, true},
		{HookWarned, "LifecycleHTTPFallback", Warning, "{warning}", []string{"warning"}, nil, true},
		{ProbeFailed, "Unhealthy", Warning, "{probe} probe failed: {output}", []string{"probe", "output"}, []string{"count"}, false},
		{ProbeErrored, "Unhealthy", Warning, "{probe} probe errored and resulted in unknown state: {error}", []string{"probe", "error"}, nil, false},
		{ProbeWarned, "ProbeWarning", Warning, "{probe} probe warning: {output}", []string{"probe", "output"}, nil, false},
		{ContainerSucceeded, "Exited", Normal, "Container exited with code 0", nil, []string{"message"}, true},
		{ContainerFailed, "Exited", Warning, "Container exited with code {code} ({reason})", []string{"code", "reason"}, []string{"message"}, true},
		{ContainerBackOff, "BackOff", Warning, "Back-off restarting failed container {container} in pod {pod} for {delay}", []string{"container", "pod", "delay"}, nil, true},
		{ContainerStopping, "Killing", Normal, "Stopping container {container}", []string{"container"}, []string{"grace", "why"}, true},
		{ContainerSandboxChanged, "Killing", Normal, "Stopping container {container}, its pod sandbox changed", []string{"container"}, []string{"grace"}, true},
		{ContainerLivenessFailed, "Killing", Normal, "{role} {container} failed liveness probe{then}", []string{"role", "container", "then"}, []string{"count", "output", "grace"}, true},
		{ContainerStartupFailed, "Killing", Normal, "{role} {container} failed startup probe{then}", []string{"role", "container", "then"}, []string{"count", "output", "grace"}, true},
		{ContainerPostStartFailed, "Killing", Normal, "FailedPostStartHook", nil, []string{"grace"}, true},
		{ContainerKilled, "Killing", Warning, "Container {container} {cause}, killing it", []string{"container", "cause"}, []string{"grace"}, true},
		{SignalFailed, "FailedKillPod", Warning, "Failed to send a signal to container {container}: {error}", []string{"container", "error"}, nil, true},
		{EngineUnavailable, "EngineUnavailable", Warning, "Container engine unavailable, retrying: {error}", []string{"error"}, nil, true},
		{ConditionChanged, "ConditionChanged", Normal, "Condition {condition} set to {status}, requested by {by}", []string{"condition", "status", "by"}, []string{"reason", "message"}, false},
		{PodRestarting, "RestartingAllContainers", Normal, "Restarting all containers, triggered by a restart policy rule of container {container}", []string{"container"}, []string{"code"}, true},
		{PodDeadlineExceeded, "DeadlineExceeded", Normal, "Pod was active on the node longer than the specified deadline", nil, nil, true},
		{PodStopping, "Stopping", Normal, "Stopping pod, grace period {grace}, requested by {by}", []string{"grace", "by"}, nil, true},
		{PodEvicted, "Evicted", Warning, "{error}", []string{"error"}, nil, true},
		{PodSucceeded, "Succeeded", Normal, "Pod succeeded", nil, nil, true},
		{PodFailed, "Failed", Warning, "Pod failed", nil, nil, true},
		{PodStopped, "Stopped", Normal, "Pod stopped", nil, nil, true}, // by request or for the shutdown of the host
		{PodRemoved, "Removed", Normal, "Pod removed", nil, nil, true},
	}
}

// requests are the entries of the shutdown of the host, of requests to restart pods and to change their definitions, and of limits of
// finished pods.
func requests() []Entry {
	return []Entry{
		{NodeShutdown, "NodeShutdown", Normal, "Stopping pod, grace period {grace}, because of {by}", []string{"grace", "by"}, nil, true},
		{PodStartRequested, "StartRequested", Normal, "Starting pod, requested by {by}", []string{"by"}, nil, true},
		{PodRestartRequested, "RestartRequested", Normal, "Restarting pod, requested by {by}", []string{"by"}, nil, true},
		{RestartRequested, "RestartRequested", Normal, "Restarting container {container}, requested by {by}", []string{"container", "by"}, nil, true},
		{PodEscalated, "UnreadyTooLong", Warning, "Pod was not ready for {duration}, next step: {step}", []string{"duration", "step"}, []string{"by"}, true},
		{RebootRequested, "RebootRequested", Warning, "Pod was not ready for {duration}, requesting a reboot of the host", []string{"duration"}, nil, true},
		{RebootHeldBack, "RebootHeldBack", Warning, "The host is not rebooted: {error}", []string{"error"}, nil, true},
		{RebootFailed, "FailedReboot", Warning, "Failed to reboot the host: {error}", []string{"error"}, nil, true},
		{PodCollected, "Collected", Normal, "Removed containers, volumes and old logs of the finished pod, its status is kept", nil, nil, true},
		{DefinitionChanged, "DefinitionChanged", Normal, "Pod definition changed: {changes}", []string{"changes"}, []string{"by"}, true},
		{ContainerChanged, "Killing", Normal, "Container {container} definition changed, will be restarted", []string{"container"}, []string{"grace", "changes"}, true},
		{ContainerDropped, "Killing", Normal, "Stopping container {container}, it was removed from the pod definition", []string{"container"}, []string{"grace"}, true},
	}
}

// troubles are the entries of what the supervision of pods depends on.
func troubles() []Entry {
	return []Entry{
		{
			UncleanShutdown, "UncleanShutdown", Warning, "The host stopped without a shutdown: power loss, reset or kernel panic",
			nil, nil, true,
		},
		{PullSecretsMissing, "FailedToRetrieveImagePullSecret", Warning, "Unable to retrieve some image pull secrets ({secrets}); attempting to pull the image may not succeed.", []string{"secrets"}, nil, true},
		{StateNotDurable, "StateNotDurable", Warning, "Pod state could not be saved; after a restart of the daemon an older state would be used: {error}", []string{"error"}, nil, true},
		{StateDurable, "StateDurable", Normal, "Pod state can be saved again", nil, nil, false},
		{JournalNotDurable, "JournalNotDurable", Warning, "Failed to save events, they would be lost if the daemon restarts: {error}", []string{"error"}, nil, false},
		{ShimUnresponsive, "ShimUnresponsive", Warning, "The shim of the pod does not respond, containers keep running without supervision", nil, nil, true},
		{ShimResponding, "ShimResponding", Normal, "The shim of the pod responds again", nil, nil, true},
		{
			VolumesNotUpdated, "FailedMount", Warning, "Unable to update volumes, containers keep the last content: {error}",
			[]string{"error"},
			nil, true,
		},
		{VolumesUpdated, "VolumesUpdated", Normal, "Volumes are updated again", nil, nil, true},
		{FileInvalid, "InvalidFile", Warning, "Pod file is invalid, {then}: {error}", []string{"then", "error"}, []string{"file"}, true},
		{FileRejected, "FileRejected", Warning, "Pod file {file} rejected: {error}", []string{"file", "error"}, nil, true},
		{FileAccepted, "FileAccepted", Normal, "Pod file {file} accepted", []string{"file"}, nil, true},
		{UpdateWaiting, "UpdateWaiting", Warning, "Update waits, the pod keeps running: {error}", []string{"error"}, []string{"file"}, true},
		{UpdateCompleted, "UpdateCompleted", Normal, "Update completed, generation {generation} is ready", []string{"generation"}, nil, true},
		{UpdateFailed, "UpdateFailed", Warning, "Generation {generation} failed and is kept: {error}", []string{"generation", "error"}, nil, true},
		{RollbackStarted, "RollbackStarted", Warning, "Rolling back from generation {generation} to {target}: {error}", []string{"generation", "target", "error"}, nil, true},
		{RollbackCompleted, "RollbackCompleted", Normal, "Rolled back, generation {generation} is ready", []string{"generation"}, nil, true},
		{RolloutUndone, "RolloutUndone", Normal, "Returning to generation {generation}, requested by {by}", []string{"generation", "by"}, nil, true},
		{
			RolloutResumed, "RolloutResumed", Normal,
			"Pod file is carried out again, in place of generation {generation} requested by {by}",
			[]string{"generation", "by"},
			nil, true,
		},
		{PodsDirLost, "PodsDirLost", Warning, "{error}, its pods keep running", []string{"error"}, []string{"dir", "pods"}, true},
		{PodsDirFound, "PodsDirFound", Normal, "Pods directory {dir} has pod files again", []string{"dir"}, nil, true},
		{ImageArchiveImported, "ImageArchiveImported", Normal, "Imported image archive {archive}: {images}", []string{"archive", "images"}, nil, true},
		{ImageArchiveFailed, "ImageArchiveFailed", Warning, "Failed to import image archive {archive}, retrying: {error}", []string{"archive", "error"}, nil, true},
		{
			DaemonCrashed, "DaemonCrashed", Warning, "Daemon restarted after a crash, pods kept running: {error}",
			[]string{"error"},
			nil, true,
		},
		{ConfigReloaded, "ConfigReloaded", Normal, "Configuration reloaded, {changes}", []string{"changes"}, nil, true},
		{ConfigRestartRequired, "ConfigRestartRequired", Warning, "Configuration changes need a restart of the daemon: {keys}", []string{"keys"}, nil, true},
		{
			ConfigInvalid, "ConfigInvalid", Warning, "Configuration is invalid, the last valid one stays in effect: {error}",
			[]string{"error"},
			nil, true,
		},
		{ImageRemoved, "ImageRemoved", Normal, "Removed image {image}, freed {size}: {cause}", []string{"image", "size", "cause"}, []string{"bytes"}, true},
		{ImageGCFailed, "ImageGCFailed", Warning, "Image garbage collection failed: {error}", []string{"error"}, nil, true},
		{FreeDiskSpaceFailed, "FreeDiskSpaceFailed", Warning, "Failed to garbage collect required amount of images. {usage}. {kept}", []string{"usage", "kept"}, []string{"bytes"}, true},
		{DiskSpaceAvailable, "DiskSpaceAvailable", Normal, "Disk usage is below the threshold of image garbage collection again: {usage}", []string{"usage"}, nil, true},
		{LogsRemoved, "LogsRemoved", Warning, "Removed {files} of the log of container {container} ({size}): the logs of all containers exceed {limit}", []string{"files", "container", "size", "limit"}, []string{"bytes"}, false}, // repeated
		{InternalError, "InternalError", Warning, "Recovered from an internal error in the supervisor of the pod: {error}", []string{"error"}, nil, true},
	}
}

// table has the entries by kind.
var table = func() map[Kind]Entry {
	byKind := map[Kind]Entry{}
	for _, e := range Entries() {
		byKind[e.Kind] = e
	}
	return byKind
}()

// sentence returns the sentence with the values of the fields.
func (e Entry) sentence(fields Fields) string {
	pairs := make([]string, 0, 2*len(e.Fields))
	for _, name := range e.Fields {
		pairs = append(pairs, "{"+name+"}", fields[name])
	}
	return strings.NewReplacer(pairs...).Replace(e.Sentence)
}

// New returns an event for a pod as a whole, without a UID and a cause.
func New(kind Kind, at time.Time, pod string, f Fields) Event {
	entry := table[kind]
	return Event{
		Time: at.UTC(), Level: entry.Level, Kind: kind, Reason: entry.Reason, Pod: pod,
		Fields: f, Message: entry.sentence(f),
	}
}

// MessageID returns the MESSAGE_ID of a kind in the journal. An event with another reason than that of the table has it too.
func (k Kind) MessageID() string { return messageIDs[table[k].Reason] }

// messageIDs are the values of the journal's MESSAGE_ID by reason. Other programs match them: they must not change, and an ID of a removed
// reason must not be used again. packaging/podstead.catalog has their texts.
var messageIDs = map[string]string{
	"Accepted":                        "91135c00165d4d0285ac6c6eb782261b",
	"BackOff":                         "fc78590ebc62430e8f7b662154db2e80",
	"CgroupCleared":                   "a1d4888045b94929899711ff339d1ccd",
	"Collected":                       "2e73196922904e7c8cd6bd64f298c8ac",
	"ConditionChanged":                "718398c720d34500a7a6e7ad73818b44",
	"ConditionMet":                    "66b9afa366534f16b7d8dcc21f953759",
	"ConfigInvalid":                   "b875e12c6954480dac5b62bca7fea39c",
	"ConfigReloaded":                  "3d0865bb5772482f8c7d654e3db67afb",
	"ConfigRestartRequired":           "35aca3d20e3041b6a72773c72d368ceb",
	"Created":                         "9c7012e0ed87430ab6beaa61a65c3724",
	"DaemonCrashed":                   "7b921be3bd03483198a7b58b3c5492d5",
	"DeadlineExceeded":                "f1a2e0501cae4f54a6846a3050928e26",
	"DefinitionChanged":               "a9040fc637874baebf361e2fcdd4847b",
	"DiskSpaceAvailable":              "55892eb40fd044eb85e31c6ef8ff0e17",
	"EngineDamaged":                   "7d8099cec0404737993edc46c82206e6",
	"EngineUnavailable":               "698fde7597474738bed936f9122444fa",
	"EphemeralContainerAdded":         "fe5b9290c6044f78a8c803bbd593802a",
	"EphemeralContainerRemoved":       "a2c92533069f4393b3044602789ffaa8",
	"ErrImageNeverPull":               "b195bf889b91428384f435e33b696548",
	"Evicted":                         "6a3b53385ca34aaf829784ccd31d8e3e",
	"Exited":                          "ffa353f8eabc451bb5e1f24ea8d23546",
	"Failed":                          "d446acd957774f2f904535ddb2ead314",
	"FailedAdmission":                 "d4ecded31576424596cd354e5a6db8ba",
	"FailedCreatePodSandBox":          "abad20428f3c4beea44a1e2f72e2dcea",
	"FailedKillPod":                   "9fa44cc9b5ad4dfe8b24b5ef5003c206",
	"FailedMount":                     "631731266d574b0db9505c4cbd7490b9",
	"FailedPostStartHook":             "468bf5f985754bda9181427c92fce3e8",
	"FailedPreStopHook":               "da23cc97ac79499f87b548afea3ee932",
	"FailedReboot":                    "55d9f90836574c7983667f4287b81342",
	"FailedToRetrieveImagePullSecret": "502a6cdc1c614ba4a7d98517c881819b",
	"FileAccepted":                    "0a188accca94498cbe5487b4ac9932ad",
	"FileRejected":                    "69e7218da613404b8a8e56f5b4260f4e",
	"FreeDiskSpaceFailed":             "30c92a258aeb467f8dac7d5828f2913a",
	"ImageArchiveFailed":              "c521d392b26e4f8fbdf152ca614e2386",
	"ImageArchiveImported":            "f5d1bb173eee4ac0ba6154056178590e",
	"ImageGCFailed":                   "8a4940dad524499392adfda02eb24b74",
	"ImageRemoved":                    "5301782363184e7895268b9bd77fbde2",
	"ImageShadowed":                   "6e684979e0b547109758a15474a3cd3d",
	"Importing":                       "b66ea081dcf94dccac7f23fa2d50ebd6",
	"InspectFailed":                   "c9d58a70473144bab0178621a268586d",
	"InternalError":                   "b1691faa8b694c958697568f3511bf2a",
	"InvalidFile":                     "cf96a702ebec4603acb066d9fb8abd5b",
	"JournalNotDurable":               "4ff14dc9421a425eb04b6ebda3d8bca1",
	"Killing":                         "b1e5e3c88ae54e15a1982213647ba684",
	"LifecycleHTTPFallback":           "5f6d79eefc1a47d886ae7c61e2594bfa",
	"LogsRemoved":                     "baa114fe25cb47b8be3ce39b5ab30ada",
	"NodeShutdown":                    "4db0f14cfa3e4e089621bca06cb93d70",
	"OrphanFound":                     "09c627a3a3e645e7a2ffad0d29c60c4f",
	"PodsDirFound":                    "856deb5333da484ab2eb7c8812449c22",
	"PodsDirLost":                     "d8dd852ab54a4c97b2690e97446682f5",
	"ProbeWarning":                    "44d5c6e19a2c4eafac225f05d62adb32",
	"Pulled":                          "f9ca77e9a83045d8a8ea3cbce57b8253",
	"Pulling":                         "b3c6eb77f8724177a11f22252a780cad",
	"Quarantined":                     "5ed501aafc7f4e54aff153d4790efb4e",
	"RebootHeldBack":                  "a7509790b7724f98ac85d6e2008eccfe",
	"RebootRequested":                 "b53c5013515144188417ad0bea4f2402",
	"Rebooted":                        "c8fcd8c07c24427b8fd9b8c682ce90bb",
	"Recovered":                       "87ae18212b4d4234b644205fc11d9f35",
	"Removed":                         "13c95739c1ee4d009816a22b946ee0be",
	"RestartRequested":                "2e98cd1ebf9b4c18a9bf5bbc12d3f492",
	"RestartingAllContainers":         "ded474419c1e4fdca4e927c4f8e8d339",
	"RollbackCompleted":               "e94a1a7162454fc986494fb5ea619acf",
	"RollbackStarted":                 "3a7564c82f194be9b5db6353882f9b39",
	"RolloutResumed":                  "aea9675ffb324e25a21edf9c11d44780",
	"RolloutUndone":                   "b59dbb7b3f0e42b29ed2546e300cd213",
	"SandboxChanged":                  "4419944015d94e49a4fd798741e70fea",
	"SandboxStarted":                  "55a00d3c014f4b56b70f3e93ba8d8ea6",
	"ShimResponding":                  "f9d14bdee8434c1583fa5272794df541",
	"ShimUnresponsive":                "cd90850dd3d54077bc5da624a148fde9",
	"StartRequested":                  "a0e3d07720a541a4a85b840fa4828224",
	"Started":                         "fbc52ab71d7e4abca463217f430af28b",
	"StateDurable":                    "53879ffc6e9c48edb862335461bd83ad",
	"StateLost":                       "19dae5466b5b4ec48c3d0b211e88a2d3",
	"StateNotDurable":                 "cf8f7c46b9d44c8696e8ba244013e4e4",
	"StateUnsupported":                "d8288ad5e2d24e6184565ebd7293ea5f",
	"Stopped":                         "328b5a454763482382e8167b450b6b27",
	"Stopping":                        "06578e6635b743c187ff889a6a20e0b9",
	"Succeeded":                       "a2bb4e87de3f4fad8b70ec067eb81b0c",
	"UncleanShutdown":                 "87e7f8f3f61447bc842977fe24ee3355",
	"Unhealthy":                       "c71cbe1b0f8a495c8f48aa9baf724648",
	"UnreadyTooLong":                  "48cec0f9cf0a45f8b536a89f88a57deb",
	"UpdateCompleted":                 "5b856e7b817d4bd3b3dd9e8ce3a89e5a",
	"UpdateFailed":                    "d39c4b0a03a349a5b51c32c294cc443b",
	"UpdateWaiting":                   "e2edd0fbc2034a52885faed532088098",
	"VolumesUpdated":                  "06fb308e5dfa472a85f13ff67e6f7013",
	"WaitingFor":                      "2d8ee16eac384819b00b3d2dfb7600cc",
}
