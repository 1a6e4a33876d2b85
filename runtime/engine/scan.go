package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/process"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/runc"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/shim"
)

const (
	// taskPlugin and sandboxController are the plug-ins in whose folders the bundles of containers and sandboxes lie.
	taskPlugin        = "io.containerd.runtime.v2.task"
	sandboxController = "shim"
	sandboxPlugin     = "io.containerd.sandbox.controller.v1." + sandboxController
)

// Exit is how a container ended.
type Exit struct {
	// Status is the exit status of the container's first process, or 128 and the number of the signal that ended it.
	Status uint32
	// At is when it exited. Where that is not known, it is when we noticed.
	At time.Time
	// OOMKilled says that the kernel has killed a process of it for want of memory.
	OOMKilled bool
	// MemoryPeak is the most memory that an OOM-killed container has used, in bytes; 0: not known.
	MemoryPeak int64
}

// OOMKilled reports whether the kernel has killed a process of a container that has ended, and whose task was not deleted yet,
// for want of memory.
func (e *Engine) OOMKilled(id string) (bool, error) {
	return shim.OOMKilled(filepath.Join(e.opt.State, taskPlugin, Namespace, id))
}

// MemoryPeak is the most memory that an OOM-killed container has used, in bytes, for as long as [Engine.OOMKilled] reports the kill;
// 0: not known.
func (e *Engine) MemoryPeak(id string) int64 {
	return shim.MemoryPeak(filepath.Join(e.opt.State, taskPlugin, Namespace, id))
}

// ExitedWhileAway tells the containers whose tasks this engine's predecessor had, and that exited before this engine
// was ready: by container ID. The task of such a container may still be there, and to be deleted, or be gone. Where
// only its end is certain, because the shim died too, its status is 137.
//
// A boot voids all: containers that ran before are neither here nor do they have a task.
func (e *Engine) ExitedWhileAway() map[string]Exit { return e.away }

// scanBundles reads the bundles of containers before containerd does, which deletes those that it finds no shim for:
// by container ID, nil for those that have not exited. It also makes sure that the program by which containerd cleans
// up after each shim still exists: containerd gives up a running shim, and kills nothing of it, if an upgrade has moved
// the program.
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
			if !entry.IsDir() || id[0] == '.' { // containerd is deleting it
				continue
			}
			bundle := filepath.Join(dir, id)
			if err := repairShimPath(bundle, shimPath); err != nil {
				return nil, err
			}
			if plugin != taskPlugin {
				continue
			}
			if x, err := runc.ReadExitStatus(bundle); err == nil {
				exits[id] = &Exit{Status: uint32(x.Status), At: x.Timestamp}
				exits[id].MemoryPeak = shim.MemoryPeak(bundle)
				if exits[id].OOMKilled, err = shim.OOMKilled(bundle); err != nil {
					return nil, fmt.Errorf("scan bundles: %w", err)
				}
			} else if _, err := os.Stat(filepath.Join(bundle, process.InitPidFile)); err == nil {
				exits[id] = nil
			}
		}
	}
	return exits, nil
}

// repairShimPath writes down which program cleans up after a shim, if that is not known or it is gone.
func repairShimPath(bundle, shimPath string) error {
	file := filepath.Join(bundle, "shim-binary-path")
	have, err := os.ReadFile(file)
	if err == nil {
		if _, err := os.Stat(string(have)); err == nil {
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read shim of %s: %w", bundle, err)
	}
	if err := os.WriteFile(file, []byte(shimPath), 0o600); err != nil {
		return fmt.Errorf("repair shim of %s: %w", bundle, err)
	}
	return nil
}

// exitedWhileAway completes what the bundles told with the containers whose bundles had no exit and are gone now.
func (e *Engine) exitedWhileAway(bundles map[string]*Exit, now time.Time) (map[string]Exit, error) {
	away := map[string]Exit{}
	for id, x := range bundles {
		if x != nil {
			away[id] = *x
			continue
		}
		_, err := os.Stat(filepath.Join(e.opt.State, taskPlugin, Namespace, id))
		if errors.Is(err, fs.ErrNotExist) {
			away[id] = Exit{Status: 128 + uint32(unix.SIGKILL), At: now}
		} else if err != nil {
			return nil, fmt.Errorf("look for container %s: %w", id, err)
		}
	}
	return away, nil
}
