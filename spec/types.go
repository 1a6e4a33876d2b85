package spec

import (
	"iter"
	"slices"
)

// Pod is a pod file. It has the fields of metadata and spec of a Kubernetes Pod in one table.
//
// Its JSON is part of the state file and is read back unchanged. A Pod that [Parse] returned is shared and must not be modified.
//
// docs/reference/pod-file.md is generated from the comments of types and fields in this package: of a type the first paragraph, of
// a field all sentences but those with a Go name in brackets.
type Pod struct {
	// Name of the pod, a DNS subdomain. Default: the base name of the pod file.
	Name string `json:"name"`
	// Labels for selectors (`-l`) and the downward API.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations for tools and the downward API, at most 256 KiB in total. `podstead.io/aliases` has other names by which other pods reach
	// the pod, separated by commas, also names with `_`. `podstead.io/log-driver` (file, memory, journald) and
	// `podstead.io/log-rate-limit` (such as `100 lines/s`, `64Ki bytes/s` or `off`) replace the settings for logs of the daemon,
	// `log-rate-limit.podstead.io/CONTAINER` for one container.
	Annotations map[string]string `json:"annotations,omitempty"`

	// When the containers of the pod are restarted. Default: `Always`.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	// Time to stop before the containers are killed. Each container has at least 2 seconds after its stop signal. Default: 30.
	TerminationGracePeriodSeconds Seconds `json:"terminationGracePeriodSeconds"`
	// Time since the start after which the pod fails, greater than 0. Default: no limit.
	ActiveDeadlineSeconds *Seconds `json:"activeDeadlineSeconds,omitempty"`
	// Number of restarts after a failure, as of a Job. After one more failure the pod fails. Failures of sidecars do not count. With
	// `restartPolicy` `OnFailure` the container is restarted. With `Never` all containers are, also those that have completed, after a
	// back-off of 10s that doubles up to 6m; `emptyDir` volumes keep their content. Default: that of `job`, else no
	// limit with `OnFailure` and 0 with `Never`.
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// Time after which containers, volumes and old logs of the finished pod are removed, from 0. Default: `pods.finishedPodTTL` of the
	// host, and no limit for the run of a schedule.
	TTLSecondsAfterFinished *Seconds `json:"ttlSecondsAfterFinished,omitempty"`
	// Restart back-off of all containers that do not set their own. Default: that of the kubelet. [Pod.BackoffOf] resolves it.
	RestartBackoff *Backoff `json:"restartBackoff,omitempty"`

	// Containers that run one after the other before `containers`; those with `restartPolicy = "Always"` are sidecars.
	InitContainers []Container `json:"initContainers,omitempty"`
	// Containers of the pod. At least one is required, at most 64 including init containers.
	Containers []Container `json:"containers,omitempty"`
	// Volumes that containers can mount.
	Volumes []Volume `json:"volumes,omitempty"`

	// Ephemeral containers were added to the running pod. They are neither in the file nor in the state; callers that
	// keep them set this field on a copy.
	EphemeralContainers []Container `json:"ephemeralContainers,omitempty" podfile:"-"`

	// OCI or Docker archives to import before the pod starts. Relative paths are relative to the pod file. The names of images in an
	// archive hold only for pods that list the archive.
	ImageArchives []string `json:"imageArchives,omitempty"`
	// Conditions to wait for before the pod starts, also after a reboot: `pod:NAME:ready`, `pod:NAME:succeeded`, `path:PATH`,
	// `mount:PATH`, `dns:NAME`, `network-online`, `time-synced`. At most 64. [ParseWaitCondition] parses them.
	WaitFor []string `json:"waitFor,omitempty"`
	// Rollback of updates. Default: a definition that does not become ready is kept. [Pod.UpdateRule] resolves it.
	Update *Update `json:"update,omitempty"`
	// Start by a systemd unit in the order of the boot, in place of the start by the daemon. Default: the daemon starts the pod.
	Systemd *Systemd `json:"systemd,omitempty"`
	// Start at times, such as each night. Each run is a pod of its own. Default: the pod starts at once.
	Schedule *Schedule `json:"schedule,omitempty"`
	// The Job that the pod is one completion of, with other pods. Default: it has no Job.
	Job *Job `json:"job,omitempty"`
	// Last step if the pod stays unready: `restart` restarts all containers, `replace` then replaces the pod sandbox, `reboot` then
	// reboots the host, at most as often as `reboot.maxPerDay` of the host allows. It cannot be set with `restartPolicy` `Never`.
	// Default: nothing.
	OnUnhealthy UnhealthyStep `json:"onUnhealthy,omitempty"`
	// Time for which the pod may be unready before each step of `onUnhealthy`, from 1 to 604800. Time in which an image is pulled or a
	// container starts up does not count. Default: 600.
	UnhealthyAfterSeconds Seconds `json:"unhealthyAfterSeconds,omitempty"`
	// Inline config maps. They take precedence over the files of the same name on the host.
	ConfigMaps []ConfigMap `json:"configMaps,omitempty"`
	// Inline secrets. They take precedence over the files of the same name on the host.
	Secrets []Secret `json:"secrets,omitempty"`

	// Use the network namespace of the host. Default: false.
	HostNetwork bool `json:"hostNetwork,omitempty"`
	// Use the PID namespace of the host. Default: false.
	HostPID bool `json:"hostPID,omitempty"`
	// Use the IPC namespace of the host. Default: false.
	HostIPC bool `json:"hostIPC,omitempty"`
	// Share one PID namespace among all containers. Default: false.
	ShareProcessNamespace bool `json:"shareProcessNamespace,omitempty"`
	// False runs the pod in a user namespace. Default: true.
	HostUsers *bool `json:"hostUsers,omitempty"`
	// User and group in the containers, from 1 to 65535, that the user who runs the pod without root has on the host: files of that user in
	// host paths belong to it, and what it writes belongs to that user. Files of the image that belong to root or to it belong to it too.
	// It does not set `runAsUser`. Default: root in the containers is that user.
	KeepID *int64 `json:"keepID,omitempty"`
	// Host name in the pod, a DNS label. Default: the name of the pod, truncated to 63 characters.
	Hostname string `json:"hostname,omitempty"`
	// Subdomain of the host name, a DNS label. Default: none.
	Subdomain string `json:"subdomain,omitempty"`
	// Host name in the pod in place of that of `hostname` and `subdomain`, a DNS subdomain of at most 64 characters. Other pods reach the
	// pod by its other names. It cannot be set with `hostNetwork` or `setHostnameAsFQDN` (KEP-4762). Default: none.
	HostnameOverride string `json:"hostnameOverride,omitempty"`
	// Use the full name of a pod with a subdomain as its host name, such as web.shop.default.svc.cluster.local. A pod whose full name has
	// more than 64 characters does not start (KEP-1797). Default: false.
	SetHostnameAsFQDN bool `json:"setHostnameAsFQDN,omitempty"`
	// Additional lines of /etc/hosts.
	HostAliases []HostAlias `json:"hostAliases,omitempty"`
	// Base of /etc/resolv.conf. `ClusterFirst` and `ClusterFirstWithHostNet` are accepted as `Default`. Default: `Default`.
	DNSPolicy DNSPolicy `json:"dnsPolicy,omitempty"`
	// Additions to /etc/resolv.conf.
	DNSConfig *DNSConfig `json:"dnsConfig,omitempty"`

	// Security settings of the pod and defaults for its containers.
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty"`
	// Additional conditions for readiness.
	ReadinessGates []ReadinessGate `json:"readinessGates,omitempty"`
	// Secrets with credentials for registries.
	ImagePullSecrets []ObjectReference `json:"imagePullSecrets,omitempty"`
	// Name of the service account: the value of `spec.serviceAccountName` in the downward API. It gives no token and no permissions, since
	// there is no API server. Default: `default`. [Pod.ServiceAccount] resolves it.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Operating system of the containers. A manifest needs it to set `stopSignal`, as in Kubernetes. Default: Linux.
	OS *PodOS `json:"os,omitempty"`
	// Name of an element of `engine.runtimeClasses` in the configuration of the host, whose OCI runtime runs the containers. Default: that
	// of `engine.runtime`.
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// Pod-level requests and limits of `cpu`, `memory` and huge pages (KEP-2837).
	Resources Resources `json:"resources,omitzero"`
	// Maximum number of processes and threads of the pod, from 1 to 4194304. It cannot exceed the setting `pods.pidsLimit`. Default: that
	// setting.
	PidsLimit *int64 `json:"pidsLimit,omitempty"`
	// Size of /dev/shm, which all containers of the pod share. It cannot be set with `hostIPC`. Default: `64Mi`.
	ShmSize *Quantity `json:"shmSize,omitempty"`

	// Absolute directory of the pod file.
	Dir string `json:"podFileDir,omitempty" podfile:"-"`
	// Hash is "v1:" and a digest of what the file sets, before defaulting. Files with equal values have equal hashes,
	// independent of notation.
	Hash string `json:"specHash,omitempty" podfile:"-"`
}

