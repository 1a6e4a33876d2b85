package podcgroup

import (
	"os"
	"testing"

	"github.com/podstead/podstead/runtime/cgroup"
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
		"Clear": clearErr, "Remove": removeErr, "Containers": findErr, "Features": featuresErr, "Kill": g.Kill(ctx, uid, id),
		"Limit": g.Limit(ctx, uid, cgroup.Limits{Memory: 1}), "PlaceMonitor": g.PlaceMonitor(ctx, os.Getpid()),
		"RemoveShim": g.RemoveShim(uid), "Close": g.Close(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
