package spec

import "iter"

// Pod is one pod file, flattened as the file is. Its JSON is what the state
// file keeps and reads back unchanged. A Pod that [Parse] returned is shared
// and must not be modified.
type Pod struct {
	// Name is a DNS label; the file's base name where the file gives none.
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`

	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	// TerminationGracePeriodSeconds is 30 unless written; zero is a value.
	TerminationGracePeriodSeconds Seconds `json:"terminationGracePeriodSeconds"`
	// ActiveDeadlineSeconds is nil for no deadline, else greater than zero.
	ActiveDeadlineSeconds *Seconds `json:"activeDeadlineSeconds,omitempty"`
	// RestartBackoff holds only what the file sets; use [Pod.BackoffOf].
	RestartBackoff *Backoff `json:"restartBackoff,omitempty"`

	InitContainers []Container `json:"initContainers,omitempty"`
	Containers     []Container `json:"containers,omitempty"`
	Volumes        []Volume    `json:"volumes,omitempty"`

	// EphemeralContainers were added to the running pod; no file has them, nor
	// the state: whoever keeps them beside the pod puts them here for others.
	EphemeralContainers []Container `json:"ephemeralContainers,omitempty" podfile:"-"`

	// ImageArchives are absolute paths of OCI or Docker archives to import
	// before the pod starts.
	ImageArchives []string `json:"imageArchives,omitempty"`
	// WaitFor names what must be true before the pod starts, as "kind:object".
	WaitFor []string `json:"waitFor,omitempty"`
	// ConfigMaps and Secrets are the inline tables of the file.
	ConfigMaps []ConfigMap `json:"configMaps,omitempty"`
	Secrets    []Secret    `json:"secrets,omitempty"`

	HostNetwork           bool `json:"hostNetwork,omitempty"`
	HostPID               bool `json:"hostPID,omitempty"`
	HostIPC               bool `json:"hostIPC,omitempty"`
	ShareProcessNamespace bool `json:"shareProcessNamespace,omitempty"`
	// HostUsers is nil for the default, true: no user namespace of its own.
	HostUsers   *bool       `json:"hostUsers,omitempty"`
	Hostname    string      `json:"hostname,omitempty"`
	Subdomain   string      `json:"subdomain,omitempty"`
	HostAliases []HostAlias `json:"hostAliases,omitempty"`
	// DNSPolicy is DNSDefault or DNSNone: ClusterFirst is taken as Default.
	DNSPolicy DNSPolicy  `json:"dnsPolicy,omitempty"`
	DNSConfig *DNSConfig `json:"dnsConfig,omitempty"`

	SecurityContext  *PodSecurityContext `json:"securityContext,omitempty"`
	ReadinessGates   []ReadinessGate     `json:"readinessGates,omitempty"`
	ImagePullSecrets []ObjectReference   `json:"imagePullSecrets,omitempty"`
	RuntimeClassName string              `json:"runtimeClassName,omitempty"`
	Priority         *int32              `json:"priority,omitempty"`
	// Resources bounds the pod as a whole.
	Resources Resources `json:"resources,omitzero"`

	// Dir is the absolute folder of the pod file.
	Dir string `json:"podFileDir,omitempty" podfile:"-"`
	// Hash is "v1:" and a digest over what the file sets, before defaulting.
	// Files that mean the same by a different spelling have the same hash.
	Hash string `json:"specHash,omitempty" podfile:"-"`
}

// Container is one entry of initContainers or containers.
type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// ImagePullPolicy is empty where the file does not say: the default depends
	// on the tag and on whether an archive brought the image.
	ImagePullPolicy PullPolicy `json:"imagePullPolicy,omitempty"`
	// Command replaces the image's entrypoint, Args its arguments.
	Command      []string        `json:"command,omitempty"`
	Args         []string        `json:"args,omitempty"`
	WorkingDir   string          `json:"workingDir,omitempty"`
	Env          []EnvVar        `json:"env,omitempty"`
	EnvFrom      []EnvFrom       `json:"envFrom,omitempty"`
	Ports        []ContainerPort `json:"ports,omitempty"`
	Resources    Resources       `json:"resources,omitzero"`
	VolumeMounts []VolumeMount   `json:"volumeMounts,omitempty"`

	LivenessProbe  *Probe     `json:"livenessProbe,omitempty"`
	ReadinessProbe *Probe     `json:"readinessProbe,omitempty"`
	StartupProbe   *Probe     `json:"startupProbe,omitempty"`
	Lifecycle      *Lifecycle `json:"lifecycle,omitempty"`

	// RestartPolicy is empty for the pod's; Always on an init container makes it
	// a sidecar.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	// RestartPolicyRules are tried in order before RestartPolicy (KEP-5307).
	RestartPolicyRules []RestartRule `json:"restartPolicyRules,omitempty"`
	// RestartBackoff holds only what the file sets; use [Pod.BackoffOf].
	RestartBackoff *Backoff `json:"restartBackoff,omitempty"`

	SecurityContext          *SecurityContext         `json:"securityContext,omitempty"`
	TerminationMessagePath   string                   `json:"terminationMessagePath,omitempty"`
	TerminationMessagePolicy TerminationMessagePolicy `json:"terminationMessagePolicy,omitempty"`

	// Stdin, StdinOnce and TTY are refused by the unsupported pass.
	Stdin     bool `json:"stdin,omitempty"`
	StdinOnce bool `json:"stdinOnce,omitempty"`
	TTY       bool `json:"tty,omitempty"`

	// Hash is "v1:" and a digest over this container's table alone.
	Hash string `json:"specHash,omitempty" podfile:"-"`
}

// RestartPolicy says after which ends a container starts again.
type RestartPolicy string

// The restart policies of a pod and of a container.
const (
	RestartAlways    RestartPolicy = "Always"
	RestartOnFailure RestartPolicy = "OnFailure"
	RestartNever     RestartPolicy = "Never"
)

// PullPolicy says when an image is asked for at its registry.
type PullPolicy string

// The pull policies; the empty one is resolved at pull time.
const (
	PullAlways       PullPolicy = "Always"
	PullIfNotPresent PullPolicy = "IfNotPresent"
	PullNever        PullPolicy = "Never"
)

// TerminationMessagePolicy says where the message of an ended container is from.
type TerminationMessagePolicy string

// The termination message policies.
const (
	TerminationMessageFile           TerminationMessagePolicy = "File"
	TerminationMessageFallbackToLogs TerminationMessagePolicy = "FallbackToLogsOnError"
	defaultTerminationMessagePath                             = "/dev/termination-log"
	defaultGraceSeconds              Seconds                  = 30
	defaultConfigFileMode            int32                    = 0o644
)

// Backoff paces restarts: the first is immediate, the next waits
// InitialSeconds, each further one Factor times longer up to MaxSeconds. A run
// of at least ResetAfterSeconds forgets all of it.
type Backoff struct {
	InitialSeconds    Seconds `json:"initialSeconds,omitempty"`
	MaxSeconds        Seconds `json:"maxSeconds,omitempty"`
	Factor            float64 `json:"factor,omitempty"`
	ResetAfterSeconds Seconds `json:"resetAfterSeconds,omitempty"`
}

// RestartRule overrides the container's restart policy for some exit codes.
type RestartRule struct {
	// Action is "Restart" or "RestartAllContainers".
	Action    string     `json:"action,omitempty"`
	ExitCodes *ExitCodes `json:"exitCodes,omitempty"`
}

// ExitCodes is a set of exit codes or, with the operator "NotIn", all others.
type ExitCodes struct {
	Operator string  `json:"operator,omitempty"`
	Values   []int32 `json:"values,omitempty"`
}

// EnvVar sets one variable, either to Value, in which $(NAME) is expanded when
// the container starts, or from ValueFrom.
type EnvVar struct {
	Name      string        `json:"name"`
	Value     string        `json:"value,omitempty"`
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource has exactly one field set.
type EnvVarSource struct {
	FieldRef         *FieldRef         `json:"fieldRef,omitempty"`
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef,omitempty"`
	ConfigMapKeyRef  *KeyRef           `json:"configMapKeyRef,omitempty"`
	SecretKeyRef     *KeyRef           `json:"secretKeyRef,omitempty"`
}

