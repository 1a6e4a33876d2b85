package podcgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/proctree/proctreetest"
)

// TestWithoutCgroups tests that nothing is done to a cgroup if pods have none. An empty path must never be that of the root of a hierarchy,
// whose processes are all of the host.
func TestWithoutCgroups(t *testing.T) {
	g := WithoutCgroups(func(string) int { return os.Getpid() })
	const uid, id = "3f3a6a0e-2c1a-4d5c-9f52-3b8d5e0c7f11", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, path := range map[string]string{
		"OCIPath": g.OCIPath(uid, id), "Trial": g.Trial("t"), "TrialOCIPath": g.TrialOCIPath("t"), "Monitor": g.Monitor(),
		"Container": g.Container(uid, id), "Pod": g.Pod(uid), "Parent": g.Parent(),
		"ProcessDir": g.ProcessDir(uid, id), // this process is in no other PID namespace
	} {
		if path != "" {
			t.Errorf("%s: %q", name, path)
		}
	}
	if dirs, err := cgroup.Dirs(""); err != nil || len(dirs) > 0 {
		t.Errorf("directories of no cgroup: %v, %v", dirs, err)
	}
	if u := cgroup.UsageOf(""); u.CPU != nil || u.Memory != nil || u.Pids != nil {
		t.Errorf("usage of no cgroup: %+v", u)
	}
	ctx := t.Context()
	cleared, clearErr := g.Clear(ctx, uid)
	removed, removeErr := g.Remove(ctx, uid)
	found, findErr := g.Containers()
	swap, oom, featuresErr := g.Features(uid)
	if cleared.Any() || removed.Any() || len(found) > 0 || swap || oom || g.OOMKilled(uid, id) || g.InPod(os.Getpid()) || g.Systemd() {
		t.Errorf("cleared %v, removed %v, found %v, swap %v, OOM group %v", cleared, removed, found, swap, oom)
	}
	for name, err := range map[string]error{
		"Clear": clearErr, "Remove": removeErr, "Containers": findErr, "Features": featuresErr,
		"Limit": g.Limit(ctx, uid, cgroup.Limits{Memory: 1}), "PlaceMonitor": g.PlaceMonitor(ctx, os.Getpid()),
		"RemoveShim": g.RemoveShim(uid), "Close": g.Close(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKillWithoutCgroups tests that the processes of a container, and those of a pod, are killed without cgroups, and that an error is
// returned if they are not known.
func TestKillWithoutCgroups(t *testing.T) {
	const uid, id = "3f3a6a0e-2c1a-4d5c-9f52-3b8d5e0c7f12", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	dir := filepath.Join(t.TempDir(), "pods", uid, "etc")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, kill := range map[string]func(Groups) (Cleared, error){
		"Kill":   func(g Groups) (Cleared, error) { return Cleared{}, g.Kill(t.Context(), uid, id) },
		"Clear":  func(g Groups) (Cleared, error) { return g.Clear(t.Context(), uid) },
		"Remove": func(g Groups) (Cleared, error) { return g.Remove(t.Context(), uid) },
	} {
		t.Run(name, func(t *testing.T) {
			pid, wait := proctreetest.Container(t, dir)
			g := WithoutCgroups(func(string) int { return pid })
			namespace := g.ProcessDir(uid, id)
			if list, err := proctree.List(namespace); err != nil || len(list) != 2 {
				t.Fatalf("processes in %s: %v, %v, want 2", namespace, list, err)
			}
			cleared, err := kill(g)
			if err != nil || name != "Kill" && len(cleared.Processes) != 2 {
				t.Errorf("killed %v, %v", cleared, err)
			}
			if err := wait(); err == nil || err.Error() != "signal: killed" {
				t.Errorf("the first process ended with %v", err)
			}
			if list, err := proctree.List(namespace); err != nil || len(list) > 0 {
				t.Errorf("left: %v, %v", list, err)
			}
			if cleared, err := kill(g); err != nil || cleared.Any() {
				t.Errorf("nothing is left, and killed %v, %v", cleared, err)
			}
		})
	}
	own := WithoutCgroups(func(string) int { return os.Getpid() })
	if err := own.Kill(t.Context(), uid, id); err == nil || !strings.Contains(err.Error(), "no PID namespace of a container") {
		t.Errorf("a process that is in no namespace of a container: %v", err)
	}
}
