// Package config loads the configuration: podstead.toml, environment variables and flags. Every key of the file has a variable and
// a flag. A flag takes precedence over the variable, the variable over the file, and the file over the default.
//
// The file is decoded as strictly as a pod file. Keys that are unknown or not supported yet are errors.
package config

import (
	"net/netip"
	"time"

	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// Config is the configuration. Settings that are not supported yet have their zero value.
type Config struct {
	Socket string `json:"socket"` // path of the API socket, by default in RunDir
	// ReadOnlySocket is the path of the API socket for reading, by default beside Socket; "none": there is none.
	ReadOnlySocket string `json:"readOnlySocket"`
	StateDir       string `json:"stateDir"`
	RunDir         string `json:"runDir"`
	LogDir         string `json:"logDir"`
	// ConfigDir contains the directories configmaps, secrets and, by default, podstead.toml and pods.d.
	ConfigDir string `json:"configDir"`

	Engine       Engine       `json:"engine"`
	Network      Network      `json:"network"`
	Images       Images       `json:"images"`
	ContainerLog ContainerLog `json:"containerLog"`
	Events       Events       `json:"events"`
	Pods         Pods         `json:"pods"`
	Policy       Policy       `json:"policy"`
	Reboot       Reboot       `json:"reboot"`
	Metrics      Metrics      `json:"metrics"`
	Notify       []Notifier   `json:"notify,omitempty"`

	file   string        // the path of the file that was loaded; empty: there was none
	verify *spec.Decoded // the file with images.verify; nil: there is none
	valid  validCopy

	rootless bool
	cgroup   Cgroup
	named    bool // the file sets the socket or the directory of its default
}

// Rootless reports whether the configuration is that of the daemon of an ordinary user.
func (c *Config) Rootless() bool { return c.rootless }

// Cgroup is the cgroup that is delegated to the daemon of an ordinary user. The zero value: none is.
type Cgroup struct {
	Path        string   // relative to the root of the hierarchy of cgroup v2
	Controllers []string // that can be enabled in it
	Missing     string   // why there is none; empty if there is one
}

// SetCgroup sets what [Config.Cgroup] returns. It is found when the daemon starts, and is not in the file.
func (c *Config) SetCgroup(g Cgroup) { c.cgroup = g }

// Cgroup returns the cgroup for pods of the daemon of an ordinary user.
func (c *Config) Cgroup() Cgroup { return c.cgroup }

// NamesDaemon reports whether the file sets the socket of the daemon, or the directory that contains it by default.
func (c *Config) NamesDaemon() bool { return c.named }

// Engine configures the container engine.
type Engine struct {
	Address      string   `json:"address"`     // empty: the embedded engine
	IdleTimeout  Duration `json:"idleTimeout"` // for a daemon that was started on demand
	Runtime      string   `json:"runtime"`     // RuntimeAuto, a name or an absolute path
	CgroupDriver string   `json:"cgroupDriver"`
	// MemoryLimit is that of the daemon, in bytes.
	MemoryLimit    spec.Quantity  `json:"memoryLimit"`
	RuntimeClasses []RuntimeClass `json:"runtimeClasses,omitempty"`
}

// RuntimeAuto lets the daemon select the OCI runtime when it starts.
const RuntimeAuto = ociruntime.Auto

// Network configures the pod network.
type Network struct {
	Mode    string `json:"mode"`    // "bridge" or "none"
	Subnets string `json:"subnets"` // "auto", or comma-separated prefixes
}

// Prefixes returns the subnets. It returns nil for "auto", and for a value that [Load] would reject.
func (n Network) Prefixes() []netip.Prefix {
	list, err := network.ParseSubnets(n.Subnets)
	if err != nil {
		return nil
	}
	return list
}

// Images configures image pulls and the removal of unused images.
type Images struct {
	MaxParallelPulls int64         `json:"maxParallelPulls"`
	MaxUnpackedSize  spec.Quantity `json:"maxUnpackedSize"` // of one image, in bytes; 0: half of the free disk space
	GCHighPercent    int64         `json:"gcHighPercent"`   // 100: never
	GCLowPercent     int64         `json:"gcLowPercent"`
	MaxAge           Duration      `json:"maxAge"` // of an unused image; 0: without limit
	MinAge           Duration      `json:"minAge"`
	CertsDir         string        `json:"certsDir"`
	// Verify are the rules for signatures, and VerifyDefault is the type for images without a rule.
	Verify        []VerifyRule  `json:"verify,omitempty"`
	VerifyDefault string        `json:"verifyDefault"`
	AuthFile      string        `json:"authFile"`     // by default in ConfigDir
	MaxBandwidth  spec.Quantity `json:"maxBandwidth"` // of all pulls, in bytes per second; 0: unlimited
	Dir           string        `json:"dir"`          // by default in StateDir
	SystemDir     string        `json:"systemDir"`    // that of packages
}

// Events configures what receives events.
type Events struct {
	Journald string `json:"journald"` // JournaldAuto, JournaldAlways or JournaldNever
}

// Values of [Events].
const (
	JournaldAuto   = "auto" // if journald receives the log of the daemon
	JournaldAlways = "always"
	JournaldNever  = "never"
)

// ContainerLog configures the logs of containers.
type ContainerLog struct {
	Driver       string        `json:"driver"`
	MaxSize      spec.Quantity `json:"maxSize"` // of one file, in bytes
	MaxFiles     int64         `json:"maxFiles"`
	TotalMaxSize spec.Quantity `json:"totalMaxSize"` // of all containers, in bytes; 0: a tenth of the file system, at most 4 GiB
	// MemoryMaxSize is that of the log of each container with driver memory or journald, in bytes.
	MemoryMaxSize spec.Quantity `json:"memoryMaxSize"`
	Compress      bool          `json:"compress"`
	RateLimit     string        `json:"rateLimit"` // see [spec.ParseLogRate]
}

// Rate returns the rate limit. It returns none for a value that [Load] would reject.
func (l ContainerLog) Rate() spec.LogRate {
	r, err := spec.ParseLogRate(l.RateLimit)
	if err != nil {
		return spec.LogRate{}
	}
	return r
}

// Pods configures limits of pods.
type Pods struct {
	Dir               string   `json:"dir"`               // by default in ConfigDir
	MaxParallelStarts int64    `json:"maxParallelStarts"` // 0: the number of CPUs
	PidsLimit         int64    `json:"pidsLimit"`         // 0: unlimited
	FinishedPodTTL    Duration `json:"finishedPodTTL"`
	MaxFinishedPods   int64    `json:"maxFinishedPods"`
	MaxReplicas       int64    `json:"maxReplicas"` // of a Deployment or another object of a manifest
	// ShutdownGracePeriod is the time in which all pods stop when the host shuts down; 0: they are not stopped in order.
	ShutdownGracePeriod Duration `json:"shutdownGracePeriod"`
}

// Policy configures the admission of pods.
type Policy struct {
	PodSecurity string `json:"podSecurity"` // an [admission.Level]
	// directories that hostPath volumes must be in; empty: hostPath is forbidden
	HostPaths []string `json:"hostPaths"`
	// paths that devices must be at or below, and kinds or names of CDI devices; empty: devices are forbidden
	Devices              []string `json:"devices"`
	CDISpecDirs          []string `json:"cdiSpecDirs"`          // the later ones take precedence
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls"` // names, or prefixes that end in "*"
	Requests             string   `json:"requests"`             // "enforce" or "ignore"
	SystemReserved       []string `json:"systemReserved"`       // such as memory=1Gi
}

// Admission returns the configuration of admission. HostPaths and Devices are never nil: nil would allow all paths.
func (p Policy) Admission() admission.Policy {
	return admission.Policy{
		PodSecurity: admission.Level(p.PodSecurity), HostPaths: append([]string{}, p.HostPaths...),
		Devices: append([]string{}, p.Devices...), UnsafeSysctls: p.AllowedUnsafeSysctls,
		IgnoreRequests: p.Requests == ignoreRequests, SystemReserved: reserved(p.SystemReserved),
	}
}

// Reboot configures reboots of the host for pods with onUnhealthy = "reboot".
type Reboot struct {
	MaxPerDay int64    `json:"maxPerDay"` // 0: never
	Command   []string `json:"command"`
}

// Metrics configures the metrics endpoint.
type Metrics struct {
	Address  string `json:"address"`  // host:port; empty: only the API socket
	CertFile string `json:"certFile"` // empty: without TLS
	KeyFile  string `json:"keyFile"`
}

// Duration is a duration in the syntax of [time.ParseDuration], such as "60s" or "1h30m".
type Duration string

// Duration returns the parsed duration, 0 for a value that [Load] would reject.
func (d Duration) Duration() time.Duration {
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return v
}
