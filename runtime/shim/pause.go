package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/api/events"
	sandboxapi "github.com/containerd/containerd/api/runtime/sandbox/v1"
	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// PIDAnnotation of a sandbox's specification names the file on which the PID namespace of the sandbox's process is pinned
// by a bind mount. Its folder must be there.
const PIDAnnotation = "podstead.io/pid-namespace"

// sandboxProcess is the process of a sandbox, where it has one: a container of the OCI runtime that lies in the sandbox's bundle and
// has the sandbox's ID, so that whoever cleans up after a dead shim finds it. It is known to this shim alone: none of its
// events goes out. The zero value is a sandbox without.
//
// Its end is that of the sandbox, and it takes every process of the PID namespace along.
type sandboxProcess struct {
	id     string
	ending bool // its end is wanted
}

// startPause starts the process of a sandbox, if the specification in its bundle has one, and pins its PID namespace. What it
// could not finish it takes away.
func (t *tasks) startPause(ctx context.Context, r *sandboxapi.CreateSandboxRequest) error {
	text, err := os.ReadFile(filepath.Join(r.BundlePath, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // containerd writes one only where there is something to say
	}
	if err != nil {
		return fmt.Errorf("read specification of sandbox: %w", err)
	}
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("read specification of sandbox: %w", err)
	}
	if spec.Process == nil {
		return nil
	}
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	t.mu.Lock()
	t.pause.id = r.SandboxID
	t.mu.Unlock()
	created, err := t.TTRPCTaskService.Create(ctx, &api.CreateTaskRequest{
		ID: r.SandboxID, Bundle: r.BundlePath, Options: r.Options, Rootfs: rootOf(&spec),
	})
	if err != nil {
		return fmt.Errorf("create process of sandbox: %w", err)
	}
	// Until it is started nothing can end the process, so its number is its own.
	err = pinPID(created.Pid, spec.Annotations[PIDAnnotation])
	if err == nil {
		_, err = t.TTRPCTaskService.Start(ctx, &api.StartRequest{ID: r.SandboxID})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start process of sandbox: %w", err), t.endPause(ctx))
	}
	return nil
}

// rootOf is the root of a sandbox's process, which holds nothing but the places of its mounts. It belongs to the root of the
// user namespace: nobody else could make those.
func rootOf(spec *specs.Spec) []*types.Mount {
	options := []string{"nosuid", "nodev", "size=64k", "mode=0755"}
	if spec.Linux != nil {
		for _, m := range spec.Linux.UIDMappings {
			if m.ContainerID == 0 {
				options = append(options, fmt.Sprintf("uid=%d", m.HostID))
			}
		}
		for _, m := range spec.Linux.GIDMappings {
			if m.ContainerID == 0 {
				options = append(options, fmt.Sprintf("gid=%d", m.HostID))
			}
		}
	}
	return []*types.Mount{{Type: "tmpfs", Source: "pause", Options: options}}
}

// pinPID keeps the PID namespace of a process by a bind mount: a path below /proc would mean another process's as soon as this
// one has ended.
func pinPID(pid uint32, file string) error {
	if file == "" {
		return nil
	}
	// A shim that was killed, or given up, before it could say so has left its own.
	err := unix.Unmount(file, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pin PID namespace: unmount %s: %w", file, err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return fmt.Errorf("pin PID namespace: %w", err)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/%d/ns/pid", pid), file, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("pin PID namespace: mount %s: %w", file, err)
	}
	return nil
}

// endPause kills the process of the sandbox and takes away what is left of it. It is no error if there is none.
func (t *tasks) endPause(ctx context.Context) error {
	t.mu.Lock()
	id := t.pause.id
	t.pause.ending = true
	t.mu.Unlock()
	if id == "" {
		return nil
	}
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	_, err := t.Kill(ctx, &api.KillRequest{ID: id, Signal: uint32(unix.SIGKILL)})
	if err = notFoundIsDone(err); err == nil {
		_, err = t.Wait(ctx, &api.WaitRequest{ID: id})
	}
	if err = notFoundIsDone(err); err == nil {
		_, err = t.TTRPCTaskService.Delete(ctx, &api.DeleteRequest{ID: id})
	}
	if err = notFoundIsDone(err); err != nil {
		return fmt.Errorf("end process of sandbox: %w", err)
	}
	return nil
}

func notFoundIsDone(err error) error {
	if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// ofContainer is what events of containers have in common.
type ofContainer interface{ GetContainerID() string }

// private reports whether an event is one of the sandbox's process, and ends the sandbox if it is the end of a process that
// was not to end: with the PID namespace gone, the containers are being killed by the kernel, and none can start.
func (t *tasks) private(event any) bool {
	e, ok := event.(ofContainer)
	t.mu.Lock()
	ours := ok && t.pause.id == e.GetContainerID()
	ending := t.pause.ending
	t.mu.Unlock()
	if _, exit := event.(*events.TaskExit); ours && exit && !ending {
		t.terminate()
	}
	return ours
}
