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

// PIDAnnotation of a sandbox's specification is the path of the file to which the PID namespace of the sandbox's process is
// bind-mounted. Its directory must exist.
const PIDAnnotation = "podstead.io/pid-namespace"

// sandboxProcess is the process of a sandbox that has one. It is a container of the OCI runtime with the sandbox's bundle and ID,
// so that the cleanup after a dead shim finds it. Only this shim has a record of it, and its events are not published. The zero
// value is a sandbox without a process.
//
// When it exits, the sandbox ends, and the kernel kills every process of the PID namespace.
type sandboxProcess struct {
	id     string
	bundle string
	ending bool // its exit was requested
}

// startPause starts the process of a sandbox, if the specification in its bundle has one, and pins its PID namespace. On an error
// it removes what it created.
func (t *tasks) startPause(ctx context.Context, r *sandboxapi.CreateSandboxRequest) error {
	text, err := os.ReadFile(filepath.Join(r.BundlePath, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // containerd writes one only if the sandbox has a specification
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
	t.pause.id, t.pause.bundle = r.SandboxID, r.BundlePath
	t.mu.Unlock()
	created, err := t.create(ctx, &api.CreateTaskRequest{
		ID: r.SandboxID, Bundle: r.BundlePath, Options: r.Options, Rootfs: PauseRoot(&spec),
	})
	if err != nil {
		return fmt.Errorf("create process of sandbox: %w", err)
	}
	// The process cannot exit before it is started, so its PID is still its own.
	err = pinPID(created.Pid, spec.Annotations[PIDAnnotation])
	if err == nil {
		_, err = t.TTRPCTaskService.Start(ctx, &api.StartRequest{ID: r.SandboxID})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start process of sandbox: %w", err), t.stopPause(ctx))
	}
	return nil
}

// PauseRoot returns the root file system of a sandbox's process, which contains only mount points. It belongs to the root of the
// user namespace, since other users cannot create them.
func PauseRoot(spec *specs.Spec) []*types.Mount {
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

// pinPID keeps the PID namespace of a process by a bind mount. A path in /proc would refer to another process as soon as the PID
// is reused.
func pinPID(pid uint32, file string) error {
	if file == "" {
		return nil
	}
	// A shim that was killed before it reported the mount can leave one here.
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

// stopPause kills the process of the sandbox and removes its container. It succeeds if there is none.
func (t *tasks) stopPause(ctx context.Context) error {
	t.mu.Lock()
	id, bundle := t.pause.id, t.pause.bundle
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
		return fmt.Errorf("stop process of sandbox: %w", err)
	}
	warnAboutRoot(ctx, id, removeRoot(bundle))
	return nil
}

func notFoundIsDone(err error) error {
	if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// containerEvent is implemented by all events of containers.
type containerEvent interface{ GetContainerID() string }

// private reports whether an event belongs to the sandbox's process. If it is an exit that was not requested, it ends the
// sandbox: without the PID namespace the kernel kills the containers, and none can start.
func (t *tasks) private(event any) bool {
	e, ok := event.(containerEvent)
	t.mu.Lock()
	ours := ok && t.pause.id == e.GetContainerID()
	ending := t.pause.ending
	t.mu.Unlock()
	if _, exit := event.(*events.TaskExit); ours && exit && !ending {
		t.terminate()
	}
	return ours
}
