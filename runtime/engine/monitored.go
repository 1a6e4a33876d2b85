package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	api "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/protobuf"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/podstead/podstead/runtime/monitor"
)

// monitorRuntime is the name of the runtime in the records of containers that the monitor runs.
const monitorRuntime = "podstead.io/monitor"

// monitoredBundles is the directory in State that contains the bundles of containers that the monitor runs. containerd does not look there.
const monitoredBundles = "bundles"

// monitoredTasks are the tasks of containerd's client: those of containers that the monitor runs, and those of shims, which containerd
// knows. Errors are those of gRPC, as of the interface.
type monitoredTasks struct {
	api.TasksClient
	containers containers.Store
	link       *link
	state      string // the engine's directory for runtime state
	roots      string // see [Options.Roots]
	commands   *commands
}

// ours returns the state of a container that the monitor runs, and whether it does. Errors are not those of gRPC.
func (t *monitoredTasks) ours(ctx context.Context, id string) (monitor.Container, bool, error) {
	return t.link.find(ctx, t.state, id)
}

// find returns the state of a container that the monitor runs, and whether it does. State is the engine's directory for runtime state.
//
// A monitor that was started again does not list a container that was being created or started before it has finished, or undone, that.
// Such a container has a record, so the monitor is asked, which answers afterwards. A nil link has no containers.
func (l *link) find(ctx context.Context, state, id string) (monitor.Container, bool, error) {
	if c, known := l.get(id); known || l == nil {
		return c, known, nil
	}
	if !exists(filepath.Join(monitor.ContainersDir(MonitorDir(state)), id)) {
		return monitor.Container{}, false, nil
	}
	var c monitor.Container
	for range 2 { // a container that was deleted before it was stored is forgotten by the second answer, later ones by their deletion
		err := l.ask(ctx, true, func(m *monitor.Client) (err error) {
			c, err = m.State(ctx, id)
			return err
		})
		if errdefs.IsNotFound(err) {
			l.change(func() { l.forget(id, "") })
			return monitor.Container{}, false, nil
		}
		if err != nil {
			return monitor.Container{}, false, fmt.Errorf("find container %s: %w", id, err)
		}
		l.put(c)
	}
	return c, true, nil
}

// Create creates a container. That of another runtime is containerd's.
func (t *monitoredTasks) Create(ctx context.Context, r *api.CreateTaskRequest, o ...grpc.CallOption) (*api.CreateTaskResponse, error) {
	record, err := t.containers.Get(ctx, r.ContainerID)
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	if record.Runtime.Name != monitorRuntime {
		return t.TasksClient.Create(ctx, r, o...)
	}
	if t.link == nil {
		return nil, errgrpc.ToGRPC(fmt.Errorf("task %s: the monitor is not available: %w", record.ID, errdefs.ErrUnavailable))
	}
	c, err := t.create(ctx, record, r)
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	return &api.CreateTaskResponse{ContainerID: c.ID, Pid: uint32(c.PID)}, nil
}

func (t *monitoredTasks) create(ctx context.Context, record containers.Container, r *api.CreateTaskRequest) (monitor.Container, error) {
	if _, exists, err := t.ours(ctx, record.ID); err != nil {
		return monitor.Container{}, err
	} else if exists {
		return monitor.Container{}, fmt.Errorf("task %s: %w", record.ID, errdefs.ErrAlreadyExists)
	}
	request := monitor.Create{ID: record.ID, Sandbox: record.SandboxID, Terminal: r.Terminal, Output: r.Stdout}
	var err error
	if request.Runtime, err = runtimeOf(record.Runtime.Options); err != nil {
		return monitor.Container{}, err
	}
	if r.Options != nil {
		var o runcoptions.Options
		if err := typeurl.UnmarshalTo(r.Options, &o); err != nil {
			return monitor.Container{}, fmt.Errorf("read options of task: %w", err)
		}
		request.UID, request.GID = int(o.IoUid), int(o.IoGid)
	}
	request.Rootfs = mountsOf(r.Rootfs)
	if request.Bundle, err = makeBundle(t.state, record.ID, record.Spec.GetValue()); err != nil {
		return monitor.Container{}, err
	}
	c, err := t.link.creating(ctx, record.ID, func(m *monitor.Client) (monitor.Container, error) { return m.Create(ctx, request) })
	// After a loss the next monitor removes what was created. One that was not deleted needs its bundle.
	if _, left := t.link.get(record.ID); err != nil && !left && !errors.Is(err, monitor.ErrClosed) {
		err = errors.Join(err, removeBundle(request.Bundle))
	}
	return c, err
}

func mountsOf(list []*types.Mount) (mounts []monitor.Mount) {
	for _, m := range list {
		mounts = append(mounts, monitor.Mount{Type: m.Type, Source: m.Source, Target: m.Target, Options: m.Options})
	}
	return mounts
}

