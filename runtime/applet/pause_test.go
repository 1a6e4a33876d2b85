package applet

import "testing"

func TestIsPause(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{"/pause"}, true},
		{[]string{"pause"}, true},
		{[]string{"/pause", "trial"}, true},
		{[]string{"/usr/bin/podstead", "trial"}, false},
		{[]string{"/pause", "-id"}, false},
		{[]string{"/pause", "-id", "x"}, false},
		{[]string{"/usr/bin/podstead"}, false},
		{nil, false},
	} {
		if got := isPause(test.args); got != test.want {
			t.Errorf("%q: %v", test.args, got)
		}
	}
}

func TestPauseFailsOutsidePID1(t *testing.T) {
	if got := pause(); got != 2 {
		t.Errorf("exit status %d, want 2", got)
	}
	if isAlone() {
		t.Error("isAlone is true with other processes")
	}
}
