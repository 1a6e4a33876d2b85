package pause

import "testing"

func TestInvoked(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{"/pause"}, true},
		{[]string{"pause"}, true},
		{[]string{"/pause", "-id", "x"}, false},
		{[]string{"/usr/bin/podstead"}, false},
		{nil, false},
	} {
		if got := Invoked(test.args); got != test.want {
			t.Errorf("%q: %v", test.args, got)
		}
	}
}

// A process that is not the first of its namespace has nobody to reap, and is not alone.
func TestNotFirst(t *testing.T) {
	if got := Main(); got != 2 {
		t.Errorf("exit status %d, want 2", got)
	}
	if isAlone() {
		t.Error("this process is alone on its machine")
	}
}
