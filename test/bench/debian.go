package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// debian is a private instance of the distribution's containerd.
type debian struct {
	daemon *exec.Cmd
	dir    string
}

// startDebian starts it in a directory of its own and imports the archive.
func startDebian(ctx context.Context, dir, archive string) (*debian, error) {
	d := &debian{dir: filepath.Join(dir, "d")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
address = %q
[plugins."io.containerd.internal.v1.opt"]
path = %q
`, d.path("root"), d.path("state"), d.socket(), d.path("opt"))
	if err := os.WriteFile(d.path("config.toml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(d.path("log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d.daemon = exec.CommandContext(ctx, "containerd", "-c", d.path("config.toml"))
	d.daemon.Stdout, d.daemon.Stderr = log, log
	if err := d.daemon.Start(); err != nil {
		return nil, err
	}
	err = await(ctx, func() error { return quiet(d.ctr(ctx, "version")) })
	if err == nil {
		err = quiet(d.ctr(ctx, "images", "import", archive))
	}
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

func (d *debian) path(name string) string { return filepath.Join(d.dir, name) }
func (d *debian) socket() string          { return d.path("sock") }

func (d *debian) ctr(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ctr", append([]string{"--address", d.socket()}, args...)...)
}

// run is one container lifetime.
func (d *debian) run(ctx context.Context, n int) error {
	return quiet(d.ctr(ctx, "run", "--rm", "--runc-root", d.path("runc"), busybox, "life"+strconv.Itoa(n), "true"))
}

func (d *debian) stop() error {
	if err := d.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return d.daemon.Wait()
}
