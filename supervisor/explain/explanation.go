package explain

import (
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// PodState is the state of a pod.
type PodState string

// The states of a pod.
const (
	PodReady     PodState = "Ready"
	PodNotReady  PodState = "NotReady"
	PodSucceeded PodState = "Succeeded"
	PodFailed    PodState = "Failed"
	PodStopping  PodState = "Stopping"
	PodStopped   PodState = "Stopped" // by request, before its containers completed
	PodRejected  PodState = "Rejected"
	PodDeleted   PodState = "Deleted"
	PodUnknown   PodState = "Unknown" // the container engine is unavailable, the shim of the pod does not respond, or the pod is not supervised
)

// ContainerState is the state of a container.
type ContainerState string

// The states of a container.
const (
	Waiting    ContainerState = "Waiting"    // for the cause, or for its next start
	Starting   ContainerState = "Starting"   // its creation or its postStart hook is in progress
	Running    ContainerState = "Running"    // ready or not
	Stopping   ContainerState = "Stopping"   // at the stage that Stage names
	Restarting ContainerState = "Restarting" // exited, and the restart is in progress
	Completed  ContainerState = "Completed"  // exited with code 0
	Failed     ContainerState = "Failed"     // exited with another code, and is not restarted
	Stopped    ContainerState = "Stopped"    // exited with another code because the pod stopped it
	NotStarted ContainerState = "NotStarted" // it has never run and never will
	Deleted    ContainerState = "Deleted"    // the pod was deleted
	Unknown    ContainerState = "Unknown"
)

// Role is the part that a container has in its pod.
type Role string

// The roles of containers.
const (
	App       Role = "container"
	Init      Role = "init container"
	Sidecar   Role = "sidecar"
	Ephemeral Role = "ephemeral container"
)

// Stage is how far the stop of a container has come.
type Stage string

// The stages of a stop, in their order.
const (
	StageWaiting    Stage = "WaitingForOthers" // containers that stop before it
	StagePreStop    Stage = "PreStopHook"
	StageSignalSent Stage = "StopSignalSent"
	StageKilled     Stage = "Killed" // SIGKILL was sent
)

// CauseKind is the kind of a [Cause].
type CauseKind string

// The kinds of causes, with the fields of [Cause] that each of them has beside Container and Time.
const (
	Exited              CauseKind = "Exited"              // Exit
	OOMKilled           CauseKind = "OOMKilled"           // Exit
	ExitUnknown         CauseKind = "ExitUnknown"         // Exit; the exit code is a substitute
	Killed              CauseKind = "Killed"              // Grace
	LivenessFailed      CauseKind = "LivenessFailed"      // Failures, Output
	StartupFailed       CauseKind = "StartupFailed"       // Failures, Output
	StartupPending      CauseKind = "StartupPending"      // Failures, Output; the probe has not succeeded yet
	ReadinessFailed     CauseKind = "ReadinessFailed"     // Failures, Output
	ReadinessPending    CauseKind = "ReadinessPending"    // Failures, Output; the probe has not succeeded yet
	PostStartFailed     CauseKind = "PostStartFailed"     // Message
	PostStartRunning    CauseKind = "PostStartRunning"    // Time: when it started
	ConditionUnmet      CauseKind = "ConditionUnmet"      // Message: what the pod waits for before it starts; Time: since when
	SandboxChanged      CauseKind = "SandboxChanged"      // Message
	SandboxFailed       CauseKind = "SandboxFailed"       // Message
	VolumeFailed        CauseKind = "VolumeFailed"        // Message
	ImageFailed         CauseKind = "ImageFailed"         // Image, Reason, Message
	ImagePulling        CauseKind = "ImagePulling"        // Image, Progress
	ImageImporting      CauseKind = "ImageImporting"      // Progress, with the archive
	CreateFailed        CauseKind = "CreateFailed"        // Reason, Message
	StartFailed         CauseKind = "StartFailed"         // Message
	HostRebooted        CauseKind = "HostRebooted"        //
	UncleanShutdown     CauseKind = "UncleanShutdown"     // the host stopped without a shutdown, and was booted
	ExecFormat          CauseKind = "ExecFormat"          // Exit, ImageArchitecture, HostArchitecture
	RestartAll          CauseKind = "RestartAll"          // ByContainer, Exit: of the container whose rule applied
	StopRequested       CauseKind = "StopRequested"       // By, Grace
	StartRequested      CauseKind = "StartRequested"      // By; the pod was started again
	RestartRequested    CauseKind = "RestartRequested"    // By; a restart of the container or of the pod
	DefinitionChanged   CauseKind = "DefinitionChanged"   // Message: the fields
	ContainerRemoved    CauseKind = "ContainerRemoved"    // from the definition of the pod
	PodFinished         CauseKind = "PodFinished"         // the pod has no containers left to run that this one serves
	DeadlineExceeded    CauseKind = "DeadlineExceeded"    // Message
	Evicted             CauseKind = "Evicted"             // Message
	WaitsFor            CauseKind = "WaitsFor"            // ByContainer, ByRole: the container that must come first
	InitRunning         CauseKind = "InitRunning"         // an init container has not completed yet
	Creating            CauseKind = "Creating"            // the container is being created
	ReadinessGate       CauseKind = "ReadinessGate"       // Message
	EngineUnavailable   CauseKind = "EngineUnavailable"   // Message
	ShimUnresponsive    CauseKind = "ShimUnresponsive"    // Message
	NotSupervised       CauseKind = "NotSupervised"       // Reason, Message, Hint
	AdmissionRejected   CauseKind = "AdmissionRejected"   // Message, Hint
	ContainersCompleted CauseKind = "ContainersCompleted" // Exit; the container exited and is not restarted
	Restarted           CauseKind = "Restarted"           // the container was restarted, and the events that say why are lost
)

// Cause is why a container or a pod is in its state. Fields that its kind does not have are zero.
type Cause struct {
	Kind CauseKind `json:"kind"`
	// Text is the cause as a clause, for a person. [Explanation.Render] sets it.
	Text      string    `json:"text"`
	Container string    `json:"container,omitempty"` // in which the cause lies; empty: the pod
	Role      Role      `json:"role,omitempty"`      // of Container
	Time      time.Time `json:"time,omitzero"`

	Reason  lifecycle.Reason `json:"reason,omitempty"` // the kubelet's, such as ErrImagePull
	Message string           `json:"message,omitempty"`
	Hint    string           `json:"hint,omitempty"`
	Image   string           `json:"image,omitempty"`
	// Progress is that of an image pull, or of the import of an image archive.
	Progress *lifecycle.Progress `json:"progress,omitempty"`
	// The architectures of the image and of the host, which cannot execute the container's program.
	ImageArchitecture string `json:"imageArchitecture,omitempty"`
	HostArchitecture  string `json:"hostArchitecture,omitempty"`

	Failures    int    `json:"failures,omitempty"` // of the probe, in a row
	Output      string `json:"output,omitempty"`   // the last one of the probe
	Exit        *Exit  `json:"exit,omitempty"`
	Grace       string `json:"grace,omitempty"` // the grace period
	By          string `json:"by,omitempty"`    // who requested it
	ByContainer string `json:"byContainer,omitempty"`
	ByRole      Role   `json:"byRole,omitempty"`
	// Earlier is why the container had not run by then.
	Earlier *Cause `json:"earlier,omitempty"`
}

// Exit is how a run exited.
type Exit struct {
	Code   int              `json:"code"`
	Signal string           `json:"signal,omitempty"` // that a code of 128 plus its number stands for
	Reason lifecycle.Reason `json:"reason,omitempty"`
	// Meaning explains a well-known code. [Explanation.Render] sets it.
	Meaning    string    `json:"meaning,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"` // zero: not known, or never started
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	// GraceExceeded says that the container did not stop within its grace period and was sent SIGKILL.
	GraceExceeded bool `json:"graceExceeded,omitempty"`
}

// Evidence is what a failed run has left. Fields that are not known are zero.
type Evidence struct {
	// Run is the restart count of the run, as `podstead logs` and the log files number runs.
	Run int `json:"run"`
	// Log are the last lines of its log, see [Container.AddLog].
	Log                []string `json:"log,omitempty"`
	TerminationMessage string   `json:"terminationMessage,omitempty"`
	Probe              string   `json:"probe,omitempty"` // that failed: liveness or startup
	ProbeOutput        string   `json:"probeOutput,omitempty"`
	MemoryLimit        int64    `json:"memoryLimitBytes,omitempty"` // of an OOM-killed run
	MemoryPeak         int64    `json:"memoryPeakBytes,omitempty"`  // of an OOM-killed run

	imageArchitecture string
}

// Entry is one event of a timeline.
type Entry struct {
	Time    time.Time `json:"time"` // of the last one, if Count is greater than 1
	Message string    `json:"message"`
	Kind    string    `json:"kind"`
	Reason  string    `json:"reason"`
	Seq     uint64    `json:"seq"`
	Cause   uint64    `json:"cause,omitempty"` // the Seq of the event that caused this one
	Count   int       `json:"count"`           // equal events in a row
}

// Run is how one run of a container ended, or why a start was delayed, and what followed.
type Run struct {
	Cause     *Cause  `json:"cause,omitempty"`
	Exit      *Exit   `json:"exit,omitempty"` // nil: it has not exited, or never started
	Restarted bool    `json:"restarted"`      // the container was started after this
	Timeline  []Entry `json:"timeline"`

	restarts []RestartCause // that followed in the run, oldest first
}

// Container is the explanation of one container.
type Container struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Text is the state in one line, without the container's name and the cause.
	Text        string           `json:"text"`
	State       ContainerState   `json:"state"`
	Reason      lifecycle.Reason `json:"reason,omitempty"` // of the status: CrashLoopBackOff, OOMKilled
	Ready       bool             `json:"ready"`
	Cause       *Cause           `json:"cause,omitempty"` // why it does not run or is not ready; of a running one, why it was restarted
	Stage       Stage            `json:"stage,omitempty"` // of a stop
	StageSince  time.Time        `json:"stageSince,omitzero"`
	Restarts    int              `json:"restarts"` // over the life of the pod
	WillRestart bool             `json:"willRestart"`
	Next        time.Time        `json:"next,omitzero"` // the next restart or attempt; zero: none, in progress or not known
	LastExit    *Exit            `json:"lastExit,omitempty"`
	Evidence    *Evidence        `json:"evidence,omitempty"` // of the last exit, if that was a failure
	Runs        []Run            `json:"runs,omitempty"`     // the newest, oldest first
	// RestartCauses are why the container was restarted, as far as the events are stored: the newest restart first, then the worst causes.
	RestartCauses []RestartCause `json:"restartCauses,omitempty"`
}

