package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/spec"
)

// errNotRoot is returned by [Containerd] to a user other than root.
var errNotRoot = errors.New("root privileges are required")

// errDriver is returned by [Containerd] if a daemon without root is to use a cgroup driver.
var errDriver = errors.New("without root, the systemd of the user delegates a cgroup: must be auto")

// Containerd starts the embedded containerd. It returns when containerd is ready.
func Containerd(ctx context.Context, c *config.Config, log *slog.Logger) (Runtime, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("start engine: %w", errNotRoot)
	}
	if driver := c.Engine.CgroupDriver; c.Rootless() && driver != string(runtime.CgroupAuto) {
		return nil, fmt.Errorf("start engine: engine.cgroupDriver = %q: %w", driver, errDriver)
	}
	if c.Rootless() {
		net.DefaultResolver = forwardingResolver() // of all of the daemon, such as for registries
	}
	if err := ociruntime.Check(c.Engine.Runtime); err != nil { // before anything else is started
		return nil, fmt.Errorf("start engine: %w", err)
	}
	monitorProgram, err := MonitorPath()
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	verification, err := c.Verification()
	if err != nil {
		return nil, err
	}
	rt, err := runtime.Start(ctx, runtime.Options{
		StateDir: c.StateDir, RunDir: c.RunDir, LogDir: c.LogDir,
		ShimPath: ShimPath(), MonitorPath: monitorProgram,
		RuntimeBinary: c.Engine.Runtime, RuntimeClasses: c.Engine.Classes(), CgroupDriver: runtime.CgroupDriver(c.Engine.CgroupDriver),
		Rootless: c.Rootless(), Delegated: runtime.Delegated(c.Cgroup()),
		PidsLimit: c.Pods.PidsLimit, CDIDirs: c.Policy.CDISpecDirs, Reserved: c.Policy.Admission().SystemReserved,
		ConfigDir: c.ConfigDir, CredentialsDir: os.Getenv("CREDENTIALS_DIRECTORY"),
		NetworkMode: runtime.NetworkMode(c.Network.Mode), Subnets: c.Network.Prefixes(),
		Socket: c.Socket, HostPaths: c.Policy.Admission().HostPaths,
		Images: image.Options{
			MaxParallelPulls: int(c.Images.MaxParallelPulls), MaxUnpackedSize: c.Images.MaxUnpackedSize.Value(),
			CertsDir:     c.Images.CertsDir,
			Verification: verification,
			Credentials:  &credentials.File{Path: c.Images.AuthFile}, Bandwidth: c.Images.MaxBandwidth.Value(),
		},
		LogMaxSize: c.ContainerLog.MaxSize.Value(), LogMaxFiles: int(c.ContainerLog.MaxFiles),
		LogTotalMaxSize: c.ContainerLog.TotalMaxSize.Value(), LogDriver: spec.LogDriver(c.ContainerLog.Driver),
		LogMemoryMaxSize: c.ContainerLog.MemoryMaxSize.Value(), LogRate: c.ContainerLog.Rate(), LogCompress: c.ContainerLog.Compress,
		Logger: log,
	})
	if err != nil {
		return nil, err
	}
	return rt, nil
}

// libexec is the directory in which packages install the programs that podstead starts.
const libexec = "/usr/libexec/podstead"

// ShimPath returns the path of the program that cleans up after shims of earlier versions, in the directory of this program or in
// /usr/libexec/podstead; empty: it is not installed.
func ShimPath() string { return Installed(shim.Name) }

// MonitorPath returns the path of the monitor in the directory of this program or in /usr/libexec/podstead. If it is not installed, the
// error is [ErrMonitorMissing].
func MonitorPath() (string, error) {
	if path := Installed(monitor.Name); path != "" {
		return path, nil
	}
	return "", ErrMonitorMissing
}

// ErrMonitorMissing is the error of [MonitorPath]. The daemon does not start without the monitor, which runs all containers.
var ErrMonitorMissing = errors.New("the program podstead-monitor is not installed")

// Installed returns the path of a program in the directory of this one or in /usr/libexec/podstead, empty if there is none.
func Installed(name string) string {
	dirs := []string{libexec}
	if self, err := os.Executable(); err == nil {
		dirs = []string{filepath.Dir(self), libexec}
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&fs.ModePerm&0o111 != 0 {
			return path
		}
	}
	return ""
}
