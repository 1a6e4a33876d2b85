package connect

import (
	"errors"
	"testing"

	"github.com/podstead/podstead/api"
)

// A forward ends with its pod, also if that was deleted before the watch began.
func TestForwarderWatch(t *testing.T) {
	change := func(kind string, uid string, phase api.Phase) api.PodChange {
		c := api.PodChange{Type: kind}
		c.Object.Metadata.UID, c.Object.Status.Phase = uid, phase
		return c
	}
	running, listed := change(api.Added, "u", api.PhaseRunning), api.PodChange{Type: api.Listed}
	for name, test := range map[string]struct {
		changes []api.PodChange
		want    string
	}{
		"deleted": {
			[]api.PodChange{running, listed, change(api.Deleted, "u", api.PhaseRunning)}, `forwarding stopped: pod "web" was deleted`,
		},
		"deleted before": {[]api.PodChange{change(api.Added, "v", api.PhaseRunning), listed}, `forwarding stopped: pod "web" was deleted`},
		"completed": {
			[]api.PodChange{running, listed, change(api.Modified, "u", api.PhaseSucceeded)}, `forwarding stopped: pod "web" is Succeeded`,
		},
		"other pods end":  {[]api.PodChange{running, listed, change(api.Deleted, "v", api.PhaseFailed)}, "lost"},
		"connection lost": {nil, "lost"},
	} {
		f := &Forwarder{Pod: "web", UID: "u"}
		err := f.watch(t.Context(), func(yield func(api.PodChange, error) bool) {
			for _, c := range test.changes {
				if !yield(c, nil) {
					return
				}
			}
			yield(api.PodChange{}, errors.New("lost"))
		})
		if err.Error() != test.want || errors.Is(err, errEnded) != (test.want != "lost") {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func TestParsePort(t *testing.T) {
	named := func(name string) (uint16, bool) { return 8080, name == "http" }
	for _, test := range []struct {
		arg  string
		want Port
	}{
		{"80", Port{80, 80}},
		{"8080:80", Port{8080, 80}},
		{":80", Port{0, 80}},
		{"0:80", Port{0, 80}},
		{"http", Port{8080, 8080}},
		{"9:http", Port{9, 8080}},
		{":http", Port{0, 8080}},
	} {
		if got, err := ParsePort(test.arg, named); err != nil || got != test.want {
			t.Errorf("%q: got %v, %v, want %v", test.arg, got, err, test.want)
		}
	}
	for _, arg := range []string{"", ":", "0", "80:", "80:0", "65536", "1:65536", "65536:1", "-1", "x", "1:2:3"} {
		if got, err := ParsePort(arg, named); err == nil {
			t.Errorf("%q: got %v, want an error", arg, got)
		}
	}
}
