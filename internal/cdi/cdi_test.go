package cdi

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// write creates files with their parent directories.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// of returns a specification with one device, whose edits are JSON.
func of(name, edits string) string {
	return `{"cdiVersion": "1.1.0", "kind": "vendor.com/class", "devices": [{"name": "` + name + `", "containerEdits": ` + edits + `}]}`
}

// TestNVIDIA reads a specification of nvidia-ctk. Its device exists when all files of the driver do.
func TestNVIDIA(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("testdata/nvidia.yaml")
	if err != nil {
		t.Fatal(err)
	}
	specs := filepath.Join(dir, "cdi")
	write(t, map[string]string{filepath.Join(specs, "nvidia.yaml"): strings.ReplaceAll(string(text), "@", dir)})
	for _, file := range []string{"dev/nvidiactl", "lib/libcuda.so.1", "bin/nvidia-cdi-hook", "dev/nvidia0"} {
		_, err := Read(t.Context(), []string{specs}).Find("nvidia.com/gpu=all")
		if !errors.Is(err, ErrNoDevice) || !strings.Contains(err.Error(), filepath.Join(dir, file)+" does not exist") {
			t.Errorf("%v, want that %s does not exist", err, file)
		}
		write(t, map[string]string{filepath.Join(dir, file): ""})
	}
	r := Read(t.Context(), []string{filepath.Join(dir, "none"), specs})
	var devices []*Device
	for _, name := range []string{"all", "0", "GPU-5b7e7a6c-0d7d-4a51-9f0e-2f1e0d3c9a11"} {
		d, err := r.Find("nvidia.com/gpu=" + name)
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, d)
	}
	e, err := Merge(devices)
	if err != nil || len(e.DeviceNodes) != 2 || len(e.Mounts) != 1 || len(e.Hooks) != 1 || !IsBind(e.Mounts[0]) ||
		!slices.Equal(e.Env, []string{"NVIDIA_VISIBLE_DEVICES=void"}) {
		t.Errorf("%v, %+v", err, e)
	}
	if len(r.Unreadable) > 0 || len(r.Names()) != 3 {
		t.Errorf("%v, %v", r.Unreadable, r.Names())
	}
}

// TestDamaged: a file that cannot be read is named, and the others are read.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, map[string]string{
		at("good.json"): of("good", `{"env": ["A=1"]}`),
		at("a.json"):    `{`,
		at("b.yaml"):    of("x", `{"env": ["A"]}`),
		at("c.json"):    strings.Replace(of("x", `{"env": ["A=1"]}`), "1.1.0", "9.0.0", 1),
		at("d.json"):    strings.Replace(of("x", `{"intelRdt": {"enableMonitoring": true}}`), "1.1.0", "0.7.0", 1),
		at("e.yaml"):    of("x", `{"hooks": [null]}`),
		at("f.json"):    of("x", `{"deviceNodes": [null]}`),
		at("g.yaml"):    of("x", `{"other": 1}`),
		at("h.json"):    of("x", `{}`),
		at("i.yaml"):    strings.Repeat("#", maxSize+1),
		at("j.json"):    of("x", `{"hooks": [{"hookName": "other", "path": "/bin/true"}]}`),
		at("k.yaml"):    "",
		at("other.txt"): "{",
	})
	if err := unix.Mkfifo(at("l.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("m.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := Read(t.Context(), []string{dir, at("other.txt")})
	for name, want := range map[string]string{
		"a.json": "", "b.yaml": `invalid environment variable "A"`, "c.json": `invalid version "9.0.0"`,
		"d.json": "must be at least v1.1.0", "e.yaml": "empty entry", "f.json": "empty entry",
		"g.yaml": "unmarshal errors: line 1: field other not found", "h.json": "empty", "i.yaml": "larger than",
		"j.json": `invalid hook name "other"`, "k.yaml": "", "l.json": "not a regular file", "other.txt": "not a directory",
	} {
		if err := r.Unreadable[at(name)]; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %s without the path", name, err, want)
		}
		delete(r.Unreadable, at(name))
	}
	if names := r.Names(); len(r.Unreadable) > 0 || !slices.Equal(names, []string{"vendor.com/class=good"}) {
		t.Errorf("%v, %v", r.Unreadable, names)
	}
	_, err := Read(t.Context(), []string{dir}).Find("vendor.com/class=x")
	want := "no specification in " + dir + " has it; " + at("a.json") + " cannot be read"
	if !errors.Is(err, ErrNoDevice) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// TestConflicts: of two devices with one name in one directory neither is used; a later directory takes precedence.
func TestConflicts(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "1"), filepath.Join(t.TempDir(), "2")
	write(t, map[string]string{
		filepath.Join(first, "a.json"): of("x", `{"env": ["A=1"]}`), filepath.Join(first, "b.json"): of("x", `{"env": ["A=2"]}`),
	})
	_, err := Read(t.Context(), []string{first, second}).Find("vendor.com/class=x")
	want := "a.json and " + filepath.Join(first, "b.json") + " both have it"
	if err == nil || errors.Is(err, ErrNoDevice) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	write(t, map[string]string{filepath.Join(second, "c.json"): of("x", `{"env": ["A=3"]}`)})
	d, err := Read(t.Context(), []string{first, second}).Find("vendor.com/class=x")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := Merge([]*Device{d}); err != nil || !slices.Equal(e.Env, []string{"A=3"}) {
		t.Errorf("%v, %+v", err, e)
	}
}

