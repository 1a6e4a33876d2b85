//go:build e2e

package monitor

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/proctree"
)

const (
	// statePrefix starts the names of state directories of tests.
	statePrefix = "/dev/shm/podstead-monitor-"
	// cgroupParent is the cgroup of the containers of tests.
	cgroupParent = "podstead-monitor-test"
	// patience bounds each wait. The machine may be busy.
	patience = 2 * time.Minute
)

var program string // the monitor, built by TestMain

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "e2e tests of the monitor need root")
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "podstead-monitor-program-")
	if err == nil {
		program = filepath.Join(dir, Name)
		var out []byte
		args := []string{"build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", program}
		if race := os.Getenv("PODSTEAD_MONITOR_RACE"); race != "" { // with the race detector, which needs cgo
			args = append(args, "-race")
		}
		if out, err = exec.Command("go", append(args, "../../cmd/podstead-monitor")...).CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	left, _ := filepath.Glob(statePrefix + "*")
	for _, state := range left {
		if !isOwned(state) { // of a run that was killed
			sweepState(state)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// world is a keeper with a monitor, and a client.
type world struct {
	testing.TB
	ctx    context.Context
	state  string // directory of the monitor
	base   string // directory of bundles and logs
	keeper *exec.Cmd
	args   []string // more arguments of keepers
	client *Client
	binary string
	next   int
	logs   map[string]string // directories of logs elsewhere, by container
}

// runtimeUnderTest is the OCI runtime, as in package rig. crun needs test/purecgroup/run on a host with hybrid cgroups.
func runtimeUnderTest() string { return cmp.Or(os.Getenv("PODSTEAD_ENGINE_RUNTIME"), "runc") }

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, func(string) error { return nil })
}

// newWorldOn calls prepare with the state directory before the keeper is started.
func newWorldOn(t testing.TB, prepare func(dir string) error) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	state, err := os.MkdirTemp(filepath.Dir(statePrefix), filepath.Base(statePrefix))
	if err != nil {
		t.Fatal(err)
	}
	own, err := proc.StatOf(os.Getpid())
	if err == nil {
		err = os.WriteFile(filepath.Join(state, "owner"), fmt.Appendf(nil, "%d %d", os.Getpid(), own.Start), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, ctx: ctx, state: state, base: filepath.Join(state, "test"), binary: runtimeUnderTest(), logs: map[string]string{}}
	t.Cleanup(w.end)
	for _, dir := range []string{"bundles", "logs", "runtime", "rootfs/bin", "rootfs/proc", "rootfs/dev", "rootfs/sys", "rootfs/tmp"} {
		w.must(os.MkdirAll(filepath.Join(w.base, dir), 0o755))
	}
	busybox, err := os.ReadFile("/usr/bin/busybox")
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.base, "rootfs/bin/busybox"), busybox, 0o755))
	for name := range strings.FieldsSeq("sh sleep cat true echo seq stty yes head tail mkdir mkfifo grep ls") {
		w.must(os.Symlink("busybox", filepath.Join(w.base, "rootfs/bin", name)))
	}
	w.must(os.Mkdir(w.dir(), 0o700))
	w.must(prepare(w.dir()))
	w.startKeeper()
	w.connect()
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) dir() string { return filepath.Join(w.state, "state") }

// startKeeper starts a keeper.
func (w *world) startKeeper() {
	w.Helper()
	w.keeper = exec.Command(program, append([]string{roleKeeper, "-state", w.dir()}, w.args...)...)
	w.keeper.Stderr = &testLog{t: w.TB}
	w.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	w.keeper.WaitDelay = time.Second // a process that it has left holds its standard error
	w.must(w.keeper.Start())
	go func(c *exec.Cmd) { _ = c.Wait() }(w.keeper)
}

// testLog writes lines to the log of a test.
type testLog struct{ t testing.TB }

func (l *testLog) Write(b []byte) (int, error) {
	if os.Getenv("PODSTEAD_MONITOR_LOG") != "" {
		fmt.Fprintf(os.Stderr, "%s", b)
	}
	return len(b), nil
}

// connect connects to the monitor, which may be starting.
func (w *world) connect() {
	w.Helper()
	if w.client != nil {
		_ = w.client.Close()
	}
	w.eventually("a monitor answers", func() error {
		ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
		defer cancel()
		c, err := Dial(ctx, w.dir())
		if err != nil {
			return err
		}
		if _, err := c.Hello(ctx); err != nil {
			return errors.Join(err, c.Close())
		}
		w.client = c
		return nil
	})
}

// eventually waits for a condition.
func (w *world) eventually(what string, check func() error) {
	w.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			w.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		<-tick.C
	}
}

