//go:build vm

package vm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/installed"
	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/vm"
)

// The stable names that udev gives the devices: a port of virtio-serial, and a disk with a serial number.
const (
	gps   = "/dev/virtio-ports/gps"
	stick = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_stick"
)

// pod returns a file of a pod with these containers, which run until they are stopped.
func pod(name, more string, containers ...string) string {
	return fmt.Sprintf("name = %q\nimageArchives = [%q]\nterminationGracePeriodSeconds = 5\n%s\n", name, payload+"/busybox.tar", more) +
		strings.Join(containers, "")
}

// runs returns a container that runs a script first.
func runs(name, script, more string) string {
	return fmt.Sprintf(`[[containers]]
name = %q
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "trap 'exit 0' TERM; %s while :; do sleep 1 & wait; done"]
%s
`, name, script, more)
}

// uses returns the field of a container for a device.
func uses(device, more string) string {
	return fmt.Sprintf("devices = [{ path = %q, containerPath = \"/dev/it\"%s }]", device, more)
}

// replugs is how often the disk is unplugged and plugged in again without a wait, times [rig.Times].
const replugs = 10

// TestDevices plugs devices into a virtual machine and unplugs them, with udev. They are absent at boot, and their containers wait. When
// they are unplugged, a container waits for its device and another one keeps running. Plugged in again with other numbers, containers have
// the new node. Credentials that were sealed with the TPM are decrypted after a power cut, but not when the firmware has measured something
// else, and not by a TPM with other keys.
func TestDevices(t *testing.T) {
	dir := tempDir(t)
	d := &devices{files: dir}
	d.Host, d.machine = newInstalledOn(t, vm.Options{Devices: true, TPM: dir})
	d.Sh("systemctl is-active systemd-udevd")
	d.seal("safe", "later", "last")
	d.Copy("safe", sealedPod("safe"))
	d.Copy("gps", pod("gps", "", runs("c", "echo fix >/dev/it;", uses(gps, "")), runs("kept", "", uses(stick, `, onRemove = "keep"`))))
	d.Copy("stick", pod("stick", "", runs("c", "", uses(stick, ""))))
	d.missing()
	d.sealed()

	d.backends()
	d.plugGPS(5)
	d.plugDisk("stick")
	d.running(0)
	d.node("gps", "kept", stick)
	d.strange()
	kept := d.kept()

	d.unplug("gps")
	d.unplug("stick")
	d.Status("gps", "1/2 DeviceMissing")
	d.Status("stick", "0/1 DeviceMissing")
	d.reported("Device " + stick + " of container kept was unplugged")
	d.plugDisk("decoy")
	d.plugGPS(6)
	d.plugDisk("stick")
	d.running(1)
	d.reported("Device " + stick + " of container kept is plugged in, .* when it starts again")
	if now := d.kept(); now != kept {
		t.Errorf("the container that keeps running was %s, is %s", kept, now)
	}
	d.Sh("podstead restart gps -c kept --wait")
	d.node("gps", "kept", stick)
	d.storm()
	if fixes, err := os.ReadFile(filepath.Join(dir, "gps")); string(fixes) != "fix\nfix\n" {
		t.Errorf("the device has received %q, %v", fixes, err)
	}
	if events := d.Sh("podstead events"); strings.Contains(events, "Back-off") {
		t.Errorf("events:\n%s", events)
	}

	d.Sh("sync")
	d.Cut()
	d.missing()
	d.sealed()
	d.backends()
	d.plugGPS(7)
	d.node("gps", "c", gps)
	d.foreign()
}

// devices is a host with devices that are plugged in and unplugged.
type devices struct {
	*installed.Host
	machine *host
	files   string // a directory of the host for what is in the devices
}

// qemu executes a command of QEMU.
func (d *devices) qemu(command string, a vm.Arguments) {
	d.Helper()
	if err := d.machine.machine.Execute(d.Context(), command, a); err != nil {
		d.Fatal(err)
	}
}

