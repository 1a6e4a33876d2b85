//go:build soak

package faults

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// flaky answers probes. Two of five responses to each path are failures, and it counts them.
type flaky struct {
	mu    sync.Mutex
	asked map[string]int
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked[r.URL.Path]++
	bad := failed(f.asked[r.URL.Path]) > failed(f.asked[r.URL.Path]-1)
	f.mu.Unlock()
	if bad {
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}
}

// failed returns the number of failures among so many responses.
func failed(answers int) int { return answers/5*2 + max(answers%5-3, 0) }

func (f *flaky) failures(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return failed(f.asked[path])
}

// TestSoakProbes runs ten containers with thirty probes. The startup probes end with their first success; the others run more than
// thirty times per second together, and some fail, hang, write endless output or leave processes behind. After the warm-up the daemon
// must not accumulate threads, descriptors or memory, no container may restart, and every failure must be reported exactly once.
func TestSoakProbes(t *testing.T) {
	end := time.Now().Add(soakTime(t))
	f := newFixture(t)
	f.Timeout = soakTime(t) + deadline
	answers := &flaky{asked: map[string]int{}}
	web := httptest.NewServer(answers)
	defer web.Close()
	commands := []string{"true", "sleep 7301", "setsid sleep 7302 & exit 0", "yes", "exit 1"}
	var text strings.Builder
	text.WriteString("hostNetwork = true\nterminationGracePeriodSeconds = 5\n")
	for i := range 10 {
		name, listen := fmt.Sprintf("c%d", i), port(web.Listener)
		ready := fmt.Sprintf("httpGet = { port = %d, path = '/%s' }, periodSeconds = 0.5, timeoutSeconds = 20", listen, name)
		if i < len(commands) {
			ready = fmt.Sprintf("exec = { command = ['sh', '-c', %q] }, periodSeconds = 1", commands[i])
		}
		text.WriteString(watched(name,
			"readinessProbe = { "+ready+" }",
			fmt.Sprintf("livenessProbe = { tcpSocket = { port = %d }, periodSeconds = 0.5, timeoutSeconds = 20 }", listen),
			fmt.Sprintf("startupProbe = { httpGet = { port = %d, path = '/%s/started' }, periodSeconds = 1, timeoutSeconds = 20 }", listen,
				name)))
	}
	r := f.start(f.PodFile("soak", text.String()))
	<-time.After(min(time.Minute, soakTime(t)/3))
	daemon, err := f.DaemonPID(f.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	before := f.running("soak")
	threads, memory := status(t, daemon, "Threads"), status(t, daemon, "VmRSS")
	open := descriptors(t, daemon)
	for time.Now().Before(end) {
		<-time.After(5 * time.Second)
		left, err := f.processes("sleep 73")
		if err != nil {
			t.Fatal(err)
		}
		if len(left) > 20 {
			t.Fatalf("%d processes of probes, want at most 20", len(left))
		}
	}
	t.Logf("after %v: threads were %d, are %d; descriptors were %d, are %d; resident KiB were %d, are %d", soakTime(t),
		threads, status(t, daemon, "Threads"), open, descriptors(t, daemon), memory, status(t, daemon, "VmRSS"))
	if now := status(t, daemon, "Threads"); now > threads+10 {
		t.Errorf("threads of the daemon: were %d, are %d", threads, now)
	}
	if now := status(t, daemon, "VmRSS"); now > memory*3/2 {
		t.Errorf("memory of the daemon in KiB: was %d, is %d", memory, now)
	}
	if now := descriptors(t, daemon); now > open+40 {
		t.Errorf("descriptors of the daemon: were %d, are %d", open, now)
	}
	if after := f.running("soak"); strings.Join(after, ",") != strings.Join(before, ",") {
		t.Errorf("containers were %v, are %v", before, after)
	}
	r.interrupt()
	r.exitCode()
	checkEventsOnce(t, r, answers)
}

// checkEventsOnce fails the test if an event is missing or duplicated. It checks the sequence numbers of events, the count of
// consecutive failures of each probe, and the number of failures that the server returned.
func checkEventsOnce(t *testing.T, r *run, answers *flaky) {
	t.Helper()
	var seq uint64
	count, failures := map[string]int{}, map[string]int{}
	for _, i := range r.all() {
		if i.Type != "event" {
			continue
		}
		if i.Kind == api.EventsMissed || seq > 0 && i.Seq != seq+1 {
			t.Fatalf("event %d, %s, follows event %d", i.Seq, i.Kind, seq)
		}
		seq = i.Seq
		if i.Kind != api.EventProbeFailed {
			continue
		}
		failures[i.Container]++
		now, err := strconv.Atoi(i.Fields["count"])
		if err != nil || now != count[i.Container]+1 && now != 1 {
			t.Fatalf("consecutive failure %q of %s follows %d", i.Fields["count"], i.Container, count[i.Container])
		}
		count[i.Container] = now
	}
	t.Logf("events up to %d; failures: %v", seq, failures)
	for i := 5; i < 10; i++ {
		name := fmt.Sprintf("c%d", i)
		// A failure during the pod's stop may not be reported.
		if gave := answers.failures("/" + name); gave == 0 || failures[name] != gave && failures[name] != gave-1 {
			t.Errorf("%s had %d failures, %d were reported", name, gave, failures[name])
		}
	}
}

// status returns a number from the status of a process.
func status(t *testing.T, pid int, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("process %d has no %s", pid, name)
	return 0
}
