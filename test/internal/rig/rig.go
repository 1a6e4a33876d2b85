// Package rig is a private Podstead for tests and benchmarks: the real programs with directories of their own. It finds everything on
// the host that belongs to it, so it can report leftovers and remove them.
package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/shim"
)

// Rig is a private Podstead.
type Rig struct {
	// Dir contains everything of the rig: StateDir, RunDir, LogDir, and files of its user.
	Dir string
	// Repository is the root of the repository from which the programs were built.
	Repository string
	// Program is the podstead binary, Monitor that of the monitor, and Shim that of the shim.
	Program, Shim, Monitor string
	// Env is added to the environment of every command, as "name=value".
	Env []string

	client *client.Client

	mu   sync.Mutex
	uids map[string]bool
}

// Programs is the environment variable with the directory of the programs, by default bin in the [Repository].
const Programs = "RIG_PROGRAMS"

// New creates the directory of a rig. It uses the programs that make build has built.
func New() (*Rig, error) {
	repository, err := Repository()
	if err != nil {
		return nil, err
	}
	bin := cmp.Or(os.Getenv(Programs), filepath.Join(repository, "bin"))
	r := &Rig{
		Repository: repository,
		Program:    filepath.Join(bin, "podstead"), Monitor: filepath.Join(bin, monitor.Name), Shim: filepath.Join(bin, shim.Name),
	}
	for _, program := range []string{r.Program, r.Monitor, r.Shim} {
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("find programs: %w (run make build)", err)
		}
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("must run as root")
	}
	if r.Dir, err = makeDir(); err != nil {
		return nil, err
	}
	if err := os.Chmod(r.Dir, 0o755); err != nil { // containers need access to parts of it
		return nil, err
	}
	r.open()
	return r, os.Mkdir(r.tempDir(), 0o755)
}

func (r *Rig) open() {
	r.client = client.New(r.Socket(), "rig")
	r.uids = map[string]bool{}
}

// makeDir creates a directory with a short name, because it contains sockets.
func makeDir() (string, error) {
	for {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("r%05x", rand.IntN(1<<20)))
		if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

// Sweep removes the rigs below a directory whose processes were killed.
func Sweep(ctx context.Context, dir string) error {
	rigs, err := filepath.Glob(filepath.Join(dir, "r?????")) // as makeDir names them
	for _, path := range rigs {
		if info, statErr := os.Lstat(path); statErr == nil && !info.IsDir() {
			continue // a temporary file of runc
		}
		r := &Rig{Dir: path}
		r.open()
		pods, _ := filepath.Glob(filepath.Join(r.RunDir(), "ns", "*")) // named after pod UIDs
		for _, pod := range pods {
			r.Saw(filepath.Base(pod))
		}
		err = errors.Join(err, r.Close(ctx))
	}
	return err
}

// Repository returns the root of the repository that contains the working directory.
func Repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find repository: no go.mod above the working directory")
		}
		dir = parent
	}
}

// StateDir returns the directory for persistent state.
func (r *Rig) StateDir() string { return filepath.Join(r.Dir, "lib") }

// RunDir returns the directory for runtime state, which is cleared at boot.
func (r *Rig) RunDir() string { return filepath.Join(r.Dir, "r") }

// LogDir returns the directory for container logs.
func (r *Rig) LogDir() string { return filepath.Join(r.Dir, "log") }

// ConfigDir returns the directory that contains configmaps/ and secrets/.
func (r *Rig) ConfigDir() string { return filepath.Join(r.Dir, "etc") }

// tempDir returns the directory for temporary files ($TMPDIR) of commands, daemons and shims.
func (r *Rig) tempDir() string { return filepath.Join(r.Dir, "tmp") }

// Socket returns the path of the API socket.
func (r *Rig) Socket() string { return filepath.Join(r.RunDir(), "podstead.sock") }

// DaemonLog returns the path of the log of daemons that are started on demand.
func (r *Rig) DaemonLog() string { return filepath.Join(r.StateDir(), "daemon.log") }