// retry repeats a request whose connection is lost, on a new connection.
func (w *world) retry(what string, do func(c *Client) error) {
	w.Helper()
	w.eventually(what, func() error {
		err := do(w.client)
		if errors.Is(err, ErrClosed) {
			w.connect()
		}
		return err
	})
}

// options of a container of a test.
type testContainer struct {
	sandbox  string
	terminal bool
	stdin    ocibundle.Stdin
	log      crilog.Options
	memory   int64
	logs     string // directory of the log; empty: the usual one
	hostPID  bool
}

// bundle writes the bundle of a container.
func (w *world) bundle(o testContainer, script string) Create {
	w.Helper()
	w.next++
	id := fmt.Sprintf("c%d-%s", w.next, filepath.Base(w.state)[len(filepath.Base(statePrefix)):])
	bundle := filepath.Join(w.base, "bundles", id)
	w.must(os.MkdirAll(bundle, 0o755))
	s := specs.Spec{
		Version: "1.0.2",
		Process: w.process(script),
		Root:    &specs.Root{Path: "rootfs", Readonly: true},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"newinstance", "ptmxmode=0666", "mode=0620"}},
			{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs"},
		},
		Linux: &specs.Linux{
			CgroupsPath: "/" + cgroupParent + "/" + id,
			Namespaces:  []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}},
			Resources:   &specs.LinuxResources{},
		},
	}
	s.Process.Terminal = o.terminal
	if !o.hostPID {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.PIDNamespace})
	}
	if o.memory > 0 {
		s.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &o.memory}
	}
	text, err := json.Marshal(s)
	w.must(err)
	w.must(os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600))
	if o.logs != "" {
		w.logs[id] = o.logs
	}
	out := ocibundle.Output{Log: w.logPath(id), Options: o.log, Stdin: o.stdin}
	return Create{
		ID: id, Sandbox: o.sandbox, Bundle: bundle, Terminal: o.terminal, Output: out.URI().String(),
		Rootfs:  []Mount{{Type: "bind", Source: filepath.Join(w.base, "rootfs"), Options: []string{"rbind", "ro"}}},
		Runtime: Runtime{Binary: w.binary, Root: filepath.Join(w.base, "runtime")},
	}
}

func (w *world) process(script string) *specs.Process {
	score := 100
	return &specs.Process{
		Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/bin"}, Cwd: "/", OOMScoreAdj: &score,
		Capabilities: &specs.LinuxCapabilities{},
	}
}

func (w *world) processJSON(script, mark string) json.RawMessage {
	p := w.process(script)
	if mark != "" {
		p.Env = append(p.Env, proctree.MarkVariable+"="+mark)
	}
	text, err := json.Marshal(p)
	w.must(err)
	return text
}

func (w *world) logPath(id string) string {
	return filepath.Join(cmp.Or(w.logs[id], filepath.Join(w.base, "logs")), id, "0.log")
}

// run creates and starts a container.
func (w *world) run(o testContainer, script string) Container {
	w.Helper()
	c, err := w.client.CreateAndStart(w.ctx, w.bundle(o, script))
	w.must(err)
	return c
}

// awaitExit waits for the exit of a container.
func (w *world) awaitExit(id string) Exit {
	w.Helper()
	var e Exit
	w.eventually("container "+id+" exits", func() error {
		c, err := w.client.State(w.ctx, id)
		if errors.Is(err, ErrClosed) {
			w.connect()
		}
		if err != nil {
			return err
		}
		if c.Exit == nil {
			return fmt.Errorf("it is %s", c.Phase)
		}
		e = *c.Exit
		return nil
	})
	return e
}

// delete deletes a container.
func (w *world) delete(id string) Container {
	w.Helper()
	c, err := w.client.Delete(w.ctx, id)
	w.must(err)
	return c
}

