package server

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/podstead/podstead/spec"
)

// TestDeviceAccessCDI: the specification of a CDI device may mount any file of the host, whatever the user may read.
func TestDeviceAccessCDI(t *testing.T) {
	if err := deviceAccess(&spec.Device{CDI: "vendor.com/class=a"}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}
