package runtime

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/container"
	"github.com/podstead/podstead/runtime/forwarder"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/sandbox"
	"github.com/podstead/podstead/spec"
)

// CgroupDriver is what creates the cgroups of containers.
type CgroupDriver = podcgroup.Driver

// The cgroup drivers.
const (
	CgroupAuto    = podcgroup.Auto
	CgroupFS      = podcgroup.Cgroupfs
	CgroupSystemd = podcgroup.Systemd
)

// NetworkMode is the network of pods without hostNetwork.
type NetworkMode = sandbox.NetworkMode

// The network modes.
const (
	NetworkBridge = sandbox.NetworkBridge
	NetworkNone   = sandbox.NetworkNone
)

// Options configure the runtime. MonitorPath is required. The zero value of any other field is its default.
type Options struct {
	StateDir string // directory for persistent state (default /var/lib/podstead)
	RunDir   string // directory for runtime state, cleared at boot (default /run/podstead)
	LogDir   string // directory for the logs of containers (default /var/log/podstead)

	// ShimPath is the absolute path of the program that cleans up after shims of earlier versions; empty: it is not installed.
	ShimPath string
	// MonitorPath is the absolute path of the monitor.
	MonitorPath string
	// RuntimeBinary is the name or the path of the OCI runtime of new containers (default [ociruntime.Auto]).
	RuntimeBinary string
	// RuntimeClasses are the OCI runtimes of pods with a runtime class, by the names of the classes (default none). See
	// [Runtime.SetRuntimeClasses].
	RuntimeClasses map[string]string
	// CgroupDriver is what creates cgroups (default CgroupAuto).
	CgroupDriver CgroupDriver
	// CgroupRoot is the parent of the cgroups of all pods, unless systemd creates them (default [DefaultCgroupRoot]).
	CgroupRoot string
	// Rootless is true for a daemon that is root in the user namespace of an ordinary user only. What its pods cannot have is rejected, see
	// [oci.Host.CheckRootless].
	Rootless bool
	// Delegated is the cgroup with those of the pods if Rootless is true.
	Delegated Delegated
	// PidsLimit is the maximum number of processes and threads of a pod (default 0, no limit).
	PidsLimit int64
	// CDIDirs are the directories with specifications of the Container Device Interface (default none).
	CDIDirs []string
	// Reserved are the resources of the host that pods cannot request (default none).
	Reserved spec.ResourceList
	// ConfigDir contains configmaps/, secrets/ and seccomp/ (default /etc/podstead).
	ConfigDir string
	// CredentialsDir is the directory of systemd credentials (default none).
	CredentialsDir string
	// HostPaths are the directories that hostPath volumes are restricted to, after symbolic links are resolved (default nil, no
	// restriction).
	HostPaths []string
	// Socket is the path of the API's socket (default none). Only privileged containers can mount what overlaps it or the three
	// directories.
	Socket string
	// NetworkMode is the network of pods (default NetworkBridge).
	NetworkMode NetworkMode
	// Bridge is the name of the bridge (default [BridgeOf] RunDir). For Subnets, see [network.Options].
	Bridge  string
	Subnets []netip.Prefix
	// RefreshInterval is how often volumes of config maps and secrets are compared with their sources. UsageInterval is how often
	// the disk usage of pods with a limit is measured. The default is 10 seconds, which is the kubelet's for the latter.
	RefreshInterval, UsageInterval time.Duration
	// Images are the options of the image store.
	Images image.Options
	// LogMaxSize in bytes (default 10 MiB) and LogMaxFiles (default 5) limit the log of each container.
	LogMaxSize  int64
	LogMaxFiles int
	// LogTotalMaxSize in bytes limits the logs of all containers, see [logBoundOptions].
	LogTotalMaxSize int64
	// LogDriver is where logs are written to (default [spec.LogFile]).
	LogDriver spec.LogDriver
	// LogMemoryMaxSize in bytes limits the log of each container whose driver is memory or journald (default 1 MiB).
	LogMemoryMaxSize int64
	// LogRate limits what each container can write to its log (default none).
	LogRate spec.LogRate
	// LogCompress compresses rotated logs, unless they are in memory.
	LogCompress bool
	// Logger receives warnings (default slog.Default()).
	Logger *slog.Logger
}

