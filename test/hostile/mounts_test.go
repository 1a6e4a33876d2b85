//go:build e2e

package hostile

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// hostMounter is a pod that mounts a directory of the host, as agents for monitoring do. One of its containers restarts, so that there are
// mounts of several runs.
func hostMounter(path, text string) string {
	container := func(name, how, attempt string) string {
		return Play(name, how, attempt) + "securityContext = { privileged = true }\nvolumeMounts = { host = \"/host\" }\n"
	}
	return text + container("c", "stay", "wait 1ms") + container("again", "try", "wait 1ms") +
		fmt.Sprintf("[[volumes]]\nname = \"host\"\nhostPath = { path = %q }\n", path)
}

// TestHostPathOverRunDirectory: pods mount directories of the host that contain the run directory. Other pods are deleted meanwhile, also
// after the daemon was killed, and nothing is left of them. The pods do not get the mounts of other pods.
func TestHostPathOverRunDirectory(t *testing.T) {
	for _, test := range []struct {
		name      string
		hostPaths string // the policy; "" is the directory of the test, which the daemon mounts instead of the OCI runtime
		path      string // "" is the directory of the test
	}{
		{"run directory", "/", ""},
		{"confined", "", ""},
		{"root directory", "/", "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fixture{rig.NewFixture(t, deadline, "intruder")}
			path, hostPaths := cmp.Or(test.path, f.Dir), cmp.Or(test.hostPaths, f.Dir)
			f.Env = []string{"PODSTEAD_POLICY_HOST_PATHS=" + hostPaths}
			f.CheckLeftovers(deadline, "daemon", "stop", "--pods")
			f.MustRun("get") // starts the daemon
			f.create("first",
				Play("c", "stay", "wait 1ms")+
					"volumeMounts = { m = \"/m\" }\n[[volumes]]\nname = \"m\"\nemptyDir = { medium = \"Memory\" }\n")
			f.Until("first", "ready", isReady)
			f.create("host", hostMounter(path, ""))
			f.create("mapped", hostMounter(path, "hostUsers = false\n"))
			for _, pod := range []string{"host", "mapped"} {
				f.Until(pod, "running", func(p *api.Pod) bool { return statusOf(p, "c").Ready && statusOf(p, "again").RestartCount > 0 })
				f.hasNoMounts(pod, path)
			}
			f.create("second", Play("c", "stay", "wait 1ms"))
			f.Until("second", "ready", isReady)
			f.MustRun("delete", "first")
			f.MustKillDaemon()
			f.MustRun("delete", "second")
			f.MustRun("delete", "host", "mapped")
		})
	}
}

// hasNoMounts checks that a pod that mounts a directory of the host does not have the mounts in the run directory, and that the host has no
// copies of its own mounts.
func (f *fixture) hasNoMounts(pod, dir string) {
	f.Helper()
	run := filepath.Join("/host", strings.TrimPrefix(f.RunDir(), strings.TrimSuffix(dir, "/")))
	for _, path := range f.mountPoints(fmt.Sprintf("/proc/%d/mountinfo", f.processOf(pod, "/bin/intruder"))) {
		if strings.HasPrefix(path, run) {
			f.Errorf("pod %s has the mount %s", pod, path)
		}
	}
	f.Await(func() error { // a container may be starting
		for _, path := range f.mountPoints("/proc/self/mountinfo") {
			if strings.HasPrefix(path, f.RunDir()) && strings.Contains(path, "/subpaths/") {
				return fmt.Errorf("the host has the mount %s", path)
			}
		}
		return nil
	})
}

// mountPoints returns the mount points in a file of the form of /proc/self/mountinfo.
func (f *fixture) mountPoints(file string) (list []string) {
	f.Helper()
	text, err := os.ReadFile(file)
	f.Check(err)
	for line := range strings.Lines(string(text)) {
		list = append(list, strings.Fields(line)[4])
	}
	return list
}

// TestVolumeLedToDev: a link in a volume leads the mount point of another volume to /dev, where a link in the place of /dev/null makes the
// OCI runtime mount a masked file of /proc instead of hiding it (CVE-2025-31133).
func TestVolumeLedToDev(t *testing.T) {
	f := newFixture(t, options{})
	f.create("led", `restartPolicy = "Never"
[[initContainers]]
name = "prepare"
image = "`+Intruder+`"
args = ["try", "symlink /dev /a/dev", "symlink /proc/keys /b/null"]
volumeMounts = { a = "/a", b = "/b" }
`+Play("c", "try", "read /proc/keys")+`
volumeMounts = { a = "/data", b = "/data/dev" }
[[volumes]]
name = "a"
emptyDir = {}
[[volumes]]
name = "b"
emptyDir = {}
`)
	f.Until("led", "refused", func(p *api.Pod) bool {
		w := statusOf(p, "c").State.Waiting
		return w != nil && w.Reason == "CreateContainerConfigError" &&
			strings.Contains(w.Message, `"/data/dev" leads to /dev through a symbolic link`)
	})
	f.MustRun("delete", "led")
}

// TestVolumesOnKernelFileSystems: the pod file is rejected if a container that is not privileged replaces a part of /dev, /proc or /sys
// that the OCI runtime sets up.
func TestVolumesOnKernelFileSystems(t *testing.T) {
	f := newFixture(t, options{})
	const volumes = "[[volumes]]\nname = \"v\"\nemptyDir = {}\n[[volumes]]\nname = \"w\"\nemptyDir = {}\n[[volumes]]\nname = " +
		"\"shm\"\nhostPath = { path = \"/dev/shm\" }\n"
	mounts := func(list string) string {
		return Play("c", "try", "wait 1ms") + "volumeMounts = " + list + "\n" + volumes
	}
	for _, text := range []string{
		mounts(`{ v = "/dev" }`), mounts(`{ v = "//dev/" }`), mounts(`{ v = "/x/../dev" }`), mounts(`{ shm = "/dev" }`),
		mounts(`{ v = "/proc" }`), mounts(`{ v = "/proc/keys" }`), mounts(`{ v = "/proc/sys/kernel" }`),
		mounts(`{ v = "/proc/self/attr" }`),
		mounts(`{ v = "/sys" }`), mounts(`{ v = "/sys/fs/cgroup" }`), mounts(`{ v = "/sys/firmware" }`),
		mounts(`{ v = "/dev/null" }`), mounts(`{ v = "/dev/pts" }`), mounts(`{ v = "/dev/fd/3" }`), mounts(`{ v = "/dev/console" }`),
		mounts(`{ v = "/dev/shm/x" }`), mounts(`{ v = "/dev/a", w = "/dev/a/b" }`),
		Play("c", "try", "wait 1ms") + "terminationMessagePath = \"/proc/keys\"\n",
		Play("c", "try", "wait 1ms") + "terminationMessagePath = \"/dev/null\"\n",
		"[[initContainers]]\nname = \"i\"\nimage = \"" + Intruder + "\"\nvolumeMounts = { v = \"/dev\" }\n" + mounts(`{ v = "/v" }`),
	} {
		if _, err := f.Create(f.Ctx(), "refused", f.PodText("refused", text)); err == nil || !strings.Contains(err.Error(), "privileged") {
			t.Errorf("%v, want an error for:\n%s", err, text)
		}
	}
	f.create("allowed", "restartPolicy = \"Never\"\n"+mounts(`{ v = "/dev/shm", w = "/dev/dri" }`))
	if p := f.Until("allowed", "done", ended); p.Status.Phase != "Succeeded" {
		t.Errorf("/dev/shm and /dev/dri: %+v", p.Status)
	}
	f.MustRun("delete", "allowed")
}