// makeBundle creates the bundle of a container with its specification. It replaces one that was left: the monitor has no such container.
func makeBundle(state, id string, spec []byte) (string, error) {
	dir := filepath.Join(state, monitoredBundles, id)
	if err := removeBundle(dir); err != nil {
		return "", err
	}
	// The directory of a bundle with a user namespace is opened to the namespace's root by the monitor.
	if err := os.MkdirAll(filepath.Join(dir, "rootfs"), 0o711); err != nil {
		return "", fmt.Errorf("create bundle: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), spec, 0o600); err != nil {
		return "", fmt.Errorf("create bundle: %w", err)
	}
	return dir, nil
}

// removeBundle removes the bundle of a container that the monitor does not have.
func removeBundle(dir string) error {
	if err := mount.UnmountRecursive(filepath.Join(dir, "rootfs"), 0); err != nil {
		return fmt.Errorf("remove bundle: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove bundle: %w", err)
	}
	return nil
}

// runtimeOf returns how the OCI runtime is called, by the options in the record of a container or sandbox.
func runtimeOf(options typeurl.Any) (monitor.Runtime, error) {
	var o runcoptions.Options
	if err := typeurl.UnmarshalTo(options, &o); err != nil {
		return monitor.Runtime{}, fmt.Errorf("read options of the OCI runtime: %w", err)
	}
	return monitor.Runtime{Binary: o.BinaryName, Root: filepath.Join(o.Root, Namespace), SystemdCgroup: o.SystemdCgroup}, nil
}

// Start starts a container or a command.
func (t *monitoredTasks) Start(ctx context.Context, r *api.StartRequest, o ...grpc.CallOption) (*api.StartResponse, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.Start(ctx, r, o...)
	}
	if r.ExecID != "" {
		p, err := t.commands.start(ctx, t.link, r.ContainerID, r.ExecID)
		return &api.StartResponse{Pid: uint32(p.PID)}, errgrpc.ToGRPC(err)
	}
	c, err := t.start(ctx, r.ContainerID)
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	t.link.put(c)
	return &api.StartResponse{Pid: uint32(c.PID)}, nil
}

// start starts a container. If the monitor is lost meanwhile, the process may run already, and is not killed for that: the next monitor
// continues or completes the start before it answers, and rejects another one of a container that was started.
func (t *monitoredTasks) start(ctx context.Context, id string) (c monitor.Container, err error) {
	lost := false // an earlier request has no answer
	err = t.link.ask(ctx, true, func(m *monitor.Client) (err error) {
		c, err = m.Start(ctx, id)
		if lost && errdefs.IsFailedPrecondition(err) {
			if found, stateErr := m.State(ctx, id); stateErr != nil || found.Phase != monitor.Created {
				c, err = found, stateErr
			}
		}
		lost = errors.Is(err, monitor.ErrClosed)
		return err
	})
	return c, err
}

// Delete deletes a container that has exited or was not started.
func (t *monitoredTasks) Delete(ctx context.Context, r *api.DeleteTaskRequest, o ...grpc.CallOption) (*api.DeleteResponse, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.Delete(ctx, r, o...)
	}
	var c monitor.Container
	lost := !exists(filepath.Join(t.state, monitoredBundles, r.ContainerID)) // so the monitor does not know where the root file system is
	err := t.link.ask(ctx, true, func(m *monitor.Client) (err error) {
		c, err = m.Delete(ctx, r.ContainerID)
		return err
	})
	if err == nil && lost {
		err = sweepRoots(t.roots, t.state)
	}
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	t.commands.forget(r.ContainerID, "")
	t.link.change(func() { t.link.forget(r.ContainerID, "") })
	return deleted(c.ID, c.PID, c.Exit), nil
}

// DeleteProcess removes the record of a command that has exited.
func (t *monitoredTasks) DeleteProcess(
	ctx context.Context, r *api.DeleteProcessRequest, o ...grpc.CallOption,
) (*api.DeleteResponse, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.DeleteProcess(ctx, r, o...)
	}
	if t.commands.forget(r.ContainerID, r.ExecID) { // it was not started
		t.link.change(func() {})
		return &api.DeleteResponse{ID: r.ExecID}, nil
	}
	var p monitor.Process
	err := t.link.ask(ctx, true, func(m *monitor.Client) (err error) {
		p, err = m.DeleteExec(ctx, r.ContainerID, r.ExecID)
		return err
	})
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	t.link.change(func() { t.link.forget(r.ContainerID, r.ExecID) })
	return deleted(p.ID, p.PID, p.Exit), nil
}

func deleted(id string, pid int, exit *monitor.Exit) *api.DeleteResponse {
	r := &api.DeleteResponse{ID: id, Pid: uint32(pid)}
	if exit != nil {
		r.ExitStatus, r.ExitedAt = exit.Code, protobuf.ToTimestamp(exit.Time)
	}
	return r
}

