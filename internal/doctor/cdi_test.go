package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCDIDevices lists devices, and reports damaged files, devices that no container can have, and directories that others can write to.
func TestCDIDevices(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	expect := func(grade Grade, want string) {
		t.Helper()
		if os.Geteuid() != 0 && grade == OK { // the directory of the test is not that of root
			grade, want = Warn, "owned by uid"
		}
		r := cdiDevices(t.Context(), []string{filepath.Join(dir, "none"), dir})
		if r.grade != grade || !strings.Contains(r.detail, want) || (r.hint == "") != (grade == OK) {
			t.Errorf("%+v, want %v: %s", r, grade, want)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect(OK, "none in "+dir+"/none, "+dir)
	const good = `{"cdiVersion": "0.6.0", "kind": "vendor.com/class", "devices": [{"name": "a", "containerEdits": {"env": ["A=1"]}}]}`
	write("a.json", good)
	expect(OK, "vendor.com/class=a")
	if os.Geteuid() == 0 {
		write("b.json", good)
		expect(Warn, "device vendor.com/class=a: "+dir+"/a.json and "+dir+"/b.json both have it")
		write("b.json", "{")
		expect(Warn, dir+"/b.json: failed to unmarshal")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	expect(Warn, dir+": ")
}
