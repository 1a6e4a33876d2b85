//go:build e2e

package runtime_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"

	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/runtimetest"
	"github.com/podstead/podstead/runtime/shim"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/test/ocitar"
	"github.com/podstead/podstead/test/suite"
)

var _ supervisor.Runtime = (*runtime.Runtime)(nil)

// deadline is for anything that takes less than a second on an idle host.
const deadline = time.Minute

// The images of test/images.
const (
	busybox    = "localhost/podstead/busybox:1"
	testserver = "localhost/podstead/testserver:1"
)

// programs is the directory of the shim and the images, which are built once for all tests.
var programs string

// Variables for a host without Go, such as that of test/vm.
const (
	programsVariable = "PODSTEAD_TEST_PROGRAMS"      // the directory of prebuilt programs
	driverVariable   = "PODSTEAD_TEST_CGROUP_DRIVER" // the cgroup driver; systemd only if no other Podstead on the host uses it
	runtimeVariable  = "PODSTEAD_ENGINE_RUNTIME"     // the OCI runtime
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("PODSTEAD_TEST_DAEMON"); dir != "" {
		fmt.Println("error:", daemon(dir))
		os.Exit(1)
	}
	os.Exit(suite.Main(func() int {
		programs = os.Getenv(programsVariable)
		return m.Run()
	}, suite.Options{Slow: []string{"TestContract", "TestExecKillsProcesses", "TestMonitorHung"}, Around: withPrograms}))
}

// withPrograms builds the programs for all tests, unless the host has them.
func withPrograms(run func() int) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests need root")
		return 1
	}
	if os.Getenv(programsVariable) != "" {
		return run()
	}
	programs, err := os.MkdirTemp("", "programs")
	if err == nil {
		err = os.Setenv(programsVariable, programs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(programs)
	const commands = "github.com/podstead/podstead/cmd/"
	for _, args := range [][]string{
		{"build", "-o", programs + "/", commands + shim.Name, commands + monitor.Name},
		{"run", "github.com/podstead/podstead/test/images", "-o", programs},
	} {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go %v: %v\n%s", args, err, out)
			return 1
		}
	}
	return run()
}

// testHost is a simulated host: a runtime with its own directories and cgroups.
type testHost struct {
	testing.TB
	*runtime.Runtime
	dir         string
	archives    []string // that pull has imported; pods of the tests list them
	opts        runtime.Options
	beforeCheck func() // undoes what the test has changed on the host
}

func newTestHost(t testing.TB) *testHost {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt") // short, because it contains sockets
	if err != nil {
		t.Fatal(err)
	}
	m := &testHost{TB: t, dir: dir, opts: options(dir, programs)}
	t.Cleanup(m.close)
	m.start()
	m.pull(m.archive("busybox"), busybox)
	return m
}

// archive returns the path of an archive of a program, which a test may replace.
func (m *testHost) archive(program string) string {
	m.Helper()
	path := filepath.Join(m.dir, program+".tar")
	if err := os.Symlink(filepath.Join(programs, program+".tar"), path); err != nil && !errors.Is(err, fs.ErrExist) {
		m.Fatal(err)
	}
	return path
}

// pull imports an archive with the image.
func (m *testHost) pull(archive, image string) {
	m.Helper()
	if !slices.Contains(m.archives, archive) {
		m.archives = append(m.archives, archive)
	}
	pod := &spec.Pod{ImageArchives: []string{archive}, Containers: []spec.Container{{Name: "c", Image: image}}}
	if _, err := m.PullImage(m.ctx(), pod, lifecycle.PullImage{Container: "c"}, func(lifecycle.Progress) {}); err != nil {
		m.Fatal(err)
	}
}

// retag makes the name of the busybox image refer to another image with a shell, as an archive that was replaced does.
func (m *testHost) retag() {
	m.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		m.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		m.Fatal(err)
	}
	layer := ocitar.Layer{{Path: "bin", Mode: fs.ModeDir | 0o755}, {Path: "bin/sh", Mode: 0o755, Data: program}}
	var archive bytes.Buffer
	if err := ocitar.WriteOCI(&archive, ocitar.Image{Name: busybox, Layers: []ocitar.Layer{layer}}); err != nil {
		m.Fatal(err)
	}
	next := filepath.Join(m.dir, "next.tar")
	if err := os.WriteFile(next, archive.Bytes(), 0o600); err != nil {
		m.Fatal(err)
	}
	if err := os.Rename(next, m.archive("busybox")); err != nil {
		m.Fatal(err)
	}
	m.pull(m.archive("busybox"), busybox)
}

