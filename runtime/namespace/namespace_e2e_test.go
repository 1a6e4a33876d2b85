//go:build e2e

package namespace

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/suite"
)

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Stderr.WriteString("these tests need root\n")
		os.Exit(1)
	}
	os.Exit(suite.Main(m.Run, suite.Options{Together: true}))
}

// namespaces returns the network namespaces of the threads of this process.
func namespaces(t *testing.T) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, p := range paths {
		if ns, err := os.Readlink(p); err == nil { // otherwise the thread has exited
			all[ns] = true
		}
	}
	return all
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	return s.Ino
}

func TestPin(t *testing.T) {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Network: true, Hostname: "inside"}
	for range 50 { // enough to run on the main thread
		dir := filepath.Join(t.TempDir(), "sandbox")
		pins, err := Pin(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = Unpin(dir) })
		first := inode(t, pins.Network)
		if pins, err = Pin(dir, o); err != nil || inode(t, pins.Network) != first {
			t.Errorf("a second Pin returned other namespaces: %v", err)
		}
		for range 2 {
			if err := Unpin(dir); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(pins.Network); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Unpin: %v", err)
		}
	}
	if now, _ := os.Readlink("/proc/self/ns/net"); now != own {
		t.Errorf("the network namespace of the process changed from %s to %s", own, now)
	}
	deadline := time.Now().Add(time.Minute)
	for len(namespaces(t)) > 1 {
		if time.Now().After(deadline) {
			t.Fatalf("threads are left in other namespaces: %v", namespaces(t))
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Pin replaces an incomplete set of namespaces.
func TestPinReplacesIncomplete(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	t.Cleanup(func() { _ = Unpin(dir) })
	pins, err := Pin(dir, Options{Network: true, Hostname: "inside"})
	if err != nil {
		t.Fatal(err)
	}
	first := inode(t, pins.Network)
	hold, err := os.Open(pins.Network) // so that the inode number is not reused
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	wantLost := func(want bool) {
		t.Helper()
		if lost, err := Lost(dir); err != nil || lost != want {
			t.Errorf("Lost returned %t, %v, want %t", lost, err, want)
		}
	}
	wantLost(false)
	if err := unix.Unmount(pins.UTS, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	wantLost(true)
	if pins, err = Pin(dir, Options{Network: true, Hostname: "inside"}); err != nil || inode(t, pins.Network) == first {
		t.Errorf("an incomplete set of namespaces was not replaced: %v", err)
	}
	wantLost(false)
	if err := Unpin(dir); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
	wantLost(true)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("mounts are left in %s: %v", dir, err)
	}
}

// An error leaves nothing pinned.
func TestPinFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Pin(filepath.Join(dir, "sandbox"), Options{}); err == nil {
		t.Error("no error for a file in place of a directory")
	}
}

// The pod's sysctls are set in its namespaces after the defaults, and not on the host. Others are refused, and then
// nothing stays pinned.
func TestSysctls(t *testing.T) {
	sysctl := func(name, value string) spec.Sysctl { return spec.Sysctl{Name: name, Value: value} }
	const port, shm = "net.ipv4.ip_unprivileged_port_start", "kernel.shm_rmid_forced"
	for _, test := range []struct {
		name    string
		network bool
		sysctls []spec.Sysctl
		err     string
	}{
		{name: "network and IPC", network: true, sysctls: []spec.Sysctl{sysctl(port, "77"), sysctl("kernel/shm_rmid_forced", "1")}},
		{name: "IPC with host network", sysctls: []spec.Sysctl{sysctl(shm, "1")}},
		{
			name: "network with host network", sysctls: []spec.Sysctl{sysctl(shm, "1"), sysctl(port, "77")},
			err: "not in a namespace of the pod",
		},
		{name: "not namespaced", network: true, sysctls: []spec.Sysctl{sysctl("vm.swappiness", "1")}, err: "not in a namespace of the pod"},
		{
			name: "path traversal", network: true, sysctls: []spec.Sysctl{sysctl("net///////.//vm/swappiness", "1")},
			err: "not supported by the kernel",
		},
		{name: "unknown", network: true, sysctls: []spec.Sysctl{sysctl("net.none", "1")}, err: "not supported by the kernel"},
		{name: "invalid value", network: true, sysctls: []spec.Sysctl{sysctl(port, "x")}, err: `to "x": `},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sandbox")
			t.Cleanup(func() { _ = Unpin(dir) })
			pins, err := Pin(dir, Options{Network: test.network, Sysctls: test.sysctls})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
					t.Errorf("left: %v, %v", left, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range test.sysctls {
				ns := pins.IPC
				if spec.SysctlNamespace(s.Name) == "net" {
					ns = pins.Network
				}
				if got := readIn(t, ns, spec.SysctlPath(s.Name)); got != s.Value {
					t.Errorf("%s in the namespace: %q, want %q", s.Name, got, s.Value)
				}
				if text, err := os.ReadFile(filepath.Join("/proc/sys", spec.SysctlPath(s.Name))); err != nil ||
					strings.TrimSpace(string(text)) == s.Value {
					t.Errorf("%s on the host: %q, %v", s.Name, text, err)
				}
			}
		})
	}
}

