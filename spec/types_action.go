package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Probe checks a container periodically. Exactly one of the handlers is set.
type Probe struct {
	// Command that must exit with 0.
	Exec *ExecAction `json:"exec,omitempty"`
	// HTTP request that must be answered with a status from 200 to 399.
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty"`
	// TCP connection that must be accepted.
	TCPSocket *TCPSocketAction `json:"tcpSocket,omitempty"`
	// gRPC health check that must return SERVING.
	GRPC *GRPCAction `json:"grpc,omitempty"`

	// Delay after the start of the container. Default: 0.
	InitialDelaySeconds Seconds `json:"initialDelaySeconds,omitempty"`
	// Interval between two probes. Default: 10.
	PeriodSeconds Seconds `json:"periodSeconds,omitempty"`
	// Timeout of one probe. Default: 1.
	TimeoutSeconds Seconds `json:"timeoutSeconds,omitempty"`
	// Consecutive successes to succeed after a failure; must be 1 for liveness and startup probes. Default: 1.
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
	// Consecutive failures to fail. Default: 3.
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
	// Grace period after a failure of the probe, greater than 0; not for readiness probes. Default: that of the pod.
	TerminationGracePeriodSeconds *Seconds `json:"terminationGracePeriodSeconds,omitempty"`
}

// String describes the handler, for people.
func (p *Probe) String() string {
	switch {
	case p.Exec != nil:
		return "command " + CommandLine(p.Exec.Command)
	case p.HTTPGet != nil:
		return fmt.Sprintf("%s://%s:%s%s", strings.ToLower(p.HTTPGet.Scheme), p.HTTPGet.Host, p.HTTPGet.Port, p.HTTPGet.Path)
	case p.TCPSocket != nil:
		return fmt.Sprintf("TCP %s:%s", p.TCPSocket.Host, p.TCPSocket.Port)
	case p.GRPC != nil:
		text := fmt.Sprintf("gRPC port %d", p.GRPC.Port)
		if p.GRPC.Service != "" {
			text += ", service " + p.GRPC.Service
		}
		return text
	}
	return ""
}

// SameHandler reports whether two probes check the same. Their times and thresholds may differ.
func (p *Probe) SameHandler(q *Probe) bool { return reflect.DeepEqual(p.handler(), q.handler()) }

// handler returns the probe without its times and thresholds.
func (p *Probe) handler() Probe {
	h := *p
	h.InitialDelaySeconds, h.PeriodSeconds, h.TimeoutSeconds = 0, 0, 0
	h.SuccessThreshold, h.FailureThreshold, h.TerminationGracePeriodSeconds = 0, 0, nil
	return h
}

// NamesPort reports whether the handler refers to a port of the container by its name.
func (p *Probe) NamesPort() bool {
	return p.HTTPGet != nil && p.HTTPGet.Port.Name != "" || p.TCPSocket != nil && p.TCPSocket.Port.Name != ""
}

// Lifecycle has the hooks and the stop signal of a container.
type Lifecycle struct {
	// Runs after the container started. If it fails, the container is killed. Default: none.
	PostStart *LifecycleHandler `json:"postStart,omitempty"`
	// Runs before the stop signal, within the grace period. Default: none.
	PreStop *LifecycleHandler `json:"preStop,omitempty"`
	// Signal that stops the container, such as `SIGINT`. Default: that of the image, else `SIGTERM`.
	StopSignal string `json:"stopSignal,omitempty"`
}

// LifecycleHandler is the action of a hook. Exactly one field is set.
type LifecycleHandler struct {
	// Command to run in the container.
	Exec *ExecAction `json:"exec,omitempty"`
	// HTTP request to send.
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty"`
	// Time to wait.
	Sleep *SleepAction `json:"sleep,omitempty"`
}

// ExecAction runs a command in the container.
type ExecAction struct {
	// Command and arguments, not run in a shell. Required.
	Command []string `json:"command,omitempty"`
}

// HTTPGetAction sends an HTTP GET request.
type HTTPGetAction struct {
	// Path and query. Default: `/`.
	Path string `json:"path,omitempty"`
	// Number, or name of a port of the container. Required.
	Port Port `json:"port"`
	// Host to connect to. Default: the address of the pod.
	Host string `json:"host,omitempty"`
	// `HTTP` or `HTTPS`; certificates are not verified. Default: `HTTP`.
	Scheme string `json:"scheme,omitempty"`
	// Headers of the request.
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty"`
}

// HTTPHeader is a header of a request. A name can occur more than once.
type HTTPHeader struct {
	// Name of the header. Required.
	Name string `json:"name"`
	// Value of the header. Default: empty.
	Value string `json:"value"`
}

