package api

import "time"

// Explanation is why a pod is in its state.
type Explanation struct {
	Pod string `json:"pod"`
	UID string `json:"uid,omitempty"`
	// Text names the pod, its state, the root cause and what happens next, in one line.
	Text  string   `json:"text"`
	State PodState `json:"state"`
	// Healthy reports that no action is needed: the pod is ready, has succeeded or was stopped by request, and no container was
	// restarted within the last hour, except by request or by a reboot.
	Healthy    bool                 `json:"healthy"`
	Restarts   int                  `json:"restarts"`             // of all containers
	Cause      *Cause               `json:"cause,omitempty"`      // the root cause
	StopBy     string               `json:"stopBy,omitempty"`     // who requested the stop of the pod
	Next       time.Time            `json:"next,omitzero"`        // the next restart or attempt of the container in which the cause lies
	Containers []ExplainedContainer `json:"containers,omitempty"` // init containers first; all of them
	// Timeline are the events of the pod as a whole.
	Timeline []TimelineEntry `json:"timeline,omitempty"`

	// File is why the pod does not have the definition of its file in the pods directory; empty: it has, or there is no file.
	File string `json:"file,omitempty"`
	// Schedule is when the pod runs, what its schedule has done, and what is next; empty: the pod is not started by a schedule.
	Schedule string `json:"schedule,omitempty"`
	// Escalation is what was done, and what is next, because the pod stays unready; empty: nothing.
	Escalation string `json:"escalation,omitempty"`
	// NotResized is why the pod does not have the requests and limits of its definition; empty: it has, or will have them at once.
	NotResized string `json:"notResized,omitempty"`
	// NotUpdated is why volumes are not updated from their config maps and secrets; empty: they are.
	NotUpdated string `json:"notUpdated,omitempty"`
	// NotDurable is why the newest state of the pod is not saved; empty: it is.
	NotDurable string `json:"notDurable,omitempty"`
	// NotRemoved is why the sandbox of the pod, or what a deleted pod has left, could not be removed yet; empty: nothing failed.
	NotRemoved string `json:"notRemoved,omitempty"`
}

// ExplanationList is the explanations of all pods.
type ExplanationList struct {
	Items []Explanation `json:"items"`
}

// PodState is the state of a pod in an explanation.
type PodState string

// The states of pods.
const (
	PodStateReady     PodState = "Ready"
	PodStateNotReady  PodState = "NotReady"
	PodStateSucceeded PodState = "Succeeded"
	PodStateFailed    PodState = "Failed"
	PodStateStopping  PodState = "Stopping"
	PodStateStopped   PodState = "Stopped" // by request, before its containers completed
	PodStateRejected  PodState = "Rejected"
	PodStateDeleted   PodState = "Deleted"
	PodStateScheduled PodState = "Scheduled" // its runs are pods of other names
	PodStateUnknown   PodState = "Unknown"   // the container engine or the monitor is unavailable, or the pod is not supervised
)

// DefaultEvidenceLines is how many of the last log lines of a failed run an explanation has.
const DefaultEvidenceLines = 3

// ExplainedContainer is the explanation of one container.
type ExplainedContainer struct {
	Name string        `json:"name"`
	Role ContainerRole `json:"role"`
	// Text is the state in one line, without the container's name and the cause.
	Text  string                  `json:"text"`
	State ExplainedContainerState `json:"state"`
	// Reason is that of the status, such as CrashLoopBackOff or OOMKilled.
	Reason Reason `json:"reason,omitempty"`
	Ready  bool   `json:"ready"`
	// Cause is why the container does not run or is not ready; of a running one, why it was restarted.
	Cause       *Cause         `json:"cause,omitempty"`
	Stage       StopStage      `json:"stage,omitempty"` // of a stop
	StageSince  time.Time      `json:"stageSince,omitzero"`
	Restarts    int            `json:"restarts"` // over the life of the pod
	WillRestart bool           `json:"willRestart"`
	MaxRestarts int            `json:"maxRestarts,omitempty"` // of the definition, if that is why the container is not restarted
	Next        time.Time      `json:"next,omitzero"`         // the next restart or attempt; missing: none, in progress or not known
	LastExit    *ContainerExit `json:"lastExit,omitempty"`
	Evidence    *Evidence      `json:"evidence,omitempty"` // of the last exit, if that was a failure
	Runs        []ExplainedRun `json:"runs,omitempty"`     // the newest, oldest first
	// RestartCauses are why the container was restarted, as far as the events are stored: the newest restart first, then the worst causes.
	RestartCauses []RestartCause `json:"restartCauses,omitempty"`
	// Probes are the newest answers of the probes that run and have answered.
	Probes []ProbeAnswer `json:"probes,omitempty"`
}

