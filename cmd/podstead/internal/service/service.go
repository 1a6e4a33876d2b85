// Package service finds out whether systemd starts the daemon at boot. It reads the directories of units and runs no program, so that it
// works in a container and in an image that is being built.
package service

import (
	"os"
	"path/filepath"
)

// Unit is the name of the unit that runs the daemon.
const Unit = "podstead.service"

// Directories of units, see systemd.unit(5).
var directories = []string{"etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

// State is what systemd does with the daemon at boot.
type State int

// The states of the unit.
const (
	Missing  State = iota // the unit is not installed
	Disabled              // the unit is installed, and no other unit requires it
	Enabled               // the daemon starts at boot
)

// AtBoot returns the state of the unit in a root directory, which is / for the running system. Without a root directory it is [Missing].
func AtBoot(root string) State {
	state := Missing
	if root == "" {
		return state
	}
	for _, directory := range directories {
		for _, links := range []string{"*.wants", "*.requires", "*.upholds"} {
			if found, _ := filepath.Glob(filepath.Join(root, directory, links, Unit)); len(found) > 0 { // the pattern is valid
				return Enabled
			}
		}
		if _, err := os.Stat(filepath.Join(root, directory, Unit)); err == nil {
			state = Disabled
		}
	}
	return state
}
