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
	"testing"
	"time"
)

// TestSoakProbes has ten containers asked by thirty probes, a third of which fail, hang or leave processes behind. After the
// warm-up the daemon gets no more threads, descriptors or memory to speak of, no container gets more processes, and none is
// restarted.
func TestSoakProbes(t *testing.T) {
	end := time.Now().Add(soakTime(t))
	f := newFixture(t)
	f.patience = soakTime(t) + deadline
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/hang") {
			<-r.Context().Done()
		}
	}))
	defer web.Close()
	var text strings.Builder
	text.WriteString("hostNetwork = true\nterminationGracePeriodSeconds = 5\n")
	for i := range 10 {
		command := []string{"true", "sleep 7301", "setsid sleep 7302 & exit 0", "yes", "exit 1"}[i%5]
		text.WriteString(watched(fmt.Sprintf("c%d", i),
			fmt.Sprintf("readinessProbe = { exec = { command = ['sh', '-c', %q] }, periodSeconds = 2 }", command),
			fmt.Sprintf("livenessProbe = { tcpSocket = { port = %d }, periodSeconds = 1, timeoutSeconds = 20 }", port(web.Listener)),
			fmt.Sprintf("startupProbe = { httpGet = { port = %d }, periodSeconds = 1, timeoutSeconds = 20 }", port(web.Listener))))
	}
	r := f.start(f.pod("soak", text.String()))
	<-time.After(min(time.Minute, soakTime(t)/3))
	daemon, err := f.DaemonPID(f.ctx())
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
			t.Fatalf("%d processes of probes", len(left))
		}
	}
	if now := status(t, daemon, "Threads"); now > threads+10 {
		t.Errorf("the daemon had %d threads, and has %d", threads, now)
	}
	if now := status(t, daemon, "VmRSS"); now > memory*3/2 {
		t.Errorf("the daemon had %d KiB, and has %d", memory, now)
	}
	if now := descriptors(t, daemon); now > open+40 {
		t.Errorf("the daemon had %d descriptors, and has %d", open, now)
	}
	if after := f.running("soak"); strings.Join(after, ",") != strings.Join(before, ",") {
		t.Errorf("the containers were %v, and are %v", before, after)
	}
	r.interrupt()
	r.status()
}

// status is a number in the status of a process.
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