// TCPSocketAction opens a TCP connection.
type TCPSocketAction struct {
	// Number, or name of a port of the container. Required.
	Port Port `json:"port"`
	// Host to connect to. Default: the address of the pod.
	Host string `json:"host,omitempty"`
}

// GRPCAction calls the gRPC health service (grpc.health.v1.Health).
type GRPCAction struct {
	// Port number. Required.
	Port int32 `json:"port"`
	// Service in the request. Default: empty.
	Service string `json:"service,omitempty"`
}

// SleepAction waits.
type SleepAction struct {
	// Time to wait, at most the grace period of the pod. Default: 0.
	Seconds Seconds `json:"seconds"`
}

// PodSecurityContext has security settings of the pod. Containers can override those that SecurityContext has too.
type PodSecurityContext struct {
	// UID of the processes. Default: the user of the image.
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// Primary GID of the processes. Default: with `runAsUser`, its group in /etc/passwd of the image or 0; else the group of the image.
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// Reject containers that would run as root, or as a user with a name but no known UID. Default: false.
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty"`
	// Supplementary GIDs of the processes.
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`
	// `Merge` adds the groups of the user in /etc/group of the image, `Strict` does not (KEP-3619). Default: `Merge`.
	SupplementalGroupsPolicy string `json:"supplementalGroupsPolicy,omitempty"`
	// GID that owns the volumes of the pod, and supplementary GID of the processes. Default: none.
	FSGroup *int64 `json:"fsGroup,omitempty"`
	// `Always` changes the ownership of volumes at every start, `OnRootMismatch` if their root differs. Default: `Always`.
	FSGroupChangePolicy string `json:"fsGroupChangePolicy,omitempty"`
	// Namespaced kernel parameters. Unsafe ones must be allowed in the configuration (`policy.allowedUnsafeSysctls`).
	Sysctls []Sysctl `json:"sysctls,omitempty"`
	// Seccomp profile. Files of `Localhost` profiles are in `seccomp/` of the configuration directory. Default: `RuntimeDefault`.
	SeccompProfile *SecurityProfile `json:"seccompProfile,omitempty"`
	// AppArmor profile. `Localhost` profiles must be loaded. Default: `RuntimeDefault`, if the host has AppArmor.
	AppArmorProfile *SecurityProfile `json:"appArmorProfile,omitempty"`
}

// SecurityContext has security settings of a container. Fields that the pod has too default to those of the pod.
type SecurityContext struct {
	// All capabilities and devices, no masked paths and no default profiles. Default: false.
	Privileged *bool `json:"privileged,omitempty"`
	// False sets no_new_privs, which disables setuid programs and file capabilities. Default: true.
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty"`
	// Capabilities to add and to drop.
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	// UID of the processes. Default: that of the pod.
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// Primary GID of the processes. Default: that of the pod.
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// Reject the container if it would run as root. Default: that of the pod.
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty"`
	// Mount the root filesystem, /etc/hostname and /etc/resolv.conf read-only; volumes and /etc/hosts are not affected. Default: false.
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty"`
	// `Default`, or `Unmasked` for /proc and /sys without masked and read-only paths; requires `hostUsers = false`. Default: `Default`.
	ProcMount string `json:"procMount,omitempty"`
	// Seccomp profile. Default: that of the pod.
	SeccompProfile *SecurityProfile `json:"seccompProfile,omitempty"`
	// AppArmor profile. Default: that of the pod.
	AppArmorProfile *SecurityProfile `json:"appArmorProfile,omitempty"`
}

// Capabilities are Linux capabilities without the prefix CAP_. `ALL` means all capabilities of the daemon; it is applied before
// the others.
type Capabilities struct {
	// Capabilities to add to the default set, such as `NET_ADMIN`; lower case is accepted.
	Add []string `json:"add,omitempty"`
	// Capabilities to drop, such as `ALL`.
	Drop []string `json:"drop,omitempty"`
}

// SecurityProfile selects a seccomp or an AppArmor profile.
type SecurityProfile struct {
	// `RuntimeDefault`, `Unconfined` or `Localhost`. Required.
	Type string `json:"type"`
	// Seccomp: path of the profile file. AppArmor: name of the loaded profile. Required for `Localhost`, not allowed otherwise.
	LocalhostProfile *string `json:"localhostProfile,omitempty"`
}

// Sysctl is a kernel parameter in the namespaces of the pod.
type Sysctl struct {
	// Name with dots or slashes, such as `net.core.somaxconn`. Required.
	Name string `json:"name"`
	// Value. Required.
	Value string `json:"value"`
}

// CommandLine returns arguments as a shell would read them.
func CommandLine(args []string) string {
	list := slices.Clone(args)
	for i, arg := range list {
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'\\$&;|<>()*?[]#~`{}!") {
			list[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(list, " ")
}
