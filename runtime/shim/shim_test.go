package shim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/crilog/lograte"
)

func TestInvoked(t *testing.T) {
	tests := []struct {
		args []string
		want bool
	}{
		{[]string{"/usr/libexec/podstead/containerd-shim-podstead-v1", "-namespace", "podstead", "start"}, true},
		{[]string{"containerd-shim-podstead-v1"}, true},
		{[]string{"/usr/bin/podstead", "-namespace", "podstead", "-id", "x"}, true},
		{[]string{"/usr/bin/podstead", "-info"}, true},
		{[]string{"/usr/bin/podstead", "run", "-namespace"}, false},
		{[]string{"/usr/bin/podstead", "--namespace"}, false},
		{[]string{"/usr/bin/podstead"}, false},
		{nil, false},
	}
	for _, tt := range tests {
		if got := Invoked(tt.args); got != tt.want {
			t.Errorf("%q: got %v", tt.args, got)
		}
	}
}

func TestParseServer(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		server bool
		bad    bool
	}{
		{name: "serve", args: []string{"-namespace", "n", "-id", "i", "-address", "/a"}, server: true},
		{name: "start", args: []string{"-namespace", "n", "-id", "i", "-address", "/a", "start"}},
		{name: "delete", args: []string{"-namespace", "n", "-id", "i", "-bundle", "/b", "delete"}},
		{name: "info", args: []string{"-info"}},
		{name: "version", args: []string{"-v"}},
		{name: "no arguments", args: nil, bad: true},
		{name: "unknown", args: []string{"-nonsense"}, bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parseServer(append([]string{Name}, tt.args...))
			if (s != nil) != tt.server || (err != nil) != tt.bad {
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
}

func TestLogURI(t *testing.T) {
	const path = "/var/log/podstead/a pod?_100%/app/0.log"
	for _, o := range []crilog.Options{{}, {MaxBytes: 1 << 40, Keep: 7}, {Rate: lograte.Rate{Lines: 100}, Compress: true}, {Rate: lograte.Rate{Bytes: 1 << 33}}} {
		for _, in := range []Stdin{NoStdin, OpenStdin, OnceStdin} {
			gotPath, gotStdin, got, ours, err := parseLogURI(LogURI(path, in, o).String())
			if err != nil || !ours || gotPath != path || gotStdin != in {
				t.Errorf("got %q, %q, %v, %v", gotPath, gotStdin, ours, err)
			}
			if diff := cmp.Diff(o, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		}
	}
	// A daemon of another version may pass fewer and other options.
	for _, text := range []string{"podstead-log:///a?keep=7&max=4096", "podstead-log:///a?keep=7&max=4096&later=x"} {
		if _, _, got, ours, err := parseLogURI(text); !ours || err != nil || got != (crilog.Options{MaxBytes: 4096, Keep: 7}) {
			t.Errorf("%q: got %+v, %v, %v", text, got, ours, err)
		}
	}
	for _, other := range []string{"", "/run/fifo/x", "file:///a", "binary:///b?c=d", "a%zz"} {
		if _, _, _, ours, err := parseLogURI(other); ours || err != nil {
			t.Errorf("%q: got %v, %v", other, ours, err)
		}
	}
	for _, bad := range []string{"podstead-log:///a?max=x", "podstead-log:///a?keep=1.5", "podstead-log:///a?stdin=twice"} {
		if _, _, _, ours, err := parseLogURI(bad); !ours || err == nil {
			t.Errorf("%q: got %v, %v", bad, ours, err)
		}
	}
}