// Linux is the operating system of containers, as the name of a [PodOS].
const Linux = "linux"

// PodOS is the operating system of the containers of a pod.
type PodOS struct {
	// `linux`. Required.
	Name string `json:"name"`
}

// Container is an entry of initContainers or containers.
type Container struct {
	// Name of the container, a DNS label that is unique in the pod. Required.
	Name string `json:"name"`
	// Image reference, such as `nginx:1.27`. Required.
	Image string `json:"image"`
	// When to pull the image. Default: `Always` for the tag `latest`, unless an archive has the image, else `IfNotPresent`. It is
	// empty after [Parse]: the default is resolved at pull time.
	ImagePullPolicy PullPolicy `json:"imagePullPolicy,omitempty"`
	// Entrypoint, not run in a shell; `$(NAME)` is expanded. Default: the entrypoint of the image.
	Command []string `json:"command,omitempty"`
	// Arguments of the entrypoint; `$(NAME)` is expanded. Default: the command of the image, unless `command` is set.
	Args []string `json:"args,omitempty"`
	// Working directory, an absolute path. Default: that of the image.
	WorkingDir string `json:"workingDir,omitempty"`
	// Environment variables, as a list or as a table `env.NAME = "value"`.
	Env []EnvVar `json:"env,omitempty"`
	// Config maps and secrets whose keys become environment variables.
	EnvFrom []EnvFrom `json:"envFrom,omitempty"`
	// Ports of the container. A port without `hostPort` is informational.
	Ports []ContainerPort `json:"ports,omitempty"`
	// Requests and limits of `cpu`, `memory`, `ephemeral-storage` and huge pages.
	Resources Resources `json:"resources,omitzero"`
	// What a change of the requests and limits of a resource does to the running container. Default: `NotRequired` for both resources.
	ResizePolicy []ResizePolicy `json:"resizePolicy,omitempty"`
	// Limits of each process, as a list or as strings such as `nofile=1024:65536`. Default: 1048576 open files, if the kernel allows them;
	// the other limits are those of the daemon. The levels `baseline` and `restricted` of `podSecurity` allow neither unlimited ones nor
	// `rtprio` and `nice` above 0.
	Ulimits []Ulimit `json:"ulimits,omitempty"`
	// Run the command as a child of a small program that reaps orphaned processes and forwards signals to the command. It exits with the
	// exit code of the command, with the sum of 128 and the number of the signal that ended the command, with 127 if there is no such
	// command, 126 if the command cannot be executed, or 125 if the program itself fails. Its threads, about ten, count for `pidsLimit`.
	// Default: false.
	Init bool `json:"init,omitempty"`
	// Mounts, as a list or as a table `volumeMounts.VOLUME = "/path"`.
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`
	// Devices of the host for the container. Text stands for a path.
	Devices []Device `json:"devices,omitempty"`

	// Restarts the container when it fails. Default: none.
	LivenessProbe *Probe `json:"livenessProbe,omitempty"`
	// Determines whether the container is ready. Default: none.
	ReadinessProbe *Probe `json:"readinessProbe,omitempty"`
	// Delays the other probes until it succeeds. Default: none.
	StartupProbe *Probe `json:"startupProbe,omitempty"`
	// Hooks and stop signal.
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`

	// When the container is restarted; `Always` makes an init container a sidecar. Default: that of the pod.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	// Rules by exit code, tried in order before `restartPolicy`, which is then required (KEP-5307). At most 20.
	RestartPolicyRules []RestartRule `json:"restartPolicyRules,omitempty"`
	// Maximum number of restarts by the restart policy and its rules, at least 1. When the container has been restarted so often and exits
	// again, it stays terminated, as with the restart policy `Never`: it runs once more if `onUnhealthy` replaces the pod sandbox. The
	// restarts count from the last start of the pod or of the container by a person or by a change of its definition, also over reboots of
	// the host. It can be set in `containers` only, and not with `backoffLimit`. Default: no maximum.
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`
	// Restart back-off of the container. Default: that of the pod. [Pod.BackoffOf] resolves it.
	RestartBackoff *Backoff `json:"restartBackoff,omitempty"`

	// Security settings of the container. They override those of the pod.
	SecurityContext *SecurityContext `json:"securityContext,omitempty"`
	// File in the container with the termination message; a relative path is relative to /. Default: `/dev/termination-log`.
	TerminationMessagePath string `json:"terminationMessagePath,omitempty"`
	// Source of the termination message. Default: `File`.
	TerminationMessagePolicy TerminationMessagePolicy `json:"terminationMessagePolicy,omitempty"`

	// Keep standard input open. Without it, reads return EOF. Clients send input with `podstead attach -i`. The process gets no EOF when
	// they disconnect.
	Stdin bool `json:"stdin,omitempty"`
	// Close standard input when the first client that attached to it has disconnected. It stays closed until the container restarts. It has
	// no effect without `stdin`, and on a terminal.
	StdinOnce bool `json:"stdinOnce,omitempty"`
	// Allocate a terminal. It has one output stream: standard error is logged as standard output.
	TTY bool `json:"tty,omitempty"`

	// TargetContainerName is the container whose process namespace an ephemeral container joins. Empty if the containers share one.
	TargetContainerName string `json:"targetContainerName,omitempty" podfile:"-"`
	// ImageArchives are archives for an ephemeral container, beside those of the pod. The paths are absolute.
	ImageArchives []string `json:"imageArchives,omitempty" podfile:"-"`

	// Hash is "v1:" and a digest of the table of this container.
	Hash string `json:"specHash,omitempty" podfile:"-"`
}

// RestartPolicy tells when a container is restarted after it exited.
type RestartPolicy string

// The restart policies of a pod and of a container.
const (
	RestartAlways    RestartPolicy = "Always"
	RestartOnFailure RestartPolicy = "OnFailure"
	RestartNever     RestartPolicy = "Never"
)

// PullPolicy tells when an image is pulled.
type PullPolicy string

// The pull policies. An empty policy is resolved at pull time.
const (
	PullAlways       PullPolicy = "Always"
	PullIfNotPresent PullPolicy = "IfNotPresent"
	PullNever        PullPolicy = "Never"
)

// TerminationMessagePolicy is the source of the termination message of a container.
type TerminationMessagePolicy string

// The termination message policies.
const (
	TerminationMessageFile           TerminationMessagePolicy = "File"
	TerminationMessageFallbackToLogs TerminationMessagePolicy = "FallbackToLogsOnError"
	defaultTerminationMessagePath                             = "/dev/termination-log"
	defaultGraceSeconds              Seconds                  = 30
	defaultConfigFileMode            int32                    = 0o644
)

// Backoff is a restart back-off. The first restart is immediate, the second is delayed by `initialSeconds`, and each further
// one by `factor` times the delay before.
type Backoff struct {
	// Delay of the second restart, greater than 0. Default: 10.
	InitialSeconds Seconds `json:"initialSeconds,omitempty"`
	// Maximum delay, greater than 0. Default: 300.
	MaxSeconds Seconds `json:"maxSeconds,omitempty"`
	// Growth of the delay, at least 1. Default: 2.
	Factor float64 `json:"factor,omitempty"`
	// Run time after which the back-off is reset, greater than 0. Default: 600.
	ResetAfterSeconds Seconds `json:"resetAfterSeconds,omitempty"`
}

// RestartRule overrides the restart policy of a container for a set of exit codes.
type RestartRule struct {
	// `Restart` restarts the container, `RestartAllContainers` all containers of the pod. Required.
	Action string `json:"action,omitempty"`
	// Exit codes of the rule. Required.
	ExitCodes *ExitCodes `json:"exitCodes,omitempty"`
}

// ExitCodes is a set of exit codes.
type ExitCodes struct {
	// `In` or `NotIn`. Required.
	Operator string `json:"operator,omitempty"`
	// Exit codes, at most 255. Default: none.
	Values []int32 `json:"values,omitempty"`
}

// EnvVar is an environment variable. It has either a value or a source.
type EnvVar struct {
	// Name of the variable. Required.
	Name string `json:"name"`
	// Value; `$(NAME)` is expanded, `$$(NAME)` gives `$(NAME)`. Default: empty.
	Value string `json:"value,omitempty"`
	// Source of the value. Default: none.
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource is the source of an environment variable. Exactly one field is set.
type EnvVarSource struct {
	// Field of the pod.
	FieldRef *FieldRef `json:"fieldRef,omitempty"`
	// Request or limit of a container.
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef,omitempty"`
	// Key of a config map.
	ConfigMapKeyRef *KeyRef `json:"configMapKeyRef,omitempty"`
	// Key of a secret.
	SecretKeyRef *KeyRef `json:"secretKeyRef,omitempty"`
	// Key in a file that another container has written.
	FileKeyRef *FileKeyRef `json:"fileKeyRef,omitempty"`
}

