package supervisor

import (
	"strings"
	"time"
)

// Level says whether a person should worry (the type of a Kubernetes event).
type Level string

// The levels.
const (
	Normal  Level = "Normal"
	Warning Level = "Warning"
)

// Event is something that happened to a pod, told once: in the log, on the API, and to whoever follows.
type Event struct {
	Seq       uint64            `json:"seq"`             // rises, over restarts too; each life of the supervisor begins at another thousand million
	Cause     uint64            `json:"cause,omitempty"` // the Seq of the event that led to this one; 0: not known any more
	Time      time.Time         `json:"time"`
	Level     Level             `json:"type"`
	Kind      Kind              `json:"kind"`   // which row of the table
	Reason    string            `json:"reason"` // the kubelet's word where it has one
	Pod       string            `json:"pod"`
	UID       string            `json:"uid"`
	Container string            `json:"container,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	Fields    map[string]string `json:"fields,omitempty"`
	Message   string            `json:"message"`
}

// Kind names a row of the table of events.
type Kind string

// Entry is a row of the table of events: log lines, the API's JSON and the reference page are made from it.
type Entry struct {
	Kind     Kind
	Reason   string
	Level    Level
	Sentence string // with {field} for each of Fields
	Fields   []string
	// More are fields beside those of the sentence, which may be empty.
	More []string
	// Kept says that the [Journal] keeps the event, with what led to it.
	Kept bool
}

// The kinds of events.
const (
	PodAccepted         Kind = "PodAccepted"
	PodRefused          Kind = "PodRefused"
	PodRecovered        Kind = "PodRecovered"
	StateLost           Kind = "StateLost"
	StateRefused        Kind = "StateRefused"
	OrphanFound         Kind = "OrphanFound"
	MachineRestarted    Kind = "MachineRestarted"
	SandboxReady        Kind = "SandboxReady"
	SandboxFailed       Kind = "SandboxFailed"
	SandboxGone         Kind = "SandboxGone"
	VolumeFailed        Kind = "VolumeFailed"
	PodEvicted          Kind = "PodEvicted"
	RemovalFailed       Kind = "RemovalFailed"
	ImagePulling        Kind = "ImagePulling"
	ImageFetched        Kind = "ImageFetched"
	ImagePresent        Kind = "ImagePresent"
	ImageFailed         Kind = "ImageFailed"
	ImageBackOff        Kind = "ImageBackOff"
	ContainerNotStarted Kind = "ContainerNotStarted"
	ContainerRefused    Kind = "ContainerRefused"
	ContainerStartError Kind = "ContainerStartError"
	ContainerCreated    Kind = "ContainerCreated"
	ContainerRunning    Kind = "ContainerRunning"
	ContainerSucceeded  Kind = "ContainerSucceeded"
	ContainerFailed     Kind = "ContainerFailed"
	ContainerBackOff    Kind = "ContainerBackOff"
	ContainerStopping   Kind = "ContainerStopping"
	ContainerOutdated   Kind = "ContainerOutdated"
	ContainerNotAlive   Kind = "ContainerNotAlive"
	ContainerNotUp      Kind = "ContainerNotUp"
	ContainerNotHooked  Kind = "ContainerNotHooked"
	ContainerKilled     Kind = "ContainerKilled"
	ProbeFailed         Kind = "ProbeFailed"
	ProbeErrored        Kind = "ProbeErrored"
	ProbeWarned         Kind = "ProbeWarned"
	PostStartFailed     Kind = "PostStartFailed"
	PreStopFailed       Kind = "PreStopFailed"
	HookWarned          Kind = "HookWarned"
	SignalFailed        Kind = "SignalFailed"
	EngineAway          Kind = "EngineAway"
	PodRestarting       Kind = "PodRestarting"
	PodExpired          Kind = "PodExpired"
	PodStopping         Kind = "PodStopping"
	PodSucceeded        Kind = "PodSucceeded"
	PodFailed           Kind = "PodFailed"
	PodGone             Kind = "PodGone"
	StateNotDurable     Kind = "StateNotDurable"
	StateDurable        Kind = "StateDurable"
	SupervisorPanicked  Kind = "SupervisorPanicked"
	ContainerAdded      Kind = "ContainerAdded"
	ConditionChanged    Kind = "ConditionChanged"
	JournalFailed       Kind = "JournalFailed"
	ImageNotAllowed     Kind = "ImageNotAllowed"
	ImageNotInspected   Kind = "ImageNotInspected"
)

// Entries returns the table of events, in the order of a pod's life.
func Entries() []Entry {
	return []Entry{
		{PodAccepted, "Accepted", Normal, "Pod accepted", nil, []string{"by"}, true},
		{PodRefused, "FailedAdmission", Warning, "Pod is refused: {error}", []string{"error"}, []string{"mend", "by"}, true}, // its reason is that of the first refusal
		{PodRecovered, "Recovered", Normal, "Taken up again after a restart of the supervisor, {live} of its containers run", []string{"live"}, nil, true},
		{StateLost, "StateLost", Warning, "State file could not be read and was set aside as {file}: {error}; what the engine holds is taken up", []string{"file", "error"}, nil, true},
		{StateRefused, "StateRefused", Warning, "State file {file} is not touched: {error}", []string{"file", "error"}, nil, true},
		{OrphanFound, "OrphanFound", Warning, "The engine holds containers of a pod that nobody asked for: they are ended", nil, nil, true},
		{MachineRestarted, "Rebooted", Normal, "The machine was restarted: a new round begins", nil, nil, true},
		{SandboxReady, "SandboxStarted", Normal, "Pod sandbox {sandbox} is ready", []string{"sandbox"}, nil, true},
		{SandboxFailed, "FailedCreatePodSandBox", Warning, "Failed to create pod sandbox: {error}", []string{"error"}, nil, true},
		{VolumeFailed, "FailedMount", Warning, "Waiting for a volume: {error}", []string{"error"}, nil, true},
		{SandboxGone, "SandboxChanged", Normal, "Pod sandbox changed, {then}: {error}", []string{"then", "error"}, nil, true},
		{RemovalFailed, "FailedKillPod", Warning, "Failed to remove {what}: {error}", []string{"what", "error"}, nil, true},
		{ImagePulling, "Pulling", Normal, "Pulling image \"{image}\"", []string{"image"}, nil, false},
		{ImageFetched, "Pulled", Normal, "Successfully pulled image \"{image}\" in {duration}", []string{"image", "duration"}, nil, true},
		{ImagePresent, "Pulled", Normal, "Container image \"{image}\" already present on machine", []string{"image"}, nil, true},
		{ImageFailed, "Failed", Warning, "Failed to pull image \"{image}\": {error}", []string{"image", "error"}, []string{"reason"}, true},
		{ImageNotAllowed, "ErrImageNeverPull", Warning, "Container image \"{image}\" is not present with pull policy of Never", []string{"image"}, []string{"reason", "error"}, true},
		{ImageNotInspected, "InspectFailed", Warning, "Failed to inspect image \"{image}\": {error}", []string{"image", "error"}, []string{"reason"}, true},
		{ImageBackOff, "BackOff", Normal, "Back-off pulling image \"{image}\" for {delay}", []string{"image", "delay"}, nil, true},
		{ContainerNotStarted, "Failed", Warning, "Error: {error}", []string{"error"}, nil, false}, // the kubelet's second word of an image that is not to be had
		{ContainerAdded, "EphemeralContainerAdded", Normal, "Ephemeral container {container} added, asked by {by}", []string{"container", "by"}, nil, true},
		{ContainerRefused, "Failed", Warning, "Error: {error}", []string{"error"}, []string{"reason"}, true},
		{ContainerStartError, "Failed", Warning, "Error: failed to start container: {error}", []string{"error"}, nil, true},
		{ContainerCreated, "Created", Normal, "Container created", nil, nil, false},
		{ContainerRunning, "Started", Normal, "Container started", nil, nil, true},
		{PostStartFailed, "FailedPostStartHook", Warning, "PostStartHook failed", nil, nil, true},
		{PreStopFailed, "FailedPreStopHook", Warning, "PreStopHook failed", nil, nil, true},
		{HookWarned, "LifecycleHTTPFallback", Warning, "{warning}", []string{"warning"}, nil, true},
		{ProbeFailed, "Unhealthy", Warning, "{probe} probe failed: {output}", []string{"probe", "output"}, []string{"count"}, false},
		{ProbeErrored, "Unhealthy", Warning, "{probe} probe errored and resulted in unknown state: {error}", []string{"probe", "error"}, nil, false},
		{ProbeWarned, "ProbeWarning", Warning, "{probe} probe warning: {output}", []string{"probe", "output"}, nil, false},
		{ContainerSucceeded, "Exited", Normal, "Container exited with 0", nil, []string{"message"}, true},
		{ContainerFailed, "Exited", Warning, "Container exited with {code} ({reason})", []string{"code", "reason"}, []string{"message"}, true},
		{ContainerBackOff, "BackOff", Warning, "Back-off restarting failed container {container} in pod {pod} for {delay}", []string{"container", "pod", "delay"}, nil, true},
		{ContainerStopping, "Killing", Normal, "Stopping container {container}", []string{"container"}, []string{"grace", "why"}, true},
		{ContainerOutdated, "Killing", Normal, "Container {container} runs in a sandbox that changed, it will be stopped", []string{"container"}, []string{"grace"}, true},
		{ContainerNotAlive, "Killing", Normal, "{role} {container} failed liveness probe{then}", []string{"role", "container", "then"}, []string{"count", "output", "grace"}, true},
		{ContainerNotUp, "Killing", Normal, "{role} {container} failed startup probe{then}", []string{"role", "container", "then"}, []string{"count", "output", "grace"}, true},
		{ContainerNotHooked, "Killing", Normal, "FailedPostStartHook", nil, []string{"grace"}, true},
		{ContainerKilled, "Killing", Warning, "Container {container} is killed: it has not ended in its grace period, or none was given", []string{"container"}, nil, true},
		{SignalFailed, "FailedKillPod", Warning, "Failed to signal container {container}: {error}", []string{"container", "error"}, nil, true},
		{EngineAway, "EngineUnavailable", Warning, "The container engine is away, it is asked again: {error}", []string{"error"}, nil, true},
		{ConditionChanged, "ConditionChanged", Normal, "Condition {condition} is {status} now, set by {by}", []string{"condition", "status", "by"}, []string{"reason", "message"}, false},
		{PodRestarting, "RestartingAllContainers", Normal, "All containers begin again in the same sandbox, because of the end of container {container}", []string{"container"}, []string{"code"}, true},
		{PodExpired, "DeadlineExceeded", Normal, "Pod was active on the node longer than the specified deadline", nil, nil, true},
		{PodStopping, "Stopping", Normal, "Pod is to end within {grace}, asked by {by}", []string{"grace", "by"}, nil, true},
		{PodEvicted, "Evicted", Warning, "{error}", []string{"error"}, nil, true},
		{PodSucceeded, "Succeeded", Normal, "Pod succeeded", nil, nil, true},
		{PodFailed, "Failed", Warning, "Pod failed", nil, nil, true},
		{PodGone, "Removed", Normal, "Pod removed", nil, nil, true},
		{StateNotDurable, "StateNotDurable", Warning, "State could not be written, a restart would find an older one: {error}", []string{"error"}, nil, true},
		{StateDurable, "StateDurable", Normal, "State is written again", nil, nil, false},
		{JournalFailed, "JournalNotDurable", Warning, "Events could not be kept on disk, a restart would have forgotten them: {error}", []string{"error"}, nil, false},
		{SupervisorPanicked, "SupervisorPanicked", Warning, "A turn of the pod's supervisor panicked and was survived: {error}", []string{"error"}, nil, true},
	}
}

// table is Entries by kind.
var table = func() map[Kind]Entry {
	byKind := map[Kind]Entry{}
	for _, e := range Entries() {
		byKind[e.Kind] = e
	}
	return byKind
}()

// sentence fills the fields into the sentence of a kind.
func (e Entry) sentence(fields map[string]string) string {
	pairs := make([]string, 0, 2*len(e.Fields))
	for _, name := range e.Fields {
		pairs = append(pairs, "{"+name+"}", fields[name])
	}
	return strings.NewReplacer(pairs...).Replace(e.Sentence)
}
