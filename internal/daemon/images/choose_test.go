package images

import (
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/podstead/podstead/runtime/image"
)

// TestIDs: an image is found by the start of its ID or digest, unless this is the name of an image or ambiguous.
func TestIDs(t *testing.T) {
	shop, other, twin := entry("docker.io/library/shop:1"), entry("docker.io/library/other:1"), entry("docker.io/library/other:2")
	for e, id := range map[*image.Entry]string{
		&shop: "0123456789ab0" + strings.Repeat("0", 51), &other: "0123456789ab1" + strings.Repeat("0", 51),
	} {
		e.ConfigDigest = "sha256:" + id
	}
	twin.ConfigDigest, twin.Target = other.ConfigDigest, other.Target
	named := entry("docker.io/library/0123456789ab1:latest")
	named.ConfigDigest = digest.FromString("named").String()
	host := New(&fakeStore{entries: []image.Entry{shop, other, twin}}, &fakePods{}, &fakePods{})
	inspect := func(id, want string) {
		t.Helper()
		d, err := host.Inspect(t.Context(), id, "", nil)
		if err != nil || d.Name != want {
			t.Errorf("%s: %q, %v, want %s", id, d.Name, err, want)
		}
	}
	inspect("0123456789ab0", shop.Name)
	inspect(shop.ConfigDigest, shop.Name)
	inspect(shop.Target.Digest.String()[:19], shop.Name)
	inspect(other.ConfigDigest[len("sha256:"):], other.Name)
	for id, want := range map[string]struct {
		status  int
		message string
	}{
		"0123456789ab": {
			http.StatusConflict,
			`image "0123456789ab" is ambiguous: docker.io/library/other:1, docker.io/library/other:2, docker.io/library/shop:1`,
		},
		"sha256:111111111111": {http.StatusNotFound, `no such image "sha256:111111111111"`},
		"0123456789a":         {http.StatusNotFound, `no such image "0123456789a"`},
	} {
		_, err := host.Inspect(t.Context(), id, "", nil)
		wantStatus(t, err, want.status, want.message)
	}
	_, err := host.Remove(t.Context(), "0123456789ab1", "", false)
	wantStatus(t, err, http.StatusConflict,
		`remove image "0123456789ab1": it has several names: docker.io/library/other:1, docker.io/library/other:2`)
	host = New(&fakeStore{entries: []image.Entry{shop, other, named}}, &fakePods{}, &fakePods{})
	inspect("0123456789ab1", named.Name)
	removed, err := host.Remove(t.Context(), "sha256:0123456789ab1", "", false)
	if err != nil || len(removed.Items) != 1 || removed.Items[0].Name != other.Name {
		t.Errorf("removed %+v, %v", removed, err)
	}
}
