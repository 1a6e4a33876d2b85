package ocibundle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/crilog"
)

func TestOutput(t *testing.T) {
	const path = "/var/log/podstead/a pod?_100%/app/0.log"
	for _, o := range []crilog.Options{
		{}, {MaxBytes: 1 << 40, Keep: 7}, {Rate: crilog.Rate{Lines: 100}, Compress: true}, {Rate: crilog.Rate{Bytes: 1 << 33}},
	} {
		for _, in := range []Stdin{NoStdin, OpenStdin, OnceStdin} {
			for _, c := range []*crilog.JournalFields{
				nil, {ID: "0123", Image: "example.com:5000/a/b:1@sha256:c", Pod: "web", UID: "u&v", Container: "app", Restarts: "3"},
			} {
				want := Output{Log: path, Options: o, Stdin: in, Journal: c}
				got, ours, err := ParseOutput(want.URI().String())
				if err != nil || !ours {
					t.Errorf("got %v, %v", ours, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		}
	}
	// A daemon of another version may pass fewer and other options.
	for _, text := range []string{
		"podstead-log:///a?keep=7&max=4096", "podstead-log:///a?keep=7&max=4096&later=x", "podstead-log:///a?keep=7&max=4096&driver=x",
	} {
		want := Output{Log: "/a", Options: crilog.Options{MaxBytes: 4096, Keep: 7}}
		if got, ours, err := ParseOutput(text); !ours || err != nil || got != want {
			t.Errorf("%q: got %+v, %v, %v", text, got, ours, err)
		}
	}
	for _, other := range []string{"", "/run/fifo/x", "file:///a", "binary:///b?c=d", "a%zz"} {
		if _, ours, err := ParseOutput(other); ours || err != nil {
			t.Errorf("%q: got %v, %v", other, ours, err)
		}
	}
	for _, bad := range []string{"podstead-log:///a?max=x", "podstead-log:///a?keep=1.5", "podstead-log:///a?stdin=twice"} {
		if _, ours, err := ParseOutput(bad); !ours || err == nil {
			t.Errorf("%q: got %v, %v", bad, ours, err)
		}
	}
}
