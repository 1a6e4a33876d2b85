package spec

import (
	"strings"
	"testing"
)

// TestDeviceMounts checks which mounts of the host have a warning that a volume gives no right to a device.
func TestDeviceMounts(t *testing.T) {
	for lines, warned := range map[string]bool{
		`hostPath.path = "/dev/ttyUSB0"`:                             true,
		`hostPath.path = "/dev/dri"`:                                 true,
		`hostPath = { path = "/srv/disk", type = "BlockDevice" }`:    true,
		`hostPath = { path = "/srv/tty", type = "CharDevice" }`:      true,
		`hostPath = { path = "/dev/log", type = "Socket" }`:          false,
		`hostPath.path = "/dev/log"`:                                 false,
		`hostPath.path = "/dev/null"`:                                false,
		`hostPath.path = "/dev/shm/shared"`:                          false,
		`hostPath.path = "/srv/data"`:                                false,
		`hostPath.path = "/dev/bus/usb"` + "\n# devices":             false,
		`hostPath.path = "/dev/ttyUSB0"` + "\n# privileged":          false,
		`hostPath = { path = "/dev/x", type = "DirectoryOrCreate" }`: false,
		`hostPath.path = "/dev/bus/usb/001/002"` + "\n# devices":     false,
		`hostPath.path = "/dev/bus"` + "\n# devices":                 false,
		`hostPath.path = "/dev/bus-other"` + "\n# devices":           true,
		`hostPath.path = "/dev/ttyUSB0"` + "\n# cdi":                 true,
	} {
		container := "[[containers]]\nname = \"c\"\nimage = \"i\"\nvolumeMounts.v = \"/device\"\n"
		if strings.Contains(lines, "# devices") {
			container += "devices = [\"/dev/bus/usb\"]\n"
		}
		if strings.Contains(lines, "# cdi") {
			container += "devices = [\"example.com/gpu=0\"]\n"
		}
		if strings.Contains(lines, "# privileged") {
			container += "securityContext.privileged = true\n"
		}
		pod, problems := Parse("web.toml", []byte(container+"[[volumes]]\nname = \"v\"\n"+lines+"\n"))
		got := strings.Contains(problems.Error(), "a volume gives no right to a device")
		if pod == nil || got != warned {
			t.Errorf("%s: warned %v, want %v:\n%v", lines, got, warned, problems)
		}
	}
}
