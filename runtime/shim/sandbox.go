package shim

import (
	"context"
	"os"
	"runtime"
	"sync"
	"time"

	api "github.com/containerd/containerd/api/runtime/sandbox/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The states of a sandbox, as named by the CRI.
const (
	sandboxReady    = "SANDBOX_READY"
	sandboxNotReady = "SANDBOX_NOTREADY"
)

// sandbox serves the sandbox API for the one sandbox of this shim. The shim is the sandbox: it starts with CreateSandbox and ends
// with the process.
type sandbox struct {
	tasks   *tasks
	stopped chan struct{} // closed by StopSandbox

	mu        sync.Mutex
	id        string // empty before CreateSandbox
	createdAt time.Time
	stoppedAt time.Time
}

func newSandbox(t *tasks) *sandbox {
	return &sandbox{tasks: t, stopped: make(chan struct{})}
}

func (s *sandbox) register(srv *ttrpc.Server) { api.RegisterTTRPCSandboxService(srv, s) }

func (s *sandbox) exists() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id != ""
}

// check returns an error if the sandbox has another ID or was not created.
func (s *sandbox) check(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != id {
		return errgrpc.ToGRPCf(errdefs.ErrNotFound, "sandbox %s", id)
	}
	return nil
}

// CreateSandbox turns the shim into a sandbox. The engine owns the namespaces except a PID namespace, which needs a process. If
// the specification in the sandbox's bundle has a process, CreateSandbox starts it.
func (s *sandbox) CreateSandbox(ctx context.Context, r *api.CreateSandboxRequest) (*api.CreateSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		return nil, errgrpc.ToGRPCf(errdefs.ErrAlreadyExists, "sandbox %s", s.id)
	}
	if err := s.tasks.startPause(ctx, r); err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	s.id, s.createdAt = r.SandboxID, time.Now()
	return &api.CreateSandboxResponse{}, nil
}

// StartSandbox returns the sandbox's process, which is the shim.
func (s *sandbox) StartSandbox(_ context.Context, r *api.StartSandboxRequest) (*api.StartSandboxResponse, error) {
	if err := s.check(r.SandboxID); err != nil {
		return nil, err
	}
	return &api.StartSandboxResponse{Pid: pid(), CreatedAt: timestamppb.New(s.createdAt)}, nil
}

// Platform returns the platform of the containers that can run here.
func (s *sandbox) Platform(_ context.Context, r *api.PlatformRequest) (*api.PlatformResponse, error) {
	if err := s.check(r.SandboxID); err != nil {
		return nil, err
	}
	return &api.PlatformResponse{Platform: &types.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}}, nil
}

// StopSandbox makes every WaitSandbox return. It stops no process.
func (s *sandbox) StopSandbox(_ context.Context, r *api.StopSandboxRequest) (*api.StopSandboxResponse, error) {
	if err := s.check(r.SandboxID); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stoppedAt.IsZero() {
		s.stoppedAt = time.Now()
		close(s.stopped)
	}
	return &api.StopSandboxResponse{}, nil
}

// WaitSandbox returns after StopSandbox or ShutdownSandbox. If the shim dies, the connection is closed.
func (s *sandbox) WaitSandbox(ctx context.Context, r *api.WaitSandboxRequest) (*api.WaitSandboxResponse, error) {
	if err := s.check(r.SandboxID); err != nil {
		return nil, err
	}
	select {
	case <-s.stopped:
	case <-s.tasks.end.Done():
		return &api.WaitSandboxResponse{ExitedAt: timestamppb.Now()}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &api.WaitSandboxResponse{ExitedAt: timestamppb.New(s.stoppedAt)}, nil
}

// SandboxStatus returns the shim's process ID and whether the sandbox was stopped.
func (s *sandbox) SandboxStatus(_ context.Context, r *api.SandboxStatusRequest) (*api.SandboxStatusResponse, error) {
	if err := s.check(r.SandboxID); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &api.SandboxStatusResponse{SandboxID: s.id, Pid: pid(), State: sandboxReady, CreatedAt: timestamppb.New(s.createdAt)}
	if !s.stoppedAt.IsZero() {
		resp.State, resp.ExitedAt = sandboxNotReady, timestamppb.New(s.stoppedAt)
	}
	return resp, nil
}

// PingSandbox does nothing.
func (s *sandbox) PingSandbox(_ context.Context, r *api.PingRequest) (*api.PingResponse, error) {
	return &api.PingResponse{}, s.check(r.SandboxID)
}

// ShutdownSandbox stops the shim. It fails while containers exist, since no process would reap them. A sandbox that was never
// created can always be shut down.
func (s *sandbox) ShutdownSandbox(_ context.Context, r *api.ShutdownSandboxRequest) (*api.ShutdownSandboxResponse, error) {
	if s.exists() {
		if err := s.check(r.SandboxID); err != nil {
			return nil, err
		}
	}
	if n := s.tasks.remaining(); n > 0 {
		return nil, errgrpc.ToGRPCf(errdefs.ErrFailedPrecondition, "sandbox %s still has %d containers", r.SandboxID, n)
	}
	s.tasks.end.Shutdown()
	return &api.ShutdownSandboxResponse{}, nil
}

// SandboxMetrics returns no metrics. The engine reads those of pods from their cgroups.
func (s *sandbox) SandboxMetrics(_ context.Context, r *api.SandboxMetricsRequest) (*api.SandboxMetricsResponse, error) {
	return &api.SandboxMetricsResponse{}, s.check(r.SandboxID)
}

// UpdateSandbox is a no-op: a sandbox has nothing to update.
func (s *sandbox) UpdateSandbox(_ context.Context, r *api.UpdateSandboxRequest) (*api.UpdateSandboxResponse, error) {
	return &api.UpdateSandboxResponse{}, s.check(r.SandboxID)
}

func pid() uint32 { return uint32(os.Getpid()) }
