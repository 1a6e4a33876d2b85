//go:build e2e

package systemd_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/installed"
)

// TestSystemService: sockets start the daemon for the first client, a reboot stops pods in order, with their hooks, and the documentation
// has the figures of systemd-analyze.
func TestSystemService(t *testing.T) {
	h := host(t)
	if out := h.Sh("systemd-analyze verify podstead.service podstead.socket podstead-ro.socket podstead.slice " +
		"podstead@web.service 2>&1"); out != "" {
		t.Errorf("systemd-analyze verify:\n%s", out)
	}
	checkSecurity(h)
	h.Sockets()
	h.Shutdown("systemd", 20*time.Second)
	h.Shutdown("cgroupfs", 20*time.Second)
}

// checkSecurity compares docs/design/system-service.md with the exposure of the service.
func checkSecurity(h *installed.Host) {
	h.Helper()
	page, err := os.ReadFile("../../docs/design/system-service.md")
	if err != nil {
		h.Fatal(err)
	}
	_, overall, _ := strings.Cut(h.Sh("systemd-analyze security --no-pager podstead | grep Overall"), ": ")
	figure, _, _ := strings.Cut(overall, " ")
	if !strings.Contains(string(page), "an exposure of "+figure+".") {
		h.Errorf("the page does not have the exposure %s", figure)
	}
	var checks []struct {
		Name, Exposure string
	}
	text := h.Sh("systemd-analyze security --no-pager --json=short podstead")
	if err := json.Unmarshal([]byte(text), &checks); err != nil {
		h.Fatalf("%v\n%s", err, text)
	}
	_, table, _ := strings.Cut(string(page), "| option | why it is not set |\n")
	exposed := 0
	for _, c := range checks {
		name, _, _ := strings.Cut(c.Name, "=")
		if c.Exposure == "" || c.Exposure == "0.0" {
			continue
		}
		exposed++
		if !strings.Contains(table, "`"+name+"`") {
			h.Errorf("the table of the page does not have %s: exposure %s", c.Name, c.Exposure)
		}
	}
	if exposed < 20 {
		h.Errorf("only %d checks in the output of systemd-analyze:\n%s", exposed, text)
	}
}
