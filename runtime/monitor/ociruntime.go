package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/proctree"
)

const (
	// RuntimeTimeout bounds one run of the OCI runtime. It is long because an interrupted run leaves an incomplete container. It is shorter
	// than the time that clients have to start a container, so that they get the cause.
	RuntimeTimeout = 90 * time.Second
	// killedTimeout bounds the exit of an OCI runtime that was killed.
	killedTimeout = 10 * time.Second
	// maxRuntimeLog bounds what is read of the log of one run, and maxRuntimeOutput of its output for an error.
	maxRuntimeLog, maxRuntimeOutput = 64 << 10, 4 << 10
	// maxState bounds the state of a container, which contains its annotations.
	maxState = 1 << 20
)

// job is a run of the OCI runtime.
type job struct {
	process watched
	exit    chan int // the exit code; buffered
}

// invocation describes a run of the OCI runtime.
type invocation struct {
	runtime Runtime
	dir     string // has the log
	action  string // create, start, exec, kill, delete or state
	args    []string
	// streams are the standard streams; nil: no input, and output for the error.
	streams *[3]*os.File
	// output returns the start of what was written to streams, at most maxRuntimeOutput, for the error of a run that has failed; nil: none.
	output func() []byte
	score  int // the OOM score
}

// run runs the OCI runtime. The error has its text. If ctx ends it is killed with all that it has started, and the error is that of ctx. A
// run that creates or starts a process is in a flight of the caller until that process is registered.
func (m *Monitor) run(ctx context.Context, c invocation) (output []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, RuntimeTimeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	program, err := exec.LookPath(c.runtime.Binary)
	if err != nil {
		return nil, errorf(ClassRuntime, "OCI runtime %s failed: %v", c.action, err)
	}
	log := filepath.Join(c.dir, logFile)
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	streams, out := c.streams, (*os.File)(nil)
	if streams == nil {
		if out, err = memoryFile("output"); err != nil {
			return nil, err
		}
		defer out.Close()
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		streams = &[3]*os.File{null, out, out}
	}
	args := []string{program, "--root", c.runtime.Root, "--log", log, "--log-format", "json"}
	if c.runtime.SystemdCgroup {
		args = append(args, "--systemd-cgroup")
	}
	args = append(append(args, c.action), c.args...)
	j, err := m.startJob(program, args, streams, c.score)
	if err != nil {
		return nil, errorf(ClassRuntime, "OCI runtime %s failed: %v", c.action, err)
	}
	code, err := m.await(ctx, j)
	if err != nil {
		return nil, fmt.Errorf("OCI runtime %s: %w", c.action, err)
	}
	if code != 0 {
		if out != nil {
			output = readStart(out, maxRuntimeOutput)
		}
		if c.output != nil {
			output = c.output()
		}
		return nil, runtimeError(c.action, code, log, output)
	}
	if out != nil {
		output = readStart(out, maxState)
	}
	return output, nil
}

func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create memory file: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// readStart reads at most limit bytes of a file that was written by another process.
func readStart(f *os.File, limit int64) []byte {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, limit))
	return text
}

// forks makes the change of the OOM score around a fork exclusive.
var forks sync.Mutex

// startJob starts the OCI runtime. A child inherits the OOM score, and may have started its own before it could be changed. So this process
// has the score for the time of the fork. The kernel hardly chooses it then: it kills what uses most memory.
func (m *Monitor) startJob(program string, args []string, streams *[3]*os.File, score int) (*job, error) {
	defer m.flights.begin()() // it may exit before it is tracked, and a sweep would reap it
	pidfd := -1
	attributes := &syscall.ProcAttr{
		Dir: "/", Env: environment(-1), Files: []uintptr{streams[0].Fd(), streams[1].Fd(), streams[2].Fd()},
		Sys: &syscall.SysProcAttr{PidFD: &pidfd},
	}
	forks.Lock()
	own := *m.o.score
	if m.o.protected {
		own = protectedScore
	}
	var scoreErr error
	if score != own {
		scoreErr = writeScore(score)
	}
	pid, err := syscall.ForkExec(program, args, attributes)
	if score != own {
		scoreErr = errors.Join(scoreErr, writeScore(own))
	}
	forks.Unlock()
	if scoreErr != nil {
		logf("start OCI runtime: %v", scoreErr)
	}
	if err != nil {
		return nil, err
	}
	if pidfd < 0 {
		if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
			return nil, err
		}
	}
	j := &job{exit: make(chan int, 1)}
	s, err := proc.StatOf(pid)
	if err != nil {
		return nil, errors.Join(err, unix.Close(pidfd))
	}
	return j, m.track(j, pid, s.Start, pidfd)
}

// track waits for the exit of a run of the OCI runtime in the loop.
func (m *Monitor) track(j *job, pid int, start uint64, pidfd int) (err error) {
	if !m.loop.do(func() {
		m.jobs[j] = struct{}{}
		err = j.process.watch(m, pid, start, pidfd, func(code int, _ bool) bool {
			delete(m.jobs, j)
			j.exit <- code
			return true
		})
	}) {
		return errStopped
	}
	return err
}

