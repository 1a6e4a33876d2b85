//go:build e2e

package monitor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/internal/crilog"
)

// storm multiplies the number of kills, see PODSTEAD_STORM in the Makefile.
func storm(t *testing.T) int {
	text := os.Getenv("PODSTEAD_STORM")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("PODSTEAD_STORM=%q: must be a number", text)
	}
	return n
}

// rest waits for a random time: what a test does next must hit the monitor anywhere.
func rest(longest time.Duration) {
	<-time.After(time.Duration(rand.Int64N(int64(longest))))
}

// TestOutputWithKills kills the monitor while three containers write: each line is in the log once, and each exit code is right.
func TestOutputWithKills(t *testing.T) {
	w := newWorld(t)
	const lines = 50_000
	kills := 60 * storm(t)
	log := crilog.Options{MaxBytes: 1 << 30}
	var ids []string
	for i := range 3 {
		// Each prints its lines in ten parts, with rests, so that some output comes at each moment of the test.
		script := fmt.Sprintf(`i=0; while [ $i -lt 10 ]; do seq $((i*%d)) $(((i+1)*%d-1)); echo same; i=$((i+1)); sleep 0.5; done; exit %d`,
			lines/10, lines/10, 40+i)
		ids = append(ids, w.run(testContainer{log: log, terminal: i == 2}, script).ID) // the last one has a terminal
	}
	_, last := w.pids()
	for range kills {
		rest(150 * time.Millisecond)
		w.kill(last)
		w.connect()
		_, monitor := w.pids()
		if monitor == last {
			t.Fatalf("monitor %d survived", last)
		}
		last = monitor
	}
	h, err := w.client.Hello(w.ctx)
	w.must(err)
	if h.Monitors != kills+1 {
		t.Errorf("%d monitors, want %d", h.Monitors, kills+1)
	}
	for i, id := range ids {
		if e := w.awaitExit(id); e.Code != uint32(40+i) || e.Unknown {
			t.Errorf("container %d: exit %+v", i, e)
		}
		w.delete(id)
		next, same := 0, 0
		for _, line := range w.log(id, "") {
			line = strings.TrimSuffix(line, "\r") // of a terminal
			if line == "same" {
				same++
				continue
			}
			if line != strconv.Itoa(next) {
				t.Fatalf("container %d: line %q, want %d", i, line, next)
			}
			next++
		}
		if next != lines || same != 10 {
			t.Errorf("container %d: %d lines and %d equal ones, want %d and 10", i, next, same, lines)
		}
	}
	w.wantNothing()
}
