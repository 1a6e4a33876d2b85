package api

import (
	"slices"
	"strings"
)

// EventEntry is a row of the event table. Log lines, events in the API and the reference page are generated from it.
type EventEntry struct {
	Kind     EventKind
	Reason   string
	Level    EventLevel // of a container that was stopped on request, the exit is Normal
	Sentence string     // with {field} for each field that it states
	// More has fields that are not in the sentence. They may be empty.
	More []string
	// Kept is set if the daemon stores the event and those that led to it on the disk. It stores other events only as causes.
	Kept bool
}

// The levels, in the table.
const (
	normal  = EventNormal
	warning = EventWarning
)

// EventEntries returns the event table, in the order of the life of a pod. Where the kubelet emits the same event, Reason and Sentence
// are the kubelet's.
func EventEntries() []EventEntry {
	return slices.Concat(lifeEvents(), requestEvents(), troubleEvents())
}

// lifeEvents are the entries of the lives of pods and containers.
func lifeEvents() []EventEntry {
	return []EventEntry{
		{EventPodAccepted, "Accepted", normal, "Pod accepted", []string{"by"}, true},
		// Reason is that of the first refusal
		{EventPodRejected, "FailedAdmission", warning, "Pod rejected: {error}", []string{"hint", "by", "file"}, true},
		{EventPodRecovered, "Recovered", normal, "Recovered after a restart of the daemon, {containers} running", nil, true},
		{
			EventStateLost, "StateLost", warning,
			"State file could not be read and was renamed to {file}: {error}. Recovering the pod from container labels", nil, true,
		},
		{EventStateUnsupported, "StateUnsupported", warning, "Ignored state file {file}: {error}", nil, true},
		{
			EventPodQuarantined, "Quarantined", warning,
			"Pod is not supervised, the daemon crashed {count} times while it handled this pod: {error}", nil, true,
		},
		{
			EventOrphanFound, "OrphanFound", warning, "Found orphaned containers, they are stopped unless a pod file defines their pod",
			nil, true,
		},
		{
			EventEngineDamaged, "EngineDamaged", warning,
			"Damaged file {file} of the container engine was set aside: {error}. Containers that depend on it were killed and will be " +
				"restarted",
			[]string{"aside"},
			true,
		},
		{EventCgroupCleared, "CgroupCleared", warning, "Removed leftovers in the cgroup of the pod: {what}", nil, true},
		{EventHostRebooted, "Rebooted", normal, "Host has been rebooted{how}", nil, true},
		{EventPodWaiting, "WaitingFor", normal, "Waiting for {conditions}", nil, true},
		{EventConditionMet, "ConditionMet", normal, "{condition} was met after {duration}", nil, true},
		{EventSandboxReady, "SandboxStarted", normal, "Pod sandbox {sandbox} started", nil, true},
		{EventSandboxFailed, "FailedCreatePodSandBox", warning, "Failed to create pod sandbox: {error}", nil, true},
		{EventVolumeFailed, "FailedMount", warning, "Unable to mount volumes: {error}", nil, true},
		{EventSandboxChanged, "SandboxChanged", normal, "Pod sandbox changed, {then}: {error}", nil, true},
		{EventRemovalFailed, "FailedKillPod", warning, "Failed to remove {what}: {error}", nil, true},
		// only if it takes over a second
		{EventImageImporting, "Importing", normal, "Importing image archive \"{archive}\"", nil, false},
		{EventImagePulling, "Pulling", normal, "Pulling image \"{image}\"", nil, false},
		{EventImagePulled, "Pulled", normal, "Successfully pulled image \"{image}\" in {duration}", nil, true},
		{EventImagePresent, "Pulled", normal, "Container image \"{image}\" already present on machine", nil, true},
		{
			EventImageShadowed, "ImageShadowed", normal,
			"Image \"{image}\" of archive \"{archive}\" differs from the image of this name that is already present, only pods that list " +
				"the archive use it", nil, true,
		},
		{EventImagePullFailed, "Failed", warning, "Failed to pull image \"{image}\": {error}", []string{"reason"}, true},
		{
			EventImageNeverPull, "ErrImageNeverPull", warning, "Container image \"{image}\" is not present with pull policy of Never",
			[]string{"reason", "error"},
			true,
		},
		{EventImageInspectFailed, "InspectFailed", warning, "Failed to inspect image \"{image}\": {error}", []string{"reason"}, true},
		{EventImageBackOff, "BackOff", normal, "Back-off pulling image \"{image}\" for {delay}", nil, true},
		// the kubelet's second event for an image that it cannot get
		{EventImageError, "Failed", warning, "Error: {error}", nil, false},
		{EventContainerAdded, "EphemeralContainerAdded", normal, "Ephemeral container {container} added, requested by {by}", nil, true},
		{
			EventContainerGivenUp, "EphemeralContainerRemoved", normal,
			"Ephemeral container {container} removed, its image cannot be pulled: {error}", nil, true,
		},
		{EventContainerCreateFailed, "Failed", warning, "Error: {error}", []string{"reason"}, true},
		{EventContainerStartFailed, "Failed", warning, "Error: failed to start container: {error}", nil, true},
		{EventContainerCreated, "Created", normal, "Container created", nil, false},
		{EventContainerStarted, "Started", normal, "Container started", nil, true},
		{EventPostStartFailed, "FailedPostStartHook", warning, "PostStartHook failed", nil, true},
		{EventPreStopFailed, "FailedPreStopHook", warning, "PreStopHook failed", nil, true},
		{EventHookWarned, "LifecycleHTTPFallback", warning, "{warning}", nil, true},
		{EventProbeFailed, "Unhealthy", warning, "{probe} probe failed: {output}", []string{"count"}, false},
		{EventProbeErrored, "Unhealthy", warning, "{probe} probe errored and resulted in unknown state: {error}", nil, false},
		{EventProbeWarned, "ProbeWarning", warning, "{probe} probe warning: {output}", nil, false},
		{EventContainerSucceeded, "Exited", normal, "Container exited with code 0", []string{"message"}, true},
		{EventContainerFailed, "Exited", warning, "Container exited with code {code} ({reason})", []string{"message"}, true},
		{EventContainerBackOff, "BackOff", warning, "Back-off restarting failed container {container} in pod {pod} for {delay}", nil, true},
		{
			EventMaxRestartsReached, "MaxRestartsReached", warning,
			"Container {container} reached its maxRestarts of {limit}, not restarting it", nil, true,
		},
		{EventResizeStarted, "ResizeStarted", normal, "Pod resize started: {resources}", nil, true},
		{EventResizeCompleted, "ResizeCompleted", normal, "Pod resize completed: {resources}", nil, true},
		{EventResizeError, "ResizeError", warning, "Pod resize error: {resources}", []string{"error"}, true},
		{EventContainerStopping, "Killing", normal, "Stopping container {container}", []string{"grace", "why"}, true},
		{
			EventContainerSandboxChanged, "Killing", normal, "Stopping container {container}, its pod sandbox changed",
			[]string{"grace"},
			true,
		},
		{
			EventContainerLivenessFailed, "Killing", normal, "{role} {container} failed liveness probe{then}",
			[]string{"count", "output", "grace"},
			true,
		},
		{
			EventContainerStartupFailed, "Killing", normal, "{role} {container} failed startup probe{then}",
			[]string{"count", "output", "grace"},
			true,
		},
		{EventContainerPostStartFailed, "Killing", normal, "FailedPostStartHook", []string{"grace"}, true},
		{EventContainerKilled, "Killing", warning, "Container {container} {cause}, killing it", []string{"grace"}, true},
		{
			EventDeviceRemoved, "DeviceRemoved", warning, "Device {device} of container {container} was unplugged",
			[]string{"restarts"},
			true,
		},
		{
			EventDeviceAdded, "DeviceAdded", normal, "Device {device} of container {container} is plugged in{then}",
			[]string{"restarts"},
			true,
		},
		{EventSignalFailed, "FailedKillPod", warning, "Failed to send a signal to container {container}: {error}", nil, true},
		{EventEngineUnavailable, "EngineUnavailable", warning, "Container engine unavailable, retrying: {error}", nil, true},
		{
			EventConditionChanged, "ConditionChanged", normal, "Condition {condition} set to {status}, requested by {by}",
			[]string{"reason", "message"},
			false,
		},
		{
			EventPodRestarting, "RestartingAllContainers", normal,
			"Restarting all containers, {trigger}", // of a restart policy rule, or the retry of a Job
			[]string{"container", "code", "retry", "limit"},
			true,
		},
		{EventPodDeadlineExceeded, "DeadlineExceeded", normal, "Pod was active on the node longer than the specified deadline", nil, true},
		// of the Job controller
		{EventPodBackoffExceeded, "BackoffLimitExceeded", warning, "Job has reached the specified backoff limit", nil, true},
		{EventPodJobEnded, "JobEnded", normal, "Stopping pod: {error}", []string{"reason"}, true},
		{EventPodStopping, "Stopping", normal, "Stopping pod, grace period {grace}, requested by {by}", nil, true},
		{EventPodEvicted, "Evicted", warning, "{error}", nil, true},
		{EventPodSucceeded, "Succeeded", normal, "Pod succeeded", nil, true},
		{EventPodFailed, "Failed", warning, "Pod failed", nil, true},
		{EventPodStopped, "Stopped", normal, "Pod stopped", nil, true}, // by request or for the shutdown of the host
		{EventPodRemoved, "Removed", normal, "Pod removed", nil, true},
	}
}

