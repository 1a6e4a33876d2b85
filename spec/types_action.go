package spec

// Probe asks a container how it is; exactly one of the handlers is set. Every
// number is filled in after parsing.
type Probe struct {
	Exec      *ExecAction      `json:"exec,omitempty"`
	HTTPGet   *HTTPGetAction   `json:"httpGet,omitempty"`
	TCPSocket *TCPSocketAction `json:"tcpSocket,omitempty"`
	GRPC      *GRPCAction      `json:"grpc,omitempty"`

	InitialDelaySeconds Seconds `json:"initialDelaySeconds,omitempty"`
	PeriodSeconds       Seconds `json:"periodSeconds,omitempty"`
	TimeoutSeconds      Seconds `json:"timeoutSeconds,omitempty"`
	SuccessThreshold    int32   `json:"successThreshold,omitempty"`
	FailureThreshold    int32   `json:"failureThreshold,omitempty"`
	// TerminationGracePeriodSeconds is nil for the pod's, else greater than zero.
	TerminationGracePeriodSeconds *Seconds `json:"terminationGracePeriodSeconds,omitempty"`
}

// Lifecycle holds the hooks of a container and the signal that asks it to end.
type Lifecycle struct {
	PostStart *LifecycleHandler `json:"postStart,omitempty"`
	PreStop   *LifecycleHandler `json:"preStop,omitempty"`
	// StopSignal is empty for the image's, which defaults to SIGTERM.
	StopSignal string `json:"stopSignal,omitempty"`
}

// LifecycleHandler has exactly one field set.
type LifecycleHandler struct {
	Exec    *ExecAction    `json:"exec,omitempty"`
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty"`
	Sleep   *SleepAction   `json:"sleep,omitempty"`
}

// ExecAction runs a command in the container, without a shell.
type ExecAction struct {
	Command []string `json:"command,omitempty"`
}

// HTTPGetAction sends a request; Host is empty for the pod's address.
type HTTPGetAction struct {
	Path        string       `json:"path,omitempty"`
	Port        Port         `json:"port"`
	Host        string       `json:"host,omitempty"`
	Scheme      string       `json:"scheme,omitempty"`
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty"`
}

// HTTPHeader is one header line; a name may come more than once.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// TCPSocketAction opens a connection; Host is empty for the pod's address.
type TCPSocketAction struct {
	Port Port   `json:"port"`
	Host string `json:"host,omitempty"`
}

// GRPCAction asks the gRPC health service; Service may be empty.
type GRPCAction struct {
	Port    int32  `json:"port"`
	Service string `json:"service,omitempty"`
}

// SleepAction waits; zero seconds are allowed.
type SleepAction struct {
	Seconds Seconds `json:"seconds"`
}

// PodSecurityContext applies to every container that does not say otherwise.
type PodSecurityContext struct {
	// RunAsUser is nil for the image's user.
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RunAsGroup is nil for the group that the image's /etc/passwd gives RunAsUser (0 where it does not), or the image's group.
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// RunAsNonRoot refuses to start as root, or as a user of whom only a name is known.
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty"`
	// SupplementalGroups are further groups of every process.
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`
	// SupplementalGroupsPolicy is "Merge", also where it is empty: with the user's groups from the image's /etc/group; or
	// "Strict": without them (KEP-3619).
	SupplementalGroupsPolicy string `json:"supplementalGroupsPolicy,omitempty"`
	FSGroup                  *int64 `json:"fsGroup,omitempty"`
	FSGroupChangePolicy      string `json:"fsGroupChangePolicy,omitempty"`
	// Sysctls are set when the pod starts. Those that are not on Kubernetes' safe list must be allowed by the machine.
	Sysctls []Sysctl `json:"sysctls,omitempty"`
	// SeccompProfile is nil for RuntimeDefault. The file of a Localhost profile lies in the folder seccomp of the configuration.
	SeccompProfile *SecurityProfile `json:"seccompProfile,omitempty"`
	// AppArmorProfile is nil for RuntimeDefault, which is none on a machine without AppArmor. A Localhost profile must be loaded.
	AppArmorProfile *SecurityProfile `json:"appArmorProfile,omitempty"`
}

// SecurityContext is a container's own; a field that is nil or empty is the pod's.
type SecurityContext struct {
	// Privileged gives all capabilities and devices, hides nothing of /proc and /sys, and drops the default profiles.
	Privileged *bool `json:"privileged,omitempty"`
	// AllowPrivilegeEscalation is true unless it is set; false stops setuid programs and file capabilities (no_new_privs).
	AllowPrivilegeEscalation *bool         `json:"allowPrivilegeEscalation,omitempty"`
	Capabilities             *Capabilities `json:"capabilities,omitempty"`
	RunAsUser                *int64        `json:"runAsUser,omitempty"`
	RunAsGroup               *int64        `json:"runAsGroup,omitempty"`
	RunAsNonRoot             *bool         `json:"runAsNonRoot,omitempty"`
	// ReadOnlyRootFilesystem leaves volumes as they are.
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty"`
	// ProcMount is "Default", also where it is empty, or "Unmasked": nothing of /proc and /sys is hidden or read-only.
	ProcMount       string           `json:"procMount,omitempty"`
	SeccompProfile  *SecurityProfile `json:"seccompProfile,omitempty"`
	AppArmorProfile *SecurityProfile `json:"appArmorProfile,omitempty"`
}

// Capabilities are names without the prefix CAP_; ALL stands for every one that
// the daemon has. ALL is added before it is dropped, and both before the others.
type Capabilities struct {
	Add  []string `json:"add,omitempty"`
	Drop []string `json:"drop,omitempty"`
}

// SecurityProfile selects a seccomp or AppArmor profile: RuntimeDefault,
// Unconfined, or Localhost with the profile's name.
type SecurityProfile struct {
	Type             string  `json:"type"`
	LocalhostProfile *string `json:"localhostProfile,omitempty"`
}

// Sysctl is a kernel parameter of the pod's namespaces.
type Sysctl struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