// log returns the lines of a container's log, and those of one stream only if it is not empty.
func (w *world) log(id string, stream crilog.Stream) (lines []string) {
	w.Helper()
	f, err := os.Open(w.logPath(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	w.must(err)
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	part := ""
	for s.Scan() {
		e, err := crilog.Parse(s.Bytes())
		if err != nil {
			w.Fatalf("log of %s: line %q: %v", id, s.Text(), err)
		}
		if stream != "" && e.Stream != stream {
			continue
		}
		if part += string(e.Text); !e.Partial {
			lines, part = append(lines, part), ""
		}
	}
	w.must(s.Err())
	if part != "" {
		lines = append(lines, part)
	}
	return lines
}

func (w *world) wantLog(id string, want ...string) {
	w.Helper()
	if got := w.log(id, ""); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.Errorf("log of %s: got %q, want %q", id, got, want)
	}
}

// kill kills a process and waits until it is gone or a zombie.
func (w *world) kill(pid int) {
	w.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, _ = retry(func() (int, error) { return unix.Poll(poll, int(patience/time.Millisecond)) })
}

// pids returns keeper and monitor.
func (w *world) pids() (keeper, monitor int) {
	w.Helper()
	var h Hello
	w.retry("hello", func(c *Client) (err error) {
		h, err = c.Hello(w.ctx)
		return err
	})
	return h.Keeper, h.PID
}

// end stops everything, and checks that nothing is left.
func (w *world) end() {
	if w.client != nil {
		_ = w.client.Close()
	}
	w.killRoles()
	if !w.Failed() {
		w.checkClean()
	}
	sweepState(w.state)
}

// killRoles kills keeper and monitor, whichever of them executes a program or starts the other one meanwhile.
func (w *world) killRoles() {
	w.Helper()
	w.eventually("keeper and monitor are killed", func() error {
		pids := w.roles()
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGSTOP) // neither notices the death of the other one
		}
		for _, pid := range pids {
			w.kill(pid)
		}
		f, err := os.Open(filepath.Join(w.dir(), "lock"))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil {
			defer f.Close()
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) // both hold it
		}
		return err
	})
}

// isOwned reports whether a state directory is of a run that is in progress.
func isOwned(state string) bool {
	text, err := os.ReadFile(filepath.Join(state, "owner"))
	var pid int
	var start uint64
	if err == nil {
		_, err = fmt.Sscan(string(text), &pid, &start)
	}
	return err == nil && isProcess(pid, start)
}

// roles returns the processes of keeper and monitor.
func (w *world) roles() []int { return rolesIn(w.dir()) }

// rolesIn returns the processes of keeper and monitor with this state directory.
func rolesIn(state string) (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		text, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		first, rest, _ := strings.Cut(string(text), "\x00")
		if err == nil && filepath.Base(first) == Name && strings.Contains(rest, "\x00"+state+"\x00") {
			var pid int
			_, _ = fmt.Sscan(filepath.Base(dir), &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// checkClean checks that tests that deleted their containers left no mount, no process and no cgroup.
func (w *world) checkClean() {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	w.must(err)
	if strings.Contains(string(mounts), w.base) {
		w.Errorf("mounts are left below %s", w.base)
	}
	suffix := filepath.Base(w.state)[len(filepath.Base(statePrefix)):]
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroupParent + "/*" + suffix)
	if len(groups) > 0 {
		w.Errorf("cgroups are left: %v", groups)
	}
	for _, dir := range []string{w.base + "/bundles", w.base + "/runtime", filepath.Join(w.dir(), containersDir)} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			w.Errorf("%s is left in %s", e.Name(), dir)
		}
	}
}

// sweepState ends what uses a state directory of a test, and removes it.
func sweepState(state string) {
	pids := rolesIn(filepath.Join(state, "state"))
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} { // neither notices the death of the other one
		for _, pid := range pids {
			_ = unix.Kill(pid, sig)
		}
	}
	runtimeRoot := filepath.Join(state, "test/runtime")
	entries, _ := os.ReadDir(runtimeRoot)
	for _, e := range entries {
		for _, binary := range []string{"runc", "crun"} {
			_ = exec.Command(binary, "--root", runtimeRoot, "delete", "--force", e.Name()).Run()
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.SplitSeq(string(mounts), "\n") {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], state+"/") {
			_ = unix.Unmount(f[4], unix.MNT_DETACH)
		}
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroupParent)
	for _, g := range groups {
		_ = os.Remove(g)
	}
	_ = os.RemoveAll(state)
}

// lines returns an error until a log has this number of lines.
func (w *world) lines(id string, n int) error {
	if got := len(w.log(id, "")); got < n {
		return fmt.Errorf("%d lines", got)
	}
	return nil
}

// removeBundles removes bundles of containers that were not created.
func (w *world) removeBundles(list ...Create) {
	for _, r := range list {
		w.must(os.RemoveAll(r.Bundle))
	}
}

// wantNothing checks that the monitor has no container, and holds nothing of one.
func (w *world) wantNothing() {
	w.Helper()
	list, _, err := w.client.List(w.ctx)
	w.must(err)
	if len(list) > 0 {
		w.Errorf("containers are left: %+v", list)
	}
	keeper, monitor := w.pids()
	for _, pid := range []int{keeper, monitor} {
		w.eventually("no FIFO is open", func() error {
			fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for _, fd := range fds {
				if to, err := os.Readlink(fd); err == nil && strings.Contains(to, containersDir) {
					return fmt.Errorf("process %d holds %s", pid, to)
				}
			}
			return nil
		})
	}
}