// requestEvents are the entries of the shutdown of the host, of requests to restart pods and to change their definitions, and of limits of
// finished pods.
func requestEvents() []EventEntry {
	return []EventEntry{
		{EventNodeShutdown, "NodeShutdown", normal, "Stopping pod, grace period {grace}, because of {by}", nil, true},
		{EventPodStartRequested, "StartRequested", normal, "Starting pod, requested by {by}", nil, true},
		{EventPodRestartRequested, "RestartRequested", normal, "Restarting pod, requested by {by}", nil, true},
		{EventRestartRequested, "RestartRequested", normal, "Restarting container {container}, requested by {by}", nil, true},
		{EventPodEscalated, "UnreadyTooLong", warning, "Pod was not ready for {duration}, next step: {step}", []string{"by"}, true},
		{EventRebootRequested, "RebootRequested", warning, "Pod was not ready for {duration}, requesting a reboot of the host", nil, true},
		{EventRebootHeldBack, "RebootHeldBack", warning, "The host is not rebooted: {error}", nil, true},
		{EventRebootFailed, "FailedReboot", warning, "Failed to reboot the host: {error}", nil, true},
		{
			EventPodCollected, "Collected", normal, "Removed containers, volumes and old logs of the finished pod, its status is kept",
			nil, true,
		},
		{EventDefinitionChanged, "DefinitionChanged", normal, "Pod definition changed: {changes}", []string{"by"}, true},
		{
			EventContainerChanged, "Killing", normal, "Container {container} definition changed, will be restarted",
			[]string{"grace", "changes"},
			true,
		},
		{
			EventContainerDropped, "Killing", normal, "Stopping container {container}, it was removed from the pod definition",
			[]string{"grace"},
			true,
		},
	}
}