// FieldRef selects a field of the pod.
type FieldRef struct {
	// `v1`. Default: `v1`.
	APIVersion string `json:"apiVersion,omitempty"`
	// `metadata.name`, `metadata.namespace`, `metadata.uid`, `metadata.labels['KEY']`, `metadata.annotations['KEY']`; in env also
	// `spec.nodeName`, `spec.serviceAccountName`, `status.hostIP`, `status.hostIPs`, `status.podIP`, `status.podIPs`; in volumes
	// also `metadata.labels`, `metadata.annotations`. Required.
	FieldPath string `json:"fieldPath"`
}

// ResourceFieldRef selects a request or a limit of a container.
type ResourceFieldRef struct {
	// Name of the container. Required in volumes. Default in env: the container itself.
	ContainerName string `json:"containerName,omitempty"`
	// `limits.` or `requests.` and `cpu`, `memory`, `ephemeral-storage` or huge pages such as `hugepages-2Mi`. Required.
	Resource string `json:"resource"`
	// Unit of the value; the result is rounded up. Default: 1.
	Divisor *Quantity `json:"divisor,omitempty"`
}

// KeyRef selects a key of a config map or a secret.
type KeyRef struct {
	// Name of the object. Required.
	Name string `json:"name"`
	// Key in the object. Required.
	Key string `json:"key"`
	// Start the container without the variable if the object or the key does not exist. Default: false.
	Optional bool `json:"optional,omitempty"`
}

