package volume

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

func TestSubPathOf(t *testing.T) {
	vars := map[string]string{"A": "x", "UP": "../..", "ABS": "/etc", "EMPTY": "", "B": "y"}
	tests := []struct{ sub, expr, want, err string }{
		{"", "", "", ""},
		{"a//b/./c", "", "a/b/c", ""},
		{"$(A)", "", "$(A)", ""}, // only subPathExpr is expanded
		{"/a", "", "", "error SubPath `/a` must not be an absolute path"},
		{"a/../b", "", "", "unable to provision SubPath `a/../b`: must not contain '..'"},
		{"a/..b", "", "a/..b", ""},
		{"", "$(A)/$(B)", "x/y", ""},
		{"", "$$(A)-$(A)$", "$(A)-x$", ""},
		{"", "$(EMPTY)/$(NONE)/$(A)/$(NONE)", "", "missing value for EMPTY, NONE"},
		{"", "a/$(UP)", "", "must not contain '..'"},
		{"", "$(ABS)", "", "must not be an absolute path"},
		{"", "$(A", "$(A", ""},
		{"", "$()", "", "missing value for "},
	}
	for _, test := range tests {
		got, err := subPathOf(&spec.VolumeMount{SubPath: test.sub, SubPathExpr: test.expr}, vars)
		if got != test.want {
			t.Errorf("%q %q: %q, want %q", test.sub, test.expr, got, test.want)
		}
		filetest.WantError(t, err, test.err)
	}
}

// expand reports exactly the references that spec.Expand does not replace.
func TestExpandMatchesSpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expression := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"$", "(", ")", "A", "B", "/", "$$", "$(A)", "$(B)"})).Draw(t,
			"parts"),
			"")
		vars := map[string]string{"A": "1", "B": "2"}
		got, err := expand(expression, vars)
		if err == nil {
			if want, _ := spec.Expand(expression, vars, maxSubPath); got != want {
				t.Fatalf("%q: %q, want %q", expression, got, want)
			}
			return
		}
		// Setting a variable that was reported as missing changes the result.
		for name := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "missing value for "), ", ") {
			before, _ := spec.Expand(expression, vars, maxSubPath)
			vars[name] = "\x01"
			if after, _ := spec.Expand(expression, vars, maxSubPath); after == before {
				t.Fatalf("%q: %q was reported but is not missing", expression, name)
			}
		}
	})
}