// RestartCause is how often a container was restarted because of one cause.
type RestartCause struct {
	Cause *Cause    `json:"cause"` // of the newest of these restarts
	Count int       `json:"count"`
	Last  time.Time `json:"last"` // the newest of these restarts
	// Varies reports that the runs that ended with this cause took different times: that of the cause is the newest one's.
	Varies bool `json:"varies,omitempty"`
}

// ProbeAnswer is the newest answer of a probe. The output of one that failed is in the event.
type ProbeAnswer struct {
	Probe   ProbeKind    `json:"probe"`
	Outcome ProbeOutcome `json:"outcome"`
	Time    time.Time    `json:"time"`
	Seconds float64      `json:"seconds"` // that the probe took; of one that failed at its timeout, about the timeout
}

// ProbeKind is the purpose of a probe.
type ProbeKind string

// The probes of a container.
const (
	ProbeStartup   ProbeKind = "startup"
	ProbeReadiness ProbeKind = "readiness"
	ProbeLiveness  ProbeKind = "liveness"
)

// ProbeOutcome is what a probe found.
type ProbeOutcome string

// The outcomes of probes.
const (
	ProbeSuccess ProbeOutcome = "Success"
	ProbeWarning ProbeOutcome = "Warning" // a success with a warning, such as a redirect to another host
	ProbeFailure ProbeOutcome = "Failure"
	ProbeError   ProbeOutcome = "Error" // the probe could not run, which does not count
)

// ContainerProbeAnswer is a [ProbeAnswer] with the name of its container.
type ContainerProbeAnswer struct {
	Container string
	ProbeAnswer
}

// ExplainedContainerState is the state of a container in an explanation.
type ExplainedContainerState string

// The states of containers.
const (
	ContainerWaiting    ExplainedContainerState = "Waiting"    // for the cause, or for its next start
	ContainerStarting   ExplainedContainerState = "Starting"   // its creation or its postStart hook is in progress
	ContainerRunning    ExplainedContainerState = "Running"    // ready or not
	ContainerStopping   ExplainedContainerState = "Stopping"   // at the stage that "stage" names
	ContainerRestarting ExplainedContainerState = "Restarting" // exited, and the restart is in progress
	ContainerCompleted  ExplainedContainerState = "Completed"  // exited with code 0
	ContainerFailed     ExplainedContainerState = "Failed"     // exited with another code, and is not restarted
	ContainerStopped    ExplainedContainerState = "Stopped"    // exited with another code because the pod stopped it
	ContainerNotStarted ExplainedContainerState = "NotStarted" // it has never run and never will
	ContainerDeleted    ExplainedContainerState = "Deleted"    // the pod was deleted
	ContainerUnknown    ExplainedContainerState = "Unknown"
)

// ContainerRole is the part that a container has in its pod.
type ContainerRole string

// The roles of containers.
const (
	RoleApp       ContainerRole = "container"
	RoleInit      ContainerRole = "init container"
	RoleSidecar   ContainerRole = "sidecar"
	RoleEphemeral ContainerRole = "ephemeral container"
)

// StopStage is how far the stop of a container has come.
type StopStage string

// The stages of a stop, in their order.
const (
	StageWaiting    StopStage = "WaitingForOthers" // containers that stop before it
	StagePreStop    StopStage = "PreStopHook"
	StageSignalSent StopStage = "StopSignalSent"
	StageKilled     StopStage = "Killed" // SIGKILL was sent
)