// FileKeyRef selects a key of a file, which is read at each start of the container.
type FileKeyRef struct {
	// Name of the volume, which must be an `emptyDir`. The container need not mount it. Required.
	VolumeName string `json:"volumeName"`
	// Path of the file in the volume, without `..`. A line of the file is `KEY='value'`, empty, or a comment that begins with `#`. A value
	// can have several lines, but no single quote, and nothing in it is expanded. The file may have up to 1 MiB, all files of the variables
	// of a container 16 MiB, and a line less than 64 KiB. Required.
	Path string `json:"path"`
	// Key in the file. An empty value counts as a missing key. Required.
	Key string `json:"key"`
	// Start the container without the variable if the file or the key does not exist. Default: false.
	Optional bool `json:"optional,omitempty"`
}

// EnvFrom sets a variable for each key of a config map or a secret. Exactly one of the two references is set.
type EnvFrom struct {
	// Prefix of the variables. Default: empty.
	Prefix string `json:"prefix,omitempty"`
	// Config map.
	ConfigMapRef *EnvReference `json:"configMapRef,omitempty"`
	// Secret.
	SecretRef *EnvReference `json:"secretRef,omitempty"`
}

// EnvReference names a config map or a secret.
type EnvReference struct {
	// Name of the object. Required.
	Name string `json:"name"`
	// Start the container without the variables if the object does not exist. Default: false.
	Optional bool `json:"optional,omitempty"`
}

