package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDevices(t *testing.T) {
	const dev = `devices = [
	"/dev/ttyUSB0", "/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0-port0", "nvidia.com/gpu=0:1", { cdi = "a.b/c=d", optional = true },
	{ path = "/srv/gps", containerPath = "/dev/gps", permissions = "rw", optional = true },
]
`
	pod, problems := Parse("web.toml", []byte(appHead+dev))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff([]Device{
		{Path: "/dev/ttyUSB0"},
		{Path: "/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0-port0"},
		{CDI: "nvidia.com/gpu=0:1"},
		{CDI: "a.b/c=d", Optional: true},
		{Path: "/srv/gps", ContainerPath: "/dev/gps", Permissions: "rw", Optional: true},
	}, pod.Containers[0].Devices); diff != "" {
		t.Error(diff)
	}
	if d := pod.Containers[0].Devices; d[0].InContainer() != "/dev/ttyUSB0" || d[0].Access() != "rwm" || d[4].InContainer() != "/dev/gps" ||
		d[4].Access() != "rw" || d[2].Name() != "nvidia.com/gpu=0:1" || d[0].Name() != d[0].Path {
		t.Errorf("%+v", d)
	}
}

// TestDeviceRestarts: a container that does not start without a device does not run on without it, unless it says so.
func TestDeviceRestarts(t *testing.T) {
	for _, test := range []struct {
		d    Device
		want bool
	}{
		{Device{}, true},
		{Device{Optional: true}, false},
		{Device{Optional: true, OnRemove: DeviceRestart}, true},
		{Device{OnRemove: DeviceKeep}, false},
		{Device{CDI: "a.b/c=d"}, false},
	} {
		if got := test.d.Restarts(); got != test.want {
			t.Errorf("%+v: %v, want %v", test.d, got, test.want)
		}
	}
}

func TestBadDevices(t *testing.T) {
	for _, test := range []struct{ file, path, message, hint string }{
		{
			`devices = ["/dev/a:/dev/b:r"]`, "devices[0]", `must be a path`,
			`write { path = "/dev/a", containerPath = "/dev/b", permissions = "r" }`,
		},
		{`devices = ["/dev/a:rw"]`, "devices[0]", `must be a path`, `write { path = "/dev/a", permissions = "rw" }`},
		{`devices = ["/dev/a:/dev/a"]`, "devices[0]", `must be a path`, `write { path = "/dev/a", containerPath = "/dev/a" }`},
		{`devices = ["vendor.com/class="]`, "devices[0]", `must be an absolute path`, "VENDOR/CLASS=NAME"},
		{`devices = [{ cdi = "vendor.com/class" }]`, "devices[0].cdi", "must be VENDOR/CLASS=NAME", ""},
		{`devices = [{ cdi = "a.b/c=d", path = "/dev/a" }]`, "devices[0].path", "Forbidden: may not be specified when cdi is set", ""},
		{`devices = [{ cdi = "a.b/c=d", permissions = "r" }]`, "devices[0].permissions", "Forbidden", ""},
		{`devices = [{ cdi = "a.b/c=d", containerPath = "/dev/a" }]`, "devices[0].containerPath", "Forbidden", ""},
		{`devices = [{ cdi = "a.b/c=d", onRemove = "keep" }]`, "devices[0].onRemove", "Forbidden", ""},
		{`devices = ["a.b/c=d", { cdi = "a.b/c=d" }]`, "devices[1].cdi", "Duplicate value", ""},
		{`devices = ["ttyUSB0"]`, "devices[0]", `"ttyUSB0": must be an absolute path`, ""},
		{`devices = [{}]`, "devices[0].path", "Required", ""},
		{`devices = ["/srv/gps"]`, "devices[0]", "must be below /dev in the container", `set containerPath = "/dev/gps"`},
		{`devices = ["/dev"]`, "devices[0]", "must be below /dev in the container", ""},
		{`devices = ["/dev/../srv/gps"]`, "devices[0]", "must be below /dev in the container", ""},
		{`devices = ["/dev/null"]`, "devices[0]", "/dev/null is set up by the OCI runtime", ""},
		{`devices = ["/dev/shm/x"]`, "devices[0]", "/dev/shm is set up by the OCI runtime", ""},
		{`devices = [{ path = "/dev/a", permissions = "rx" }]`, "devices[0].permissions", "one or more of the letters r, w and m", ""},
		{`devices = [{ path = "/dev/a", onRemove = "stop" }]`, "devices[0].onRemove", `supported values: "restart", "keep"`, ""},
		{`devices = [{ path = "/dev/a", permissions = "rr" }]`, "devices[0].permissions", "one or more of the letters r, w and m", ""},
		{`devices = ["/dev/a", { path = "/dev/b", containerPath = "/dev/./a" }]`, "devices[1].containerPath", "Duplicate value", ""},
		{
			"devices = [\"/dev/a/b\"]\nvolumeMounts.v = \"/dev/a\"\n[[volumes]]\nname = \"v\"\nemptyDir = {}", "devices[0]",
			`is where the volume "v" is mounted`, "",
		},
	} {
		_, problems := Parse("web.toml", []byte(appHead+test.file+"\n"))
		if len(problems) != 1 || problems[0].Path != "containers[0]."+test.path || !strings.Contains(problems[0].Message, test.message) ||
			!strings.Contains(problems[0].Hint, test.hint) || problems[0].Line == 0 {
			t.Errorf("%s: %v, want %s: %s (%s)", test.file, problems, test.path, test.message, test.hint)
		}
	}
}
