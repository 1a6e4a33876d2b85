//go:build e2e

package systemd_test

import (
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
)

// TestPullIsResumed: a pull continues after a reboot and after a power cut with what was on the disk.
func TestPullIsResumed(t *testing.T) {
	m := machine(t)
	h := install(t, m)
	write := writer(t, m)
	installRegistry(t, write)
	write("/etc/podstead/podstead.toml", []byte("[images]\nmaxBandwidth = \"512Ki\"\n"), 0o644) // a pull of an image takes half a minute
	img, archive := summed(t, rig.Seeded(t), 1)
	h.Sh("sync; systemctl daemon-reload; systemctl enable --now registry 2>&1; systemctl restart podstead; " + publish(t, archive, write))
	h.Copy("data", `name = "data"
terminationGracePeriodSeconds = 1
[[containers]]
name = "app"
image = "`+img.Name+`"
command = ["sh", "-c", "trap 'exit 0' TERM; cd /; sha256sum -c -s sums || exit 3; touch /tmp/verified; sleep 100000 & wait $!"]
readinessProbe = { exec = { command = ["test", "-e", "/tmp/verified"] }, periodSeconds = 1, timeoutSeconds = 60 }
`)
	partial := func(mib string) {
		t.Helper()
		h.Eventually(mib+" MiB of the image have arrived", `cd /var/lib/podstead/engine/io.containerd.content.v1.content; ls ingest/*/data
			[ "$(du -cB1048576 ingest/*/data blobs/sha256/* | tail -n 1 | cut -f 1)" -ge `+mib+` ]; sync`)
	}
	resumed := func() {
		t.Helper()
		h.Eventually("the rest of a layer is requested",
			`journalctl --no-pager -b -u registry > /tmp/registry; grep -q 'GET /v2/data/blobs/.* 206 ' /tmp/registry || { tail -n 20 `+
				`/tmp/registry; false; }`)
	}
	partial("3")
	h.Reboot()
	resumed()
	partial("6")
	h.Cut()
	resumed()
	h.Sh("rm /etc/podstead/podstead.toml; systemctl reload podstead")
	h.Status("data", "1/1 Running")
}
