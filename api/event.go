package api

import "time"

// Event is something that happened to a pod or, without a pod, to the daemon.
type Event struct {
	// Seq is the sequence number. It increases, also across restarts of the daemon, which continue at the next multiple of 1e9.
	Seq   uint64    `json:"seq"`
	Cause uint64    `json:"cause,omitempty"` // the sequence number of the event that led to this one; missing: none, or not known
	Time  time.Time `json:"time"`

	Level EventLevel `json:"type"`
	Kind  EventKind  `json:"kind"`
	// Reason is the kubelet's where it has one.
	Reason    string `json:"reason"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Container string `json:"container,omitempty"`
	// Attempt is the number of the run of the container. The first run has 1.
	Attempt int `json:"attempt,omitempty"`
	// Fields are the values in the message, and more, by name.
	Fields  map[string]string `json:"fields,omitempty"`
	Message string            `json:"message"`
}

// EventLevel is the severity of an event: the type of a Kubernetes event.
type EventLevel string

// The levels.
const (
	EventNormal  EventLevel = "Normal"
	EventWarning EventLevel = "Warning"
)

// EventsMissed is the kind of an event that stands for events that are no longer kept. It has no pod. Its field "missed" is their number.
const EventsMissed EventKind = "EventsMissed"

// EventKind names a kind of event. docs/reference/events.md lists all kinds with their messages and fields. Later versions add kinds.
type EventKind string

// The kinds of events.
const (
	EventPodAccepted              EventKind = "PodAccepted"
	EventPodRejected              EventKind = "PodRejected"
	EventPodRecovered             EventKind = "PodRecovered"
	EventStateLost                EventKind = "StateLost"
	EventStateUnsupported         EventKind = "StateUnsupported"
	EventOrphanFound              EventKind = "OrphanFound"
	EventEngineDamaged            EventKind = "EngineDamaged"
	EventCgroupCleared            EventKind = "CgroupCleared"
	EventHostRebooted             EventKind = "HostRebooted"
	EventUncleanShutdown          EventKind = "UncleanShutdown"
	EventPodWaiting               EventKind = "PodWaiting"
	EventConditionMet             EventKind = "ConditionMet"
	EventSandboxReady             EventKind = "SandboxReady"
	EventSandboxFailed            EventKind = "SandboxFailed"
	EventSandboxChanged           EventKind = "SandboxChanged"
	EventVolumeFailed             EventKind = "VolumeFailed"
	EventPodEvicted               EventKind = "PodEvicted"
	EventNodeShutdown             EventKind = "NodeShutdown"
	EventRemovalFailed            EventKind = "RemovalFailed"
	EventImageImporting           EventKind = "ImageImporting"
	EventImagePulling             EventKind = "ImagePulling"
	EventPullSecretsMissing       EventKind = "PullSecretsMissing"
	EventImagePulled              EventKind = "ImagePulled"
	EventImagePresent             EventKind = "ImagePresent"
	EventImageShadowed            EventKind = "ImageShadowed"
	EventImagePullFailed          EventKind = "ImagePullFailed"
	EventImageBackOff             EventKind = "ImageBackOff"
	EventImageError               EventKind = "ImageError"
	EventContainerCreateFailed    EventKind = "ContainerCreateFailed"
	EventContainerStartFailed     EventKind = "ContainerStartFailed"
	EventContainerCreated         EventKind = "ContainerCreated"
	EventContainerStarted         EventKind = "ContainerStarted"
	EventContainerSucceeded       EventKind = "ContainerSucceeded"
	EventContainerFailed          EventKind = "ContainerFailed"
	EventContainerBackOff         EventKind = "ContainerBackOff"
	EventMaxRestartsReached       EventKind = "MaxRestartsReached"
	EventContainerStopping        EventKind = "ContainerStopping"
	EventContainerSandboxChanged  EventKind = "ContainerSandboxChanged"
	EventContainerLivenessFailed  EventKind = "ContainerLivenessFailed"
	EventContainerStartupFailed   EventKind = "ContainerStartupFailed"
	EventContainerPostStartFailed EventKind = "ContainerPostStartFailed"
	EventContainerKilled          EventKind = "ContainerKilled"
	EventResizeStarted            EventKind = "ResizeStarted"
	EventResizeCompleted          EventKind = "ResizeCompleted"
	EventResizeError              EventKind = "ResizeError"
	EventDeviceRemoved            EventKind = "DeviceRemoved"
	EventDeviceAdded              EventKind = "DeviceAdded"
	EventProbeFailed              EventKind = "ProbeFailed"
	EventProbeErrored             EventKind = "ProbeErrored"
	EventProbeWarned              EventKind = "ProbeWarned"
	EventPostStartFailed          EventKind = "PostStartFailed"
	EventPreStopFailed            EventKind = "PreStopFailed"
	EventHookWarned               EventKind = "HookWarned"
	EventSignalFailed             EventKind = "SignalFailed"
	EventEngineUnavailable        EventKind = "EngineUnavailable"
	EventPodRestarting            EventKind = "PodRestarting"
	EventPodDeadlineExceeded      EventKind = "PodDeadlineExceeded"
	EventPodBackoffExceeded       EventKind = "PodBackoffExceeded"
	EventPodJobEnded              EventKind = "PodJobEnded"
	EventPodStopping              EventKind = "PodStopping"
	EventPodStartRequested        EventKind = "PodStartRequested"
	EventPodRestartRequested      EventKind = "PodRestartRequested"
	EventRestartRequested         EventKind = "RestartRequested"
	EventDefinitionChanged        EventKind = "DefinitionChanged"
	EventContainerChanged         EventKind = "ContainerChanged"
	EventContainerDropped         EventKind = "ContainerDropped"
	EventPodSucceeded             EventKind = "PodSucceeded"
	EventPodFailed                EventKind = "PodFailed"
	EventPodStopped               EventKind = "PodStopped"
	EventPodEscalated             EventKind = "PodEscalated"
	EventRebootRequested          EventKind = "RebootRequested"
	EventRebootHeldBack           EventKind = "RebootHeldBack"
	EventRebootFailed             EventKind = "RebootFailed"
	EventPodCollected             EventKind = "PodCollected"
	EventPodRemoved               EventKind = "PodRemoved"
	EventStateNotDurable          EventKind = "StateNotDurable"
	EventStateDurable             EventKind = "StateDurable"
	EventMonitorUnresponsive      EventKind = "MonitorUnresponsive"
	EventMonitorResponding        EventKind = "MonitorResponding"
	EventVolumesNotUpdated        EventKind = "VolumesNotUpdated"
	EventVolumesUpdated           EventKind = "VolumesUpdated"
	EventInternalError            EventKind = "InternalError"
	EventPodQuarantined           EventKind = "PodQuarantined"
	EventContainerAdded           EventKind = "ContainerAdded"
	EventContainerGivenUp         EventKind = "ContainerGivenUp"
	EventConditionChanged         EventKind = "ConditionChanged"
	EventJournalNotDurable        EventKind = "JournalNotDurable"
	EventImageNeverPull           EventKind = "ImageNeverPull"
	EventImageInspectFailed       EventKind = "ImageInspectFailed"
	EventFileInvalid              EventKind = "FileInvalid"
	EventFileRejected             EventKind = "FileRejected"
	EventFileAccepted             EventKind = "FileAccepted"
	EventUpdateWaiting            EventKind = "UpdateWaiting"
	EventUpdateCompleted          EventKind = "UpdateCompleted"
	EventUpdateFailed             EventKind = "UpdateFailed"
	EventRollbackStarted          EventKind = "RollbackStarted"
	EventRollbackCompleted        EventKind = "RollbackCompleted"
	EventRolloutUndone            EventKind = "RolloutUndone"
	EventRolloutResumed           EventKind = "RolloutResumed"
	EventScheduleStarted          EventKind = "ScheduleStarted"
	EventScheduleFailed           EventKind = "ScheduleFailed"
	EventScheduleMissed           EventKind = "ScheduleMissed"
	EventScheduleWaiting          EventKind = "ScheduleWaiting"
	EventScheduleClockSetBack     EventKind = "ScheduleClockSetBack"
	EventPodsDirLost              EventKind = "PodsDirLost"
	EventPodsDirFound             EventKind = "PodsDirFound"
	EventImageArchiveImported     EventKind = "ImageArchiveImported"
	EventImageArchiveFailed       EventKind = "ImageArchiveFailed"
	EventDaemonCrashed            EventKind = "DaemonCrashed"
	EventConfigReloaded           EventKind = "ConfigReloaded"
	EventConfigRestartRequired    EventKind = "ConfigRestartRequired"
	EventConfigInvalid            EventKind = "ConfigInvalid"
	EventImageRemoved             EventKind = "ImageRemoved"
	EventImageGCFailed            EventKind = "ImageGCFailed"
	EventFreeDiskSpaceFailed      EventKind = "FreeDiskSpaceFailed"
	EventDiskSpaceAvailable       EventKind = "DiskSpaceAvailable"
	EventLogsRemoved              EventKind = "LogsRemoved"
	EventMonitorRestarted         EventKind = "MonitorRestarted"
	EventMonitorUnavailable       EventKind = "MonitorUnavailable"
	EventMonitorAvailable         EventKind = "MonitorAvailable"
	EventMonitorReplaced          EventKind = "MonitorReplaced"
	EventMonitorNotReplaced       EventKind = "MonitorNotReplaced"
)
