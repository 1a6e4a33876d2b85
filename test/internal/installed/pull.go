package installed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// PullImage is an image whose files have checksums in its file /sums.
type PullImage struct {
	// Name is that of the image in the registry and in its archive.
	Name string
	// Archive is the path of the archive in the machine.
	Archive string
	// Publish is a script that makes Name refer to the image in the registry.
	Publish string
	// Sums is the SHA-256 checksum of /sums, in hexadecimal.
	Sums string
	// Files is the number of lines in /sums.
	Files int
}

// pullCut is a power cut.
type pullCut struct {
	image   PullImage
	archive bool // the image is in an archive of the pod; otherwise in the registry
	unpack  bool // the cut comes after the first snapshot was created; otherwise after the first content arrived
}

const content, snapshots = "io.containerd.content.v1.content", "io.containerd.snapshotter.v1.overlayfs/snapshots"

// Pull cuts the power at random moments while images are pulled, imported and unpacked. Cuts come in pairs: the first image is new to the
// host, and the second one gets its name. After each boot, the pod becomes ready with the files of the newest image. Nothing is left of a
// pair after its images were removed.
func (h *Host) Pull(r *rand.Rand, pairs int, first, second PullImage) {
	h.Helper()
	kinds := r.Perm(4)
	for pair := range pairs {
		kind := kinds[pair%len(kinds)]
		cuts := []pullCut{{first, kind&1 == 0, kind&2 == 0}, {second, kind&1 != 0, kind&2 != 0}}
		for i, c := range cuts {
			number := 2*pair + i + 1
			start := time.Now()
			what := h.interrupt(r, number, c)
			booted := time.Now()
			h.pulled(number, c)
			h.Logf("cut %d of %d (archive: %t, unpack: %t), %s: interrupted and booted in %.1f s, ready and checked in %.1f s",
				number, 2*pairs, c.archive, c.unpack, what, booted.Sub(start).Seconds(), time.Since(booted).Seconds())
			if h.Failed() {
				return
			}
		}
		h.Sh("podstead delete data; podstead image prune --all")
		h.Eventually("nothing is left of the images",
			`cd /var/lib/podstead/engine; left=$(ls -d `+content+`/ingest/* `+content+`/blobs/sha256/* `+snapshots+`/* 2>/dev/null || true)
			echo "$left"; tail -c 200 `+content+`/ingest/*/ref || true; ls -l `+content+`/ingest/* || true; [ -z "$left" ]`)
	}
}

// interrupt lets the pod run an image, and cuts the power while the host prepares it. It returns what the engine had then.
func (h *Host) interrupt(r *rand.Rand, number int, c pullCut) string {
	h.Helper()
	h.Sh(c.image.Publish)
	more, policy := "", "Always"
	if c.archive {
		more, policy = fmt.Sprintf("imageArchives = [%q]\n", c.image.Archive), "IfNotPresent"
	}
	began, within := `ls -d `+content+`/ingest/* >/dev/null 2>&1`, time.Second
	if c.unpack {
		began = `[ "$(count '` + snapshots + `/*')" -gt "$before" ]`
	}
	if c.unpack && c.archive {
		within /= 2
	}
	s := &storm{Host: h, r: r}
	moment := s.moment(within)
	out := h.Sh(`cat > /root/data.toml <<'E'
name = "data"
` + more + fmt.Sprintf(`terminationGracePeriodSeconds = 1
labels = { release = "%d" }
[[containers]]
name = "app"
image = %q
imagePullPolicy = %q
env.RELEASE = "%[1]d"
command = ["sh", "-c", "trap 'exit 0' TERM; cd /; sha256sum -c -s sums || exit 3; touch /tmp/verified; sleep 100000 & wait $!"]
readinessProbe = { exec = { command = ["test", "-e", "/tmp/verified"] }, periodSeconds = 1, timeoutSeconds = 60 }
`, number, c.image.Name, policy) + `E
		cd /var/lib/podstead/engine; count() { ls -d $1 2>/dev/null | wc -l; }
		before=$(count '` + snapshots + `/*')
		cp /root/data.toml ` + podsDir + `/.data; sync ` + podsDir + `/.data; mv ` + podsDir + `/.data ` + podsDir + `/data.toml; sync ` +
		podsDir + `
		for i in $(seq 2000); do if ` + began + `; then break; fi; sleep 0.01; done; ` + fmt.Sprintf("sleep %.3f", moment.Seconds()) + `
		echo "$(count '` + content + `/ingest/*') parts, $(count '` + content + `/blobs/sha256/*') blobs, $(count '` + snapshots +
		`/*') snapshots ($before before)"`)
	h.Cut()
	return fmt.Sprintf("%.3f s after the begin: %s", moment.Seconds(), strings.TrimSpace(out))
}

// pulled waits until the pod is ready, and checks that no content is damaged.
func (h *Host) pulled(number int, c pullCut) {
	h.Helper()
	h.Eventually(fmt.Sprintf("release %d is ready", number),
		fmt.Sprintf(`podstead get data -o json > /tmp/get; podstead get data > /tmp/ready; cat /tmp/ready
		grep -q '"release": *"%d"' /tmp/get; grep -q ' 1/1  *Running ' /tmp/ready; [ "$(podstead exec data -- sh -c 'echo $RELEASE')" = %[1]d ]`,
			number))
	want := fmt.Sprintf("%s  /sums\n%d OK\n", c.image.Sums, c.image.Files)
	if got := h.Sh(`podstead exec data -- sha256sum /sums; podstead exec data -- sh -c 'cd /; sha256sum -c sums' > /tmp/checked || grep ` +
		`-v ': OK$' /tmp/checked; echo "$(grep -c ': OK$' /tmp/checked) OK"`); got != want {
		h.Errorf("files of the container:\n%swant:\n%s", got, want)
	}
	// Unused blobs are deleted meanwhile.
	for line := range strings.Lines(h.Sh(`cd /var/lib/podstead/engine/` + content + `/blobs/sha256; sha256sum * 2>/tmp/errors || true
		! grep -v 'No such file' /tmp/errors`)) {
		if sum, name, _ := strings.Cut(strings.TrimSpace(line), "  "); sum != name {
			h.Errorf("checksum of the blob %s: %s", name, sum)
		}
	}
	if got := h.Sh(`podstead image ls -o json`); strings.Contains(got, `"damaged"`) || !strings.Contains(got, c.image.Name) {
		h.Errorf("images, want %s, which is not damaged:\n%s", c.image.Name, got)
	}
	s := &storm{Host: h}
	if events := s.events(); slices.ContainsFunc(events, isDamage) {
		h.Errorf("unexpected event: %+v", events[slices.IndexFunc(events, isDamage)])
	}
}
