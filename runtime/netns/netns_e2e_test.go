//go:build e2e

package netns

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

	"github.com/podstead/podstead/runtime/idmap"
	"github.com/podstead/podstead/spec"
)

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Stderr.WriteString("these tests need root\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// namespaces lists the network namespaces that threads of this process are in.
func namespaces(t *testing.T) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, p := range paths {
		if ns, err := os.Readlink(p); err == nil { // else the thread has just ended
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
	for range 50 { // often enough to meet the main thread
		dir := filepath.Join(t.TempDir(), "sandbox")
		pins, err := Pin(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = Unpin(dir) })
		first := inode(t, pins.Network)
		if pins, err = Pin(dir, o); err != nil || inode(t, pins.Network) != first {
			t.Errorf("the second Pin did not find the first one's: %v", err)
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
		t.Errorf("this process moved from %s to %s", own, now)
	}
	end := time.Now().Add(time.Minute)
	for len(namespaces(t)) > 1 {
		if time.Now().After(end) {
			t.Fatalf("threads have stayed in other namespaces: %v", namespaces(t))
		}
		<-time.After(10 * time.Millisecond)
	}
}

// What is half there is made anew.
func TestPinHalf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	t.Cleanup(func() { _ = Unpin(dir) })
	pins, err := Pin(dir, Options{Network: true, Hostname: "inside"})
	if err != nil {
		t.Fatal(err)
	}
	first := inode(t, pins.Network)
	hold, err := os.Open(pins.Network) // so that its number is not given to the next one
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := unix.Unmount(pins.UTS, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if pins, err = Pin(dir, Options{Network: true, Hostname: "inside"}); err != nil || inode(t, pins.Network) == first {
		t.Errorf("half of the namespaces were taken for all: %v", err)
	}
	if err := Unpin(dir); err != nil {
		t.Error(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("mounts are left in %s: %v", dir, err)
	}
}

// A folder that cannot be made leaves nothing.
func TestPinFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Pin(filepath.Join(dir, "sandbox"), Options{}); err == nil {
		t.Error("namespaces were pinned in a file")
	}
}

// TestSysctls: the pod's parameters are in what is pinned, over those that every pod has, and not in the machine; one that is
// not the pod's own is refused, and nothing stays pinned.
func TestSysctls(t *testing.T) {
	sysctl := func(name, value string) spec.Sysctl { return spec.Sysctl{Name: name, Value: value} }
	const port, shm = "net.ipv4.ip_unprivileged_port_start", "kernel.shm_rmid_forced"
	for _, test := range []struct {
		name    string
		network bool
		sysctls []spec.Sysctl
		err     string
	}{
		{name: "both", network: true, sysctls: []spec.Sysctl{sysctl(port, "77"), sysctl("kernel/shm_rmid_forced", "1")}},
		{name: "the machine's network", sysctls: []spec.Sysctl{sysctl(shm, "1")}},
		{name: "a parameter of the machine's network", sysctls: []spec.Sysctl{sysctl(shm, "1"), sysctl(port, "77")}, err: "no namespace of the pod's own"},
		{name: "a parameter of the machine", network: true, sysctls: []spec.Sysctl{sysctl("vm.swappiness", "1")}, err: "no namespace of the pod's own"},
		{name: "a path out of the folder", network: true, sysctls: []spec.Sysctl{sysctl("net///////.//vm/swappiness", "1")}, err: "no such parameter"},
		{name: "none of the kernel's", network: true, sysctls: []spec.Sysctl{sysctl("net.none", "1")}, err: "no such parameter"},
		{name: "a value that is none", network: true, sysctls: []spec.Sysctl{sysctl(port, "x")}, err: `to "x": `},
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
				if text, err := os.ReadFile(filepath.Join("/proc/sys", spec.SysctlPath(s.Name))); err != nil || strings.TrimSpace(string(text)) == s.Value {
					t.Errorf("%s in the machine: %q, %v", s.Name, text, err)
				}
			}
		})
	}
}

// readIn reads a kernel parameter in a namespace.
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

// A pod in the machine's IPC namespace has the machine's shared memory, and nothing of that is unpinned.
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
				t.Errorf("%+v: %s is there: %v", o, name, err)
			}
		}
		if err := Unpin(dir); err != nil {
			t.Error(err)
		}
	}
	if mounted, err := isMounted("/dev/shm"); !mounted || err != nil {
		t.Errorf("the machine's shared memory: %v, %v", mounted, err)
	}
}

// Namespaces that belong to a user namespace: set up like any others, and the machine's root is nobody in there.
func TestPinUsers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	t.Cleanup(func() { _ = Unpin(dir) })
	o := Options{Network: true, Hostname: "inside", IDs: idmap.Range{First: 7 * idmap.Size}}
	pins, err := Pin(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	first := inode(t, pins.User)
	if pins, err = Pin(dir, o); err != nil || inode(t, pins.User) != first {
		t.Errorf("the second Pin did not find the first one's: %v", err)
	}
	for _, path := range []string{pins.Network, pins.IPC, pins.UTS} {
		if got := ownerOf(t, path); got != first {
			t.Errorf("%s belongs to user namespace %d, not %d", path, got, first)
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
		t.Errorf("shared memory belongs to %d:%d, %v", shm.Uid, shm.Gid, err)
	}
	if err := Unpin(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(pins.User); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Unpin: %v", err)
	}
	if err := CheckUsers(); err != nil {
		t.Errorf("a machine that can: %v", err)
	}
}

// ownerOf is the number of the user namespace that a namespace belongs to.
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
