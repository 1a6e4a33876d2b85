package network

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHostNames: the host has its own name and those of its hosts file, also after the file has changed.
func TestHostNames(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	own, _, _ = strings.Cut(own, ".")
	path := filepath.Join(t.TempDir(), "hosts")
	var names hostNames
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", nil}, // there is no file
		{
			"127.0.0.1 localhost\n127.0.1.1\tedge.example.org edge # gate\n#10.0.0.9 old\n::1 six\n10.0.0.5 registry",
			[]string{"localhost", "edge", "six", "registry"},
		},
		{"127.0.0.1 localhost\n", []string{"localhost"}},
	} {
		if test.text != "" {
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := names.read(path)
		if diff := cmp.Diff(append([]string{own}, test.want...), got); diff != "" || err != nil {
			t.Errorf("%q (-want +got):\n%s%v", test.text, diff, err)
		}
	}
	if list, err := HostNames(); err != nil || !slices.Contains(list, own) {
		t.Errorf("names of this host: %v, %v", list, err)
	}
	n := &Network{leases: map[string]*attachment{"1": {Lease: Lease{Pod: own, Link: "ps1"}}}}
	if got := n.Peers(); len(got) != 1 || got[0].Names != nil {
		t.Errorf("peers with the name of this host: %+v", got)
	}
}