// backends gives QEMU what is in the devices, which it keeps when they are unplugged.
func (d *devices) backends() {
	d.Helper()
	d.qemu("chardev-add", vm.Arguments{
		"id": "gps", "backend": vm.Arguments{"type": "file", "data": vm.Arguments{"out": filepath.Join(d.files, "gps")}},
	})
	for _, name := range []string{"stick", "decoy"} {
		content := name + strings.Repeat("\n", 1<<20)
		file := filepath.Join(d.files, name)
		if err := os.WriteFile(file, []byte(content[:1<<20]), 0o600); err != nil {
			d.Fatal(err)
		}
		d.qemu("blockdev-add", vm.Arguments{"driver": "file", "node-name": name, "filename": file})
	}
}

// plugGPS plugs in the GPS. The port is its minor device number.
func (d *devices) plugGPS(port int) {
	d.Helper()
	d.qemu("device_add", vm.Arguments{
		"driver": "virtserialport", "bus": "serial.0", "nr": port, "chardev": "gps", "name": "gps", "id": "gps",
	})
}

func (d *devices) plugDisk(name string) {
	d.Helper()
	d.qemu("device_add", vm.Arguments{"driver": "scsi-hd", "bus": "scsi.0", "drive": name, "serial": name, "id": name})
	d.Eventually("udev has named disk "+name, "ls -l /dev/disk/by-id; ls /dev/disk/by-id | grep -x 'scsi-0QEMU_QEMU_HARDDISK_"+name+"'")
}

// unplug unplugs a device. udev removes its name.
func (d *devices) unplug(id string) {
	d.Helper()
	d.qemu("device_del", vm.Arguments{"id": id})
}

// missing checks that the containers wait for their devices.
func (d *devices) missing() {
	d.Helper()
	d.Status("gps", "0/2 DeviceMissing")
	d.Status("stick", "0/1 DeviceMissing")
	for name, path := range map[string]string{"gps": gps, "stick": stick} {
		d.Sh("podstead why " + name + " > /tmp/why || true; cat /tmp/why; grep 'device " + path + " does not exist' /tmp/why")
	}
}

// running waits until all containers run that are restarted for their devices, and checks that they use them.
func (d *devices) running(restarts int) {
	d.Helper()
	d.Status("gps", fmt.Sprintf("2/2 Running %d", restarts))
	d.Status("stick", fmt.Sprintf("1/1 Running %d", restarts))
	d.node("gps", "c", gps)
	d.node("stick", "c", stick)
	d.reads("stick", "c")
}

// node waits until a container has the present node of a device.
func (d *devices) node(pod, container, path string) {
	d.Helper()
	d.Eventually("the node of "+pod+"/"+container, "host=$(stat -L -c '%F %t:%T' "+path+"); it=$(podstead exec "+pod+" -c "+container+
		` -- stat -c '%F %t:%T' /dev/it); echo "$host, $it"; [ "$host" = "$it" ]`)
}

// reads checks that a container can read the disk.
func (d *devices) reads(pod, container string) {
	d.Helper()
	if out := d.Sh("podstead exec " + pod + " -c " + container + " -- head -n 1 /dev/it"); out != "stick\n" {
		d.Errorf("container %s of pod %s reads %q from its device", container, pod, out)
	}
}

// reported waits for an event of the pod gps.
func (d *devices) reported(message string) {
	d.Helper()
	d.Eventually("an event", "podstead events gps > /tmp/events; tail -n 20 /tmp/events; grep '"+message+"' /tmp/events")
}

// kept returns the run of the container that keeps running without its device.
func (d *devices) kept() string {
	d.Helper()
	return d.Sh("podstead get gps -o jsonpath='{range .status.containerStatuses[?(@.name==\"kept\")]}{.containerID} {.restartCount}{end}'")
}

// strange checks that a container can make a node of the disk of the host, and not open it.
func (d *devices) strange() {
	d.Helper()
	const script = `mknod /tmp/vda b $1 $2; stat -c %F /tmp/vda; head -c 1 /tmp/vda`
	out := d.Sh("podstead exec stick -- sh -c '" + script + "' sh $(stat -c '%Hr %Lr' /dev/vda) 2>&1 || true")
	if !strings.Contains(out, "block special file\n") || !strings.Contains(out, "Operation not permitted") {
		d.Errorf("a node of another device:\n%s", out)
	}
}

