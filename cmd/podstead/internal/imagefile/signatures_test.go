package imagefile_test

import (
	"strings"
	"testing"

	"github.com/podstead/podstead/cmd/podstead/internal/imagefile"
)

// TestSignaturesOfRequest checks that signatures which the header of a request cannot have are refused, and are in several requests for
// several images.
func TestSignaturesOfRequest(t *testing.T) {
	for text, fits := range map[string]bool{
		strings.Repeat("a", 50_000):           true,
		strings.Repeat("a", 60_000):           false,
		strings.Repeat(`"`, 50_000):           false, // three bytes in a URL
		strings.Repeat(`{"a": 1}`, 56<<10/17): false,
	} {
		if err := imagefile.CheckSize([]string{text}); (err == nil) != fits {
			t.Errorf("%d bytes %.8s: %v", len(text), text, err)
		}
	}
	var groups imagefile.Groups
	for _, name := range []string{"a:1", "b:1", "c:1"} {
		groups.Add(name, []string{strings.Repeat("a", 25_000)})
	}
	if len(groups) != 2 || len(groups[0].Images) != 2 || len(groups[1].Images) != 1 {
		t.Errorf("groups %d", len(groups))
	}
}
