package namespace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCheckUsers(t *testing.T) {
	for _, test := range []struct {
		text string
		want error
	}{
		{"15000\n", nil},
		{"0\n", errNoUserNamespaces},
		{"", errNoUserNamespaces},
	} {
		proc := t.TempDir()
		if err := os.MkdirAll(filepath.Join(proc, "sys/user"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, "sys/user/max_user_namespaces"), []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkUsers(proc); !errors.Is(err, test.want) {
			t.Errorf("%q: %v, want %v", test.text, err, test.want)
		}
	}
	if err := checkUsers(t.TempDir()); !errors.Is(err, errNoUserNamespaces) {
		t.Errorf("without the file: %v", err)
	}
}
