//go:build soak

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/test/internal/rig"
)

// TestSoakDaemonKilledAtAnyTime kills the daemon after an increasing delay from the start of a pod. Every container must start exactly
// once, and the pod must succeed.
func TestSoakDaemonKilledAtAnyTime(t *testing.T) {
	f := newFixture(t)
	marks := filepath.Join(f.Dir, "marks")
	mount := "volumeMounts = { marks = \"/marks\" }\n"
	file := f.PodFile("brief", "restartPolicy = \"Never\"\n"+
		strings.Replace(container("prepare", "echo prepare >> /marks/log; echo prepared"), "containers", "initContainers", 1)+mount+
		container("work", "echo work >> /marks/log; echo worked; sleep 0.1")+mount+
		container("assist", "echo assist >> /marks/log; echo assisted")+mount+
		fmt.Sprintf("[[volumes]]\nname = \"marks\"\nhostPath = { path = %q }\n", marks))
	if err := os.Mkdir(marks, 0o755); err != nil {
		t.Fatal(err)
	}
	f.MustRun("run", file) // imports the image
	const steps, step = 40, 10 * time.Millisecond
	for i := range steps {
		if err := os.Remove(filepath.Join(marks, "log")); err != nil {
			t.Fatal(err)
		}
		pid, err := f.DaemonPID(f.Ctx())
		if err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(i)*step + rand.N(step)
		r := f.start(file)
		<-time.After(delay)
		f.Check(rig.Kill(f.Ctx(), pid))
		if code := r.exitCode(); code != 0 {
			t.Fatalf("killed after %v: exit code %d", delay, code)
		}
		log, err := os.ReadFile(filepath.Join(marks, "log"))
		if err != nil {
			t.Fatal(err)
		}
		started := strings.Fields(string(log))
		slices.Sort(started[min(1, len(started)):]) // the regular containers start in any order
		if diff := cmp.Diff([]string{"prepare", "assist", "work"}, started); diff != "" {
			t.Fatalf("killed after %v: containers (-want +got): %s", delay, diff)
		}
		lines := slices.Concat(r.lines("prepare"), r.lines("work"), r.lines("assist"))
		if diff := cmp.Diff([]string{"prepared", "worked", "assisted"}, lines); diff != "" {
			t.Fatalf("killed after %v: output (-want +got): %s", delay, diff)
		}
		if out := f.MustRun("get", "-o", "name"); out != "" {
			t.Fatalf("killed after %v: left: %s", delay, out)
		}
	}
}