// troubleEvents are the entries of what the supervision of pods depends on.
func troubleEvents() []EventEntry {
	return []EventEntry{
		{
			EventUncleanShutdown, "UncleanShutdown", warning, "The host stopped without a shutdown: power loss, reset or kernel panic",
			nil, true,
		},
		{
			EventPullSecretsMissing, "FailedToRetrieveImagePullSecret", warning,
			"Unable to retrieve some image pull secrets ({secrets}); attempting to pull the image may not succeed.", nil, true,
		},
		{
			EventStateNotDurable, "StateNotDurable", warning,
			"Pod state could not be saved; after a restart of the daemon an older state would be used: {error}", nil, true,
		},
		{EventStateDurable, "StateDurable", normal, "Pod state can be saved again", nil, false},
		{
			EventJournalNotDurable, "JournalNotDurable", warning,
			"Failed to save events, they would be lost if the daemon restarts: {error}", nil, false,
		},
		{
			EventMonitorUnresponsive, "MonitorUnresponsive", warning,
			"The monitor of the containers does not respond, they keep running without supervision", nil, true,
		},
		{EventMonitorResponding, "MonitorResponding", normal, "The monitor of the containers responds again", nil, true},
		{EventVolumesNotUpdated, "FailedMount", warning, "Unable to update volumes, containers keep the last content: {error}", nil, true},
		{EventVolumesUpdated, "VolumesUpdated", normal, "Volumes are updated again", nil, true},
		{EventFileInvalid, "InvalidFile", warning, "Pod file is invalid, {then}: {error}", []string{"file"}, true},
		{EventFileRejected, "FileRejected", warning, "Pod file {file} rejected: {error}", nil, true},
		{EventFileAccepted, "FileAccepted", normal, "Pod file {file} accepted", nil, true},
		{EventUpdateWaiting, "UpdateWaiting", warning, "Update waits, the pod keeps running: {error}", []string{"file"}, true},
		{EventUpdateCompleted, "UpdateCompleted", normal, "Update completed, generation {generation} is ready", nil, true},
		{EventUpdateFailed, "UpdateFailed", warning, "Generation {generation} failed and is kept: {error}", nil, true},
		{EventRollbackStarted, "RollbackStarted", warning, "Rolling back from generation {generation} to {target}: {error}", nil, true},
		{EventRollbackCompleted, "RollbackCompleted", normal, "Rolled back, generation {generation} is ready", nil, true},
		{EventRolloutUndone, "RolloutUndone", normal, "Returning to generation {generation}, requested by {by}", nil, true},
		{
			EventRolloutResumed, "RolloutResumed", normal,
			"Pod file is carried out again, in place of generation {generation} requested by {by}", nil, true,
		},
		// of a pod with a schedule, as those of a CronJob
		{EventScheduleStarted, "SuccessfulCreate", normal, "Created run {run}{time}", []string{"by"}, true},
		{EventScheduleFailed, "FailedCreate", warning, "Error creating run {run}: {error}", nil, true},
		{EventScheduleMissed, "MissSchedule", warning, "Missed scheduled time to start a run: {first}{last}", nil, true},
		{
			EventScheduleWaiting, "RunAlreadyActive", normal,
			"Run of {time} waits because run {run} is running and concurrency policy is Forbid", nil, true,
		},
		{
			EventScheduleClockSetBack, "ClockSetBack", warning,
			"Clock of the host was set back, times of the schedule are counted from now and not from {time}", nil, true,
		},
		{EventPodsDirLost, "PodsDirLost", warning, "{error}, its pods keep running", []string{"dir", "pods"}, true},
		{EventPodsDirFound, "PodsDirFound", normal, "Pods directory {dir} has pod files again", nil, true},
		{EventImageArchiveImported, "ImageArchiveImported", normal, "Imported image archive {archive}: {images}", nil, true},
		{EventImageArchiveFailed, "ImageArchiveFailed", warning, "Failed to import image archive {archive}, retrying: {error}", nil, true},
		{EventDaemonCrashed, "DaemonCrashed", warning, "Daemon restarted after a crash, pods kept running: {error}", nil, true},
		{EventConfigReloaded, "ConfigReloaded", normal, "Configuration reloaded, {changes}", nil, true},
		{
			EventConfigRestartRequired, "ConfigRestartRequired", warning, "Configuration changes need a restart of the daemon: {keys}",
			nil, true,
		},
		{EventConfigInvalid, "ConfigInvalid", warning, "Configuration is invalid, the last valid one stays in effect: {error}", nil, true},
		{EventImageRemoved, "ImageRemoved", normal, "Removed image {image}, freed {size}: {cause}", []string{"bytes"}, true},
		{EventImageGCFailed, "ImageGCFailed", warning, "Image garbage collection failed: {error}", nil, true},
		{
			EventFreeDiskSpaceFailed, "FreeDiskSpaceFailed", warning,
			"Failed to garbage collect required amount of images. {usage}. {kept}",
			[]string{"bytes"},
			true,
		},
		{
			EventDiskSpaceAvailable, "DiskSpaceAvailable", normal,
			"Disk usage is below the threshold of image garbage collection again: {usage}", nil, true,
		},
		{EventMonitorRestarted, "MonitorRestarted", warning, "Monitor restarted, containers kept running: {cause}", nil, true},
		{
			EventMonitorUnavailable, "MonitorUnavailable", warning,
			"Monitor unavailable, retrying; containers keep running without supervision: {error}", nil, true,
		},
		{EventMonitorAvailable, "MonitorAvailable", normal, "Monitor available again", nil, true},
		{
			EventMonitorReplaced, "MonitorReplaced", normal, "Monitor of version {from} replaced by version {to}, containers kept running",
			nil, true,
		},
		{
			EventMonitorNotReplaced, "MonitorNotReplaced", warning,
			"Monitor of version {from} not replaced by the installed program, containers keep running: {error}", nil, true,
		},
		// repeated
		{
			EventLogsRemoved, "LogsRemoved", warning,
			"Removed {files} of the log of container {container} ({size}): the logs of all containers exceed {limit}",
			[]string{"bytes"},
			false,
		},
		{EventInternalError, "InternalError", warning, "Recovered from an internal error in the supervisor of the pod: {error}", nil, true},
	}
}