// Get returns the state of a container or a command.
func (t *monitoredTasks) Get(ctx context.Context, r *api.GetRequest, o ...grpc.CallOption) (*api.GetResponse, error) {
	c, ours, err := t.ours(ctx, r.ContainerID)
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	if !ours {
		return t.TasksClient.Get(ctx, r, o...)
	}
	if r.ExecID == "" {
		return &api.GetResponse{Process: processOf(c)}, nil
	}
	i := slices.IndexFunc(c.Processes, func(p monitor.Process) bool { return p.ID == r.ExecID })
	if i < 0 && t.commands.has(c.ID, r.ExecID) { // prepared
		return &api.GetResponse{Process: &task.Process{ID: r.ExecID, ContainerID: c.ID, Status: task.Status_CREATED}}, nil
	}
	if i < 0 {
		return nil, errgrpc.ToGRPC(fmt.Errorf("process %s of %s: %w", r.ExecID, c.ID, errdefs.ErrNotFound))
	}
	p := c.Processes[i]
	phase := monitor.Running
	if p.Exit != nil {
		phase = monitor.Exited
	}
	return &api.GetResponse{Process: withExit(&task.Process{ID: p.ID, ContainerID: c.ID, Pid: uint32(p.PID)}, phase, p.Exit)}, nil
}

func processOf(c monitor.Container) *task.Process {
	return withExit(&task.Process{ID: c.ID, ContainerID: c.ID, Pid: uint32(c.PID), Terminal: c.Terminal}, c.Phase, c.Exit)
}

func withExit(p *task.Process, phase monitor.Phase, exit *monitor.Exit) *task.Process {
	p.Status = map[monitor.Phase]task.Status{
		monitor.Created: task.Status_CREATED, monitor.Running: task.Status_RUNNING, monitor.Exited: task.Status_STOPPED,
	}[phase]
	if exit != nil {
		p.ExitStatus, p.ExitedAt = exit.Code, protobuf.ToTimestamp(exit.Time)
	}
	return p
}

// List returns all containers with a process or with one that has exited.
func (t *monitoredTasks) List(ctx context.Context, r *api.ListTasksRequest, o ...grpc.CallOption) (*api.ListTasksResponse, error) {
	all, err := t.TasksClient.List(ctx, r, o...)
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(filepath.Join(monitor.ContainersDir(MonitorDir(t.state)), "*"))
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	for _, dir := range dirs { // those that the monitor recovers are listed, too
		if _, _, err := t.ours(ctx, filepath.Base(dir)); err != nil {
			return nil, errgrpc.ToGRPC(err)
		}
	}
	for _, c := range t.link.all() {
		all.Tasks = append(all.Tasks, processOf(c))
	}
	return all, nil
}

// Kill sends a signal.
func (t *monitoredTasks) Kill(ctx context.Context, r *api.KillRequest, o ...grpc.CallOption) (*emptypb.Empty, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.Kill(ctx, r, o...)
	}
	err := t.link.ask(ctx, true, func(m *monitor.Client) error {
		return m.Signal(ctx, monitor.Signal{Container: r.ContainerID, Exec: r.ExecID, Signal: int(r.Signal), All: r.All})
	})
	return &emptypb.Empty{}, errgrpc.ToGRPC(err)
}

// Update changes the cgroup of a container. The OCI runtime does that, which this process runs: the monitor need not know the limits. A run
// that is interrupted is repeated, and its result does not depend on what it finds.
func (t *monitoredTasks) Update(ctx context.Context, r *api.UpdateTaskRequest, o ...grpc.CallOption) (*emptypb.Empty, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.Update(ctx, r, o...)
	}
	return &emptypb.Empty{}, errgrpc.ToGRPC(t.update(ctx, r.ContainerID, r.Resources.GetValue()))
}

// updateTimeout bounds one run of the OCI runtime.
const updateTimeout = 30 * time.Second