// Cause is why a container or a pod is in its state. Fields that its kind does not have are missing.
type Cause struct {
	Kind CauseKind `json:"kind"`
	// Text is the cause as a clause, for a person.
	Text      string        `json:"text"`
	Container string        `json:"container,omitempty"` // in which the cause lies; empty: the pod
	Role      ContainerRole `json:"role,omitempty"`      // of Container
	Time      time.Time     `json:"time,omitzero"`

	Reason  Reason `json:"reason,omitempty"` // the kubelet's, such as ErrImagePull
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Image   string `json:"image,omitempty"`
	// Progress is that of an image pull, or of the import of an image archive.
	Progress *Progress `json:"progress,omitempty"`
	// The architectures of the image and of the host, which cannot execute the container's program.
	ImageArchitecture string `json:"imageArchitecture,omitempty"`
	HostArchitecture  string `json:"hostArchitecture,omitempty"`

	Failures    int            `json:"failures,omitempty"` // of the probe, in a row
	Output      string         `json:"output,omitempty"`   // the last one of the probe
	Exit        *ContainerExit `json:"exit,omitempty"`
	Grace       string         `json:"grace,omitempty"` // the grace period, such as 30s
	By          string         `json:"by,omitempty"`    // who requested it
	ByContainer string         `json:"byContainer,omitempty"`
	ByRole      ContainerRole  `json:"byRole,omitempty"`
	// Retry is the number of the retry of the pod, from 1, of the Retries that its backoffLimit allows; missing: it is none.
	Retry   int `json:"retry,omitempty"`
	Retries int `json:"retries,omitempty"`
	// Earlier is why the container had not run by then.
	Earlier *Cause `json:"earlier,omitempty"`
}

// CauseKind is the kind of a [Cause]. Later versions add kinds.
type CauseKind string

// The kinds of causes, with the fields of [Cause] that each of them has beside Container and Time.
const (
	CauseExited              CauseKind = "Exited"              // Exit
	CauseOOMKilled           CauseKind = "OOMKilled"           // Exit
	CauseExitUnknown         CauseKind = "ExitUnknown"         // Exit; the exit code is a substitute
	CauseKilled              CauseKind = "Killed"              // Grace
	CauseLivenessFailed      CauseKind = "LivenessFailed"      // Failures, Output
	CauseStartupFailed       CauseKind = "StartupFailed"       // Failures, Output
	CauseStartupPending      CauseKind = "StartupPending"      // Failures, Output; the probe has not succeeded yet
	CauseReadinessFailed     CauseKind = "ReadinessFailed"     // Failures, Output
	CauseReadinessPending    CauseKind = "ReadinessPending"    // Failures, Output; the probe has not succeeded yet
	CausePostStartFailed     CauseKind = "PostStartFailed"     // Message
	CausePostStartRunning    CauseKind = "PostStartRunning"    // Time: when it started
	CauseConditionUnmet      CauseKind = "ConditionUnmet"      // Message: what the pod waits for before it starts; Time: since when
	CauseSandboxChanged      CauseKind = "SandboxChanged"      // Message
	CauseSandboxFailed       CauseKind = "SandboxFailed"       // Message
	CauseVolumeFailed        CauseKind = "VolumeFailed"        // Message
	CauseImageFailed         CauseKind = "ImageFailed"         // Image, Reason, Message
	CauseImagePulling        CauseKind = "ImagePulling"        // Image, Progress
	CauseImageImporting      CauseKind = "ImageImporting"      // Progress, with the archive
	CauseCreateFailed        CauseKind = "CreateFailed"        // Reason, Message
	CauseStartFailed         CauseKind = "StartFailed"         // Message
	CauseHostRebooted        CauseKind = "HostRebooted"        //
	CauseUncleanShutdown     CauseKind = "UncleanShutdown"     // the host stopped without a shutdown, and was booted
	CauseExecFormat          CauseKind = "ExecFormat"          // Exit, ImageArchitecture, HostArchitecture
	CauseRestartAll          CauseKind = "RestartAll"          // ByContainer, Exit: of the container that triggered it; Retry, Retries
	CauseStopRequested       CauseKind = "StopRequested"       // By, Grace
	CauseStartRequested      CauseKind = "StartRequested"      // By; the pod was started again
	CauseRestartRequested    CauseKind = "RestartRequested"    // By; a restart of the container or of the pod
	CauseDefinitionChanged   CauseKind = "DefinitionChanged"   // Message: the fields
	CauseDeviceRemoved       CauseKind = "DeviceRemoved"       // Message: the device that was unplugged
	CauseContainerRemoved    CauseKind = "ContainerRemoved"    // from the definition of the pod
	CausePodFinished         CauseKind = "PodFinished"         // the pod has no containers left to run that this one serves
	CauseDeadlineExceeded    CauseKind = "DeadlineExceeded"    // Message
	CauseBackoffLimit        CauseKind = "BackoffLimit"        // Message
	CauseJobEnded            CauseKind = "JobEnded"            // Message: how the Job of the pod ended
	CauseEvicted             CauseKind = "Evicted"             // Message
	CauseWaitsFor            CauseKind = "WaitsFor"            // ByContainer, ByRole: the container that must come first
	CauseInitRunning         CauseKind = "InitRunning"         // an init container has not completed yet
	CauseCreating            CauseKind = "Creating"            // the container is being created
	CauseReadinessGate       CauseKind = "ReadinessGate"       // Message
	CauseEngineUnavailable   CauseKind = "EngineUnavailable"   // Message
	CauseMonitorUnresponsive CauseKind = "MonitorUnresponsive" // Message
	CauseNotSupervised       CauseKind = "NotSupervised"       // Reason, Message, Hint
	CauseAdmissionRejected   CauseKind = "AdmissionRejected"   // Message, Hint
	CauseContainersCompleted CauseKind = "ContainersCompleted" // Exit; the container exited and is not restarted
	CauseRestarted           CauseKind = "Restarted"           // the container was restarted, and the events that say why are lost
)

