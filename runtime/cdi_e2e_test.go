//go:build e2e

package runtime_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// cdiSpec has a device with all that a specification can add. @dir is a directory of the host. Hooks read their input, the state of the
// container: SIGPIPE kills crun if one exits before it has written that.
const cdiSpec = `
cdiVersion: 1.1.0
kind: vendor.com/class
devices:
  - name: all
    containerEdits:
      deviceNodes:
        - { path: /dev/fuse, hostPath: "@dir/fuse", permissions: r }
        - { path: /dev/complete, @attype: c, major: 1, minor: 3, fileMode: 438 }
      mounts:
        - { hostPath: "@dir/lib.so", containerPath: /lib/vendor/lib.so.1, options: [ro, nosuid, nodev, rbind, rprivate] }
        - { hostPath: tmpfs, containerPath: /scratch, type: tmpfs, options: [size=64k] }
      additionalGids: [4242]
  - { name: broken, containerEdits: { netDevices: [{ hostInterfaceName: eth1, name: eth1 }] } }
  - { name: volume, containerEdits: { deviceNodes: [{ path: /dev/disk/a, hostPath: "@dir/fuse" }] } }
  - { name: other, containerEdits: { deviceNodes: [{ path: /dev/fuse, @attype: c, major: 1, minor: 5 }] } }
containerEdits:
  env: [LIB=/lib/vendor, OWN=device]
  hooks:
    - { hookName: createRuntime, path: /bin/sh, args: [sh, -c, '/bin/cat > /dev/null; echo "$A" > "@dir/created"'], env: [A=before] }
    - { hookName: poststop, path: /bin/sh, args: [sh, -c, '/bin/cat > /dev/null; echo stopped > "@dir/stopped"'] }
`

// cdiFile has containers with CDI devices.
const cdiFile = `
hostUsers = @users
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
securityContext.runAsUser = 1000
env = [{ name = "OWN", value = "container" }]
command = ["sh", "-c", '''
	echo LIB=$LIB OWN=$OWN; cat /lib/vendor/lib.so.1; grep -c "/lib/vendor/lib.so.1 .* ro," /proc/mounts
	: < /dev/fuse && echo read; sh -c ': >> /dev/fuse' 2>&1 && echo written; : >> /dev/complete && echo complete
	id -G; grep -c ' /scratch tmpfs' /proc/mounts; stat -c %u /dev/fuse
''']
devices = ["vendor.com/class=all", { cdi = "vendor.com/class=none", optional = true }]

[[containers]]
name = "missing"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo ready; sleep infinity"]
devices = ["vendor.com/class=later"]

[[containers]]
name = "broken"
image = "localhost/podstead/busybox:1"
devices = ["vendor.com/class=broken"]

[[containers]]
name = "volume"
image = "localhost/podstead/busybox:1"
devices = ["vendor.com/class=volume"]
volumeMounts.disk = "/dev/disk"

[[containers]]
name = "conflict"
image = "localhost/podstead/busybox:1"
devices = ["vendor.com/class=other", { path = "@dir/fuse", containerPath = "/dev/fuse" }]

[[volumes]]
name = "disk"
emptyDir = {}
`

// TestFieldsCDI tests devices of the Container Device Interface: nodes, mounts, variables, groups and hooks of a specification, and devices
// that do not exist or that a container cannot have.
//
// fields: containers[].devices[].cdi
func TestFieldsCDI(t *testing.T) {
	for _, users := range []bool{true, false} {
		t.Run("hostUsers="+strconv.FormatBool(users), func(t *testing.T) {
			m := newTestHost(t)
			if !users {
				m = newUserNamespaceHost(t)
			}
			makeNode(t, filepath.Join(m.dir, "fuse"), 10, 229)
			m.write("lib.so", "library\n", 0o644)
			m.write("cdi/damaged.json", "{", 0o644)
			if err := os.Chmod(m.dir, 0o755); err != nil { // the container's user has another ID in the user namespace
				t.Fatal(err)
			}
			at, owner := "", "1000"
			if !users { // nodes are mounted, and that of the host must exist
				makeNode(t, filepath.Join(m.dir, "complete"), 1, 3)
				at, owner = `hostPath: "@dir/complete", `, "65534"
			}
			m.write("cdi/vendor.yaml", strings.ReplaceAll(strings.ReplaceAll(cdiSpec, "@at", at), "@dir", m.dir), 0o644)
			p := newPod(m, m.parse(strings.NewReplacer("@users", strconv.FormatBool(users), "@dir", m.dir).Replace(cdiFile)))
			wantLines(t, p.run("c"), "LIB=/lib/vendor OWN=device", "library", "1",
				"read", "sh: can't create /dev/fuse: Operation not permitted", "complete", "0 4242", "1", owner)
			if err := p.RemoveContainer(p.ctx(), uid, p.Pod, lifecycle.Ref{Container: "c", Round: 1, Attempt: 1}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"created", "stopped"} {
				text, err := os.ReadFile(filepath.Join(m.dir, name))
				if want := map[string]string{"created": "before\n", "stopped": "stopped\n"}[name]; err != nil || string(text) != want {
					t.Errorf("hook: %v, %q, want %q", err, text, want)
				}
			}

			ref, err := p.begin("missing")
			wantFailure(t, "a device that does not exist", err, lifecycle.ReasonDeviceMissing,
				"device vendor.com/class=later: no specification in "+m.dir+"/cdi has it; "+m.dir+"/cdi/damaged.json cannot be read: ")
			w := p.watchDevices(lifecycle.DeviceOrder{Ref: ref, Definition: p.Container("missing"), Missing: true})
			m.write("cdi/later.json", `{"cdiVersion": "0.6.0", "kind": "vendor.com/class", "devices": [
				{"name": "later", "containerEdits": {"env": ["A=1"]}}]}`, 0o644)
			if c := w.next(); c.Removed || c.Device.Name() != "vendor.com/class=later" {
				t.Fatalf("%+v, want that the device exists", c)
			}
			w.stop()
			p.serve("missing")

			for name, want := range map[string]string{
				"broken":   "netDevices are not supported",
				"volume":   "device node /dev/disk/a of a CDI device is in the volume disk",
				"conflict": "device node /dev/fuse of a CDI device is that of another device",
			} {
				_, err := p.begin(name)
				wantFailure(t, name, err, lifecycle.ReasonCreateConfigError, want)
			}
		})
	}
}