// eventTable has the entries by kind.
var eventTable = func() map[EventKind]EventEntry {
	byKind := map[EventKind]EventEntry{}
	for _, e := range EventEntries() {
		byKind[e.Kind] = e
	}
	return byKind
}()

// Entry returns the row of a kind. It is zero for [EventsMissed], and for kinds of later versions.
func (k EventKind) Entry() EventEntry { return eventTable[k] }

// Text returns the sentence with the values of the fields.
func (e *EventEntry) Text(fields map[string]string) string {
	text := make([]byte, 0, 256) // on the stack, most texts fit
	rest := e.Sentence
	for {
		before, after, _ := strings.Cut(rest, "{")
		name, then, found := strings.Cut(after, "}")
		text = append(text, before...)
		if !found {
			return string(text)
		}
		text = append(text, fields[name]...)
		rest = then
	}
}

// MessageID returns the MESSAGE_ID of a kind in the journal. An event with another reason than that of the table has it too.
func (k EventKind) MessageID() string { return messageIDs[k.Entry().Reason] }

// messageIDs are the values of the journal's MESSAGE_ID by reason. Other programs match them: they must not change, and an ID of a removed
// reason must not be used again. packaging/podstead.catalog has their texts.
var messageIDs = map[string]string{
	"Accepted":                        "91135c00165d4d0285ac6c6eb782261b",
	"BackOff":                         "fc78590ebc62430e8f7b662154db2e80",
	"BackoffLimitExceeded":            "6c1c0d6f0d0e4a5f9a1b0d27c0e7d5b3",
	"CgroupCleared":                   "a1d4888045b94929899711ff339d1ccd",
	"ClockSetBack":                    "59855066588c4fd4b6faf60f3b3c78e8",
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
	"DeviceAdded":                     "5a9d1c0b7f3e4a1c8d2e6b40c7a95e13",
	"DeviceRemoved":                   "b3f7e52a96d84c0fa1c4d80e2f61b7a9",
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
	"FailedCreate":                    "6022a7e2a07741fb90893a8363e814b4",
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
	"JobEnded":                        "8edfe4b868ac4d09b38b1d8ecd302e7a",
	"JournalNotDurable":               "4ff14dc9421a425eb04b6ebda3d8bca1",
	"Killing":                         "b1e5e3c88ae54e15a1982213647ba684",
	"LifecycleHTTPFallback":           "5f6d79eefc1a47d886ae7c61e2594bfa",
	"LogsRemoved":                     "baa114fe25cb47b8be3ce39b5ab30ada",
	"MissSchedule":                    "0ebee1fc8f0645618b86bb230d099143",
	"MonitorAvailable":                "a2da50a1a49b40838befbb490c7da552",
	"MonitorNotReplaced":              "51201316ead0ee4668e01697c88a652b",
	"MonitorReplaced":                 "ad500a8c0835953dfd90643c93e398c8",
	"MonitorResponding":               "f9d14bdee8434c1583fa5272794df541",
	"MonitorRestarted":                "dec2c088bee642af878155f6d7c3c8da",
	"MaxRestartsReached":              "41f0c7d2b8a94e63a5d70e9c3b1264fa",
	"MonitorUnavailable":              "d84b54af54e8462e81d90471806ec139",
	"MonitorUnresponsive":             "cd90850dd3d54077bc5da624a148fde9",
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
	"ResizeCompleted":                 "c0c2a7e2b95d4d0a8c1f6d1f0b6e9a37",
	"ResizeError":                     "7d3f5b8e41c94a6db2f05c9e8a7714d2",
	"ResizeStarted":                   "e45a9c1d06b84f7795c3a8b2f1d06e5b",
	"RestartRequested":                "2e98cd1ebf9b4c18a9bf5bbc12d3f492",
	"RestartingAllContainers":         "ded474419c1e4fdca4e927c4f8e8d339",
	"RollbackCompleted":               "e94a1a7162454fc986494fb5ea619acf",
	"RollbackStarted":                 "3a7564c82f194be9b5db6353882f9b39",
	"RolloutResumed":                  "aea9675ffb324e25a21edf9c11d44780",
	"RolloutUndone":                   "b59dbb7b3f0e42b29ed2546e300cd213",
	"RunAlreadyActive":                "84563bf78b974f0790671a193d6af2b4",
	"SandboxChanged":                  "4419944015d94e49a4fd798741e70fea",
	"SandboxStarted":                  "55a00d3c014f4b56b70f3e93ba8d8ea6",
	"StartRequested":                  "a0e3d07720a541a4a85b840fa4828224",
	"Started":                         "fbc52ab71d7e4abca463217f430af28b",
	"StateDurable":                    "53879ffc6e9c48edb862335461bd83ad",
	"StateLost":                       "19dae5466b5b4ec48c3d0b211e88a2d3",
	"StateNotDurable":                 "cf8f7c46b9d44c8696e8ba244013e4e4",
	"StateUnsupported":                "d8288ad5e2d24e6184565ebd7293ea5f",
	"Stopped":                         "328b5a454763482382e8167b450b6b27",
	"Stopping":                        "06578e6635b743c187ff889a6a20e0b9",
	"Succeeded":                       "a2bb4e87de3f4fad8b70ec067eb81b0c",
	"SuccessfulCreate":                "8aade233c6694f71852165e5c6dbaae5",
	"UncleanShutdown":                 "87e7f8f3f61447bc842977fe24ee3355",
	"Unhealthy":                       "c71cbe1b0f8a495c8f48aa9baf724648",
	"UnreadyTooLong":                  "48cec0f9cf0a45f8b536a89f88a57deb",
	"UpdateCompleted":                 "5b856e7b817d4bd3b3dd9e8ce3a89e5a",
	"UpdateFailed":                    "d39c4b0a03a349a5b51c32c294cc443b",
	"UpdateWaiting":                   "e2edd0fbc2034a52885faed532088098",
	"VolumesUpdated":                  "06fb308e5dfa472a85f13ff67e6f7013",
	"WaitingFor":                      "2d8ee16eac384819b00b3d2dfb7600cc",
}
