package doctor

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/rootless"
)

// TestUnprivileged tests what forbids user namespaces to users.
func TestUnprivileged(t *testing.T) {
	for _, test := range []struct {
		files map[string]string
		grade Grade
		hint  string
	}{
		{map[string]string{"user/max_user_namespaces": "1000\n"}, OK, ""},
		{map[string]string{}, Fail, "user.max_user_namespaces"},
		{map[string]string{"user/max_user_namespaces": "0\n"}, Fail, "user.max_user_namespaces"},
		{
			map[string]string{"user/max_user_namespaces": "9\n", "kernel/unprivileged_userns_clone": "0\n"},
			Fail, "unprivileged_userns_clone",
		},
		{map[string]string{"user/max_user_namespaces": "9\n", "kernel/unprivileged_userns_clone": "1\n"}, OK, ""},
		{
			map[string]string{"user/max_user_namespaces": "9\n", "kernel/apparmor_restrict_unprivileged_userns": "1\n"},
			Warn, "apparmor_restrict_unprivileged_userns",
		},
	} {
		proc := t.TempDir()
		for name, text := range test.files {
			path := filepath.Join(proc, "sys", name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if r := unprivileged(proc); r.grade != test.grade || !strings.Contains(r.hint, test.hint) {
			t.Errorf("%v: %+v", test.files, r)
		}
	}
}

// TestMappingPrograms tests programs that are missing, and those without privileges.
func TestMappingPrograms(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	found := func(string) (string, error) { return program, nil }
	if r := mappingPrograms(found); r.grade != Fail || !strings.Contains(r.detail, "set-user-ID") {
		t.Errorf("without privileges: %+v", r)
	}
	if err := os.Chmod(program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if r := mappingPrograms(found); r.grade != OK {
		t.Errorf("installed: %+v", r)
	}
	if r := mappingPrograms(missing); r.grade != Fail || !strings.Contains(r.hint, "uidmap") {
		t.Errorf("missing: %+v", r)
	}
}

// missing finds no program.
func missing(string) (string, error) { return "", errors.New("not found") }

func TestWayOut(t *testing.T) {
	tun := filepath.Join(t.TempDir(), "tun")
	found := func(string) (string, error) { return "/usr/bin/pasta", nil }
	if r := wayOut(missing, tun, nil); r.grade != Warn || !strings.Contains(r.hint, "passt") {
		t.Errorf("without pasta: %+v", r)
	}
	if r := wayOut(found, tun, nil); r.grade != Warn || !strings.Contains(r.hint, "chmod 0666") {
		t.Errorf("without a device: %+v", r)
	}
	if err := os.WriteFile(tun, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		outlet rootless.Outlet
		err    error
		grade  Grade
		detail string
	}{
		{rootless.Outlet{}, nil, OK, "starts with the first pod"},
		{rootless.Outlet{Needed: true, PID: 7}, nil, OK, "PID 7"},
		{rootless.Outlet{Needed: true}, nil, Warn, "does not run"},
		{rootless.Outlet{Needed: true, Error: "no route"}, nil, Warn, "no route"},
		{rootless.Outlet{}, errors.New("cannot be read"), Warn, "cannot be read"},
	} {
		r := wayOut(found, tun, func() (rootless.Outlet, error) { return test.outlet, test.err })
		if r.grade != test.grade || !strings.Contains(r.detail, test.detail) {
			t.Errorf("%+v: %+v", test, r)
		}
	}
}

func TestHostPorts(t *testing.T) {
	for _, test := range []struct {
		forwarder rootless.Outlet
		err       error
		grade     Grade
		detail    string
	}{
		{rootless.Outlet{}, nil, OK, "starts with the first pod"},
		{rootless.Outlet{Needed: true, PID: 7}, nil, OK, "PID 7; ports from "},
		{rootless.Outlet{Needed: true}, nil, Warn, "does not run"},
		{rootless.Outlet{Needed: true, Error: "no descriptor"}, nil, Warn, "no descriptor"},
		{rootless.Outlet{}, errors.New("cannot be read"), Warn, "cannot be read"},
	} {
		r := hostPorts(func() (rootless.Outlet, error) { return test.forwarder, test.err })
		if r.grade != test.grade || !strings.Contains(r.detail, test.detail) {
			t.Errorf("%+v: %+v", test, r)
		}
	}
}

// TestNameServers tests name servers that pods cannot reach.
func TestNameServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if r := nameServers(path); r.grade != Warn || !strings.Contains(r.hint, path) {
		t.Errorf("no file: %+v", r)
	}
	for text, want := range map[string]result{
		"search example.com\n":                        {Warn, "names no server", path},
		"nameserver 192.0.2.1\n":                      {OK, "192.0.2.1", ""},
		"nameserver 127.0.0.53\n":                     {OK, "through pasta at 169.254.1.1", ""},
		"nameserver ::1\n":                            {Warn, "IPv4 servers only", path},
		"nameserver ::1\nnameserver 127.0.0.1\n":      {OK, "through pasta", ""},
		"nameserver 127.0.0.1\nnameserver 10.0.0.1\n": {OK, "127.0.0.1, 10.0.0.1", ""},
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := nameServers(path)
		if r.grade != want.grade || !strings.Contains(r.detail, want.detail) || !strings.Contains(r.hint, want.hint) {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func TestLingering(t *testing.T) {
	dir := t.TempDir()
	if r := lingering(filepath.Join(dir, "missing"), dir); r.grade != OK {
		t.Errorf("without systemd: %+v", r)
	}
	if r := lingering(dir, dir); r.grade != Warn || !strings.Contains(r.hint, "loginctl enable-linger ") {
		t.Errorf("off: %+v", r)
	}
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, u.Username), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := lingering(dir, dir); r.grade != OK {
		t.Errorf("on: %+v", r)
	}
}

// TestDelegation tests which controllers users need, and why pods have no cgroups.
func TestDelegation(t *testing.T) {
	for _, test := range []struct {
		driver, controllers string
		err                 error
		grade               Grade
		detail, hint        string
	}{
		{"auto", "cpu memory pids", nil, OK, "cpu, memory, pids", ""},
		{"auto", "memory pids", nil, Warn, "controllers cpu are not delegated", "Delegate=cpu cpuset io memory pids"},
		{"auto", "", nil, Warn, "controllers cpu, memory, pids are not delegated", "Delegate=cpu cpuset io memory pids"},
		{"auto", "", rootless.ErrCgroupV1, Warn, "cgroup v1", "systemd.unified_cgroup_hierarchy=1"},
		{"auto", "", errors.New("no socket"), Warn, "no socket: pods with limits are rejected", "systemd-logind"},
		{"cgroupfs", "cpu memory pids", nil, Fail, "cgroupfs", "remove the setting"},
	} {
		r := delegation(test.driver, func() ([]string, error) { return strings.Fields(test.controllers), test.err })
		if r.grade != test.grade || !strings.Contains(r.detail, test.detail) || !strings.Contains(r.hint, test.hint) {
			t.Errorf("%+v: %+v", test, r)
		}
	}
}