// Explanation is why a pod is in its state.
type Explanation struct {
	Pod string `json:"pod"`
	UID string `json:"uid,omitempty"`
	// Text names the pod, its state, the root cause and what happens next, in one line.
	Text  string   `json:"text"`
	State PodState `json:"state"`
	// Healthy says that no action is needed: the pod is ready, has succeeded or was stopped by request, and no container was
	// restarted within the last hour, except by request or by a reboot.
	Healthy    bool        `json:"healthy"`
	Restarts   int         `json:"restarts"`             // of all containers
	Cause      *Cause      `json:"cause,omitempty"`      // the root cause
	StopBy     string      `json:"stopBy,omitempty"`     // who requested the stop of the pod
	Next       time.Time   `json:"next,omitzero"`        // the next restart or attempt of the container in which the cause lies
	Containers []Container `json:"containers,omitempty"` // init containers first; all of them
	// Timeline are the events of the pod as a whole.
	Timeline []Entry `json:"timeline,omitempty"`

	// File is why the pod does not have the definition of its file in the pods directory; empty: it has, or there is no file.
	File string `json:"file,omitempty"`
	// Escalation is what was done, and what is next, because the pod stays unready; empty: nothing.
	Escalation string `json:"escalation,omitempty"`
	// NotUpdated is why volumes are not updated from their config maps and secrets; empty: they are.
	NotUpdated string `json:"notUpdated,omitempty"`
	// NotDurable is why the newest state of the pod is not saved; empty: it is.
	NotDurable string `json:"notDurable,omitempty"`
	// NotRemoved is why the sandbox of the pod, or what a deleted pod has left, could not be removed yet; empty: nothing failed.
	NotRemoved string `json:"notRemoved,omitempty"`
}

// Notable reports whether a container is worth showing to a person: it is not as intended, or it was restarted or stopped.
func (c *Container) Notable() bool {
	return len(c.Runs) > 0 || !c.settled()
}

// settled reports whether a container is as intended: it is ready, or has completed.
func (c *Container) settled() bool {
	return c.State == Completed || c.State == Running && (c.Ready || c.Role == Ephemeral)
}
