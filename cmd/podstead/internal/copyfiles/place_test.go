package copyfiles

import "testing"

// TestParse checks the forms of places.
func TestParse(t *testing.T) {
	for arg, want := range map[string]Place{
		"-":                  {Stream: true},
		"web:/tmp/a":         {Pod: "web", Path: "/tmp/a"},
		"pod/web:a":          {Pod: "web", Path: "a"},
		"default/web:/tmp/a": {Pod: "web", Path: "/tmp/a"},
		"web:app:/tmp/a":     {Pod: "web", Container: "app", Path: "/tmp/a"},
		"web:/tmp/a:b":       {Pod: "web", Path: "/tmp/a:b"},
		"./a:b":              {Path: "./a:b"},
		"/tmp/a:b":           {Path: "/tmp/a:b"},
		"dir/a:b":            {Path: "dir/a:b"},
		"a":                  {Path: "a"},
	} {
		if got, err := Parse(arg); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", arg, got, err, want)
		}
	}
	for _, arg := range []string{"", "web:"} {
		if got, err := Parse(arg); err == nil {
			t.Errorf("%q: %+v, want an error", arg, got)
		}
	}
}
