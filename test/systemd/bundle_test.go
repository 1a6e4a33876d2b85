//go:build e2e

package systemd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/test/internal/installed"
	"github.com/podstead/podstead/test/internal/rig"
)

// carried is a host that gets its pods by bundles, and the digests of their images, which are known after the first bundle with each.
type carried struct {
	*installed.Host
	digests map[int]string // by the number of the release modulo 2
}

// TestBundle is the life of a host that never had a network: installation, a bundle, a reboot, an update, updates that fail, and power
// cuts while a bundle is applied and afterwards. Releases 1 to 4 have the same names of images; 1 and 3, and 2 and 4 have the same images.
func TestBundle(t *testing.T) {
	m := machine(t)
	h := carried{install(t, m), map[int]string{}}
	h.Sh("rm -r /var/lib/images; [ \"$(ls /sys/class/net)\" = lo ]; [ -z \"$(podstead image ls -q 2>/dev/null)\" ]")
	write := writer(t, m)
	for release, broken := range map[int]string{1: "", 2: "", 3: "exit 3; ", 4: ""} {
		write(fmt.Sprintf("/root/%d.bundle", release), h.bundle(release, broken), 0o600)
	}
	h.Sh("sync")

	h.Sh("podstead bundle apply /root/1.bundle --dry-run; [ -z \"$(podstead get 2>/dev/null)\" ]; podstead bundle apply " +
		"/root/1.bundle --wait")
	h.release("the first bundle", 1)
	h.Reboot()
	h.release("a reboot", 1)
	h.Sh("podstead events web | grep 'Host has been rebooted'")

	h.Sh("podstead bundle apply /root/2.bundle --wait")
	h.Cut() // what was reported must last
	h.release("an update and a power cut", 2)

	h.Sh(`if podstead bundle apply /root/3.bundle --wait > /tmp/failed 2>&1; then cat /tmp/failed; false; fi
		grep 'nothing of the bundle was applied' /tmp/failed || { cat /tmp/failed; false; }`)
	h.release("a failed update", 2)
	for _, moment := range []string{
		"test -e /var/lib/podstead/bundle-undo.json",
		"grep -q 4 /etc/podstead/configmaps/shop/mode",
		"grep -q 'release = \"4\"' /etc/podstead/pods.d/web.toml",
		"podstead get db -o json | grep -q '\"release\": *\"4\"'",
	} {
		h.Sh("systemd-run --quiet --unit=carry podstead bundle apply /root/4.bundle --wait --timeout 1h")
		h.Eventually(moment, moment)
		h.Cut()
		h.release("a power cut when "+moment, 2)
	}

	h.Sh("podstead bundle apply /root/3.bundle")
	h.Eventually("the daemon has rolled back",
		"for pod in web db; do podstead rollout history $pod > /tmp/history; grep RolledBack /tmp/history || { cat /tmp/history; "+
			"false; }; done")
	h.running("a rollback", 2)
	h.Reboot()
	h.running("a rollback and a reboot", 2)
}

// bundle returns a bundle with the pods web and db, which a host with a network creates. The pod db of release 4 never becomes ready.
func (h carried) bundle(release int, broken string) []byte {
	h.Helper()
	repository, err := rig.Repository()
	if err != nil {
		h.Fatal(err)
	}
	dir := h.TempDir()
	file := func(name, text string) {
		h.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			h.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			h.Fatal(err)
		}
	}
	archive := map[int]string{0: "busybox-docker.tar", 1: "busybox.tar"}[release%2]
	for pod, ready := range map[string]string{"web": "true", "db": map[bool]string{false: "true", true: "false"}[release == 4]} {
		update := ""
		if broken != "" {
			update = fmt.Sprintf("update.readyWithinSeconds = %d\n", int(within.Seconds()))
		}
		file("pods/"+pod+".toml", fmt.Sprintf(`imageArchives = [%q]
terminationGracePeriodSeconds = 1
labels = { release = "%d" }
%s[[volumes]]
name = "config"
configMap.name = "shop"
[[containers]]
name = "app"
image = "localhost/podstead/busybox:1"
env.RELEASE = "%[2]d"
volumeMounts = [{ name = "config", mountPath = "/config" }]
command = ["sh", "-c", "%[4]strap 'exit 0' TERM; sleep 100000 & wait $!"]
readinessProbe = { exec.command = [%[5]q], periodSeconds = 1, timeoutSeconds = 60 }
`, filepath.Join(repository, "examples/images", archive), release, update, broken, ready))
	}
	file("etc/configmaps/shop/mode", fmt.Sprintln(release))
	cmd := exec.CommandContext(h.Context(), filepath.Join(repository, "bin/podstead"), "bundle", "create", "pods", "--with-config",
		"--pull", "Never", "-o", "bundle")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PODSTEAD_CONFIG_DIR="+dir+"/etc", "PODSTEAD_STATE_DIR="+dir+"/lib", "PODSTEAD_RUN_DIR="+dir+"/run",
		"PODSTEAD_LOG_DIR="+dir+"/log")
	if out, err := cmd.CombinedOutput(); err != nil {
		h.Fatalf("create a bundle: %v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "bundle"))
	if err != nil {
		h.Fatal(err)
	}
	return data
}

// release waits until everything is of a release: the pods and their files, the config map, and the name of the image.
func (h carried) release(after string, release int) {
	h.Helper()
	h.running(after, release)
	h.Eventually(fmt.Sprintf("release %d after %s", release, after), fmt.Sprintf(`cd /etc/podstead
		[ ! -e /var/lib/podstead/bundle-undo.json ]
		[ "$(ls pods.d)" = "$(printf 'db.toml\nweb.toml')" ]; grep 'release = "%[1]d"' pods.d/web.toml; grep 'release = "%[1]d"' pods.d/db.toml
		grep -x %[1]d configmaps/shop/mode; [ "$(podstead exec web -- cat /config/mode)" = %[1]d ]`, release))
	digest := h.Sh("podstead image inspect localhost/podstead/busybox:1 | grep '\"digest\"' | head -n 1")
	if want, known := h.digests[release%2]; known && digest != want || digest == h.digests[1-release%2] {
		h.Errorf("after %s, the image has %s, want %s of release %d", after, digest, want, release)
	}
	h.digests[release%2] = digest
}

// running waits until the pods of a release run.
func (h carried) running(after string, release int) {
	h.Helper()
	for _, pod := range []string{"web", "db"} {
		h.Eventually(fmt.Sprintf("pod %s of release %d after %s", pod, release, after), fmt.Sprintf(
			`podstead get %[1]s > /tmp/get; grep ' 1/1  *Running ' /tmp/get || { cat /tmp/get; false; }; [ "$(podstead exec %[1]s -- sh `+
				`-c 'echo $RELEASE')" = %[2]d ]`,
			pod, release))
	}
}
