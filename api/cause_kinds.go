package api

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
	CauseRestartAll          CauseKind = "RestartAll"          // ByContainer, Exit: of the container whose rule applied
	CauseStopRequested       CauseKind = "StopRequested"       // By, Grace
	CauseStartRequested      CauseKind = "StartRequested"      // By; the pod was started again
	CauseRestartRequested    CauseKind = "RestartRequested"    // By; a restart of the container or of the pod
	CauseDefinitionChanged   CauseKind = "DefinitionChanged"   // Message: the fields
	CauseContainerRemoved    CauseKind = "ContainerRemoved"    // from the definition of the pod
	CausePodFinished         CauseKind = "PodFinished"         // the pod has no containers left to run that this one serves
	CauseDeadlineExceeded    CauseKind = "DeadlineExceeded"    // Message
	CauseEvicted             CauseKind = "Evicted"             // Message
	CauseWaitsFor            CauseKind = "WaitsFor"            // ByContainer, ByRole: the container that must come first
	CauseInitRunning         CauseKind = "InitRunning"         // an init container has not completed yet
	CauseCreating            CauseKind = "Creating"            // the container is being created
	CauseReadinessGate       CauseKind = "ReadinessGate"       // Message
	CauseEngineUnavailable   CauseKind = "EngineUnavailable"   // Message
	CauseShimUnresponsive    CauseKind = "ShimUnresponsive"    // Message
	CauseNotSupervised       CauseKind = "NotSupervised"       // Reason, Message, Hint
	CauseAdmissionRejected   CauseKind = "AdmissionRejected"   // Message, Hint
	CauseContainersCompleted CauseKind = "ContainersCompleted" // Exit; the container exited and is not restarted
	CauseRestarted           CauseKind = "Restarted"           // the container was restarted, and the events that say why are lost
)
