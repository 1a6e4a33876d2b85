package main

import (
	"testing"

	"github.com/podstead/podstead/runtime/shim"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		args []string
		bad  bool
	}{
		{args: []string{"-namespace", "n", "-id", "i", "-bundle", "/b", "delete"}},
		{args: []string{"-info"}},
		{args: []string{"-v"}},
		{args: []string{"-namespace", "n", "-id", "i", "-address", "/a"}, bad: true},
		{args: []string{"-namespace", "n", "-id", "i", "-address", "/a", "start"}, bad: true},
		{bad: true},
	} {
		if err := check(append([]string{shim.Name}, test.args...)); (err != nil) != test.bad {
			t.Errorf("%q: %v", test.args, err)
		}
	}
}
