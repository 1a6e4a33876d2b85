package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	containerdshim "github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
)

// retireTimeout bounds the wait for a response of the shim and for its exit.
const retireTimeout = 10 * time.Second

// Retire kills the shim that listens on the socket of this ID and removes the socket. It succeeds if there is none. It is for
// lost shims: a daemon killed between the start of a shim and the recording of its address leaves a shim that containerd would
// take for the next shim of this ID. The context carries containerd's namespace.
func Retire(ctx context.Context, socketDir, daemonAddress, id string) error {
	address, err := containerdshim.CreateSocketAddress(ctx, socketDir, daemonAddress, id, false)
	if err != nil {
		return err
	}
	conn, err := containerdshim.AnonDialer(address, time.Second)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.ECONNREFUSED):
		return removeSocket(address)
	case err != nil:
		return fmt.Errorf("retire shim %s: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, retireTimeout)
	defer cancel()
	client := ttrpc.NewClient(conn)
	defer client.Close()
	resp, err := api.NewTTRPCTaskClient(client).Connect(ctx, &api.ConnectRequest{ID: id})
	if errors.Is(err, ttrpc.ErrClosed) {
		return removeSocket(address) // it has just exited
	}
	if err != nil {
		return fmt.Errorf("retire shim %s: %w", id, err)
	}
	if err := unix.Kill(int(resp.ShimPid), unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("retire shim %s: kill process %d: %w", id, resp.ShimPid, err)
	}
	if err := client.UserOnCloseWait(ctx); err != nil {
		return fmt.Errorf("retire shim %s: wait for process %d to exit: %w", id, resp.ShimPid, err)
	}
	return removeSocket(address)
}

func removeSocket(address string) error {
	if err := containerdshim.RemoveSocket(address); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
