package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/proctree/proctreetest"
	"github.com/podstead/podstead/runtime/shim"
)

func TestBundleCgroup(t *testing.T) {
	bundle := t.TempDir()
	if got, err := bundleCgroup(bundle); got != "" || err != nil {
		t.Errorf("no configuration: %q, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"linux":{"cgroupsPath":"/podstead/u/c"}}`:                 "/podstead/u/c",
		`{"linux":{"cgroupsPath":"podstead-u_1.slice:podstead:c"}}`: "/podstead.slice/podstead-u_1.slice/podstead-c.scope",
		`{"linux":{}}`: "",
		`{"linux":`:    "",
	} {
		if err := os.WriteFile(filepath.Join(bundle, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := bundleCgroup(bundle); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestKillWithoutCgroup tests that a container without a cgroup is killed by the record of its monitor, also if it has no bundle.
func TestKillWithoutCgroup(t *testing.T) {
	e := &Engine{opt: Options{State: t.TempDir(), WithoutCgroups: true}}
	pid, wait := proctreetest.Container(t, t.TempDir())
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	const started = 21 // field 22 of proc_pid_stat(5): the name, sleep, is one field
	fields := strings.Fields(string(stat))
	record := func(id, start string) {
		t.Helper()
		dir := filepath.Join(monitor.ContainersDir(MonitorDir(e.opt.State)), id)
		text := fmt.Sprintf(`{"pid":%d,"start":%s}`, pid, start)
		if err := errors.Join(os.MkdirAll(dir, 0o700),
			os.WriteFile(filepath.Join(dir, "container.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	record("other", "1") // an earlier process with this PID
	record("this", fields[started])
	if err := e.killContainer(t.Context(), "other"); err != nil || e.hasProcesses("other") || !e.hasProcesses("this") {
		t.Errorf("a container that has exited: %v", err)
	}
	if err := e.endAll(t.Context()); err != nil || e.hasProcesses("this") {
		t.Errorf("not killed: %v", err)
	}
	if err := wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the first process ended with %v", err)
	}
}

// TestStartDoesNotPanic: a panic of containerd is an error.
func TestStartDoesNotPanic(t *testing.T) {
	if err := noPanic(func() error { panic("invalid page") }); err == nil {
		t.Error("no error")
	}
	if err := noPanic(func() error { return os.ErrExist }); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v", err)
	}
}

func TestShimID(t *testing.T) {
	const name = shim.Name
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{name, "-namespace", "podstead", "-id", "a", "-address", "/e.sock"}, "a"},
		{[]string{name, "-namespace", "podstead", "-address", "/e.sock", "-id", "a", "start"}, "a"},
		{[]string{name, "-namespace", "podstead", "-address", "/e.sock", "-id", "a", "-bundle", "/b", "delete"}, ""},
		{[]string{name, "-namespace", "podstead", "-id", "a", "-address", "/other.sock"}, ""},
		{[]string{name, "-namespace", "other", "-id", "a", "-address", "/e.sock"}, ""},
		{[]string{"sh", "-c", name, "-namespace", "podstead", "-id", "a", "-address", "/e.sock"}, ""},
		{[]string{name, "-id"}, ""},
		{[]string{""}, ""},
	} {
		if got := shimID(test.args, "/e.sock"); got != test.want {
			t.Errorf("%q: %q, want %q", test.args, got, test.want)
		}
	}
}
