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

// retireTimeout bounds the wait for the answer of a shim that is to be retired.
const retireTimeout = 10 * time.Second

// Retire kills the shim that listens on the socket of this ID, and removes the socket; it is no error if there is none.
// It is for a shim that was lost: a daemon that is killed between a shim's start and the moment when its address is
// written down leaves one that would be taken for the next shim of its ID. The context carries containerd's namespace.
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
		return removeSocket(address) // it has just ended
	}
	if err != nil {
		return fmt.Errorf("retire shim %s: %w", id, err)
	}
	if err := unix.Kill(int(resp.ShimPid), unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("retire shim %s: kill process %d: %w", id, resp.ShimPid, err)
	}
	if err := client.UserOnCloseWait(ctx); err != nil {
		return fmt.Errorf("retire shim %s: wait for the end of process %d: %w", id, resp.ShimPid, err)
	}
	return removeSocket(address)
}

func removeSocket(address string) error {
	if err := containerdshim.RemoveSocket(address); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
