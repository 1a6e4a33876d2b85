package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/shim"
)

// Errors of a machine that lacks what the engine needs.
var (
	ErrNotRoot   = errors.New("containers need root")
	ErrNoRuntime = errors.New("the OCI runtime was not found")
)

// Containerd starts the embedded containerd.
func Containerd(ctx context.Context, c *config.Config, log *slog.Logger) (Runtime, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("start engine: %w", ErrNotRoot)
	}
	if _, err := exec.LookPath(c.Engine.Runtime); err != nil {
		return nil, fmt.Errorf("start engine: %w: %w", ErrNoRuntime, err)
	}
	program, err := ShimPath()
	if err != nil {
		return nil, fmt.Errorf("start engine: find shim: %w", err)
	}
	rt, err := runtime.Start(ctx, runtime.Options{
		StateDir: c.StateDir, RunDir: c.RunDir, LogDir: c.LogDir,
		ShimPath: program, RuntimeBinary: c.Engine.Runtime, CgroupDriver: runtime.CgroupDriver(c.Engine.CgroupDriver),
		PidsLimit: c.Pods.PidsLimit,
		ConfigDir: c.ConfigDir, CredentialsDir: os.Getenv("CREDENTIALS_DIRECTORY"),
		NetworkMode: runtime.NetworkMode(c.Network.Mode), Subnets: c.Network.Prefixes(),
		HostPaths:  c.Policy.OfPods().HostPaths,
		Images:     image.Options{MaxParallelPulls: int(c.Images.MaxParallelPulls), CertsDir: c.Images.CertsDir},
		LogMaxSize: c.ContainerLog.MaxSize.Value(), LogMaxFiles: int(c.ContainerLog.MaxFiles),
		Logger: log,
	})
	if err != nil {
		return nil, err
	}
	return rt, nil
}

// libexec is where packages put the small shim.
const libexec = "/usr/libexec/podstead"

// ShimPath finds the program that containers run under: the small one beside this program or where packages put it, else this
// program itself, which is a shim too.
func ShimPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	for _, dir := range []string{filepath.Dir(self), libexec} {
		path := filepath.Join(dir, shim.Name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&fs.ModePerm&0o111 != 0 {
			return path, nil
		}
	}
	return self, nil
}