// ObjectReference names an object.
type ObjectReference struct {
	// Name of the object. Required.
	Name string `json:"name"`
}

// ContainerPort is a port of a container. A port with a host port is forwarded from the host.
type ContainerPort struct {
	// Name of the port for probes and hooks, unique in the container. Default: none.
	Name string `json:"name,omitempty"`
	// Port in the pod, 1 to 65535. Required.
	ContainerPort int32 `json:"containerPort"`
	// Port of the host, 1 to 65535. Default: none; with `hostNetwork`, `containerPort`.
	HostPort int32 `json:"hostPort,omitempty"`
	// IP address of the host port. Default: all addresses of the host.
	HostIP string `json:"hostIP,omitempty"`
	// Transport protocol. Default: `TCP`.
	Protocol Protocol `json:"protocol,omitempty"`
}

// Protocol is the transport protocol of a port.
type Protocol string

// The transport protocols.
const (
	ProtocolTCP  Protocol = "TCP"
	ProtocolUDP  Protocol = "UDP"
	ProtocolSCTP Protocol = "SCTP"
)

// ReadinessGate is a condition that must be True before the pod is ready.
type ReadinessGate struct {
	// Type of the condition, a qualified name. Required.
	ConditionType string `json:"conditionType"`
}

// HostAlias is a line of /etc/hosts.
type HostAlias struct {
	// IP address. Required.
	IP string `json:"ip"`
	// Host names of the address. Default: none.
	Hostnames []string `json:"hostnames,omitempty"`
}

