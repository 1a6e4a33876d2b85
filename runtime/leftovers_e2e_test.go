//go:build e2e

package runtime_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// A daemon that is killed before it creates the record of a container leaves the process file. It is removed with the pod.
func TestProcessFileWithoutRecord(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, &spec.Pod{})
	file, err := m.WriteProcessFile(uid, "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the process file of a removed pod is left: %v", err)
	}
}

// If the network cannot be restored, for example because another link has the name of the bridge, the daemon starts and pods with
// hostNetwork run. Pods that need the network fail.
func TestStartWithBrokenNetwork(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, &spec.Pod{})
	bridge := runtime.BridgeOf(m.opts.RunDir)
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	ref, err := p.start(sh("while :; do sleep 1; done"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	ip("link", "del", bridge)
	ip("link", "add", bridge, "type", "veth", "peer", "name", "other")
	m.start()
	if err := p.KillContainer(m.ctx(), uid, ref); err != nil {
		t.Error(err)
	}
	p.wait(ref)

	other, otherUID := &spec.Pod{Name: "other"}, strings.Replace(uid, "0001", "0002", 1)
	_, err = m.StartSandbox(m.ctx(), otherUID, other, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	if err == nil || !strings.Contains(err.Error(), "link "+bridge+": a link of type veth with this name exists") {
		t.Errorf("pod that needs the network: %v", err)
	}
	other.HostNetwork = true
	if _, err := m.StartSandbox(m.ctx(), otherUID, other, lifecycle.StartSandbox{Sandbox: 2, Round: 1}); err != nil {
		t.Errorf("pod with hostNetwork: %v", err)
	}
	if err := m.RemovePod(m.ctx(), otherUID, other); err != nil {
		t.Error(err)
	}
	ip("link", "del", bridge)
}

// A host port of another pod is no reason for admission to refuse a pod: the supervisor may be about to stop the other pod.
func TestAdmitPortOfOtherPod(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(portsFile))
	successor := m.parse(strings.Replace(portsFile, `name = "web"`, `name = "next"`, 1))
	if err := m.Admit(successor); err != nil {
		t.Errorf("admission: %v", err)
	}
	nextUID := strings.Replace(uid, "0001", "0002", 1)
	_, err := m.StartSandbox(m.ctx(), nextUID, successor, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	if err == nil || !strings.Contains(err.Error(), `in use by pod "web"`) {
		t.Errorf("start while the port is in use: %v", err)
	}
	if err := m.RemoveSandbox(m.ctx(), uid, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := m.StartSandbox(m.ctx(), nextUID, successor, lifecycle.StartSandbox{Sandbox: 1, Round: 1}); err != nil {
		t.Errorf("start after the other pod has stopped: %v", err)
	}
	if err := p.RemovePod(m.ctx(), nextUID, successor); err != nil {
		t.Error(err)
	}
}

// The inventory contains what is not in the engine: addresses of pods, and pods that have only volumes.
func TestInventoryOutsideEngine(t *testing.T) {
	m := newTestHost(t)
	pod := &spec.Pod{Name: "p"}
	started, err := m.StartSandbox(m.ctx(), uid, pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	if err != nil {
		t.Fatal(err)
	}
	mounting := []spec.Container{{Name: "c", VolumeMounts: []spec.VolumeMount{{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b"}}}}
	waiting, waitingUID := &spec.Pod{Name: "waiting", Containers: mounting, Volumes: []spec.Volume{
		{Name: "a", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}},
		{Name: "b", ConfigMap: &spec.ConfigMapVolume{Name: "none"}},
	}}, strings.Replace(uid, "0001", "0002", 1)
	if _, err := m.StartSandbox(m.ctx(), waitingUID, waiting, lifecycle.StartSandbox{Sandbox: 1, Round: 1}); err == nil {
		t.Error("a pod was started without its volume")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.start()
	found, err := m.Inventory(m.ctx())
	want := []lifecycle.Found{{UID: uid, Sandbox: 1, Ready: true, IPs: started.IPs}, {UID: waitingUID}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil || len(started.IPs) == 0 {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	for _, f := range found {
		if err := m.RemovePod(m.ctx(), f.UID, nil); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(m.opts.RunDir, "volumes"))
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == waitingUID }) {
		t.Errorf("volumes are left: %v, %v", entries, err)
	}
}

// A privileged container with Bidirectional propagation can mount a directory tree of the host in an image volume. The mounts in that tree
// must not be unmounted when the pod is removed.
func TestImageVolumeWithHostMounts(t *testing.T) {
	m := newTestHost(t)
	definition := m.parse(fmt.Sprintf(imageVolumeFile, filepath.Join(programs, "testserver.tar")))
	if _, err := m.PullImage(m.ctx(), definition, lifecycle.PullImage{Container: "c"}, func(lifecycle.Progress) {}); err != nil {
		t.Fatal(err)
	}
	p := newPod(m, definition)
	p.run("c")
	tree := filepath.Join(m.dir, "tree")
	inner := filepath.Join(tree, "inner")
	image := filepath.Join(m.opts.RunDir, "images", uid, "img")
	mount := func(source, target, kind string, flags uintptr) {
		t.Helper()
		if err := unix.Mount(source, target, kind, flags, ""); err != nil {
			t.Fatalf("mount %s on %s: %v", source, target, err)
		}
	}
	for _, dir := range []string{tree, inner} { // like / and /proc of the host
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		mount("tmpfs", dir, "tmpfs", 0)
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // if it does not exist, the test has failed
		mount("", dir, "", unix.MS_SHARED)
	}
	mount("", image, "", unix.MS_SHARED)
	mount(tree, filepath.Join(image, "bin"), "", unix.MS_BIND|unix.MS_REC)
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
	if is, err := mountinfo.Mounted(inner); !is || err != nil {
		t.Errorf("a mount of the host was removed with the pod: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(image)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the image volumes is left: %v", err)
	}
}

// A shim that is killed while the OCI runtime creates a container leaves processes without a record, possibly in the cgroup of some
// hierarchies only, or in its children. They are killed and the cgroups removed with the pod.
func TestCgroupsWithoutRecord(t *testing.T) {
	m := newTestHost(t)
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		return // systemd kills everything in the slice of a pod
	}
	p := newPod(m, &spec.Pod{})
	ref, err := p.start(sh("exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	p.wait(ref) // its record exists, but not its task and its cgroup
	container, process := m.CgroupsOf(uid, ref, 1)
	hierarchy := "/sys/fs/cgroup/freezer" // a hierarchy that is not used to find processes
	if _, err := os.Stat(hierarchy); err != nil {
		hierarchy = "/sys/fs/cgroup"
	}
	m.eventually("the removal of the cgroup by the shim", func() (string, bool) {
		_, err := os.Stat(filepath.Join(hierarchy, container))
		return fmt.Sprint(err), errors.Is(err, os.ErrNotExist)
	})
	left := []*exec.Cmd{
		m.startInCgroup(filepath.Join(hierarchy, container, "below"), "sleep", "100000"),
		m.startInCgroup(filepath.Join(hierarchy, process), "sleep", "100000"),
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
	for _, c := range left {
		if err := c.Wait(); err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
			t.Errorf("process without a record: %v", err)
		}
	}
}

// TestStrayWithFiles: a process that something else has put in the cgroup of a pod is killed before the files of the pod are removed,
// because it could create others. It cannot delay that by ignoring signals, and it is reported.
func TestStrayWithFiles(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, &spec.Pod{})
	file := filepath.Join(m.opts.StateDir, "pods", uid, "emptydir", "file")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	hierarchy := "/sys/fs/cgroup/memory"
	if _, err := os.Stat(hierarchy); err != nil {
		hierarchy = "/sys/fs/cgroup"
	}
	script := "trap '' TERM; while [ -e " + file + " ]; do :; done"
	stray := m.startInCgroup(filepath.Join(hierarchy, m.cgroup(uid), "stray"), "sh", "-c", script)
	var got []string
	m.OnCleared(func(_ string, cleared podcgroup.Cleared) { got = append(got, cleared.String()) })
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
	if err := stray.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended with %v, want signal: killed", err)
	}
	if want := []string{fmt.Sprintf("processes sh (PID %d), cgroups stray", stray.Process.Pid)}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}

// startInCgroup creates a cgroup and starts a process in it.
func (m *testHost) startInCgroup(dir string, command ...string) *exec.Cmd {
	m.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.Fatal(err)
	}
	c := exec.Command(command[0], command[1:]...)
	if err := c.Start(); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = c.Process.Kill() })
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0); err != nil {
		m.Fatal(err)
	}
	return c
}

// A daemon that is killed while it starts a sandbox leaves a pinned PID namespace. The next start of the sandbox replaces it.
func TestPauseWithLeftPin(t *testing.T) {
	m := newTestHost(t)
	pod, start := &spec.Pod{Name: "p", ShareProcessNamespace: true}, lifecycle.StartSandbox{Sandbox: 1, Round: 1}
	pin := filepath.Join(m.opts.RunDir, "ns", uid, "1", "pid")
	err := errors.Join(os.MkdirAll(filepath.Dir(pin), 0o700), os.WriteFile(pin, nil, 0o600))
	if err == nil {
		err = unix.Mount("/proc/self/ns/pid", pin, "", unix.MS_BIND, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.StartSandbox(m.ctx(), uid, pod, start); err != nil {
		t.Error(err)
	}
	if err := m.RemovePod(m.ctx(), uid, pod); err != nil {
		t.Error(err)
	}
}
