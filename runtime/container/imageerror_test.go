package container

import (
	"errors"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
)

// TestImageErrors: errors name the image, and the field of its configuration or the field of the pod.
func TestImageErrors(t *testing.T) {
	c := &spec.Container{Image: "shop:1"}
	own := &spec.Container{Image: "shop:1", WorkingDir: "/proc/9", Lifecycle: &spec.Lifecycle{StopSignal: "SIGNONE"}}
	unknown := errors.New(`signal "SIGNONE" does not exist`)
	outside := errors.New("OCI runtime create failed: current working directory is outside of container mount namespace root")
	for _, test := range []struct {
		name string
		got  error
		want string
	}{
		{"signal of an image", stopSignalError(c, unknown), `stop signal of image "shop:1": signal "SIGNONE" does not exist`},
		{"signal of a pod", stopSignalError(own, unknown), `lifecycle.stopSignal: signal "SIGNONE" does not exist`},
		{"signal of a container that was removed", stopSignalError(nil, unknown), unknown.Error()},
		{
			"long signal", checkStopSignal("shop:1", strings.Repeat("A", 5000)),
			`image "shop:1": stop signal "` + strings.Repeat("A", 64) + `"... is too long (5000 bytes)`,
		},
		{
			"directory of an image", workingDirError(c, "/proc/9", outside),
			`working directory "/proc/9" of image "shop:1": ` + outside.Error(),
		},
		{"directory of a pod", workingDirError(own, "/proc/9", outside), `workingDir "/proc/9": ` + outside.Error()},
		{
			"directory that cannot be created", workingDirError(c, "/proc/a/b", errors.New("mkdir /proc/a/b: no such file or directory")),
			`working directory "/proc/a/b" of image "shop:1": mkdir /proc/a/b: no such file or directory`,
		},
		{"another error", workingDirError(c, "/", errors.New("exec: /bin/sh: not found")), "exec: /bin/sh: not found"},
	} {
		if test.got == nil || test.got.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.name, test.got, test.want)
		}
	}
	if err := checkStopSignal("shop:1", "SIGRTMIN+3"); err != nil {
		t.Error(err)
	}
}