// TestUnsupported: a device that a container cannot have is refused with the reason.
func TestUnsupported(t *testing.T) {
	for edits, want := range map[string]string{
		`{"netDevices": [{"hostInterfaceName": "eth1", "name": "eth1"}]}`:              "netDevices are not supported",
		`{"deviceNodes": [{"path": "/dev/x", "type": "p"}]}`:                           "/dev/x: FIFOs are not supported",
		`{"deviceNodes": [{"path": "/etc/x", "type": "c", "major": 1}]}`:               "must be a path below /dev",
		`{"deviceNodes": [{"path": "/dev/../etc/x", "type": "c", "major": 1}]}`:        "must be a path below /dev",
		`{"deviceNodes": [{"path": "/dev/x", "hostPath": "x"}]}`:                       "hostPath x must be an absolute path",
		`{"mounts": [{"hostPath": "lib", "containerPath": "/lib"}]}`:                   "hostPath lib must be an absolute path",
		`{"mounts": [{"hostPath": "/lib", "containerPath": "/lib/../"}]}`:              "must be an absolute path other than /",
		`{"hooks": [{"hookName": "prestart", "path": "true"}]}`:                        "prestart hook: true must be an absolute path",
		`{"hooks": [{"hookName": "prestart", "path": "/bin/true", "timeout": 0}]}`:     "timeout must be greater than 0",
		`{"hooks": [{"hookName": "poststop", "path": "/bin/true", "timeout": -1}]}`:    "timeout must be greater than 0",
		`{"mounts": [{"hostPath": "tmpfs", "containerPath": "tmp", "type": "tmpfs"}]}`: "mount tmp: must be an absolute path",
	} {
		dir := t.TempDir()
		write(t, map[string]string{filepath.Join(dir, "a.json"): of("x", edits)})
		r := Read(t.Context(), []string{dir})
		_, err := r.Find("vendor.com/class=x")
		if err == nil || errors.Is(err, ErrNoDevice) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a.json") {
			t.Errorf("%s: %v (%v), want %s", edits, err, r.Unreadable, want)
		}
	}
}

// TestMergeConflicts: devices that need different things at one place cannot be used by one container.
func TestMergeConflicts(t *testing.T) {
	for _, test := range []struct{ a, b, want string }{
		{
			`"mounts": [{"hostPath": "/a", "containerPath": "/x"}]`, `"mounts": [{"hostPath": "/b", "containerPath": "/x"}]`,
			"/x is not that",
		},
		{
			`"deviceNodes": [{"path": "/dev/x", "type": "c", "major": 1, "minor": 3}]`,
			`"deviceNodes": [{"path": "/dev/x", "type": "c", "major": 1, "minor": 5}]`, "/dev/x is not that",
		},
		{`"intelRdt": {"closID": "a"}`, `"intelRdt": {"closID": "b"}`, "intelRdt is not that"},
		{`"mounts": [{"hostPath": "/a", "containerPath": "/x"}]`, `"mounts": [{"hostPath": "/a", "containerPath": "/x"}]`, ""},
	} {
		dir := t.TempDir()
		write(t, map[string]string{
			filepath.Join(dir, "a.json"): of("a", "{"+test.a+"}"), filepath.Join(dir, "b.json"): of("b", "{"+test.b+"}"),
		})
		r := Read(t.Context(), []string{dir})
		_, err := Merge([]*Device{r.devices["vendor.com/class=a"][0], r.devices["vendor.com/class=b"][0]})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), "class=b: "+test.want)) {
			t.Errorf("%s, %s: %v, want %s", test.a, test.b, err, test.want)
		}
	}
}
