package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

func TestServiceAtBoot(t *testing.T) {
	const unit, link = "usr/lib/systemd/system/podstead.service", "etc/systemd/system/multi-user.target.wants/podstead.service"
	for name, test := range map[string]struct {
		files []string
		want  serviceState
	}{
		"no units":                  {nil, serviceMissing},
		"unit without link":         {[]string{unit}, serviceDisabled},
		"unit of the administrator": {[]string{"etc/systemd/system/podstead.service"}, serviceDisabled},
		"unit with link":            {[]string{unit, link}, serviceEnabled},
		"unit with link of the vendor": {
			[]string{unit, "usr/lib/systemd/system/edge.target.requires/podstead.service"}, serviceEnabled,
		},
		"link of another unit": {
			[]string{"etc/systemd/system/multi-user.target.wants/podstead-tools.service"}, serviceMissing,
		},
		"unit of make install with PREFIX set": {[]string{"usr/local/lib/systemd/system/podstead.service"}, serviceDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range test.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := serviceAtBoot(root, unitDirectories); got != test.want {
				t.Errorf("state %v, want %v", got, test.want)
			}
		})
	}
}

// TestUserServiceAtBoot tests the unit of a user, whom the configuration directory belongs to.
func TestUserServiceAtBoot(t *testing.T) {
	root := t.TempDir()
	write := func(file string) {
		t.Helper()
		path := filepath.Join(root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want serviceState) {
		t.Helper()
		if got := serviceAtBoot(root, userUnitDirectories("/home/ada/.config")); got != want {
			t.Errorf("state %v, want %v", got, want)
		}
	}
	write("usr/lib/systemd/system/podstead.service")
	write("home/bob/.config/systemd/user/default.target.wants/podstead.service")
	expect(serviceMissing)
	write("usr/lib/systemd/user/podstead.service")
	expect(serviceDisabled)
	write("home/ada/.config/systemd/user/default.target.wants/podstead.service")
	expect(serviceEnabled)
}

// states are the states of units.
type states map[string]string

func (u states) GetUnitPropertyContext(_ context.Context, unit, property string) (*dbus.Property, error) {
	if property != "ActiveState" {
		return nil, errors.New("unknown property")
	}
	return &dbus.Property{Name: property, Value: godbus.MakeVariant(u[unit])}, nil
}

func (u states) GetUnitTypePropertyContext(_ context.Context, unit, _, property string) (*dbus.Property, error) {
	if u[unit] == "" {
		return nil, errors.New("not loaded")
	}
	path := map[string]string{
		"podstead.socket": "/run/podstead/podstead.sock", "podstead-ro.socket": "/run/podstead/podstead-ro.sock",
	}[unit]
	return &dbus.Property{Name: property, Value: godbus.MakeVariant([][]any{{"Stream", path}})}, nil
}

func TestServiceIdle(t *testing.T) {
	const socket, readOnly = "/run/podstead/podstead.sock", "/run/podstead/podstead-ro.sock"
	for name, test := range map[string]struct {
		units  states
		socket string
		want   bool
	}{
		"the service is stopped":              {states{"podstead.socket": "active", "podstead.service": "inactive"}, socket, true},
		"the service has failed":              {states{"podstead.socket": "active", "podstead.service": "failed"}, socket, true},
		"the service runs":                    {states{"podstead.socket": "active", "podstead.service": "active"}, socket, false},
		"the service starts or restarts":      {states{"podstead.socket": "active", "podstead.service": "activating"}, socket, false},
		"the service stops":                   {states{"podstead.socket": "active", "podstead.service": "deactivating"}, socket, false},
		"the socket is stopped":               {states{"podstead.socket": "inactive", "podstead.service": "inactive"}, socket, false},
		"the socket starts":                   {states{"podstead.socket": "activating", "podstead.service": "inactive"}, socket, false},
		"another socket":                      {states{"podstead.socket": "active", "podstead.service": "inactive"}, "/tmp/s", false},
		"the read-only socket":                {states{"podstead-ro.socket": "active", "podstead.service": "inactive"}, readOnly, true},
		"the service without units of it":     {states{"podstead.service": "inactive"}, socket, false},
		"the states are not installed at all": {states{}, socket, false},
	} {
		if got := isServiceIdle(t.Context(), test.units, test.socket); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestConnectSystemd: root does not wait for a message bus that has a socket and does not run yet, as at boot. Others have no other way to
// systemd.
func TestConnectSystemd(t *testing.T) {
	for _, root := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "bus")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		clients := make(chan int, 1)
		go func() {
			n := 0
			for {
				c, err := l.Accept()
				if err != nil {
					clients <- n
					return
				}
				n++
				_ = c.Close()
			}
		}()
		t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+path)
		if conn, err := connectSystemd(t.Context(), root); err == nil {
			conn.Close()
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if n := <-clients; root != (n == 0) {
			t.Errorf("root %v: %d connections to the message bus", root, n)
		}
	}
}