// DNSPolicy is the base of the pod's resolv.conf.
type DNSPolicy string

// The DNS policies: the resolv.conf of the host, or dnsConfig only.
const (
	DNSDefault DNSPolicy = "Default"
	DNSNone    DNSPolicy = "None"
)

// DNSConfig is merged with the result of the DNS policy.
type DNSConfig struct {
	// IP addresses of DNS servers, at most 3. Required with `dnsPolicy = "None"`.
	Nameservers []string `json:"nameservers,omitempty"`
	// Search domains, at most 32.
	Searches []string `json:"searches,omitempty"`
	// Resolver options.
	Options []DNSOption `json:"options,omitempty"`
}

// DNSOption is an option of resolv.conf.
type DNSOption struct {
	// Name of the option, such as `ndots`. Required.
	Name string `json:"name"`
	// Value of the option. Default: none.
	Value *string `json:"value,omitempty"`
}

// Resources are requests and limits of `cpu`, `memory`, `ephemeral-storage` and huge pages, such as `hugepages-2Mi`.
type Resources struct {
	// Requested amounts, such as `cpu = "250m"`. Default: the limits.
	Requests ResourceList `json:"requests,omitempty"`
	// Maximum amounts, such as `memory = "64Mi"`. Default: no limits.
	Limits ResourceList `json:"limits,omitempty"`
}

// The restart policies of a resize.
const (
	ResizeNotRequired      = "NotRequired"
	ResizeRestartContainer = "RestartContainer"
)

// ResizePolicy states whether a container restarts when its requests or limits of a resource change (KEP-1287).
type ResizePolicy struct {
	// `cpu` or `memory`, each at most once. Required.
	ResourceName string `json:"resourceName"`
	// `NotRequired` changes the cgroup of the running container. `RestartContainer` restarts the container, which may read its limits at
	// its start only. It is not allowed if the pod has the restart policy `Never`, and for init containers that are not sidecars. Required.
	RestartPolicy string `json:"restartPolicy"`
}

// RestartsOnResize reports whether a change of the requests or limits of a resource, such as `cpu`, restarts the container.
func (c *Container) RestartsOnResize(resource string) bool {
	return slices.Contains(c.ResizePolicy, ResizePolicy{ResourceName: resource, RestartPolicy: ResizeRestartContainer})
}

// Ulimit limits a resource of each process of a container (setrlimit, as in KEP-5758).
type Ulimit struct {
	// `core`, `cpu`, `data`, `fsize`, `locks`, `memlock`, `msgqueue`, `nice`, `nofile`, `nproc`, `rss`, `rtprio`, `rttime`, `sigpending`
	// or `stack`, each at most once. `nproc` counts the processes of the user on the whole host: set `pidsLimit` of the pod instead.
	// Required.
	Name string `json:"name"`
	// Limit that applies, or -1 for unlimited; for `nofile`, -1 is the maximum of the kernel. Processes can raise it up to the hard limit.
	// Required.
	Soft *int64 `json:"soft,omitempty"`
	// Limit of the soft limit, or -1. Default: the soft limit.
	Hard *int64 `json:"hard,omitempty"`
}

// ResourceList holds quantities by resource name.
type ResourceList map[string]Quantity

// EveryContainer yields the init containers, the app containers and the ephemeral containers.
func (p *Pod) EveryContainer() iter.Seq[*Container] {
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

// CloneContainers replaces the lists of containers by copies, so that a change of one does not affect the pod that this one is a copy of.
func (p *Pod) CloneContainers() {
	p.InitContainers, p.Containers = slices.Clone(p.InitContainers), slices.Clone(p.Containers)
	p.EphemeralContainers = slices.Clone(p.EphemeralContainers)
}
