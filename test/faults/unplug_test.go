//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// stick is a device of the host that a test plugs in and unplugs: a stable link to a node, as those in /dev/serial/by-id.
type stick struct {
	*fixture
	dir string
	n   int
}

// plug makes a node with other numbers than the last one.
func (s *stick) plug() {
	s.Helper()
	s.n++
	node := filepath.Join(s.dir, fmt.Sprintf("node%d", s.n))
	minor := []uint32{200, 229}[s.n%2]
	s.Check(unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(10, minor))))
	s.Check(os.Symlink(filepath.Base(node), filepath.Join(s.dir, "stick")))
}

func (s *stick) unplug() {
	s.Helper()
	s.Check(os.Remove(filepath.Join(s.dir, fmt.Sprintf("node%d", s.n))))
	s.Check(os.Remove(filepath.Join(s.dir, "stick")))
}

// replugs is how often a device is replugged. A device restarts its container every 10 seconds at most.
const replugs = 6

// TestDeviceUnplugged: two pods use one device. It is absent at first, then plugged in and unplugged several times, with other numbers each
// time. Containers are restarted for it without back-off, and have the new node. A container that keeps running has it without a restart.
func TestDeviceUnplugged(t *testing.T) {
	f := newFixture(t)
	s := &stick{fixture: f, dir: t.TempDir()}
	f.Env = append(f.Env, "PODSTEAD_POLICY_DEVICES="+s.dir)
	script := "trap 'exit 0' TERM; stat -c 'node %t:%T' /dev/stick; while :; do sleep 0.1; done"
	device := func(more string) string {
		return fmt.Sprintf("devices = [{ path = %q, containerPath = \"/dev/stick\"%s }]\n", filepath.Join(s.dir, "stick"), more)
	}
	f.MustRun("get") // starts the daemon
	other := container("other", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
	f.MustCreate("one", "terminationGracePeriodSeconds = 5\n"+container("c", script)+device("")+other)
	f.MustCreate("two", "terminationGracePeriodSeconds = 5\n"+container("c", script)+device("")+
		container("keeper", script)+device(`, optional = true`))
	restarts := func(p *api.Pod, name string) int {
		for _, c := range p.Status.ContainerStatuses {
			if c.Name == name {
				return c.RestartCount
			}
		}
		return -1
	}
	waits := func(p *api.Pod) bool {
		for _, c := range p.Status.ContainerStatuses {
			if c.Name == "c" {
				return c.State.Waiting != nil && c.State.Waiting.Reason == api.ReasonDeviceMissing
			}
		}
		return false
	}
	fastest := time.Hour
	for n := range replugs + 1 {
		for _, pod := range []string{"one", "two"} {
			f.Until(pod, "waiting for its device", waits)
		}
		plugged := time.Now()
		s.plug()
		for _, pod := range []string{"one", "two"} {
			f.Until(pod, fmt.Sprintf("restarted %d times", n), func(p *api.Pod) bool {
				return restarts(p, "c") == n && p.Status.ContainerStatuses[0].State.Running != nil
			})
		}
		fastest = min(fastest, time.Since(plugged))
		want := []string{"a:c8", "a:e5"}[s.n%2]
		if out := f.MustRun("exec", "one", "-c", "c", "--", "stat", "-c", "%t:%T", "/dev/stick"); strings.TrimSpace(out) != want {
			t.Fatalf("replug %d: node %q, want %s", n, out, want)
		}
		if n < replugs {
			s.unplug()
		}
	}
	if fastest > 8*time.Second { // a delay by design would apply to each of them; the host may be loaded during some
		t.Errorf("the containers started after %v at the earliest", fastest)
	}
	p := f.get("two")
	if n := restarts(&p, "keeper"); n != 0 {
		t.Errorf("keeper was restarted %d times", n)
	}
	if out, _ := f.Podstead(f.Ctx(), "why", "one"); !strings.Contains(out, "was unplugged") {
		t.Errorf("podstead why does not name the device:\n%s", out)
	}
	events := f.MustRun("events", "one")
	removed, added := strings.Count(events, "was unplugged"), strings.Count(events, "is plugged in")
	if removed != replugs || added != replugs+1 || strings.Contains(events, "Back-off") {
		t.Errorf("events:\n%s", events)
	}
	f.MustRun("delete", "--all", "--force")
}
