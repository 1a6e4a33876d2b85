// Package rig is a private Podstead for tests and measurements: the real programs, with folders of their own. It knows
// what belongs to it on the machine, so it can say what was left behind, and clear it away.
package rig

import (
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
	"github.com/podstead/podstead/runtime/shim"
)

// Rig is a private Podstead.
type Rig struct {
	// Dir holds everything of the rig: StateDir, RunDir, LogDir, and what its user puts there.
	Dir string
	// Repository is the root of the repository that the programs were made from.
	Repository string
	// Program is the podstead binary, Shim what its containers run under.
	Program, Shim string
	// Env is added to the environment of every command, in the form "name=value".
	Env []string

	client *api.Client

	mu   sync.Mutex
	uids map[string]bool
}

// New makes the folder of a rig for the programs that make build has put into bin of the [Repository].
func New() (*Rig, error) {
	repository, err := Repository()
	if err != nil {
		return nil, err
	}
	r := &Rig{Repository: repository, Program: filepath.Join(repository, "bin", "podstead"), Shim: filepath.Join(repository, "bin", shim.Name)}
	for _, program := range []string{r.Program, r.Shim} {
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("find programs: %w (make build builds them)", err)
		}
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("containers need root")
	}
	if r.Dir, err = makeFolder(); err != nil {
		return nil, err
	}
	if err := os.Chmod(r.Dir, 0o755); err != nil { // containers see parts of it
		return nil, err
	}
	r.open()
	return r, nil
}

func (r *Rig) open() {
	r.client = api.NewClient(r.Socket(), "rig")
	r.uids = map[string]bool{}
}

// makeFolder makes a folder with a short name, since sockets lie in it.
func makeFolder() (string, error) {
	for {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("r%05x", rand.IntN(1<<20)))
		if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

// Sweep clears away the rigs below a folder, whose makers were killed.
func Sweep(ctx context.Context, dir string) error {
	rigs, err := filepath.Glob(filepath.Join(dir, "r?????")) // as makeFolder names them
	for _, path := range rigs {
		if info, statErr := os.Lstat(path); statErr == nil && !info.IsDir() {
			continue // a temporary file of runc's
		}
		r := &Rig{Dir: path}
		r.open()
		pods, _ := filepath.Glob(filepath.Join(r.RunDir(), "ns", "*")) // the folders of pods have their UIDs as names
		for _, pod := range pods {
			r.Saw(filepath.Base(pod))
		}
		err = errors.Join(err, r.Close(ctx))
	}
	return err
}

// Repository finds the root of the repository above the working directory.
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

// StateDir is the folder of what lasts.
func (r *Rig) StateDir() string { return filepath.Join(r.Dir, "lib") }

// RunDir is the folder of what is void after a boot.
func (r *Rig) RunDir() string { return filepath.Join(r.Dir, "r") }

// LogDir is the folder of the containers' logs.
func (r *Rig) LogDir() string { return filepath.Join(r.Dir, "log") }

// ConfigDir is the folder of the folders of config maps and secrets.
func (r *Rig) ConfigDir() string { return filepath.Join(r.Dir, "etc") }

// Socket is the API's.
func (r *Rig) Socket() string { return filepath.Join(r.RunDir(), "podstead.sock") }

// DaemonLog is where daemons that were started on demand write.
func (r *Rig) DaemonLog() string { return filepath.Join(r.StateDir(), "daemon.log") }

// EndOfLog is the end of DaemonLog, or why it cannot be read.
func (r *Rig) EndOfLog() string {
	text, err := os.ReadFile(r.DaemonLog())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// Archive is the archive of an image of test/images, such as "busybox".
func (r *Rig) Archive(image string) string {
	return filepath.Join(r.Repository, "examples", "images", image+".tar")
}

// Client calls the rig's daemon, if there is one.
func (r *Rig) Client() *api.Client { return r.client }

// Command is podstead with the arguments, for the rig's folders. It is not started, and its context's end kills it.
func (r *Rig) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.Program, args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(),
		"PODSTEAD_CONFIG=", "PODSTEAD_SOCKET=", "PODSTEAD_STATE_DIR="+r.StateDir(), "PODSTEAD_RUN_DIR="+r.RunDir(), "PODSTEAD_LOG_DIR="+r.LogDir(),
		"PODSTEAD_CONFIG_DIR="+r.ConfigDir())
	cmd.Env = append(cmd.Env, r.Env...)
	return cmd
}

// Podstead runs a command to its end and returns what it wrote. The error of one that failed tells what it said.
func (r *Rig) Podstead(ctx context.Context, args ...string) (string, error) {
	out, err := r.Command(ctx, args...).Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		err = fmt.Errorf("podstead %v: %w: %s", args, err, exit.Stderr)
	}
	return string(out), err
}

// WritePod writes a pod file into the rig's folder and returns its path.
func (r *Rig) WritePod(name, text string) (string, error) {
	path := filepath.Join(r.Dir, name+".toml")
	return path, os.WriteFile(path, []byte(text), 0o644) // no secret
}

// Create has the daemon, which there must be, run a pod that belongs to nobody, from a file that is written into the rig's folder.
// It is safe for concurrent use.
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

// Saw tells the rig the UID of a pod of its own, which it cannot know of pods that are gone. An empty one, as of a pod that
// was not made, is none: it would be found in the name of every cgroup of the machine, and [Rig.Close] would kill all that
// runs. It is safe for concurrent use.
func (r *Rig) Saw(uid string) {
	if uuid.Validate(uid) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uids[uid] = true
}

// StopDaemon ends the daemon, if there is one. Containers run on.
func (r *Rig) StopDaemon(ctx context.Context) error {
	_, err := r.Podstead(ctx, "daemon", "stop")
	return err
}

// DaemonPID is the process of the daemon that answers.
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
			return fmt.Errorf("process %d is not dead yet", pid)
		}
		return nil
	})
}

// IsAlive reports whether a process runs. One that is dead and not reaped does not, but for one that has threads left: they hold
// its files and its locks until they have ended, too.
func IsAlive(pid int) bool {
	dir := fmt.Sprintf("/proc/%d", pid)
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	threads, _ := os.ReadDir(filepath.Join(dir, "task"))
	_, state, _ := strings.Cut(string(stat), ") ") // behind the name, which may hold anything
	return len(threads) > 1 || !strings.HasPrefix(state, "Z")
}

// lookAgain is the pause between two looks of Await.
const lookAgain = 20 * time.Millisecond

// Await returns when the condition holds. The error after the context's end tells why it did not hold last.
func Await(ctx context.Context, holds func() error) error {
	t := time.NewTicker(lookAgain)
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