// EndOfLog returns the end of DaemonLog, or the error of reading it.
func (r *Rig) EndOfLog() string {
	text, err := os.ReadFile(r.DaemonLog())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// Archive returns the path of an image archive of test/images, such as "busybox".
func (r *Rig) Archive(image string) string {
	return filepath.Join(r.Repository, "examples", "images", image+".tar")
}

// Client returns a client of the rig's daemon.
func (r *Rig) Client() *client.Client { return r.client }

// Command returns a podstead command with the rig's directories, not started. It is killed when ctx is done.
func (r *Rig) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.Program, args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(),
		"PODSTEAD_CONFIG=", "PODSTEAD_SOCKET=", "PODSTEAD_STATE_DIR="+r.StateDir(), "PODSTEAD_RUN_DIR="+r.RunDir(),
		"PODSTEAD_LOG_DIR="+r.LogDir(),
		"PODSTEAD_CONFIG_DIR="+r.ConfigDir(), "TMPDIR="+r.tempDir(), RuntimeVariable+"="+RuntimeUnderTest())
	cmd.Env = append(cmd.Env, r.Env...)
	return cmd
}

// Podstead runs a podstead command and returns its output. The error has its standard error.
func (r *Rig) Podstead(ctx context.Context, args ...string) (string, error) {
	out, err := r.Command(ctx, args...).Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		err = fmt.Errorf("podstead %v: %w: %s", args, err, exit.Stderr)
	}
	return string(out), err
}

// WritePod writes a pod file into the rig's directory and returns its path.
func (r *Rig) WritePod(name, text string) (string, error) {
	path := filepath.Join(r.Dir, name+".toml")
	return path, os.WriteFile(path, []byte(text), 0o644) // no secret
}

// Create writes a pod file into the rig's directory and creates the pod, without an owner. A daemon must be running. It is safe for
// concurrent use.
func (r *Rig) Create(ctx context.Context, name, text string) (api.Pod, error) {
	path, err := r.WritePod(name, text)
	if err != nil {
		return api.Pod{}, err
	}
	made, err := r.client.Create(ctx, api.CreateRequest{File: path, Text: text})
	if answer, is := errors.AsType[*api.Error](err); is {
		err = fmt.Errorf("%w: %v", err, answer.Problems)
	}
	if err != nil {
		return api.Pod{}, fmt.Errorf("create %s: %w", name, err)
	}
	r.Saw(made.Pod.Metadata.UID)
	return made.Pod, nil
}

// Saw records the UID of a pod of this rig, so that leftovers of removed pods are found. It ignores an invalid UID: an empty one would
// match every cgroup of the host, and [Rig.Close] would kill all processes. It is safe for concurrent use.
func (r *Rig) Saw(uid string) {
	if uuid.Validate(uid) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uids[uid] = true
}

// StopDaemon stops the daemon, if there is one. Containers keep running.
func (r *Rig) StopDaemon(ctx context.Context) error {
	_, err := r.Podstead(ctx, "daemon", "stop")
	return err
}

// DaemonPID returns the PID of the daemon that answers.
func (r *Rig) DaemonPID(ctx context.Context) (int, error) {
	v, err := r.client.Version(ctx)
	return v.PID, err
}

// KillDaemon kills the daemon that answers and returns when it is dead.
func (r *Rig) KillDaemon(ctx context.Context) error {
	pid, err := r.DaemonPID(ctx)
	if err != nil {
		return err
	}
	return Kill(ctx, pid)
}

// Kill kills a process and returns when it is dead.
func Kill(ctx context.Context, pid int) error {
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return fmt.Errorf("kill %d: %w", pid, err)
	}
	return Await(ctx, func() error {
		if IsAlive(pid) {
			return fmt.Errorf("process %d is still running", pid)
		}
		return nil
	})
}

// IsAlive reports whether a process runs. A zombie does not, unless it has other threads: those still hold its files and locks.
func IsAlive(pid int) bool {
	dir := fmt.Sprintf("/proc/%d", pid)
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	threads, _ := os.ReadDir(filepath.Join(dir, "task"))
	_, state, _ := strings.Cut(string(stat), ") ") // after the name, which may contain anything
	return len(threads) > 1 || !strings.HasPrefix(state, "Z")
}

// pollInterval is the interval of Await.
const pollInterval = 20 * time.Millisecond

// Await waits until the condition holds. If ctx is done first, the error includes the last one of the condition.
func Await(ctx context.Context, holds func() error) error {
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
