package proc

import "testing"

// TestLastMapped tests the end of the IDs that are mapped without a gap, in files of several lines and in any order.
func TestLastMapped(t *testing.T) {
	for text, want := range map[string]int64{
		"         0          0 4294967295\n":                     4294967294,
		"         0       1000          1\n":                     0,
		"         0       1000 1\n 1 100000 65536\n":             65536,
		" 1 100000 65536\n 0 1000 1\n":                           65536,
		" 0 1000 1\n 2 100000 65536\n":                           0,
		" 0 1000 1\n 1 100000 10\n 11 5000 9\n 30 70000 70000\n": 19,
		"":                  -1,
		" 1 100000 65536\n": -1,
		"garbage\n":         -1,
	} {
		if got := LastMapped(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestExtentEnd(t *testing.T) {
	const mapped = " 0 1000 1\n 1 100000 10\n 11 5000 9\ngarbage\n"
	for id, want := range map[int64]int64{0: 1, 1: 11, 10: 11, 11: 20, 19: 20, 20: -1} {
		if got := ExtentEnd(mapped, id); got != want {
			t.Errorf("%d: %d, want %d", id, got, want)
		}
	}
}

func TestOutsideOf(t *testing.T) {
	const mapped = "         0       1000          1\n         1     100000      65536\n"
	for _, test := range []struct {
		text      string
		uid, want int
	}{
		{mapped, 0, 1000},
		{mapped, 1, 100000},
		{mapped, 65536, 165535},
		{mapped, 65537, -1},
		{" 1 100000 65536\n 0 7 1\n", 0, 7},
		{" 0 0 4294967295\n", 1234, 1234},
		{" 1 2 3\n", 0, -1},
		{"", 0, -1},
	} {
		if got := outsideOf(test.text, test.uid); got != test.want {
			t.Errorf("%d in %q: %d, want %d", test.uid, test.text, got, test.want)
		}
	}
}