var errStopped = errorf(ClassUnavailable, "the monitor stops")

// await waits for the exit of a run. If ctx ends before, the OCI runtime is killed with all its descendants: what it has started in part
// cannot be found later.
func (m *Monitor) await(ctx context.Context, j *job) (code int, err error) {
	select {
	case code := <-j.exit:
		return code, nil
	case <-m.loop.end:
		return 0, errStopped
	case <-ctx.Done():
	}
	err = context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errorf(ClassDeadline, "not done in time, killed")
	}
	family := proctree.Family{Leads: func(pid int, _ []string) bool { return pid == j.process.pid }}
	late := time.NewTimer(killedTimeout)
	defer late.Stop()
	for {
		family.Kill()
		again := time.NewTimer(100 * time.Millisecond)
		select {
		case <-j.exit:
			again.Stop()
			return 0, err
		case <-again.C:
		case <-late.C:
			again.Stop()
			return 0, fmt.Errorf("%w: it does not exit", err)
		}
	}
}

// runtimeError returns the error of a run, with the last error in the log.
func runtimeError(action string, code int, log string, output []byte) error {
	message := lastError(log)
	if message == "" && len(output) < maxRuntimeOutput { // otherwise it was cut, possibly in a secret, which is not recognized then
		message = string(bytes.TrimSpace(output))
	}
	if message == "" {
		message = "exit code " + strconv.Itoa(code)
	}
	return errorf(ClassRuntime, "OCI runtime %s failed: %s", action, message)
}

// lastError returns the message of the last error in a log of an OCI runtime.
func lastError(path string) (message string) {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxRuntimeLog)) // what can be read
	for line := range bytes.Lines(text) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && entry.Level == "error" {
			message = strings.TrimSpace(entry.Msg)
		}
	}
	return message
}

// isLost reports whether the OCI runtime has no state of a container.
func (r Runtime) isLost(id string) bool {
	_, err := os.Lstat(filepath.Join(r.Root, id))
	return errors.Is(err, fs.ErrNotExist)
}

// isCrun reports whether a container was created by crun.
func (r Runtime) isCrun(id string) bool {
	_, err := os.Lstat(filepath.Join(r.Root, id, "status"))
	return err == nil
}

// status returns the status of a container in the OCI runtime, empty if it has none.
func (m *Monitor) status(ctx context.Context, c *container) (string, error) {
	r := c.rec.Create.Runtime
	if r.isLost(c.id) {
		return "", nil
	}
	output, err := m.run(ctx, invocation{runtime: r, dir: c.dir, action: "state", args: []string{c.id}, score: *m.o.score})
	if err != nil {
		if r.isLost(c.id) || strings.Contains(err.Error(), "does not exist") {
			return "", nil
		}
		return "", err
	}
	var state struct{ Status string }
	if err := json.Unmarshal(output, &state); err != nil {
		return "", fmt.Errorf("read state of container %s: %w", c.id, err)
	}
	return state.Status, nil
}

// interrupted is a run of the OCI runtime that a monitor before has started.
type interrupted struct {
	pid   int
	start uint64
}

// interruptedRuns returns the runs that are in progress, by the directory that has their log.
//
// With crun, the first process of a container has the arguments of crun until it is started, but it is in another cgroup or, without
// cgroups, in another PID namespace.
func interruptedRuns(dir string) map[string][]interrupted {
	found := map[string][]interrupted{}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return found
	}
	all, err := proc.List()
	if err != nil {
		return found
	}
	prefix := filepath.Join(dir, containersDir) + "/"
	for _, pid := range all {
		args := proc.Args(pid)
		i := slices.Index(args, "--log") + 1
		if i == 0 || i >= len(args) || !strings.HasPrefix(args[i], prefix) || filepath.Base(args[i]) != logFile {
			continue
		}
		group, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
		if err != nil || !bytes.Equal(group, own) || proctree.NamespaceOf(pid) != "" {
			continue
		}
		if s, err := proc.StatOf(pid); err == nil && s.State != 'Z' {
			found[filepath.Dir(args[i])] = append(found[filepath.Dir(args[i])], interrupted{pid, s.Start})
		}
	}
	return found
}

// awaitInterrupted waits for the end of runs that a monitor before has started. One that takes too long is killed, with all that it has
// started.
func (m *Monitor) awaitInterrupted(ctx context.Context, runs []interrupted) error {
	ctx, cancel := context.WithTimeout(ctx, RuntimeTimeout)
	defer cancel()
	for _, r := range runs {
		pidfd, err := openProcess(r.pid, r.start)
		if isGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		j := &job{exit: make(chan int, 1)}
		if err := m.track(j, r.pid, r.start, pidfd); err != nil {
			return err
		}
		if _, err := m.await(ctx, j); err != nil {
			logf("OCI runtime %d of the monitor before: %v", r.pid, err)
		}
	}
	return nil
}
