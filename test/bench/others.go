package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/internal/rig"
)

// other is Podman or Docker, whose commands are alike, with directories of its own. Containers are on the network of the host, so that the
// network programs of these are not needed.
type other struct {
	program string
	global  []string  // options before the command
	env     []string  // of all its processes that inherit it
	dir     string    // in the rig
	daemon  *exec.Cmd // of Docker
	podman  *podman
	gate    *gate
	rig     *rig.Rig
	n       int // distinguishes its processes
}

// limit is a limit that a host without CAP_SYS_RESOURCE allows.
const limit = "nofile=1024:1024"

// newOther creates the gate and the environment.
func newOther(rg *rig.Rig, program string, n int) (*other, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("%s: %w", program, errMissing)
	}
	g, err := newGate(rg, "gate-"+program)
	return &other{program: program, gate: g, rig: rg, n: n, env: []string{"PODSTEAD_BENCH=" + program + " " + marker(n)}}, err
}

func (b *bench) newPodman(ctx context.Context, rg *rig.Rig) (contender, error) {
	o, err := newOther(rg, "podman", 90)
	if err != nil {
		return nil, err
	}
	p, err := newPodman(ctx, filepath.Join(rg.Dir, "turns"), b.archive)
	if err != nil {
		return nil, err
	}
	o.global, o.podman, o.dir = p.global, p, "turns"
	return o, nil
}

// newDocker starts a private dockerd without networks.
func (b *bench) newDocker(ctx context.Context, rg *rig.Rig) (contender, error) {
	o, err := newOther(rg, "docker", 91)
	if err != nil {
		return nil, err
	}
	o.dir = "docker"
	dir := filepath.Join(rg.Dir, o.dir)
	o.global = []string{"--host", "unix://" + filepath.Join(dir, "s"), "--config", filepath.Join(dir, "config")}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	o.daemon = exec.CommandContext(ctx, "dockerd", "--host", "unix://"+filepath.Join(dir, "s"), "--data-root", filepath.Join(dir, "data"),
		"--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"), "--bridge", "none", "--iptables=false",
		"--cgroup-parent", "/podstead-bench-docker")
	o.daemon.Env, o.daemon.Stdout, o.daemon.Stderr = append(os.Environ(), o.env...), log, log
	if err := o.daemon.Start(); err != nil {
		return nil, fmt.Errorf("dockerd: %w: %w", errMissing, err)
	}
	err = await(ctx, func() error { return o.command(ctx, "version") })
	if err == nil {
		err = o.importRoot(ctx) // Docker 20.10 does not load OCI archives
	}
	if err != nil {
		return nil, errors.Join(err, o.close(ctx))
	}
	return o, nil
}

// importRoot imports an image with the host's busybox.
func (o *other) importRoot(ctx context.Context) error {
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err = w.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	for _, name := range []string{"sh", "sleep", "true"} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	cmd := o.cmd(ctx, "import", "-", busybox)
	cmd.Stdin = &b
	return quiet(cmd)
}

func (o *other) cmd(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, o.program, append(slices.Clone(o.global), args...)...)
	cmd.Env = append(os.Environ(), o.env...)
	return cmd
}

func (o *other) command(ctx context.Context, args ...string) error { return quiet(o.cmd(ctx, args...)) }

// run starts a container that runs a script.
func (o *other) run(ctx context.Context, script string, options ...string) error {
	return o.command(ctx, o.runArgs(script, append(options, "--volume", o.gate.dir+":/gate")...)...)
}

func (o *other) runArgs(script string, options ...string) []string {
	args := append([]string{"run", "--network", "host", "--ulimit", limit, "--ulimit", "nproc=1024:1024"}, options...)
	return append(args, busybox, "sh", "-c", script)
}

func (o *other) first(ctx context.Context) (time.Duration, error) {
	return firstOutput(o.cmd(ctx, o.runArgs("echo hello", "--rm")...))
}

func (o *other) restart(ctx context.Context) (took time.Duration, err error) {
	sleep := "sleep " + marker(o.n+2)
	if err := o.run(ctx, pass+"; exec "+sleep, "--detach", "--name", "again", "--restart", "always"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.command(ctx, "rm", "--force", "again")) }()
	if _, err := o.gate.await(ctx); err != nil {
		return 0, err
	}
	pid, err := o.process(ctx, func(command string) bool { return command == sleep })
	if err != nil {
		return 0, err
	}
	killed := time.Now()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return 0, err
	}
	at, err := o.gate.await(ctx)
	return at.Sub(killed), err
}

