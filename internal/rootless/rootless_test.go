package rootless

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/forwarder"
	"github.com/podstead/podstead/runtime/proctree/proctreetest"
)

func TestIDsOf(t *testing.T) {
	const text = "root:10:5\nada:100000:65536\n# comment\n1000:300000:10\nada:bad:1\nada:1:-1\nadam:5:5\nada:200000:1\n"
	got := idsOf(text, "ada", 1000)
	if want := []idRange{{100000, 65536}, {300000, 10}, {200000, 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := idsOf("", "ada", 1000); got != nil {
		t.Errorf("got %v of an empty file", got)
	}
}

// TestMapping tests that the user is root and that its ranges follow without a gap.
func TestMapping(t *testing.T) {
	got := strings.Join(mapping(1000, []idRange{{100000, 65536}, {300000, 10}}), " ")
	if want := "0 1000 1 1 100000 65536 65537 300000 10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFreeRange(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "100000:65536",
		"ada:100000:65536\n":                "165536:65536",
		"ada:165536:65536\nbob:100000:10\n": "231072:65536",
	} {
		if got := freeRange(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// namespaces returns namespaces with directories of their own.
func namespaces(t *testing.T) *Namespaces {
	t.Helper()
	return &Namespaces{StateDir: t.TempDir(), RunDir: t.TempDir()}
}

// TestMain runs this program as a forwarder if it is one.
func TestMain(m *testing.M) {
	if forwarder.Invoked(os.Args) {
		os.Exit(forwarder.Main(context.Background(), os.Args))
	}
	os.Exit(m.Run())
}

// moves is a scope that records moves by PID. The zero value fails.
type moves map[int]string

func (m moves) Move(_ context.Context, leaf string, pid int) error {
	if m == nil {
		return fmt.Errorf("move process %d: not permitted", pid)
	}
	m[pid] = leaf
	return nil
}

// TestForwarder tests that the forwarder is started by the next command if it was killed, and not while one of its processes runs. It
// and pasta are moved to the scope of pods.
func TestForwarder(t *testing.T) {
	n := namespaces(t)
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n.Holder = filepath.Join(t.TempDir(), "podstead-monitor")
	if err := os.Symlink(program, n.Holder); err != nil {
		t.Fatal(err)
	}
	n.Warn = func(message string) { t.Error(message) }
	writeToken(t, n, "t")
	self := processOf(os.Getpid())
	if err := n.write(names{BootID: boot, RunDir: n.RunDir, Token: "t", Holder: self, Pasta: self}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.endForwarder(context.Background()); err != nil || len(n.forwarders()) > 0 {
			t.Errorf("left: %v, %v", n.forwarders(), err)
		}
	})
	started := func() process {
		t.Helper()
		if err := n.Reconnect(t.Context(), t.TempDir()); err != nil {
			t.Fatal(err)
		}
		r, err := n.read()
		if err != nil {
			t.Fatal(err)
		}
		return r.Forwarder
	}
	first := started()
	if !first.runs() || started() != first {
		t.Fatalf("started twice, or not at all: %v", first)
	}
	if o, err := n.Forwarder(); err != nil || o != (Outlet{Needed: true, PID: first.PID}) {
		t.Errorf("state %+v, %v", o, err)
	}
	c := forwarder.NewClient(t.Context(), forwarder.Socket(n.RunDir), "/proc/self/ns/net", slog.New(slog.DiscardHandler))
	defer c.Close()
	port := forwarder.Port{Protocol: forwarder.TCP, Addr: netip.MustParseAddr("192.0.2.9"), Port: 1}
	if err := c.Check(t.Context(), port); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("check: %v", err)
	}
	if all := n.forwarders(); len(all) != 2 {
		t.Errorf("processes %v, want the first one and the worker", all)
	}
	moved := moves{}
	n.moveOutlets(t.Context(), moved)
	want := moves{self.PID: daemonLeaf} // in place of pasta
	for _, p := range n.forwarders() {
		want[p.PID] = daemonLeaf
	}
	if !maps.Equal(moved, want) {
		t.Errorf("moved %v, want %v", moved, want)
	}
	if err := first.kill(); err != nil {
		t.Fatal(err)
	}
	if err := killAll(t.Context(), func() (left []process, err error) {
		if first.runs() {
			left = append(left, first)
		}
		return left, nil
	}); err != nil {
		t.Fatal(err)
	}
	if again := started(); again != first {
		t.Errorf("%v was started beside the worker", again)
	}
	worker := n.forwarders()
	if err := os.Remove(forwarder.Socket(n.RunDir)); err != nil {
		t.Fatal(err)
	}
	if o, err := n.Forwarder(); err != nil || o != (Outlet{Needed: true}) {
		t.Errorf("state without the socket %+v, %v", o, err)
	}
	other := forwarder.NewClient(t.Context(), forwarder.Socket(n.RunDir), "/proc/self/ns/net", slog.New(slog.DiscardHandler))
	if err := other.Replace(t.Context(), forwarder.Network{}, nil); !errors.Is(err, forwarder.ErrUnavailable) {
		t.Errorf("set all ports without the socket: %v", err)
	}
	if err := other.Set(t.Context(), "uid", forwarder.Network{}, nil); !errors.Is(err, forwarder.ErrUnavailable) {
		t.Errorf("close ports that the worker may have: %v", err)
	}
	other.Close()
	if again := started(); again == first || !again.runs() || slices.ContainsFunc(worker, process.runs) {
		t.Errorf("the worker %v without a socket was not replaced: %v", worker, again)
	}
	if err := c.Check(t.Context(), port); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("check with another forwarder: %v", err)
	}
	if err := n.endForwarder(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := time.After(time.Minute)
	for forwarder.Serves(forwarder.Socket(n.RunDir)) { // threads of a killed process close its sockets after the first one has exited
		select {
		case <-time.After(pollInterval):
		case <-late:
			t.Fatal("the killed forwarder serves its socket")
		}
	}
	left := leftWorker(t, forwarder.Socket(n.RunDir))
	if o, err := n.Forwarder(); err != nil || o != (Outlet{Needed: true}) || !slices.Contains(n.forwarders(), left) {
		t.Errorf("state with a worker that has left its ports %+v, %v", o, err)
	}
	again := started()
	if again == first || !again.runs() {
		t.Errorf("not started again: %v", again)
	}
	r, err := n.read()
	if err != nil {
		t.Fatal(err)
	}
	r.HandsOver = false
	if err := n.write(r); err != nil {
		t.Fatal(err)
	}
	if other := started(); other == again || !other.runs() || again.runs() || started() != other {
		t.Errorf("the forwarder %v of an earlier version was not replaced once: %v", again, other)
	}
	if err := n.endForwarder(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o, err := n.Forwarder(); err != nil || o != (Outlet{Needed: true}) {
		t.Errorf("state %+v, %v", o, err)
	}
	var warnings []string
	n.Warn = func(message string) { warnings = append(warnings, message) }
	n.moveOutlets(t.Context(), moves(nil))
	if len(warnings) != 1 || !strings.Contains(warnings[0], strconv.Itoa(self.PID)) {
		t.Errorf("not moved: %q", warnings)
	}
	n.Holder, warnings = "/does/not/exist", nil
	for range 2 { // it is not tried with each command
		started()
	}
	if o, err := n.Forwarder(); err != nil || len(warnings) != 1 || !strings.Contains(o.Error, "no such file") {
		t.Errorf("state %+v, %v, %q", o, err, warnings)
	}
}

// leftWorker starts a process with the arguments of a worker that does not listen on its socket.
func leftWorker(t *testing.T, socket string) process {
	t.Helper()
	dir := t.TempDir()
	args := append(forwarder.Args(filepath.Join(dir, "podstead-monitor"), socket), "worker")
	if err := os.WriteFile(filepath.Join(dir, args[1]), []byte("read -r end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh") // executes the file
	cmd.Args, cmd.Dir = args, dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() }) // it was killed
	return processOf(cmd.Process.Pid)
}

// TestRepeat tests that a cgroup is requested again while pods need it.
func TestRepeat(t *testing.T) {
	fails := errors.New("no answer")
	for _, test := range []struct {
		name            string
		needed, answers bool
		requests        int
		warnings        int
		err             error
	}{
		{"no pods", false, false, 1, 0, fails},
		{"answers later", true, true, 3, 1, nil},
		{"no answer", true, false, 10, 1, fails},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*delegateRetry-1)
			defer cancel()
			var warnings []string
			n := &Namespaces{Warn: func(message string) { warnings = append(warnings, message) }}
			requests := 0
			d, err := n.repeat(ctx, func() bool { return test.needed }, func() (Delegation, error) {
				if requests++; test.answers && requests == 3 {
					return Delegation{Cgroup: "/pods"}, nil
				}
				return Delegation{}, fails
			})
			if !errors.Is(err, test.err) || (d.Cgroup != "") != (err == nil) {
				t.Errorf("%s: %v, %v", test.name, d, err)
			}
			if requests != test.requests || len(warnings) != test.warnings {
				t.Errorf("%s: %d requests, %q", test.name, requests, warnings)
			}
		})
	}
}

