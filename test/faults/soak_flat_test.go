//go:build soak

package faults

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// TestSoakFlat runs 20 pods with HTTP probes, whose containers restart repeatedly, for the soak time. After the first third nothing may
// grow with time: memory, threads, descriptors and goroutines of the daemon, those of the shims or the monitor, databases, state and logs.
func TestSoakFlat(t *testing.T) {
	duration := soakTime(t)
	f := newFixture(t)
	f.Timeout = duration + deadline
	f.MustRun("get")
	const pods = 20
	text := "terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 1, maxSeconds = 20, resetAfterSeconds = 10 }\n" +
		container("web", "echo ok >/tmp/index.html; exec httpd -f -p 8080 -h /tmp") +
		"livenessProbe = { httpGet = { path = '/index.html', port = 8080 }, periodSeconds = 10, timeoutSeconds = 20 }\n" +
		container("crasher", "echo crash; sleep 20; exit 1")
	for i := range pods {
		f.MustCreate("flat-"+strconv.Itoa(i), text)
	}
	for i := range pods {
		f.Until("flat-"+strconv.Itoa(i), "running", func(p *api.Pod) bool { return p.Status.Phase == "Running" })
	}
	f.Timeout = duration + deadline
	var samples []sample
	for begin := time.Now(); time.Since(begin) < duration; {
		<-time.After(min(duration/60, time.Minute))
		s := measure(f)
		t.Logf("%v: %v", time.Since(begin).Round(time.Second), s)
		samples = append(samples, s)
	}
	restarts := 0
	for i := range pods {
		for _, c := range f.get("flat-" + strconv.Itoa(i)).Status.ContainerStatuses {
			restarts += c.RestartCount
			if c.Name == "web" && c.RestartCount > 0 {
				t.Errorf("container web of pod %d restarted %d times", i, c.RestartCount)
			}
		}
	}
	t.Logf("%d restarts", restarts)
	if restarts < 2*pods {
		t.Errorf("%d restarts, want at least %d", restarts, 2*pods)
	}
	third := len(samples) / 3
	if third == 0 {
		t.Fatalf("%d samples", len(samples))
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		middle, end := median(samples[third:2*third], name), median(samples[2*third:], name)
		t.Logf("%s: second third %d, last third %d", name, middle, end)
		if end > middle+max(middle*allowed[name]/100, 8) {
			t.Errorf("%s grows: median of the second third %d, of the last third %d", name, middle, end)
		}
	}
	f.MustRun("delete", "--all", "--force")
}

// sample are figures at one moment.
type sample map[string]int

// allowed is by how many per cent the median of a figure may grow between the second and the last third.
var allowed = map[string]int{
	"daemon KiB": 15, "daemon threads": 10, "daemon descriptors": 10, "daemon goroutines": 10,
	"holders KiB": 15, "holder descriptors": 10, "databases KiB": 10, "state files": 10, "state KiB": 15,
}

func measure(f *fixture) sample {
	f.Helper()
	daemon, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	s := sample{
		"daemon KiB": status(f.T, daemon, "VmRSS"), "daemon threads": status(f.T, daemon, "Threads"),
		"daemon descriptors": descriptors(f.T, daemon),
		"daemon goroutines":  goroutines(f),
	}
	holders, err := f.Holders()
	f.Check(err)
	for _, p := range holders {
		s["holders KiB"] += status(f.T, p.PID, "VmRSS")
		s["holder descriptors"] += descriptors(f.T, p.PID)
	}
	if s["holders KiB"] == 0 {
		f.Fatal("no process holds the containers")
	}
	f.Check(filepath.WalkDir(f.StateDir(), func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && !d.Type().IsRegular() || strings.Contains(path, "/fs/") {
			return nil
		}
		if filepath.Base(filepath.Dir(path)) == "events" { // journals are full after hours; TestDirJournalSize holds their limit
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // removed meanwhile
		}
		size := int(info.Size() >> 10)
		if filepath.Ext(path) == ".db" {
			s["databases KiB"] += size
		}
		s["state files"]++
		s["state KiB"] += size
		return nil
	}))
	return s
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

func goroutines(f *fixture) int {
	f.Helper()
	found := goroutinesLine.FindStringSubmatch(f.MustRun("metrics"))
	if found == nil {
		f.Fatal("no metric go_goroutines")
	}
	n, err := strconv.Atoi(found[1])
	f.Check(err)
	return n
}

func median(samples []sample, name string) int {
	values := make([]int, len(samples))
	for i, s := range samples {
		values[i] = s[name]
	}
	slices.Sort(values)
	return values[len(values)/2]
}
