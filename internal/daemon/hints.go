package daemon

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/shim"
)

// InUse reports whether an error is that of a process that does not start because another uses the engine.
func InUse(err error) bool {
	_, ok := errors.AsType[*engine.ErrInUse](err)
	return ok
}

// InstallHint returns what a person can do if one of the programs that podstead starts is missing.
func InstallHint(program string) string {
	return "install " + program + ", of the same version, in the directory of podstead or in " + libexec
}

const notAffected = "; containers that run are not affected"

// Hint returns what a person can do about an error of [Run]; empty: nothing is known.
func Hint(err error, c *config.Config) string {
	held, inUse := errors.AsType[*engine.ErrInUse](err)
	switch {
	case inUse:
		return fmt.Sprintf("the system and each user can have only one daemon: use it, or stop process %d with podstead daemon stop",
			held.Pid)
	case errors.Is(err, ErrMonitorMissing):
		return InstallHint(monitor.Name) + notAffected
	case errors.Is(err, shim.ErrMissing):
		return InstallHint(shim.Name) + notAffected
	case errors.Is(err, errNotRoot):
		return "run podstead as root, for example with sudo, or as this user (--user)"
	case errors.Is(err, ociruntime.ErrNotFound):
		return "install crun or runc (Debian: apt-get install crun runc), or set another OCI runtime with PODSTEAD_ENGINE_RUNTIME"
	case errors.Is(err, runtime.ErrOverlay):
		return "load the module with modprobe overlay, or move " + c.StateDir +
			" to a local file system with extended attributes, such as ext4, xfs or btrfs; or remove its directory engine, " +
			"after which images are pulled or imported again and containers start anew" + notAffected
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free disk space in " + c.StateDir + ", " + c.RunDir + " and " + c.LogDir + "; podstead doctor shows how much is free"
	case errors.Is(err, syscall.EROFS):
		return "mount " + c.StateDir + ", " + c.RunDir + " and " + c.LogDir + " read-write; podstead doctor shows which is read-only"
	case errors.Is(err, os.ErrPermission):
		return "run podstead doctor to see what this host does not permit"
	}
	return ""
}
