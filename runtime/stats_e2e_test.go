//go:build e2e

package runtime_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestStats measures containers that use CPU time, memory and disk, and a pod that receives data. The figures come from cgroups, the
// writable layer, the logs and the network namespace.
func TestStats(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, &spec.Pod{})
	const mib = 1 << 20
	burner := sh("while :; do :; done")
	idle := sh("head -c 20971520 /dev/zero >/dev/shm/memory; head -c 3145728 /dev/zero >/written; head -c 1048576 /dev/zero | tr '\\0' " +
		"'x' | fold -w 100; echo ready >/ready; nc -l -p 80 >/dev/null; sleep 1000")
	idle.Resources.Limits = spec.ResourceList{spec.ResourceMemory: resource.MustParse("64Mi")}
	containers := map[string]string{}
	for _, c := range []spec.Container{burner, idle} {
		ref, err := p.start(c)
		if err != nil {
			t.Fatal(err)
		}
		containers[ref.Container] = m.idOf(ref)
	}
	idleRef := lifecycle.Ref{Container: "c2", Round: 1, Attempt: 1}
	m.eventually("the container is ready", func() (string, bool) {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/root/ready", m.pidOf(idleRef)))
		return fmt.Sprint(err), err == nil
	})
	target := []stats.Target{{UID: uid, Pod: p.Pod, Sandbox: 1, Containers: containers}}
	first := m.Stats(m.ctx(), target)[0]
	if b := first.Containers["c1"]; b.NanoCores == nil || *b.NanoCores < 10_000_000 || b.CPU.Nanoseconds == 0 || b.Memory == nil ||
		b.Memory.Limit != 0 || b.Pids == nil || *b.Pids != 1 {
		t.Errorf("a container that uses CPU time: %+v, memory %+v", b, b.Memory)
	}
	c := first.Containers["c2"]
	if c.Memory == nil || c.Memory.Limit != 64*mib || c.Memory.WorkingSet < 20*mib || c.Memory.WorkingSet > 40*mib || c.OOMKills == nil ||
		*c.OOMKills != 0 || c.Pids == nil {
		t.Errorf("a container with 20 MiB: %+v, memory %+v", c, c.Memory)
	}
	if c.NanoCores == nil || *c.NanoCores > *first.Containers["c1"].NanoCores {
		t.Errorf("an idle container uses more CPU time: %+v", c)
	}
	if first.NanoCores == nil || first.Memory == nil || first.Memory.WorkingSet < c.Memory.WorkingSet {
		t.Errorf("pod: %+v, memory %+v", first, first.Memory)
	}
	disk := first.Disk.Containers["c2"]
	if disk.Layer == nil || *disk.Layer < 3*mib || *disk.Layer > 4*mib || disk.Logs == nil || *disk.Logs < mib || *disk.Logs > 3*mib ||
		first.Disk.At.IsZero() {
		t.Errorf("disk usage: layer %v, logs %v", value(disk.Layer), value(disk.Logs))
	}
	if first.Network == nil || len(first.Network.Interfaces) != 1 || first.Network.Interfaces[0].Name != "eth0" {
		t.Fatalf("network: %+v", first.Network)
	}
	m.send(t, 5*mib)
	second := first
	m.eventually("5 MiB are received", func() (string, bool) {
		second = m.Stats(m.ctx(), target)[0]
		received := second.Network.Interfaces[0].RxBytes - first.Network.Interfaces[0].RxBytes
		return fmt.Sprint(received), received >= 5*mib
	})
	if received := second.Network.Interfaces[0].RxBytes - first.Network.Interfaces[0].RxBytes; received > 7*mib {
		t.Errorf("received %d bytes after a transfer of 5 MiB", received)
	}
	if second.Network.Interfaces[0].TxBytes <= first.Network.Interfaces[0].TxBytes {
		t.Error("nothing was sent")
	}
	// Neither a container nor a sandbox that does not exist affects the figures of others.
	target[0].Sandbox, target[0].Containers = 9, map[string]string{"c1": containers["c1"], "none": "none"}
	if third := m.Stats(m.ctx(), target)[0]; third.Network != nil || third.Containers["none"].CPU != nil ||
		third.Containers["c1"].NanoCores == nil {
		t.Errorf("with a missing container and sandbox: %+v", third)
	}
}

func value(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// send sends bytes to port 80 of the pod.
func (m *testHost) send(t *testing.T, n int) {
	t.Helper()
	pid := m.pidOf(lifecycle.Ref{Container: "c1", Round: 1, Attempt: 1})
	out, err := exec.Command("nsenter", "-t", fmt.Sprint(pid), "-n", "ip", "-4", "-o", "addr", "show", "eth0").Output()
	if err != nil {
		t.Fatal(err)
	}
	ip, _, err := net.ParseCIDR(strings.Fields(string(out))[3])
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: ip, Port: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}
