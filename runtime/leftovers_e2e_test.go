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
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// A daemon that is killed between keeping a run's secrets and making its record leaves a file that nothing names. It goes with
// the pod; newMachine's close looks for it.
func TestSecretsOfARunWithoutARecord(t *testing.T) {
	m := newMachine(t)
	p := newPod(m, &spec.Pod{})
	file, err := m.KeepProcess(uid, "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the secrets of a removed pod are left: %v", err)
	}
}

// What cannot be put right in the network (here: somebody's link has the bridge's name) keeps no daemon from its start, nor a
// pod in the machine's network; a pod that wants a network is told.
func TestStartBesideABrokenNetwork(t *testing.T) {
	m := newMachine(t)
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
	ip("link", "add", bridge, "type", "veth", "peer", "name", "stranger")
	m.start()
	if err := p.KillContainer(m.ctx(), uid, ref); err != nil {
		t.Error(err)
	}
	p.wait(ref)

	other, otherUID := &spec.Pod{Name: "other"}, strings.Replace(uid, "0001", "0002", 1)
	_, err = m.StartSandbox(m.ctx(), otherUID, other, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	if err == nil || !strings.Contains(err.Error(), "another link with the name "+bridge) {
		t.Errorf("a pod that wants a network: %v", err)
	}
	other.HostNetwork = true
	if _, err := m.StartSandbox(m.ctx(), otherUID, other, lifecycle.StartSandbox{Sandbox: 2, Round: 1}); err != nil {
		t.Errorf("a pod in the machine's network: %v", err)
	}
	if err := m.RemovePod(m.ctx(), otherUID, other); err != nil {
		t.Error(err)
	}
	ip("link", "del", bridge)
}

// A host port that a pod has refuses no other: the supervisor knows whether that pod is about to end, and the successor waits
// until it has. A port on which a process of the machine listens refuses.
func TestAdmitBesideAPod(t *testing.T) {
	m := newMachine(t)
	p := newPod(m, m.parse(portsFile))
	successor := m.parse(strings.Replace(portsFile, `name = "web"`, `name = "next"`, 1))
	if err := m.Admit(successor); err != nil {
		t.Errorf("refused: %v", err)
	}
	nextUID := strings.Replace(uid, "0001", "0002", 1)
	_, err := m.StartSandbox(m.ctx(), nextUID, successor, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	if err == nil || !strings.Contains(err.Error(), `in use by pod "web"`) {
		t.Errorf("started beside: %v", err)
	}
	if err := m.RemoveSandbox(m.ctx(), uid, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := m.StartSandbox(m.ctx(), nextUID, successor, lifecycle.StartSandbox{Sandbox: 1, Round: 1}); err != nil {
		t.Errorf("its turn: %v", err)
	}
	if err := p.RemovePod(m.ctx(), nextUID, successor); err != nil {
		t.Error(err)
	}
}

// What the engine does not know of a pod is found nevertheless: its addresses, and the volumes of one that waits for another.
func TestInventoryBesideTheEngine(t *testing.T) {
	m := newMachine(t)
	pod := &spec.Pod{Name: "p"}
	started, err := m.StartSandbox(m.ctx(), uid, pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
	if err != nil {
		t.Fatal(err)
	}
	waiting, waitingUID := &spec.Pod{Name: "waiting", Volumes: []spec.Volume{
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

// A privileged container with Bidirectional propagation may mount the machine's own tree in the volume of an image. What is
// mounted in that tree stays when the pod goes.
func TestImageVolumeWithTheMachinesMounts(t *testing.T) {
	m := newMachine(t)
	definition := m.parse(fmt.Sprintf(imageVolumeFile, filepath.Join(programs, "testserver.tar")))
	if _, err := m.PullImage(m.ctx(), definition, "c", func(_, _ int64) {}); err != nil {
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
	for _, dir := range []string{tree, inner} { // as the machine's / and its /proc
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		mount("tmpfs", dir, "tmpfs", 0)
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // it may be gone: that is the test's failure
		mount("", dir, "", unix.MS_SHARED)
	}
	mount("", image, "", unix.MS_SHARED)
	mount(tree, filepath.Join(image, "bin"), "", unix.MS_BIND|unix.MS_REC)
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
	if is, err := mountinfo.Mounted(inner); !is || err != nil {
		t.Errorf("what was mounted on the machine is gone with the pod: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(image)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the image's folder is left: %v", err)
	}
}

// A shim that is killed while the OCI runtime makes something leaves processes of which nobody knows but their cgroups, and maybe in
// some hierarchies only, or deeper. They end with the pod; newMachine's close looks for the cgroups.
func TestCgroupsWithoutARecord(t *testing.T) {
	m := newMachine(t)
	if m.opts.CgroupDriver == runtime.CgroupSystemd {
		return // which ends all that is in the slice of a pod
	}
	p := newPod(m, &spec.Pod{})
	ref, err := p.start(sh("exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	p.wait(ref) // its record is there, its task and its cgroup are not
	container, process := m.CgroupsOf(uid, ref, 1)
	hierarchy := "/sys/fs/cgroup/freezer" // where nobody looks first
	if _, err := os.Stat(hierarchy); err != nil {
		hierarchy = "/sys/fs/cgroup"
	}
	left := []*exec.Cmd{
		m.leave(filepath.Join(hierarchy, container, "below")), m.leave(filepath.Join(hierarchy, process)),
	}
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Error(err)
	}
	for _, c := range left {
		if err := c.Wait(); err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
			t.Errorf("a process that was left: %v", err)
		}
	}
}

// leave starts a process in a cgroup, which it makes.
func (m *machine) leave(dir string) *exec.Cmd {
	m.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.Fatal(err)
	}
	c := exec.Command("sleep", "100000")
	if err := c.Start(); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = c.Process.Kill() })
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0); err != nil {
		m.Fatal(err)
	}
	return c
}

// A shim that dies before it is a sandbox leaves the PID namespace that it has pinned. The next one of that number pins its own.
func TestPauseBesideALeftPin(t *testing.T) {
	m := newMachine(t)
	pod, start := &spec.Pod{Name: "p"}, lifecycle.StartSandbox{Sandbox: 1, Round: 1}
	if _, err := m.StartSandbox(m.ctx(), uid, pod, start); err != nil {
		t.Fatal(err)
	}
	pin := filepath.Join(m.opts.RunDir, "ns", uid, "1", "pid")
	err := os.WriteFile(pin, nil, 0o600)
	if err == nil {
		err = unix.Mount("/proc/self/ns/pid", pin, "", unix.MS_BIND, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	shim := m.shimPid()
	if err := unix.Kill(shim, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	m.eventually("the end of the shim", func() (string, bool) {
		err := unix.Kill(shim, 0)
		return fmt.Sprint(err), err != nil
	})
	pod.ShareProcessNamespace = true
	if _, err := m.StartSandbox(m.ctx(), uid, pod, start); err != nil {
		t.Error(err)
	}
	if err := m.RemovePod(m.ctx(), uid, pod); err != nil {
		t.Error(err)
	}
}
