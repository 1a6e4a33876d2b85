package service

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// units are the states of units.
type units map[string]string

func (u units) GetUnitPropertyContext(_ context.Context, unit, property string) (*dbus.Property, error) {
	if property != "ActiveState" {
		return nil, errors.New("unknown property")
	}
	return &dbus.Property{Name: property, Value: godbus.MakeVariant(u[unit])}, nil
}

func (u units) GetUnitTypePropertyContext(_ context.Context, unit, _, property string) (*dbus.Property, error) {
	if u[unit] == "" {
		return nil, errors.New("not loaded")
	}
	path := map[string]string{"podstead.socket": "/run/podstead/podstead.sock", "podstead-ro.socket": "/run/podstead/podstead-ro.sock"}[unit]
	return &dbus.Property{Name: property, Value: godbus.MakeVariant([][]any{{"Stream", path}})}, nil
}

func TestIdle(t *testing.T) {
	const socket, readOnly = "/run/podstead/podstead.sock", "/run/podstead/podstead-ro.sock"
	for name, test := range map[string]struct {
		units  units
		socket string
		want   bool
	}{
		"the service is stopped":             {units{"podstead.socket": "active", "podstead.service": "inactive"}, socket, true},
		"the service has failed":             {units{"podstead.socket": "active", "podstead.service": "failed"}, socket, true},
		"the service runs":                   {units{"podstead.socket": "active", "podstead.service": "active"}, socket, false},
		"the service starts or restarts":     {units{"podstead.socket": "active", "podstead.service": "activating"}, socket, false},
		"the service stops":                  {units{"podstead.socket": "active", "podstead.service": "deactivating"}, socket, false},
		"the socket is stopped":              {units{"podstead.socket": "inactive", "podstead.service": "inactive"}, socket, false},
		"the socket starts":                  {units{"podstead.socket": "activating", "podstead.service": "inactive"}, socket, false},
		"another socket":                     {units{"podstead.socket": "active", "podstead.service": "inactive"}, "/tmp/s", false},
		"the read-only socket":               {units{"podstead-ro.socket": "active", "podstead.service": "inactive"}, readOnly, true},
		"the service without units of it":    {units{"podstead.service": "inactive"}, socket, false},
		"the units are not installed at all": {units{}, socket, false},
	} {
		if got := idle(t.Context(), test.units, test.socket); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestConnect: root does not wait for a message bus that has a socket and does not run yet, as at boot. Others have no other way to
// systemd.
func TestConnect(t *testing.T) {
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
		if conn, err := connect(t.Context(), root); err == nil {
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
