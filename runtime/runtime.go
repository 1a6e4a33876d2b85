// Package runtime makes pods real: it is the supervisor's Runtime on an embedded containerd.
//
// It owns everything that a pod is on this machine (sandboxes, containers, their files, logs and cgroups) and the
// engine below. It decides nothing: it does what it is asked for, finds what it did before it was killed, and says what
// went wrong in the supervisor's words ([lifecycle.Failure]). Everything that it needs to find a pod again stands in
// the engine's labels; it keeps no state of its own.
//
// What lies where:
//
//	<StateDir>/engine               images, snapshots, metadata
//	<StateDir>/pods/<uid>/volumes   the pod's own volumes
//	<StateDir>/pods/<uid>/etc       the files of /etc that the containers of each sandbox are given
//	<RunDir>/engine                 bundles and sockets
//	<StateDir>/pods/<uid>/messages  the containers' termination messages
//	<StateDir>/volumes              persistent volumes
//	<StateDir>/network.json         the network's subnets, and the pods' last addresses
//	<StateDir>/users.json           the ids of the users of pods that have some of their own
//	<RunDir>/process/<uid>          arguments and variables with secrets, until the shim has them
//	<RunDir>/exec                   the output of commands
//	<RunDir>/ns/<uid>/<sandbox>     pinned namespaces and /dev/shm
//	<RunDir>/volumes/<uid>          volumes in memory; see package volume
//	<RunDir>/images/<uid>/<volume>  the images of image volumes
//	<RunDir>/network.json           the pods' addresses and host ports
//	<LogDir>/<pod>_<uid>/<container>/<restarts>.log
//	/podstead/<uid>/<container ID>  in every cgroup hierarchy; the pod's shim is in /podstead/<uid>-shim
//
// The folders of a pod are named by its UID, which never comes back.
package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/keyedmutex"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/exec"
	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/podindex"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The cgroup drivers.
const (
	CgroupAuto    = podcgroup.Auto
	CgroupFS      = podcgroup.Cgroupfs
	CgroupSystemd = podcgroup.Systemd
)

// CgroupDriver is what creates the cgroups of containers.
type CgroupDriver = podcgroup.Driver

// Options say where the runtime lives and how it works. ShimPath is required; the zero value of anything else is its
// default.
type Options struct {
	StateDir string // what lasts; /var/lib/podstead
	RunDir   string // what is void after a boot; /run/podstead
	LogDir   string // the containers' logs; /var/log/podstead

	// ShimPath is the absolute path of the shim's program.
	ShimPath string
	// RuntimeBinary is the OCI runtime, a name or a path; runc.
	RuntimeBinary string
	// CgroupDriver says who makes cgroups; podcgroup.Auto.
	CgroupDriver podcgroup.Driver
	// CgroupRoot is the parent of all pods' cgroups where no systemd makes them; /podstead.
	CgroupRoot string
	// PidsLimit is how many processes and threads a pod may have; 0: any.
	PidsLimit int64
	// ConfigDir holds folders of config maps and secrets; /etc/podstead.
	ConfigDir string
	// CredentialsDir is the folder of systemd's credentials; empty: there is none.
	CredentialsDir string
	// HostPaths are folders below which hostPath volumes may lie, wherever links lead; nil: anywhere.
	HostPaths []string
	// NetworkMode is what pods have; NetworkBridge.
	NetworkMode NetworkMode
	// Bridge and Subnets are the network's; see [network.Options]. The bridge is by default one of this RunDir's own.
	Bridge  string
	Subnets []netip.Prefix
	// RefreshInterval is how often volumes of config maps and secrets are compared with their sources, and UsageInterval how
	// often emptyDirs with a size limit are measured; 10 seconds, the kubelet's for the latter.
	RefreshInterval, UsageInterval time.Duration
	// Images are the options of the image store.
	Images image.Options
	// LogMaxSize in bytes and LogMaxFiles bound the log of each container; 10 MiB and 5.
	LogMaxSize  int64
	LogMaxFiles int
	// Logger takes warnings; slog.Default().
	Logger *slog.Logger
}

const defaultRunDir = "/run/podstead"

// BridgeOf is the name of the bridge, and of the rules, of a runtime that was told no other. Two with folders of their own do
// not share one.
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
	o.RefreshInterval = cmp.Or(o.RefreshInterval, 10*time.Second)
	o.UsageInterval = cmp.Or(o.UsageInterval, 10*time.Second)
	o.RuntimeBinary = cmp.Or(o.RuntimeBinary, "runc")
	o.CgroupDriver = cmp.Or(o.CgroupDriver, podcgroup.Auto)
	o.CgroupRoot = cmp.Or(o.CgroupRoot, "/podstead")
	o.Images.Snapshotter = cmp.Or(o.Images.Snapshotter, "overlayfs")
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Runtime is the supervisor's Runtime. It is safe for concurrent use.
type Runtime struct {
	opts    Options
	dirs    layout.Dirs
	log     *slog.Logger
	engine  *engine.Engine
	client  *client.Client
	images  *image.Store
	machine oci.Host
	// appArmor is where the kernel's profiles are.
	appArmor appArmor
	cgroups  podcgroup.Groups
	boot     string // the kernel's ID of this boot
	config   configsource.Source
	volumes  *volume.Set
	network  *network.Network
	ids      *idmap.Ranges
	remaps   bool // the snapshotter can id-map
	index    *podindex.Index
	gone     collector
	locks    keyedmutex.Mutex
	hosts    sync.Mutex // held while an /etc/hosts is written
	// workers keep volumes and names up to date until stop is called.
	workers sync.WaitGroup
	stop    context.CancelFunc
	execs   *exec.Runner
}