// update runs the OCI runtime with resources as JSON.
func (t *monitoredTasks) update(ctx context.Context, id string, resources []byte) error {
	record, err := t.containers.Get(ctx, id)
	if err != nil {
		return err
	}
	program, err := runtimeOf(record.Runtime.Options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	args := []string{"--root", program.Root, "--log-format", "json"}
	if program.SystemdCgroup {
		args = append(args, "--systemd-cgroup")
	}
	cmd := exec.CommandContext(ctx, program.Binary, append(args, "update", "--resources", "/proc/self/fd/0", id)...)
	cmd.Stdin = bytes.NewReader(resources)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("OCI runtime update: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("OCI runtime update failed: %w: %s", err, lastMessage(out[:min(len(out), maxUpdateOutput)]))
	}
	return nil
}

// lastMessage returns the last message of an OCI runtime, which writes JSON or, before it reads its flags, text.
func lastMessage(out []byte) (message string) {
	for line := range bytes.Lines(out) {
		var entry struct{ Msg string }
		text := string(bytes.TrimSpace(line))
		if json.Unmarshal(line, &entry) == nil && entry.Msg != "" {
			text = strings.TrimSpace(entry.Msg)
		}
		if text != "" {
			message = text
		}
	}
	return message
}

// maxUpdateOutput bounds the output of the OCI runtime in an error.
const maxUpdateOutput = 4 << 10

// Exec prepares a command; see [commands].
func (t *monitoredTasks) Exec(ctx context.Context, r *api.ExecProcessRequest, o ...grpc.CallOption) (*emptypb.Empty, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.Exec(ctx, r, o...)
	}
	return &emptypb.Empty{}, errgrpc.ToGRPC(t.commands.prepare(r))
}

// ResizePty changes the size of a terminal.
func (t *monitoredTasks) ResizePty(ctx context.Context, r *api.ResizePtyRequest, o ...grpc.CallOption) (*emptypb.Empty, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.ResizePty(ctx, r, o...)
	}
	size := monitor.Size{Width: uint16(r.Width), Height: uint16(r.Height)}
	if r.ExecID != "" {
		return &emptypb.Empty{}, errgrpc.ToGRPC(t.commands.resize(r.ContainerID, r.ExecID, size))
	}
	err := t.link.ask(ctx, true, func(m *monitor.Client) error { return m.Resize(ctx, r.ContainerID, size) })
	return &emptypb.Empty{}, errgrpc.ToGRPC(err)
}

// CloseIO closes the standard input of a container. That of a command is closed by its client, who holds it.
func (t *monitoredTasks) CloseIO(ctx context.Context, r *api.CloseIORequest, o ...grpc.CallOption) (*emptypb.Empty, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.CloseIO(ctx, r, o...)
	}
	if r.ExecID != "" {
		return &emptypb.Empty{}, nil
	}
	err := t.link.ask(ctx, true, func(m *monitor.Client) error { return m.CloseInput(ctx, r.ContainerID) })
	return &emptypb.Empty{}, errgrpc.ToGRPC(err)
}

// ListPids returns the processes of a container.
func (t *monitoredTasks) ListPids(ctx context.Context, r *api.ListPidsRequest, o ...grpc.CallOption) (*api.ListPidsResponse, error) {
	if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
		return nil, errgrpc.ToGRPC(err)
	} else if !ours {
		return t.TasksClient.ListPids(ctx, r, o...)
	}
	var pids []int
	err := t.link.ask(ctx, true, func(m *monitor.Client) (err error) {
		pids, err = m.PIDs(ctx, r.ContainerID)
		return err
	})
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	list := &api.ListPidsResponse{}
	for _, pid := range pids {
		list.Processes = append(list.Processes, &task.ProcessInfo{Pid: uint32(pid)})
	}
	return list, nil
}

// Wait returns when a container or a command has exited.
func (t *monitoredTasks) Wait(ctx context.Context, r *api.WaitRequest, o ...grpc.CallOption) (*api.WaitResponse, error) {
	for {
		if _, ours, err := t.ours(ctx, r.ContainerID); err != nil {
			return nil, errgrpc.ToGRPC(err)
		} else if !ours {
			return t.TasksClient.Wait(ctx, r, o...)
		}
		exit, err := t.wait(ctx, r)
		if _, ours, findErr := t.ours(ctx, r.ContainerID); errdefs.IsNotFound(err) && r.ExecID == "" && (ours || findErr != nil) {
			continue // the monitor was started again, and recovers the container
		}
		if err != nil {
			return nil, errgrpc.ToGRPC(err)
		}
		return &api.WaitResponse{ExitStatus: exit.Code, ExitedAt: protobuf.ToTimestamp(exit.Time)}, nil
	}
}

// wait waits for the exit of a container or a command that the link has.
func (t *monitoredTasks) wait(ctx context.Context, r *api.WaitRequest) (exit *monitor.Exit, err error) {
	gone := false
	err = t.link.until(ctx, func() bool {
		c, known := t.link.containers[r.ContainerID]
		if gone = !known; gone {
			return true
		}
		exit = c.Exit
		if r.ExecID != "" {
			i := slices.IndexFunc(c.Processes, func(p monitor.Process) bool { return p.ID == r.ExecID })
			if i < 0 { // prepared, or deleted
				gone = !t.commands.has(r.ContainerID, r.ExecID)
				return gone
			}
			exit = c.Processes[i].Exit
		}
		return exit != nil
	})
	if err == nil && gone {
		err = fmt.Errorf("task %s: %w", r.ContainerID, errdefs.ErrNotFound)
	}
	return exit, err
}