// TestRecord tests that processes of an earlier boot, and those of a damaged record, are not used.
func TestRecord(t *testing.T) {
	n := namespaces(t)
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := n.read(); err != nil || r != (names{BootID: boot}) {
		t.Errorf("without a record: %v, %v", r, err)
	}
	want := names{BootID: boot, Holder: process{5, 6}, Pasta: process{7, 8}}
	if err := n.write(want); err != nil {
		t.Fatal(err)
	}
	if r, err := n.read(); err != nil || r != want {
		t.Errorf("got %v, %v, want %v", r, err, want)
	}
	want.BootID = "another"
	if err := n.write(want); err != nil {
		t.Fatal(err)
	}
	if r, err := n.read(); err != nil || r != (names{BootID: boot}) {
		t.Errorf("of another boot: %v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(n.StateDir, recordFile), []byte(`{"bootID":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := n.read(); err != nil || r != (names{BootID: boot}) {
		t.Errorf("damaged: %v, %v", r, err)
	}
}

// TestProcess tests that a process is identified by its start, too, and that nothing else is killed.
func TestProcess(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	p := processOf(cmd.Process.Pid)
	if !p.runs() || p.namespace("user") != processOf(os.Getpid()).namespace("user") {
		t.Errorf("%v does not run here", p)
	}
	other := process{p.PID, p.Start + 1}
	if err := other.kill(); err != nil || other.runs() || !p.runs() {
		t.Errorf("another process with this ID: %v", err)
	}
	if err := killAll(t.Context(), func() (left []process, err error) {
		if p.runs() {
			left = append(left, p)
		}
		return left, nil
	}); err != nil {
		t.Error(err)
	}
	if err := <-exited; err == nil {
		t.Error("the process was not killed")
	}
	if p.runs() || processOf(cmd.Process.Pid) == p {
		t.Error("the process still runs")
	}
	if (process{}).runs() {
		t.Error("no process runs")
	}
}

// writeToken writes the token of the record into its runtime directory.
func writeToken(t *testing.T, n *Namespaces, token string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(n.engineRun(), 0o700),
		os.WriteFile(filepath.Join(n.engineRun(), tokenFile), []byte(token), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestFind tests that the namespaces are not used after the loss of the runtime directory, which has all that is known of containers, also
// if there is another one at the same path: the mount namespace of the holder receives that.
func TestFind(t *testing.T) {
	n := namespaces(t)
	self := processOf(os.Getpid())
	r := names{RunDir: n.RunDir, Token: "first", Holder: self}
	if got := n.find(r); got != (process{}) {
		t.Errorf("without a token: %v", got)
	}
	writeToken(t, n, "first")
	if got := n.find(r); got != self {
		t.Errorf("got %v, want %v", got, self)
	}
	exited := r
	exited.Holder.Start++
	if got := n.find(exited); got != (process{}) {
		t.Errorf("a process that has exited: %v", got)
	}
	other := namespaces(t)
	writeToken(t, other, "first")
	if got := other.find(r); got != (process{}) {
		t.Errorf("with another runtime directory: %v", got)
	}
	if got := n.find(names{RunDir: n.RunDir, Holder: self}); got != (process{}) {
		t.Errorf("a record without a token: %v", got)
	}
	if err := os.RemoveAll(n.RunDir); err != nil {
		t.Fatal(err)
	}
	if got := n.find(r); got != (process{}) {
		t.Errorf("without the runtime directory: %v", got)
	}
	writeToken(t, n, "second")
	if got := n.find(r); got != (process{}) {
		t.Errorf("with another directory at its path: %v", got)
	}
}

// TestElsewhere tests that pods that run with another runtime directory are not killed while that exists.
func TestElsewhere(t *testing.T) {
	first, second := namespaces(t), namespaces(t)
	r := names{RunDir: first.RunDir, Token: "t", Holder: processOf(os.Getpid())}
	writeToken(t, first, "t")
	err := second.checkElsewhere(r)
	e, is := errors.AsType[*Error](err)
	if !is || !strings.Contains(e.Message, first.RunDir) || !strings.Contains(e.Hint, "XDG_RUNTIME_DIR") {
		t.Errorf("got %v", err)
	}
	if err := first.checkElsewhere(r); err != nil {
		t.Errorf("the same directory: %v", err)
	}
	exited := r
	exited.Holder.Start++
	if err := second.checkElsewhere(exited); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
	if err := os.RemoveAll(first.RunDir); err != nil {
		t.Fatal(err)
	}
	if err := second.checkElsewhere(r); err != nil {
		t.Errorf("the other directory is removed: %v", err)
	}
}

// TestClear tests that all processes of a user namespace that is lost are killed, not the holder alone: containers have no record then. No
// process of this user namespace is killed.
func TestClear(t *testing.T) {
	n := namespaces(t)
	pid, wait := proctreetest.Container(t, t.TempDir())
	holder := processOf(pid)
	ns, err := userNamespaceOf(holder)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.close()
	if list, err := ns.processes(); err != nil || len(list) != 2 {
		t.Fatalf("processes: %v, %v, want 2", list, err)
	}
	if err := n.clear(t.Context(), names{RunDir: filepath.Join(n.RunDir, "lost"), Token: "t", Holder: holder}); err != nil {
		t.Error(err)
	}
	if list, err := ns.processes(); err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
	if err := wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the holder ended with %v", err)
	}
	if err := n.clear(t.Context(), names{Holder: processOf(os.Getpid())}); err != nil {
		t.Errorf("a holder in this user namespace: %v", err)
	}
}

// TestNested tests that processes in user namespaces that a container has made are found.
func TestNested(t *testing.T) {
	cmd := exec.Command("unshare", "--user", "sh", "-c", "echo ready; exec sleep 1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	outer, wait := proctreetest.Container(t, t.TempDir())
	ns, err := userNamespaceOf(processOf(outer))
	if err != nil {
		t.Fatal(err)
	}
	defer ns.close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	nested := processOf(cmd.Process.Pid)
	own, err := userNamespaceOf(processOf(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	if ns.has(nested) || !own.has(nested) || !own.has(processOf(outer)) || ns.has(processOf(os.Getpid())) {
		t.Errorf("process %v: in another namespace %v, in this one %v", nested, ns.has(nested), own.has(nested))
	}
	_ = unix.Kill(outer, unix.SIGKILL)
	_ = wait()
}

// TestRunningPasta tests that a pasta whose starter was killed is found by its file, and no other process.
func TestRunningPasta(t *testing.T) {
	n := namespaces(t)
	cmd := exec.Command("/bin/sh", "-c", "read line", "pasta", "--pid", n.pastaFile(), "4242")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}()
	if got := n.runningPasta(); got != (process{}) {
		t.Errorf("without a file: %v", got)
	}
	for pid, want := range map[int]process{cmd.Process.Pid: processOf(cmd.Process.Pid), os.Getpid(): {}, 0: {}} {
		if err := os.WriteFile(n.pastaFile(), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := n.runningPasta(); got != want {
			t.Errorf("process %d: %v, want %v", pid, got, want)
		}
	}
}

// TestReconnect tests when pasta is started again, that its error is known, and that it is not tried with each command.
func TestReconnect(t *testing.T) {
	n := namespaces(t)
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	var warnings []string
	n.Warn = func(message string) { warnings = append(warnings, message) }
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Reconnect(t.Context(), t.TempDir()); err != nil || len(warnings) > 0 {
		t.Errorf("without namespaces: %v, %q", err, warnings)
	}
	writeToken(t, n, "t")
	self := processOf(os.Getpid())
	err = errors.Join(n.write(names{BootID: boot, RunDir: n.RunDir, Token: "t", Holder: self, Forwarder: self, HandsOver: true}),
		os.WriteFile(forwarder.Socket(n.RunDir), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Reconnect(t.Context(), t.TempDir()); err != nil || len(warnings) != 1 {
			t.Errorf("without pasta: %v, %q", err, warnings)
		}
	}
	if o, err := n.Outlet(); err != nil || !o.Needed || o.PID != 0 || o.Error != ErrNoPasta.Error() {
		t.Errorf("outlet %+v, %v", o, err)
	}
	r, err := n.read()
	if err != nil {
		t.Fatal(err)
	}
	r.PastaTried = r.PastaTried.Add(-retryInterval)
	if err := n.write(r); err != nil {
		t.Fatal(err)
	}
	pasta := "#!/bin/sh\nfor a; do test \"$last\" = --pid && echo " + strconv.Itoa(self.PID) + " >\"$a\"; last=$a; done\n"
	if err := os.WriteFile(filepath.Join(bin, "pasta"), []byte(pasta), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := n.Reconnect(t.Context(), t.TempDir()); err != nil || len(warnings) != 1 {
		t.Errorf("installed later: %v, %q", err, warnings)
	}
	if o, err := n.Outlet(); err != nil || o != (Outlet{Needed: true, PID: self.PID}) {
		t.Errorf("outlet %+v, %v", o, err)
	}
}

// TestInside tests that the variable alone does not make a process one in the namespaces.
func TestInside(t *testing.T) {
	if text, err := os.ReadFile("/proc/self/uid_map"); err != nil || len(strings.Fields(string(text))) != 3 ||
		strings.Fields(string(text))[2] != "4294967295" {
		t.Skip("this test runs in a user namespace")
	}
	t.Setenv(variable, "9")
	if Inside() {
		t.Error("inside with the variable alone")
	}
}

// TestLock tests that a second lock is refused while the first one is held.
func TestLock(t *testing.T) {
	n := namespaces(t)
	fd, err := n.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.held = fd
	done := make(chan error)
	go func() {
		_, err := n.lock(t.Context())
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("locked twice: %v", err)
	default:
	}
	n.unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRunReportsOutput tests that the error of a program has its last line.
func TestRunReportsOutput(t *testing.T) {
	err := run(t.Context(), "/bin/sh", []string{"-c", "echo first; echo last >&2; exit 3"})
	if err == nil || err.Error() != "sh: exit status 3: last" {
		t.Errorf("got %v", err)
	}
	if err := run(t.Context(), "/bin/sh", []string{"-c", "exit 0"}); err != nil {
		t.Error(err)
	}
}
