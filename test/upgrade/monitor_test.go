//go:build e2e

package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/monitor"
)

// TestReplaceMonitor replaces the current version by the next one and by itself again, while 20 pods run. The running monitor gets the
// version of the installed one each time: no container restarts, no probe flips, no line of a log is lost.
func TestReplaceMonitor(t *testing.T) {
	next, s := t.TempDir(), newServers(t)
	build(t, repository(t), next, "next", programs)
	h := newHost(t, current(t))
	h.MustRun("get")
	names, l := h.create("", s), logs{}
	for len(names) < 20 {
		name := fmt.Sprintf("plain-%d", len(names))
		h.MustCreate(name, "terminationGracePeriodSeconds = 2\n"+container("containers", "main", ""))
		h.Saw(h.Until(name, "ready", ready).Metadata.UID)
		names = append(names, name)
	}
	h.runsInstalledMonitor()
	h.check(l, names)
	before, events := h.look(names), h.events(names)
	for _, step := range []struct{ what, dir string }{{"upgrade", next}, {"downgrade", current(t)}} {
		h.upgrade(step.dir)
		version := h.runsInstalledMonitor()
		h.Await(func() error { // the daemon reports it some time after the replacement
			if out := h.MustRun("events"); !strings.Contains(out, "replaced by version "+version+", containers kept running") {
				return fmt.Errorf("after the %s, the events have no replacement by version %s:\n%s", step.what, version, out)
			}
			return nil
		})
		h.probing(s)
		h.check(l, names)
		h.unchanged("after the "+step.what, names, before, events)
	}
	h.operate("", l)
	h.MustRun("delete", "--all")
	h.MustRun("daemon", "stop")
}

// runsInstalledMonitor waits until monitor and keeper execute the installed program, and returns its version.
func (h *host) runsInstalledMonitor() (version string) {
	h.Helper()
	program := filepath.Join(h.bin, monitor.Name)
	version, err := monitor.VersionOf(h.Ctx(), program)
	h.Check(err)
	h.Await(func() error {
		c, err := monitor.Dial(h.Ctx(), engine.MonitorDir(filepath.Join(h.RunDir(), "engine")))
		if err != nil {
			return err
		}
		defer c.Close()
		hello, err := c.Hello(h.Ctx())
		if err != nil {
			return err
		}
		same, err := hello.Executes(program)
		if !same || hello.Version != version {
			err = errors.Join(err, fmt.Errorf("the monitor has version %s, the installed one %s", hello.Version, version))
		}
		return err
	})
	return version
}

// replacesMonitor reports whether the daemon of a version replaces the monitor: it has the event for that.
func replacesMonitor(t *testing.T, dir string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, programs[0]))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(text, []byte(api.EventMonitorReplaced))
}