// ContainerExit is how a run exited.
type ContainerExit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"` // that a code of 128 plus its number stands for, such as SIGKILL
	Reason Reason `json:"reason,omitempty"`
	// Meaning explains a well-known code.
	Meaning    string    `json:"meaning,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"` // missing: not known, or never started
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	// GraceExceeded reports that the container did not stop within its grace period and was sent SIGKILL.
	GraceExceeded bool `json:"graceExceeded,omitempty"`
}

// Evidence is what a failed run has left. Fields that are not known are missing.
type Evidence struct {
	// Run is the restart count of the run, as "podstead logs" and the log files number runs.
	Run int `json:"run"`
	// Log are the last lines of its log. Values of secrets are replaced.
	Log                []string `json:"log,omitempty"`
	TerminationMessage string   `json:"terminationMessage,omitempty"`
	Probe              string   `json:"probe,omitempty"` // that failed: liveness or startup
	ProbeOutput        string   `json:"probeOutput,omitempty"`
	MemoryLimit        int64    `json:"memoryLimitBytes,omitempty"` // of an OOM-killed run
	MemoryPeak         int64    `json:"memoryPeakBytes,omitempty"`  // of an OOM-killed run
}

// TimelineEntry is one event of a timeline.
type TimelineEntry struct {
	Time      time.Time `json:"time"`                // of the last one, if Count is greater than 1
	Container string    `json:"container,omitempty"` // empty: the event is about the pod
	Message   string    `json:"message"`
	Kind      EventKind `json:"kind"`
	Reason    string    `json:"reason"`
	Seq       uint64    `json:"seq"`
	Cause     uint64    `json:"cause,omitempty"` // the sequence number of the event that caused this one
	Count     int       `json:"count"`           // equal events in a row
}

// ExplainedRun is how one run of a container ended, or why a start was delayed, and what followed.
type ExplainedRun struct {
	Cause     *Cause          `json:"cause,omitempty"`
	Exit      *ContainerExit  `json:"exit,omitempty"` // missing: it has not exited, or never started
	Restarted bool            `json:"restarted"`      // the container was started after this
	Timeline  []TimelineEntry `json:"timeline"`
}