// storm unplugs the disk and plugs it in again several times, as fast as udev follows, with the same numbers.
func (d *devices) storm() {
	d.Helper()
	before, kept, replugs := d.Look(), d.kept(), replugs*rig.Times(d)
	for range replugs {
		d.Sh(fmt.Sprintf(`disk=$(basename $(readlink %[1]s)); echo 1 > /sys/block/$disk/device/delete; udevadm settle; [ ! -e %[1]s ]
			echo '- - -' | tee /sys/class/scsi_host/host*/scan; udevadm settle; [ -e %[1]s ]`, stick))
	}
	d.Status("stick", "1/1 Running")
	d.node("stick", "c", stick)
	d.reads("stick", "c")
	d.reads("gps", "kept")
	now := d.Look()
	if is := d.kept(); now["gps"] != before["gps"] || is != kept {
		d.Errorf("containers were %+v, %s, are %+v, %s", before["gps"], kept, now["gps"], is)
	}
	restarts := now["stick"].Restarts - before["stick"].Restarts
	if restarts < 1 || restarts > replugs {
		d.Errorf("%d restarts for %d times without the device", restarts, replugs)
	}
}

// sealedPod is a pod with a secret in a credential.
func sealedPod(name string) string {
	return pod(name, `secrets.db = { credential = "password", credentialFile = "/root/`+name+`.cred" }`,
		runs("c", "", `env.PASSWORD.secretKeyRef = { name = "db", key = "password" }`))
}

// seal seals a credential for each of these pods with the TPM.
func (d *devices) seal(pods ...string) {
	d.Helper()
	d.Sh("for name in " + strings.Join(pods, " ") +
		"; do printf %s 'correct horse' | systemd-creds encrypt --with-key=tpm2 --name=password - /root/$name.cred; done")
}

// sealed checks the value of the secret.
func (d *devices) sealed() {
	d.Helper()
	d.Status("safe", "1/1 Running")
	if out := d.Sh("podstead exec safe -- sh -c 'echo $PASSWORD'"); out != "correct horse\n" {
		d.Errorf("secret %q", out)
	}
}

// Commands of a TPM 2.0: extend PCR 7, which measures Secure Boot, by a digest; remove all keys, so that it has those of another TPM.
const (
	extendPCR = "80020000004100000182" + "00000007" + "00000009400000090000000000" + "00000001000b" +
		"0101010101010101010101010101010101010101010101010101010101010101"
	clearTPM = "80020000001b00000126" + "4000000a" + "00000009400000090000000000"
)

// tpm executes a command of the TPM.
func (d *devices) tpm(command string) {
	d.Helper()
	var octal strings.Builder
	for i := 0; i < len(command); i += 2 {
		var b byte
		if _, err := fmt.Sscanf(command[i:i+2], "%02x", &b); err != nil {
			d.Fatal(err)
		}
		fmt.Fprintf(&octal, `\%03o`, b)
	}
	// tag, size and code of the response
	out := d.Sh("exec 3<>/dev/tpmrm0; printf '" + octal.String() + "' >&3; head -c 10 <&3 | od -An -tx1")
	if code := strings.Join(strings.Fields(out), ""); !strings.HasSuffix(code, "00000000") {
		d.Fatalf("response of the TPM: %s", out)
	}
}

// foreign checks that credentials are refused when the firmware has measured something else, and by a TPM with other keys. The pod that
// runs has its secret.
func (d *devices) foreign() {
	d.Helper()
	d.tpm(extendPCR)
	d.Sh("cat > /root/later.toml <<'E'\n" + sealedPod("later") + "E\n")
	d.refused("podstead validate /root/later.toml", "later", "the firmware or Secure Boot of this host has changed since it was encrypted")
	d.tpm(clearTPM)
	d.Copy("last", sealedPod("last"))
	d.Status("last", "0/1 CreateContainerConfigError")
	d.refused("podstead why last", "last", "it was not encrypted for this host, or is damaged")
	d.sealed()
}

// refused checks that the output of a command has the reason why the credential of a pod cannot be decrypted.
func (d *devices) refused(command, pod, reason string) {
	d.Helper()
	out := d.Sh(command + " 2>&1 || true")
	if !strings.Contains(out, `secret "db": decrypt credential /root/`+pod+".cred: "+reason) {
		d.Errorf("want the reason %q:\n%s", reason, out)
	}
}