// Delegated is a cgroup that is delegated to an ordinary user. The zero value: there is none, and pods have no cgroups.
type Delegated struct {
	Path        string   // relative to the root of the hierarchy of cgroup v2
	Controllers []string // that can be enabled in it
	Missing     string   // why there is none
}

const defaultRunDir = "/run/podstead"

// DefaultCgroupRoot is the parent of the cgroups of pods, unless systemd creates them.
const DefaultCgroupRoot = "/podstead"

// BridgeOf returns the default name of the bridge and of the nftables table for a runtime directory. Runtimes with different directories do
// not share a bridge.
func BridgeOf(runDir string) string {
	if runDir == defaultRunDir {
		return network.DefaultBridge
	}
	return "podstead" + record.Hash(runDir)[:6]
}

func (o Options) withDefaults() Options {
	o.StateDir = cmp.Or(o.StateDir, "/var/lib/podstead")
	o.RunDir = cmp.Or(o.RunDir, defaultRunDir)
	o.LogDir = cmp.Or(o.LogDir, "/var/log/podstead")
	o.ConfigDir = cmp.Or(o.ConfigDir, "/etc/podstead")
	o.Bridge = cmp.Or(o.Bridge, BridgeOf(o.RunDir))
	o.NetworkMode = cmp.Or(o.NetworkMode, NetworkBridge)
	o.LogDriver = cmp.Or(o.LogDriver, spec.LogFile)
	o.LogMemoryMaxSize = cmp.Or(o.LogMemoryMaxSize, 1<<20)
	o.RefreshInterval = cmp.Or(o.RefreshInterval, 10*time.Second)
	o.UsageInterval = cmp.Or(o.UsageInterval, 10*time.Second)
	o.RuntimeBinary = cmp.Or(o.RuntimeBinary, ociruntime.Auto)
	o.CgroupDriver = cmp.Or(o.CgroupDriver, CgroupAuto)
	o.CgroupRoot = cmp.Or(o.CgroupRoot, DefaultCgroupRoot)
	o.Images.Disk = cmp.Or(o.Images.Disk, o.dirs().Engine())
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

func (o Options) dirs() record.Dirs {
	return record.Dirs{State: o.StateDir, Run: o.RunDir, Log: o.LogDir}
}

func (o Options) capacity(groups podcgroup.Groups) sandbox.Host {
	return sandbox.Host{StateDir: o.StateDir, Cgroup: groups.Parent(), Reserved: o.Reserved}
}

// protected returns the paths that only privileged containers can mount.
func (o Options) protected() []string {
	return slices.DeleteFunc([]string{o.StateDir, o.RunDir, o.LogDir, o.Socket}, func(path string) bool { return path == "" })
}

// memoryLogFiles is the number of files of a log in memory. Rotation removes the oldest one, so that at least 3/4 of the maximum size are
// used.
const memoryLogFiles = 4

func (o Options) logs() container.Logs {
	return container.Logs{
		Driver: o.LogDriver, Rate: o.LogRate,
		File:   crilog.Options{MaxBytes: o.LogMaxSize, Keep: o.LogMaxFiles, Compress: o.LogCompress},
		Memory: crilog.Options{MaxBytes: o.LogMemoryMaxSize / memoryLogFiles, Keep: memoryLogFiles},
	}
}

func (o Options) network(bootID string) sandbox.NetworkOptions {
	n := sandbox.NetworkOptions{
		Mode: o.NetworkMode, Bridge: o.Bridge, Subnets: o.Subnets, BootID: bootID, Dirs: o.dirs(), Log: o.Logger,
	}
	if o.Rootless {
		n.Forwarder, n.MonitorPath = forwarder.Socket(o.RunDir), o.MonitorPath
	}
	return n
}
