package shim

import "testing"

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