func (o *other) stop(ctx context.Context) (took time.Duration, err error) {
	sleep := "sleep " + marker(o.n+4)
	if err := o.run(ctx, "trap 'exit 0' TERM; "+pass+"; while :; do "+sleep+" & wait; done", "--detach", "--name", "stops"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.command(ctx, "rm", "--force", "stops")) }()
	if _, err := o.gate.await(ctx); err != nil {
		return 0, err
	}
	pid, err := o.process(ctx, func(command string) bool {
		return strings.HasPrefix(command, "sh ") && strings.Contains(command, sleep) && strings.Contains(command, "wait; done")
	})
	if err != nil {
		return 0, err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	stopped := time.Now()
	requested := make(chan error, 1)
	go func() { requested <- o.command(ctx, "stop", "--time", "30", "stops") }()
	err = awaitEnd(fd)
	took = time.Since(stopped)
	return took, errors.Join(err, <-requested)
}

func (o *other) fill(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for i := range many {
		g.Go(func() error {
			return o.run(gctx, pass+"; exec sleep "+marker(o.n+6), "--detach", "--name", "many"+strconv.Itoa(i), "--restart", "always")
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	var last time.Time
	for range many {
		at, err := o.gate.await(ctx)
		if err != nil {
			return 0, err
		}
		last = at
	}
	return last.Sub(began), nil
}

func (o *other) memory(ctx context.Context) (total float64, err error) {
	if err := elapse(ctx, calm); err != nil {
		return 0, err
	}
	for pid, command := range o.processes() {
		pss, err := pssOf(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) { // it has exited
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", command, err)
		}
		total += pss
	}
	return total, nil
}

// processes returns the command lines of its processes, and of those in its containers, by PID.
func (o *other) processes() map[int]string {
	found := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ")) // a process may have exited
		text, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		command := strings.TrimRight(strings.ReplaceAll(string(text), "\x00", " "), " ")
		own := bytes.Contains(environ, []byte(o.env[0]+"\x00")) || strings.Contains(command, filepath.Join(o.rig.Dir, o.dir))
		for i := 2; i <= 6; i += 2 {
			own = own || strings.Contains(command, "sleep "+marker(o.n+i))
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && own && command != "" {
			found[pid] = command
		}
	}
	return found
}

// process waits for a process with a matching command line.
func (o *other) process(ctx context.Context, fits func(command string) bool) (pid int, err error) {
	return pid, await(ctx, func() error {
		all := o.processes()
		for found, command := range all {
			if fits(command) {
				pid = found
				return nil
			}
		}
		return fmt.Errorf("none of %d processes of %s matches", len(all), o.program)
	})
}

// ended waits until no process of it is left.
func (o *other) ended(ctx context.Context) error {
	return await(ctx, func() error {
		if left := o.processes(); len(left) > 0 {
			return fmt.Errorf("processes of %s are left: %v", o.program, left)
		}
		return nil
	})
}

// close removes the containers and stops the daemon.
func (o *other) close(ctx context.Context) error {
	o.gate.close()
	if o.podman != nil {
		// An exit makes conmon run "podman container cleanup", which mounts the storage again.
		return errors.Join(o.podman.removeAll(ctx), o.ended(ctx), unmountAll(o.podman.dir))
	}
	var names []string
	for i := range many {
		names = append(names, "many"+strconv.Itoa(i))
	}
	return errors.Join(o.command(ctx, append([]string{"rm", "--force"}, names...)...), o.daemon.Process.Signal(syscall.SIGTERM),
		o.daemon.Wait(),
		unmountAll(filepath.Join(o.rig.Dir, "docker")), removeCgroups("podstead-bench-docker"))
}

// removeCgroups removes an empty cgroup from all hierarchies.
func removeCgroups(name string) error {
	dirs, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, dir := range append(dirs, "/sys/fs/cgroup/"+name) {
		if e := unix.Rmdir(dir); e != nil && !errors.Is(e, unix.ENOENT) {
			err = errors.Join(err, fmt.Errorf("remove %s: %w", dir, e))
		}
	}
	return err
}