func options(dir, programs string) runtime.Options {
	return runtime.Options{
		StateDir:    filepath.Join(dir, "lib"),
		RunDir:      filepath.Join(dir, "run"),
		LogDir:      filepath.Join(dir, "log"),
		ShimPath:    filepath.Join(programs, shim.Name),
		MonitorPath: filepath.Join(programs, monitor.Name),
		ConfigDir:   filepath.Join(dir, "etc"),
		// like systemd for a unit with credentials
		CredentialsDir: filepath.Join(dir, "credentials"),
		CgroupDriver:   runtime.CgroupDriver(cmp.Or(os.Getenv(driverVariable), string(runtime.CgroupFS))),
		CgroupRoot:     "/podstead-test-" + filepath.Base(dir),
		CDIDirs:        []string{filepath.Join(dir, "cdi")},
		RuntimeBinary:  runtimeUnderTest(),
	}
}

// runtimeUnderTest returns the OCI runtime of the containers, runc unless the variable of the daemon is set.
func runtimeUnderTest() string { return cmp.Or(os.Getenv(runtimeVariable), "runc") }

func (m *testHost) start() {
	m.Helper()
	r, err := runtime.Start(context.Background(), m.opts)
	if err != nil {
		m.Fatal(err)
	}
	m.Runtime = r
}

func (m *testHost) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	m.Cleanup(cancel)
	return ctx
}

// close closes the runtime, and fails the test if anything of a pod is left.
func (m *testHost) close() {
	if m.Runtime == nil {
		_ = os.RemoveAll(m.dir)
		return
	}
	found, err := m.Inventory(context.Background())
	if err != nil {
		m.Error(err)
	}
	for _, f := range found {
		if !m.Failed() {
			m.Errorf("the engine still has pod %+v", f)
		}
		if err := m.RemovePod(context.Background(), f.UID, f.Pod); err != nil {
			m.Error(err)
		}
	}
	if left, err := m.Left(context.Background()); err != nil || len(left) > 0 {
		m.Errorf("the engine still has %v, %v", left, err)
	}
	if err := m.RemoveNetwork(context.Background()); err != nil {
		m.Error(err)
	}
	if err := m.Close(); err != nil {
		m.Error(err)
	}
	if m.beforeCheck != nil {
		m.beforeCheck()
	}
	m.checkProcesses()
	m.checkFiles()
	m.checkNetwork()
	if err := os.RemoveAll(m.dir); err != nil {
		m.Error(err)
	}
}

// checkProcesses checks that no process of a pod is left, and kills those that are. A monitor without containers exits.
func (m *testHost) checkProcesses() {
	left := m.processes()
	for end := time.Now().Add(deadline); len(left) > 0 && time.Now().Before(end); left = m.processes() {
		<-time.After(20 * time.Millisecond)
	}
	for pid, cmdline := range left {
		m.Errorf("process %d is left: %q", pid, cmdline)
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

// processes returns the command lines of this host's processes by PID.
func (m *testHost) processes() map[int]string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		m.Fatal(err)
	}
	found := map[int]string{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		cgroup, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup"))
		if len(cmdline) == 0 {
			continue // a zombie, which its new parent must reap
		}
		if strings.Contains(string(cmdline), m.dir) || strings.Contains(string(cgroup), m.allCgroups()) {
			found[pid] = string(cmdline)
		}
	}
	return found
}

// checkFiles checks that no mount, cgroup or directory of a pod is left.
func (m *testHost) checkFiles() {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		m.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, m.dir) {
			m.Errorf("a mount is left: %s", line)
			_ = exec.Command("umount", "-l", strings.Fields(line)[4]).Run()
		}
	}
	m.checkCgroups()
	for _, dir := range []string{"lib/pods", "run/ns", "run/volumes", "run/images", "run/process", "log"} {
		entries, err := os.ReadDir(filepath.Join(m.dir, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.Error(err)
		}
		if names := slices.Collect(func(yield func(string) bool) {
			for _, e := range entries {
				if !yield(e.Name()) {
					return
				}
			}
		}); len(names) > 0 {
			m.Errorf("left in %s: %v", dir, names)
		}
	}
}

// checkNetwork checks that no link and no nftables table of pods is left. The tests run in their own network namespace.
func (m *testHost) checkNetwork() {
	links, err := net.Interfaces()
	if err != nil {
		m.Fatal(err)
	}
	for _, l := range links {
		if l.Name != "lo" {
			m.Errorf("link %s is left", l.Name)
		}
	}
	c, err := nftables.New()
	if err != nil {
		m.Fatal(err)
	}
	tables, err := c.ListTables()
	if err != nil {
		m.Fatal(err)
	}
	for _, table := range tables {
		m.Errorf("nftables %s is left", table.Name)
		c.DelTable(table)
	}
	if err := c.Flush(); err != nil {
		m.Error(err)
	}
}

func TestContract(t *testing.T) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		m := newTestHost(t)
		return runtimetest.Harness{
			Runtime: m, Image: busybox, Archives: m.archives, LogDir: m.opts.LogDir,
			Retag:   m.retag,
			Collect: func(ctx context.Context) error { return m.Collect(ctx) },
			Reopen: func() runtimetest.Runtime {
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				m.start()
				return m
			},
		}
	})
}
