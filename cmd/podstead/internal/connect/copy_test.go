package connect

import "testing"

func TestParsePlace(t *testing.T) {
	for _, test := range []struct {
		arg  string
		want Place
	}{
		{"-", Place{Stream: true}},
		{"web:/etc", Place{Pod: "web", Path: "/etc"}},
		{"pod/web:/etc", Place{Pod: "web", Path: "/etc"}},
		{"default/web:/etc", Place{Pod: "web", Path: "/etc"}},
		{"web:relative", Place{Pod: "web", Path: "relative"}},
		{"web:app:/etc", Place{Pod: "web", Container: "app", Path: "/etc"}},
		{"web:a:b", Place{Pod: "web", Path: "a:b"}},
		{"web:/a:/b", Place{Pod: "web", Path: "/a:/b"}},
		{"file", Place{Path: "file"}},
		{"./a:b", Place{Path: "./a:b"}},
		{"/a:b", Place{Path: "/a:b"}},
		{"dir/a:b", Place{Path: "dir/a:b"}},
		{"web:/new\nline", Place{Pod: "web", Path: "/new\nline"}},
	} {
		if got, err := ParsePlace(test.arg); err != nil || got != test.want {
			t.Errorf("%q: got %+v, %v, want %+v", test.arg, got, err, test.want)
		}
	}
	for _, arg := range []string{"", "web:"} {
		if got, err := ParsePlace(arg); err == nil {
			t.Errorf("%q: got %+v, want an error", arg, got)
		}
	}
}

func TestParts(t *testing.T) {
	for _, test := range []struct{ path, dir, base string }{
		{"/a/b", "/a/", "b"},
		{"a", ".", "a"},
		{"a/b/", "a/", "b"},
		{"/a", "/", "a"},
		{"/", "/", "."},
		{"a/.", "a/.", "."},
		{".", ".", "."},
		{"a/..", "a/..", "."},
	} {
		if dir, base := parts(test.path); dir != test.dir || base != test.base {
			t.Errorf("%q: got %q, %q, want %q, %q", test.path, dir, base, test.dir, test.base)
		}
	}
}
