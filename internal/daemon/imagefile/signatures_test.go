package imagefile_test

import (
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/imagefile"
)

// TestSignaturesOfRequest checks that signatures which a request cannot have are refused, and are in several requests for several images.
func TestSignaturesOfRequest(t *testing.T) {
	for size, fits := range map[int]bool{api.MaxSignatures: true, api.MaxSignatures + 1: false} {
		if err := imagefile.CheckSize([]string{strings.Repeat("a", size)}); (err == nil) != fits {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	var groups imagefile.Groups
	for _, name := range []string{"a:1", "b:1", "c:1"} {
		groups.Add(name, []string{strings.Repeat("a", api.MaxSignatures/2-1)})
	}
	if len(groups) != 2 || len(groups[0].Images) != 2 || len(groups[1].Images) != 1 {
		t.Errorf("groups %d", len(groups))
	}
}