// Start starts the engine, takes up the containers that run already, and returns when everything works. Values of ctx
// reach the engine, its end does not: see [Runtime.Close].
func Start(ctx context.Context, o Options) (*Runtime, error) {
	o = o.withDefaults()
	if _, err := osexec.LookPath(o.RuntimeBinary); err != nil {
		return nil, fmt.Errorf("find OCI runtime: %w", err)
	}
	machine, err := oci.DetectHost()
	if err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	dirs := layout.Dirs{State: o.StateDir, Run: o.RunDir, Log: o.LogDir}
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	groups, err := podcgroup.New(o.CgroupDriver, o.CgroupRoot, machine.UnifiedCgroups)
	if err != nil {
		return nil, fmt.Errorf("start runtime: %w", err)
	}
	e, err := engine.Start(ctx, engine.Options{
		Root:          filepath.Join(o.StateDir, "engine"),
		State:         filepath.Join(o.RunDir, "engine"),
		ShimPath:      o.ShimPath,
		Runtime:       o.RuntimeBinary,
		SystemdCgroup: groups.Systemd(),
		Log:           o.Logger,
	})
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		ids:   idmap.New(filepath.Join(o.StateDir, "users.json"), "/etc/subuid", "/etc/subgid"),
		index: podindex.New(), gone: newCollector(), config: configsource.Source{Dir: o.ConfigDir, Credentials: o.CredentialsDir},
		opts: o, dirs: dirs, log: o.Logger, machine: machine, appArmor: kernelAppArmor, cgroups: groups, boot: boot,
		engine: e, client: e.Client(), images: image.New(e.Client(), o.Images),
	}
	r.execs = exec.New(exec.Config{
		Client: r.client, Cgroups: groups, Dir: r.dirs.Exec(), Environment: r.environmentOf, Exited: r.isOver, Log: r.log,
	})
	r.warnOfLimits()
	r.remaps = r.canRemap(enginecall.Context(ctx))
	if err := r.dropLeases(enginecall.Context(ctx)); err != nil {
		r.log.WarnContext(ctx, "leases of a former daemon are left", slog.Any("error", err)) // until they expire
	}
	err = r.takeUpExits(enginecall.Context(ctx))
	if err == nil {
		err = r.startNetwork(enginecall.Context(ctx))
	}
	if err == nil {
		r.volumes, err = volume.New(r.config, volume.Options{
			DataDir: filepath.Join(o.StateDir, "pods"), RunDir: filepath.Join(o.RunDir, "volumes"),
			ClaimsDir: filepath.Join(o.StateDir, "volumes"), RecursiveReadOnly: recursiveReadOnly(ctx, o.RuntimeBinary),
			HostPaths: o.HostPaths,
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start runtime: %w", err), r.Close())
	}
	var working context.Context
	working, r.stop = context.WithCancel(context.WithoutCancel(enginecall.Context(ctx)))
	r.workers.Go(func() { r.neighbours(working) })
	r.workers.Go(func() { r.refresh(working) })
	r.workers.Go(func() { r.collect(working) })
	if err := r.execs.KillLeft(enginecall.Context(ctx)); err != nil {
		r.log.WarnContext(ctx, "cannot kill the commands of an earlier daemon", slog.Any("error", err))
	}
	return r, nil
}

// bootID is the kernel's ID of this boot.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// warnOfLimits says once what containers do not get on this machine.
func (r *Runtime) warnOfLimits() {
	if !r.machine.Seccomp {
		r.log.Warn("the kernel has no seccomp: containers run without a filter of system calls")
	}
	if r.opts.PidsLimit > 0 && !r.machine.Controllers.Has(cgroup.Pids) {
		r.log.Warn("the kernel has no cgroup controller pids: pods may have any number of processes")
	}
	if !r.machine.Resource {
		r.log.Warn("the process has no CAP_SYS_RESOURCE: limits of containers cannot be raised over its own",
			slog.Uint64("open_files", r.machine.OpenFiles))
	}
}

// Close cancels pulls, ends commands, and stops the engine. Containers and their logs go on; the next Start takes them up,
// as soon as the engine has ended.
func (r *Runtime) Close() error {
	if r.stop != nil {
		r.stop()
		r.workers.Wait()
	}
	r.execs.Close()
	r.images.Close()
	err := r.cgroups.Close()
	if r.network != nil {
		err = errors.Join(err, r.network.Close())
	}
	return errors.Join(err, r.engine.Close())
}

func (r *Runtime) podDir(uid string) string { return r.dirs.Pod(uid) }

func (r *Runtime) logOptions() crilog.Options {
	return crilog.Options{MaxBytes: r.opts.LogMaxSize, Keep: r.opts.LogMaxFiles}
}

// Exec runs a command in a container; see [exec.Runner.Exec].
func (r *Runtime) Exec(
	ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int,
) (code int, output []byte, err error) {
	return r.execs.Exec(ctx, uid, ref, command, timeout, max)
}
