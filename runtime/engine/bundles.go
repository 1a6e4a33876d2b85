package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/shim"
)

const (
	// taskPlugin and sandboxController are the plug-ins whose directories contain the bundles of containers and sandboxes.
	taskPlugin        = "io.containerd.runtime.v2.task"
	sandboxController = "shim"
	sandboxPlugin     = "io.containerd.sandbox.controller.v1." + sandboxController

	// initPidFile is in the bundle of a container that the OCI runtime has created.
	initPidFile = "init.pid"
)

// bundleDirs are the directories that contain the bundles of containers and sandboxes.
func bundleDirs(state string) []string {
	return []string{
		filepath.Join(state, taskPlugin, Namespace), filepath.Join(state, sandboxPlugin, Namespace), filepath.Join(state, monitoredBundles),
	}
}

// Bundle returns the bundle of a container, by the engine's directory for runtime state: that of the monitor if there is one, otherwise
// that of a shim.
func Bundle(state, id string) string {
	if dir := filepath.Join(state, monitoredBundles, id); exists(dir) {
		return dir
	}
	return filepath.Join(state, taskPlugin, Namespace, id)
}

// Exit is the result of a container.
type Exit struct {
	// Status is the exit code of the container's first process, or 128 plus the number of the signal that terminated it.
	Status uint32
	// At is the time of the exit. If that is unknown, it is the time when the engine noticed.
	At time.Time
	// OOMKilled is true if the kernel OOM-killed a process of the container.
	OOMKilled bool
	// MemoryPeak is the peak memory usage of an OOM-killed container in bytes, 0 if unknown.
	MemoryPeak int64
	// Unknown is true if it is not known how the container exited. Status is 255 then.
	Unknown bool
}

// OOMKilled reports whether the kernel OOM-killed a process of a container that exited and whose task is not deleted.
func (e *Engine) OOMKilled(id string) (bool, error) {
	if c, ours := e.monitored(id); ours {
		return c.Exit != nil && c.Exit.OOMKilled, nil
	}
	return shim.OOMKilled(filepath.Join(e.opt.State, taskPlugin, Namespace, id))
}

// MemoryPeak returns the peak memory usage of an OOM-killed container in bytes, 0 if unknown, for as long as [Engine.OOMKilled]
// reports the kill.
func (e *Engine) MemoryPeak(id string) int64 {
	if c, ours := e.monitored(id); ours && c.Exit != nil {
		return c.Exit.MemoryPeak
	}
	return shim.MemoryPeak(filepath.Join(e.opt.State, taskPlugin, Namespace, id))
}

// MissedExits returns, by container ID, the containers that had a task in a previous engine and exited before this engine was
// ready. The task may still exist and need deletion, or it may already be deleted. If the shim died too, the exit code is unknown
// and reported as 137.
//
// The information does not survive a boot: containers that ran before have no task and are not included.
func (e *Engine) MissedExits() map[string]Exit { return e.missed }

// scanBundles reads the exits in the bundles of containers, by container ID, nil for containers that have not exited. It must run
// before containerd starts, because containerd deletes bundles without a shim. It also repairs the path of the binary that
// containerd calls to clean up after each shim: if an upgrade moved the binary, containerd drops a running shim without killing
// its containers.
func scanBundles(state, shimPath string) (map[string]*Exit, error) {
	exits := map[string]*Exit{}
	for _, plugin := range []string{taskPlugin, sandboxPlugin} {
		dir := filepath.Join(state, plugin, Namespace)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("scan bundles: %w", err)
		}
		for _, entry := range entries {
			id := entry.Name()
			if !entry.IsDir() || id[0] == '.' { // a dot marks a bundle that containerd was deleting
				continue
			}
			bundle := filepath.Join(dir, id)
			if err := repairShimPath(bundle, shimPath); err != nil {
				return nil, err
			}
			if plugin != taskPlugin {
				continue
			}
			if x, err := shim.ReadExit(bundle); err == nil {
				exits[id] = &Exit{Status: uint32(x.Status), At: x.Timestamp}
				exits[id].MemoryPeak = shim.MemoryPeak(bundle)
				if exits[id].OOMKilled, err = shim.OOMKilled(bundle); err != nil {
					return nil, fmt.Errorf("scan bundles: %w", err)
				}
			} else if _, err := os.Stat(filepath.Join(bundle, initPidFile)); err == nil {
				exits[id] = nil
			}
		}
	}
	return exits, nil
}

// repairShimPath records the program that cleans up after a shim, if the bundle has no record, the recorded program does not exist, or it
// has another name: in versions before 2026-11-30, podstead cleaned up if [shim.Name] was not installed.
func repairShimPath(bundle, shimPath string) error {
	file := filepath.Join(bundle, "shim-binary-path")
	have, err := os.ReadFile(file)
	if err == nil {
		if _, err := os.Stat(string(have)); err == nil && filepath.Base(string(have)) == shim.Name {
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read shim of %s: %w", bundle, err)
	}
	if shimPath == "" {
		return shim.ErrMissing
	}
	if err := os.WriteFile(file, []byte(shimPath), 0o600); err != nil {
		return fmt.Errorf("record shim of %s: %w", bundle, err)
	}
	return nil
}

// missedExits adds the containers whose bundle had no exit and no longer exists.
func (e *Engine) missedExits(bundles map[string]*Exit, now time.Time) (map[string]Exit, error) {
	missed := map[string]Exit{}
	for id, x := range bundles {
		if x != nil {
			missed[id] = *x
			continue
		}
		_, err := os.Stat(filepath.Join(e.opt.State, taskPlugin, Namespace, id))
		if errors.Is(err, fs.ErrNotExist) {
			missed[id] = Exit{Status: 128 + uint32(unix.SIGKILL), At: now}
		} else if err != nil {
			return nil, fmt.Errorf("check bundle of container %s: %w", id, err)
		}
	}
	for _, c := range e.link.all() {
		if c.Exit != nil {
			missed[c.ID] = Exit{
				Status: c.Exit.Code, At: c.Exit.Time, OOMKilled: c.Exit.OOMKilled, MemoryPeak: c.Exit.MemoryPeak, Unknown: c.Exit.Unknown,
			}
		}
	}
	return missed, nil
}