// FieldRef selects a field of the pod itself, such as "metadata.name".
type FieldRef struct {
	APIVersion string `json:"apiVersion,omitempty"`
	FieldPath  string `json:"fieldPath"`
}

// ResourceFieldRef selects a request or limit of a container.
type ResourceFieldRef struct {
	// ContainerName is empty in env for the container itself.
	ContainerName string `json:"containerName,omitempty"`
	Resource      string `json:"resource"`
	// Divisor is nil for one.
	Divisor *Quantity `json:"divisor,omitempty"`
}

// KeyRef selects one key of a config map or secret.
type KeyRef struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Optional bool   `json:"optional,omitempty"`
}

// EnvFrom sets a variable for every key of a config map or secret; exactly one
// of the two references is set.
type EnvFrom struct {
	Prefix       string        `json:"prefix,omitempty"`
	ConfigMapRef *EnvReference `json:"configMapRef,omitempty"`
	SecretRef    *EnvReference `json:"secretRef,omitempty"`
}

// EnvReference names a config map or secret that may be allowed to be absent.
type EnvReference struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`
}

// ObjectReference names an object of the pod's namespace.
type ObjectReference struct {
	Name string `json:"name"`
}

// ContainerPort declares a port. Without HostPort it only documents and names it.
type ContainerPort struct {
	Name          string   `json:"name,omitempty"`
	ContainerPort int32    `json:"containerPort"`
	HostPort      int32    `json:"hostPort,omitempty"`
	HostIP        string   `json:"hostIP,omitempty"`
	Protocol      Protocol `json:"protocol,omitempty"`
}

// Protocol is a transport protocol of a port.
type Protocol string

// The transport protocols; TCP is the default.
const (
	ProtocolTCP  Protocol = "TCP"
	ProtocolUDP  Protocol = "UDP"
	ProtocolSCTP Protocol = "SCTP"
)

// ReadinessGate is a condition that must be True before the pod is ready.
type ReadinessGate struct {
	ConditionType string `json:"conditionType"`
}

// HostAlias is one line of /etc/hosts.
type HostAlias struct {
	IP        string   `json:"ip"`
	Hostnames []string `json:"hostnames,omitempty"`
}

// DNSPolicy says where resolv.conf begins.
type DNSPolicy string

// The DNS policies: the machine's resolv.conf, or only what dnsConfig says.
const (
	DNSDefault DNSPolicy = "Default"
	DNSNone    DNSPolicy = "None"
)

// DNSConfig is merged into what the DNS policy gives.
type DNSConfig struct {
	Nameservers []string    `json:"nameservers,omitempty"`
	Searches    []string    `json:"searches,omitempty"`
	Options     []DNSOption `json:"options,omitempty"`
}

// DNSOption is an option of resolv.conf, written name:value where it has one.
type DNSOption struct {
	Name  string  `json:"name"`
	Value *string `json:"value,omitempty"`
}

// Resources are quantities by resource name: cpu, memory, ephemeral-storage.
type Resources struct {
	Requests ResourceList `json:"requests,omitempty"`
	Limits   ResourceList `json:"limits,omitempty"`
}

// ResourceList holds quantities by resource name.
type ResourceList map[string]Quantity

// everyContainer yields the init containers, then the containers, then those
// that were added.
func (p *Pod) everyContainer() iter.Seq[*Container] {
	return func(yield func(*Container) bool) {
		for _, list := range [][]Container{p.InitContainers, p.Containers, p.EphemeralContainers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
