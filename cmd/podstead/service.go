package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// serviceUnit is the name of the unit that runs the daemon.
const serviceUnit = "podstead.service"

// unitDirectories are the directories of units, see systemd.unit(5).
var unitDirectories = []string{"etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

// serviceState is what systemd does with the daemon at boot.
type serviceState int

// The states of the unit.
const (
	serviceMissing  serviceState = iota // the unit is not installed
	serviceDisabled                     // the unit is installed, and no other unit requires it
	serviceEnabled                      // the daemon starts at boot
)

// userUnitDirectories are the directories of units of users, for a user with this configuration directory.
func userUnitDirectories(configHome string) []string {
	return []string{
		filepath.Join(configHome, "systemd/user"), "etc/systemd/user", "usr/local/lib/systemd/user", "usr/lib/systemd/user",
	}
}

// serviceAtBoot returns the state of the unit in directories of units below a root directory, which is / for the running system. Without a
// root directory it is [serviceMissing]. It reads the directories and runs no program, so that it works in a container and in an image that
// is being built.
func serviceAtBoot(root string, directories []string) serviceState {
	state := serviceMissing
	if root == "" {
		return state
	}
	for _, directory := range directories {
		for _, links := range []string{"*.wants", "*.requires", "*.upholds"} {
			if found, _ := filepath.Glob(filepath.Join(root, directory, links, serviceUnit)); len(found) > 0 { // the pattern is valid
				return serviceEnabled
			}
		}
		if _, err := os.Stat(filepath.Join(root, directory, serviceUnit)); err == nil {
			state = serviceDisabled
		}
	}
	return state
}

// isInstalled reports whether a root directory has the system's daemon: a unit of it, its configuration or its directory for runtime state.
// Without a root directory it is not installed.
func isInstalled(root string) bool {
	if root == "" {
		return false
	}
	paths := []string{"etc/podstead", "run/podstead"}
	for _, directory := range unitDirectories {
		paths = append(paths, filepath.Join(directory, serviceUnit), filepath.Join(directory, "podstead.socket"))
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	})
}

// managerTimeout bounds the questions to systemd.
const managerTimeout = 5 * time.Second

// unitProperties are what systemd knows about its units.
type unitProperties interface {
	GetUnitPropertyContext(ctx context.Context, unit, property string) (*dbus.Property, error)
	GetUnitTypePropertyContext(ctx context.Context, unit, kind, property string) (*dbus.Property, error)
}

// serviceIdle reports whether systemd listens on a socket of the API, and the daemon does not run: a connection would start it. Without
// systemd it reports false.
func serviceIdle(ctx context.Context, socket string) bool {
	ctx, cancel := context.WithTimeout(ctx, managerTimeout)
	defer cancel()
	conn, err := connectSystemd(ctx, os.Geteuid() == 0)
	if err != nil {
		return false
	}
	defer conn.Close()
	return isServiceIdle(ctx, conn, socket)
}

// connectSystemd connects to systemd. Root uses systemd's own socket: at boot, podstead.socket runs podstead daemon stop before the message
// bus runs. Its socket accepts connections already, and nothing answers until sockets.target is reached, which waits for podstead.socket.
func connectSystemd(ctx context.Context, root bool) (*dbus.Conn, error) {
	if root {
		return dbus.NewSystemdConnectionContext(ctx)
	}
	return dbus.NewSystemConnectionContext(ctx)
}

func isServiceIdle(ctx context.Context, systemd unitProperties, socket string) bool {
	// A service that waits for its restart after a crash is activating.
	return listening(ctx, systemd)[socket] != "" && slices.Contains([]string{"inactive", "failed"}, stateOf(ctx, systemd, serviceUnit))
}

// stateOf returns the ActiveState of a unit.
func stateOf(ctx context.Context, systemd unitProperties, unit string) (state string) {
	if p, err := systemd.GetUnitPropertyContext(ctx, unit, "ActiveState"); err == nil {
		state, _ = p.Value.Value().(string)
	}
	return state
}

// listening returns the active socket units of the API, by the paths on which systemd listens for them.
func listening(ctx context.Context, systemd unitProperties) map[string]string {
	units := map[string]string{}
	for _, unit := range []string{"podstead.socket", "podstead-ro.socket"} {
		var sockets []struct{ Type, Path string }
		p, err := systemd.GetUnitTypePropertyContext(ctx, unit, "Socket", "Listen")
		if err != nil || p.Value.Store(&sockets) != nil || stateOf(ctx, systemd, unit) != "active" {
			continue
		}
		for _, s := range sockets {
			units[s.Path] = unit
		}
	}
	return units
}

// socketUnits is listening for the systemd of this host; without systemd there are none.
func socketUnits(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, managerTimeout)
	defer cancel()
	conn, err := connectSystemd(ctx, os.Geteuid() == 0)
	if err != nil {
		return nil
	}
	defer conn.Close()
	return listening(ctx, conn)
}
