package ocibundle

import (
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// The root file system of a pause process in a user namespace belongs to that namespace's root.
func TestPauseRoot(t *testing.T) {
	mounts := PauseRoot(&specs.Spec{Linux: &specs.Linux{
		UIDMappings: []specs.LinuxIDMapping{{HostID: 65536, Size: 65536}},
		GIDMappings: []specs.LinuxIDMapping{{HostID: 131072, Size: 65536}},
	}})
	if len(mounts) != 1 || !slices.Contains(mounts[0].Options, "uid=65536") || !slices.Contains(mounts[0].Options, "gid=131072") {
		t.Errorf("mounts %v", mounts)
	}
}

func TestPinPIDErrors(t *testing.T) {
	if err := PinPID(1, "/no/such/dir/pid"); err == nil || !strings.Contains(err.Error(), "pin PID namespace") {
		t.Errorf("a file that cannot be created: %v", err)
	}
	if err := PinPID(1, ""); err != nil {
		t.Error(err)
	}
}
