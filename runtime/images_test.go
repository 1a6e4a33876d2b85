package runtime

import (
	"errors"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestFailedPullNamesImagesOfArchives(t *testing.T) {
	never := lifecycle.Failure{Reason: lifecycle.ReasonErrImageNeverPull, Message: "not present"}
	for name, test := range map[string]struct {
		err  error
		held []string
		want string
	}{
		"no archives": {never, nil, "not present"},
		"one image":   {never, []string{"localhost/db:1"}, "not present (imageArchives contain localhost/db:1)"},
		"two names":   {never, []string{"b:1", "a:1", "b:1"}, "not present (imageArchives contain a:1, b:1)"},
		"many": {
			never, []string{"a", "b", "c", "d", "e", "f", "g"}, "not present (imageArchives contain a, b, c, d, e and 2 more)",
		},
		"other failure": {errors.New("closed"), []string{"a"}, "closed"},
	} {
		err := withArchives(test.err, test.held)
		got := err.Error()
		if f, ok := errors.AsType[lifecycle.Failure](err); ok {
			got = f.Message
			if f.Reason != never.Reason {
				t.Errorf("%s: reason %q", name, f.Reason)
			}
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
