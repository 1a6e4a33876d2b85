//go:build e2e

package hostile

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// leaseTime returns how long a container can delay another process that opens a file.
func (f *fixture) leaseTime() time.Duration {
	f.Helper()
	text, err := os.ReadFile("/proc/sys/fs/lease-break-time")
	f.Check(err)
	seconds, err := strconv.Atoi(strings.TrimSpace(string(text)))
	f.Check(err)
	return time.Duration(seconds) * time.Second
}

// undelayed fails the test if an operation takes as long as a lease can delay it, also if the operation ends the test.
func (f *fixture) undelayed(what string, operation func()) {
	f.Helper()
	start, limit := time.Now(), f.leaseTime()
	defer func() {
		if took := time.Since(start); took >= limit {
			f.Errorf("%s took %v, a lease delays it by %v", what, took, limit)
		}
	}()
	operation()
}

// statusOf returns the status of a container, which is empty before the container has one.
func statusOf(p *api.Pod, container string) api.ContainerStatus {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == container {
			return c
		}
	}
	return api.ContainerStatus{}
}

// TestLeasesOnPodFiles: containers hold write leases on every file that the daemon writes or reads for them. Other pods start, the same
// pod's other container restarts with a current /etc/hosts, volumes are updated, and the pods are deleted, without waiting for a lease.
func TestLeasesOnPodFiles(t *testing.T) {
	f := newFixture(t, options{})
	held := []string{"lease /etc/hosts", "lease /etc/hostname", "lease /etc/resolv.conf", "lease /dev/termination-log", "lease /conf/key"}
	var holders []string
	for n := range 3 {
		name := fmt.Sprint("holder", n)
		holders = append(holders, name)
		f.undelayed("start of "+name, func() {
			users := ""
			if n == 2 {
				users = "hostUsers = false\n"
			}
			f.create(name, users+Play("c", "stay", held...)+`
volumeMounts = { conf = "/conf" }
`+Play("again", "try", "wait 1ms")+`
[[volumes]]
name = "conf"
configMap = { name = "conf" }
[[configMaps]]
name = "conf"
data = { key = "value" }
`)
			f.Until(name, "running", func(p *api.Pod) bool { return statusOf(p, "c").Ready })
		})
		var want []Try
		for _, attempt := range held {
			want = append(want, Try{attempt, "done"})
		}
		f.compare(name, "c", want)
	}
	f.undelayed("restart of a container", func() {
		f.Until(holders[0], "restarted", func(p *api.Pod) bool { return statusOf(p, "again").RestartCount > 0 })
	})
	f.undelayed("start of another pod", func() {
		f.create("other", Play("c", "stay", "wait 1ms"))
		f.Until("other", "ready", isReady)
	})
	f.undelayed("deletion", func() { f.MustRun(append([]string{"delete", "other"}, holders...)...) })
}

// TestLeaseOnTerminationMessage: a process that survives its neighbour in the pod holds a lease on the neighbour's termination message.
// The exit of the neighbour is reported nevertheless.
func TestLeaseOnTerminationMessage(t *testing.T) {
	f := newFixture(t, options{})
	f.create("pair", "restartPolicy = \"Never\"\nshareProcessNamespace = true\n"+
		Play("holder", "stay", "lease-other /shared/held /dev/termination-log", "mkdir /shared/held")+
		"volumeMounts = { shared = \"/shared\" }\n"+
		Play("c", "try", "await /shared/held")+"volumeMounts = { shared = \"/shared\" }\n"+
		"[[volumes]]\nname = \"shared\"\nemptyDir = {}\n")
	f.undelayed("exit", func() {
		f.outcomes("pair", "c")
		p := f.Until("pair", "terminated", func(p *api.Pod) bool { return statusOf(p, "c").State.Terminated != nil })
		if end := statusOf(&p, "c").State.Terminated; end.ExitCode != 0 ||
			!strings.Contains(end.Message, "error on reading termination log") {
			f.Errorf("terminated with %+v, want the error of the message", end)
		}
	})
	f.compare("pair", "holder", []Try{{"lease-other /shared/held /dev/termination-log", "done"}})
	f.undelayed("deletion", func() { f.MustRun("delete", "pair") })
}
