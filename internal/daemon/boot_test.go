package daemon_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

// awaitMark waits until the mark of the boot exists, or does not.
func (h *host) awaitMark(ctx context.Context, exists bool) error {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		text, err := os.ReadFile(filepath.Join(h.config.StateDir, "booted"))
		boot, bootErr := proc.BootID()
		if bootErr != nil || exists && string(text) == boot+"\n" || !exists && errors.Is(err, fs.ErrNotExist) {
			return bootErr
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// powerLosses returns how many events report that the host stopped without a shutdown.
func (h *host) powerLosses(t *testing.T) (n int) {
	t.Helper()
	for e, err := range h.client.Events(t.Context(), &client.EventQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == api.EventUncleanShutdown {
			n++
		}
	}
	return n
}

// TestPowerLoss expects that a daemon reports once that an earlier boot has ended while a daemon ran. A daemon that exits, or is killed in
// this boot, is no power loss.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	mark := filepath.Join(h.config.StateDir, "booted")
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		result := h.run(ctx, t, false, "1m")
		if err := h.awaitMark(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		return func() {
			cancel()
			await(t, result)
			if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the daemon has exited, and the mark is there: %v", err)
			}
		}
	}
	stop := start()
	if n := h.powerLosses(t); n != 0 {
		t.Errorf("%d power losses before the first one", n)
	}
	stop()
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	reboots := filepath.Join(h.config.StateDir, daemon.RebootsFile)
	for _, tt := range []struct {
		left string
		want int
	}{
		{boot, 0},       // a daemon of this boot was killed
		{"rebooted", 0}, // by a pod
		{"earlier", 1},  // the power failed
	} {
		// Again each time: a daemon that exits removes what is older than a day, as on a host that has been up for longer.
		record := os.WriteFile(reboots, []byte(`{"version":1,"reboots":[{"boot":"rebooted","pod":"web"}]}`), 0o600)
		if err := errors.Join(record, os.WriteFile(mark, []byte(tt.left+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		stop = start()
		if n := h.powerLosses(t); n != tt.want {
			t.Errorf("with the mark of the boot %s: %d power losses are reported, want %d", tt.left, n, tt.want)
		}
		stop()
	}
	stop = start()
	if n := h.powerLosses(t); n != 1 {
		t.Errorf("%d power losses are reported after another restart, want the one of before", n)
	}
	stop()
}

// TestShutdownIsDurable expects that the shutdown of the host is recorded before the containers have stopped: the time may be too short.
func TestShutdownIsDurable(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	recorded := make(chan error, 1)
	h.fake = fakeruntime.New(fakeruntime.Options{LogDir: h.config.LogDir, Before: func(ctx context.Context, c fakeruntime.Call) error {
		if c.Method == "StopContainer" {
			recorded <- h.awaitMark(context.WithoutCancel(ctx), false)
		}
		return nil
	}})
	c := *h.config
	c.Pods.ShutdownGracePeriod = config.Duration("1s")
	ready, result := make(chan struct{}), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		result <- daemon.Run(ctx, daemon.Options{
			Config: &c, Start: h.start, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
			HostStopping: func(context.Context) (bool, error) { return true, nil },
		})
	}()
	awaitReady(t, ready, result)
	h.awaitRunning(t, h.create(t).Metadata.UID)
	stop()
	if err := <-recorded; err != nil {
		t.Errorf("a container is stopped, and the shutdown is not recorded: %v", err)
	}
	await(t, result)
}
