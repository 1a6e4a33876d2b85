//go:build e2e

package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/test/internal/rig"
)

// bomb is an environment whose last value has 16 * 2^doublings bytes, if the first one does.
func bomb(first string, doublings int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "env = [{ name = \"V0\", %s }", first)
	for i := range doublings {
		fmt.Fprintf(&b, ", { name = \"V%d\", value = \"$(V%d)$(V%d)\" }", i+1, i, i)
	}
	return b.String() + "]\n"
}

// TestExpansionBomb: a pod file of 1 kB whose environment or arguments expand to gigabytes is rejected. If the text comes from a config
// map or a secret, the container is not created, and the pod can be deleted.
func TestExpansionBomb(t *testing.T) {
	f := newFixture(t, options{})
	const plain = "value = \"0123456789abcdef\""
	container := "\n[[containers]]\nname = \"c\"\nimage = \"" + Intruder + "\"\n"
	repeated := "\"" + strings.Repeat("$(V10)", 1000) + "\"" // 16 MB
	for name, text := range map[string]string{
		"env":     bomb(plain, 25),
		"args":    bomb(plain, 10) + "args = [" + strings.Repeat(repeated+", ", 100) + "]\n",
		"command": bomb(plain, 10) + "command = [" + repeated + "]\n",
		"probe": bomb(plain, 10) + "livenessProbe.exec.command = [" +
			strings.Repeat("\""+strings.Repeat("$(V9)$(V10)", 1000)+"\", ", 30) + "]\n",
	} {
		_, err := f.Create(f.Ctx(), name, f.PodText(name, container+text))
		if name == "probe" { // its variables are not expanded, so that it is large enough only with larger values
			f.Check(err)
			f.MustRun("delete", "--force", name)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "may not be more than 1048576 bytes in total") {
			f.Errorf("%s: %v, want it rejected", name, err)
		}
	}
	f.Check(os.MkdirAll(filepath.Join(f.ConfigDir(), "configmaps", "large"), 0o755))
	f.Check(os.WriteFile(filepath.Join(f.ConfigDir(), "configmaps", "large", "a"), []byte(strings.Repeat("a", 100<<10)), 0o644))
	f.create("late", container+bomb("valueFrom.configMapKeyRef = { name = \"large\", key = \"a\" }", 25))
	p := f.Until("late", "waiting", func(p *api.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) > 0 && s[0].State.Waiting != nil && strings.Contains(s[0].State.Waiting.Message, "in total")
	})
	if w := p.Status.ContainerStatuses[0].State.Waiting; !strings.HasPrefix(w.Message, "env[3] (V3): Too long") {
		f.Errorf("the container is waiting: %+v", w)
	}
	f.MustRun("delete", "late")
	f.atMost(150 << 20)
}

// atMost checks the memory of the daemon.
func (f *fixture) atMost(bytes int64) {
	f.Helper()
	pid, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	f.Check(err)
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(after, &kilobytes); err != nil || kilobytes<<10 > bytes {
		f.Errorf("the daemon has used %d kB (%v)", kilobytes, err)
	}
}

// TestQuarantine: a pod whose handling crashes the daemon twice is not supervised by the next one, other pods are. Here a signal crashes
// the daemon while the pod's hook runs. The pod is shown, and can be deleted. A daemon that somebody kills quarantines nothing.
func TestQuarantine(t *testing.T) {
	f := &fixture{rig.NewFixture(t, deadline, "intruder")}
	f.CheckLeftovers(deadline, "daemon", "stop", "--pods")
	f.MustRun("get")
	slow := Play("c", "stay") + "lifecycle.postStart.exec.command = [\"sleep\", \"1000\"]\n"
	f.create("good", Play("c", "stay"))
	good := f.Until("good", "ready", isReady)
	f.create("bad", slow)
	created := func(p *api.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].ContainerID != ""
	}
	handled := func() {
		uid := f.Until("bad", "created", created).Metadata.UID
		f.Await(func() error {
			_, err := os.Stat(filepath.Join(f.RunDir(), "handling", uid))
			return err
		})
	}
	for range 3 {
		handled()
		f.endDaemon(unix.SIGKILL)
		f.MustRun("get")
	}
	for range 2 {
		handled()
		f.endDaemon(unix.SIGSEGV)
		f.MustRun("get")
	}
	f.endDaemon(unix.SIGKILL)
	for _, want := range []struct{ command, text string }{
		{"get", "Quarantined"},
		{"why bad", "bad is in an unknown state because the daemon crashed 2 times while it handled this pod: SIGSEGV"},
		{"why bad", "podstead delete bad"},
		{"events bad", "Pod is not supervised"},
		{"doctor", "bad: Pod is not supervised"},
	} {
		out, err := f.Podstead(f.Ctx(), strings.Fields(want.command)...)
		if err != nil && want.command != "doctor" || !strings.Contains(out, want.text) {
			f.Errorf("podstead %s: %v\n%s\nwant %q", want.command, err, out, want.text)
		}
	}
	if now := f.Until("good", "ready",
		isReady); now.Status.ContainerStatuses[0].ContainerID != good.Status.ContainerStatuses[0].ContainerID {
		f.Error("the other pod was restarted")
	}
	f.MustRun("delete", "bad")
	f.create("bad", Play("c", "stay"))
	f.Until("bad", "ready", isReady)
}

// endDaemon ends the daemon with a signal.
func (f *fixture) endDaemon(signal syscall.Signal) {
	f.Helper()
	pid, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	f.Check(unix.Kill(pid, signal))
	f.Await(func() error {
		if rig.IsAlive(pid) {
			return fmt.Errorf("process %d is still running", pid)
		}
		return nil
	})
}

// TestDaemonMemoryLimit: the daemon is in a cgroup with the default limit. Other daemons that were started on demand use the same cgroup,
// so that another limit would be theirs.
func TestDaemonMemoryLimit(t *testing.T) {
	const limit = 1 << 30
	f := newFixture(t, options{})
	pid, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	f.Check(err)
	for line := range strings.Lines(string(text)) {
		_, controllers, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(controllers, ":")
		isMemory := slices.Contains(strings.Split(controllers, ","), "memory")
		if !isMemory && (controllers != "" || strings.Contains(string(text), "memory")) {
			continue
		}
		if got := cgroup.BoundsOf(path).Memory; got != limit {
			f.Errorf("the cgroup %s of the daemon is limited to %d bytes, want %d", path, got, limit)
		}
		return
	}
	f.Fatalf("the daemon has no memory cgroup:\n%s", text)
}
