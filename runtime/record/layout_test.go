package record

import "testing"

func TestCheckUID(t *testing.T) {
	for _, uid := range []string{"", ".", "..", "a/b", "/a", "../a"} {
		if CheckUID(uid) == nil {
			t.Errorf("UID %q was accepted", uid)
		}
	}
	if err := CheckUID("0c5e4b1e-1111"); err != nil {
		t.Error(err)
	}
}
