package shim

import "testing"

func TestIsShimOf(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{Name, "-namespace", "podstead", "-id", "a", "-address", "/e.sock"}, true},
		{[]string{Name, "-namespace", "podstead", "-address", "/e.sock", "-id", "a", "start"}, true},
		{[]string{Name, "-namespace", "podstead", "-address", "/e.sock", "-id", "a", "-bundle", "/b", "delete"}, false},
		{[]string{Name, "-namespace", "podstead", "-id", "b", "-address", "/e.sock"}, false},
		{[]string{Name, "-namespace", "podstead", "-id", "a", "-address", "/other.sock"}, false},
		{[]string{"sh", "-c", Name, "-id", "a", "-address", "/e.sock"}, false},
		{[]string{Name, "-id"}, false},
		{[]string{""}, false},
	} {
		if got := isShimOf(test.args, "/e.sock", "a"); got != test.want {
			t.Errorf("%q: %v, want %v", test.args, got, test.want)
		}
	}
}
