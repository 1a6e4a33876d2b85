// Package config is podstead.toml: every setting of the daemon, which has a flag and an environment variable too. A flag
// goes before the environment, that before the file, and that before the default.
//
// The file is read by the code that reads pod files, and as strictly. What is not built yet is refused where it is set;
// nothing is read and ignored.
package config

import (
	"net/netip"
	"time"

	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// Config is every setting. Those that are not built yet have their defaults.
type Config struct {
	Socket   string `json:"socket"` // of the API; by default in RunDir
	StateDir string `json:"stateDir"`
	RunDir   string `json:"runDir"`
	LogDir   string `json:"logDir"`
	// ConfigDir holds the folders of config maps and secrets.
	ConfigDir string `json:"configDir"`

	Engine       Engine       `json:"engine"`
	Network      Network      `json:"network"`
	Images       Images       `json:"images"`
	ContainerLog ContainerLog `json:"containerLog"`
	Pods         Pods         `json:"pods"`
	Policy       Policy       `json:"policy"`
	Metrics      Metrics      `json:"metrics"`
}

// Engine is how containers are run.
type Engine struct {
	Address      string   `json:"address"`     // empty: the embedded engine
	IdleTimeout  Duration `json:"idleTimeout"` // of a daemon that was started on demand
	Runtime      string   `json:"runtime"`     // a name or an absolute path
	CgroupDriver string   `json:"cgroupDriver"`
}

// Network is how pods reach each other and the world.
type Network struct {
	Mode    string `json:"mode"`    // "bridge" or "none"
	Subnets string `json:"subnets"` // "auto", or prefixes with commas between
}

// Prefixes are the subnets; none for "auto", and of a value that [Load] has not checked.
func (n Network) Prefixes() []netip.Prefix {
	list, err := network.ParseSubnets(n.Subnets)
	if err != nil {
		return nil
	}
	return list
}

// Images is how images are fetched and kept.
type Images struct {
	MaxParallelPulls int64  `json:"maxParallelPulls"`
	GCHighPercent    int64  `json:"gcHighPercent"`
	GCLowPercent     int64  `json:"gcLowPercent"`
	CertsDir         string `json:"certsDir"`
}

// ContainerLog is how much of their output is kept of containers.
type ContainerLog struct {
	Driver       string        `json:"driver"`
	MaxSize      spec.Quantity `json:"maxSize"` // bytes, of each file
	MaxFiles     int64         `json:"maxFiles"`
	TotalMaxSize spec.Quantity `json:"totalMaxSize"`
}

// Pods is where pod files are and how their pods are treated.
type Pods struct {
	Dir               string   `json:"dir"`
	MaxParallelStarts int64    `json:"maxParallelStarts"` // 0: as many as there are cores
	PidsLimit         int64    `json:"pidsLimit"`         // 0: any number
	FinishedPodTTL    Duration `json:"finishedPodTTL"`
	MaxFinishedPods   int64    `json:"maxFinishedPods"`
}

// Policy is what pods may ask for.
type Policy struct {
	PodSecurity          string   `json:"podSecurity"`          // a [admission.Level]
	HostPaths            []string `json:"hostPaths"`            // below which hostPath volumes may lie; empty: none may be
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls"` // names, or their beginnings with "*"
}

// OfPods is the policy as the supervisor takes it. Its host paths are never nil, which would let them lie anywhere.
func (p Policy) OfPods() admission.Policy {
	return admission.Policy{
		PodSecurity: admission.Level(p.PodSecurity), HostPaths: append([]string{}, p.HostPaths...), UnsafeSysctls: p.AllowedUnsafeSysctls,
	}
}

// Metrics is where metrics are served.
type Metrics struct {
	Address string `json:"address"`
}

// Duration is a span of time as people write it, such as "60s" or "1h30m".
type Duration string

// Duration is the span; of a value that [Load] has checked there is one.
func (d Duration) Duration() time.Duration {
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return v
}