// readIn reads a sysctl in a namespace.
func readIn(t *testing.T, namespace, path string) string {
	t.Helper()
	var text []byte
	err := OnOwnThread(func() error {
		fd, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, 0); err != nil {
			return err
		}
		text, err = os.ReadFile(filepath.Join("/proc/sys", path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// A pod in the host's IPC namespace uses its shared memory, which Unpin does not unmount.
func TestPinHostIPC(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	t.Cleanup(func() { _ = Unpin(dir) })
	for _, o := range []Options{{HostIPC: true}, {HostIPC: true, PID: true, Network: true, Hostname: "inside"}} {
		pins, err := Pin(dir, o)
		if err != nil || pins.IPC != "" || pins.Shm != "/dev/shm" || (pins.PID != "") != o.PID || (pins.Network != "") != o.Network {
			t.Errorf("%+v: %+v, %v", o, pins, err)
		}
		if again, err := Pin(dir, o); again != pins || err != nil {
			t.Errorf("%+v, again: %+v, %v", o, again, err)
		}
		for _, name := range []string{"ipc", "shm", "pid"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%+v: %s exists: %v", o, name, err)
			}
		}
		if err := Unpin(dir); err != nil {
			t.Error(err)
		}
	}
	if mounted, err := isMounted("/dev/shm"); !mounted || err != nil {
		t.Errorf("/dev/shm of the host is mounted: %v, %v", mounted, err)
	}
}

// Namespaces owned by a user namespace are initialized like any others.
func TestPinUserNamespace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	t.Cleanup(func() { _ = Unpin(dir) })
	o := Options{Network: true, Hostname: "inside", IDs: IDRange{First: 7 * IDRangeSize}}
	pins, err := Pin(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	first := inode(t, pins.User)
	if pins, err = Pin(dir, o); err != nil || inode(t, pins.User) != first {
		t.Errorf("a second Pin returned other namespaces: %v", err)
	}
	for _, path := range []string{pins.Network, pins.IPC, pins.UTS} {
		if got := ownerOf(t, path); got != first {
			t.Errorf("%s is owned by user namespace %d, want %d", path, got, first)
		}
	}
	out, err := exec.Command("nsenter", "--net="+pins.Network, "--uts="+pins.UTS, "--user="+pins.User, "sh", "-c",
		"hostname; cat /proc/self/uid_map /proc/sys/net/ipv4/ip_unprivileged_port_start; ip -o link show lo").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	words := strings.Fields(string(out))
	if got := strings.Join(words[:min(5, len(words))], " "); got != "inside 0 458752 65536 0" || !strings.Contains(string(out), ",UP,") {
		t.Errorf("inside:\n%s", out)
	}
	var shm unix.Stat_t
	if err := unix.Stat(pins.Shm, &shm); err != nil || shm.Uid != o.IDs.First || shm.Gid != o.IDs.First {
		t.Errorf("owner of shared memory %d:%d, %v", shm.Uid, shm.Gid, err)
	}
	if err := Unpin(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(pins.User); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Unpin: %v", err)
	}
	if err := CheckUsers(); err != nil {
		t.Errorf("CheckUsers: %v", err)
	}
}

// ownerOf returns the inode of the user namespace that owns a namespace.
func ownerOf(t *testing.T, path string) uint64 {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	owner, err := unix.IoctlRetInt(fd, unix.NS_GET_USERNS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(owner)
	var s unix.Stat_t
	if err := unix.Fstat(owner, &s); err != nil {
		t.Fatal(err)
	}
	return s.Ino
}

// TestUnpinCopies: a recursive bind mount of the host has copied the pins. They are removed nevertheless.
func TestUnpinCopies(t *testing.T) {
	base := t.TempDir()
	run, clone := filepath.Join(base, "run"), filepath.Join(base, "clone")
	dir := filepath.Join(run, "uid", "1")
	if _, err := Pin(dir, Options{Network: true, Hostname: "inside"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Unpin(dir) })
	if err := os.Mkdir(clone, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(run, clone, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(clone, unix.MNT_DETACH) })
	if err := Unpin(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}
