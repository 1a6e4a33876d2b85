package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/config"
)

func TestHostPaths(t *testing.T) {
	base := t.TempDir()
	for name, mode := range map[string]os.FileMode{"log": 0o755, "log/podstead": 0o750, "shared": 0o777, "group": 0o775, "plain": 0o755} {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("log", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	for _, test := range []struct {
		dirs []string
		warn bool
		want string
	}{
		{[]string{"/"}, false, "all; "},
		{nil, false, "none"},
		{[]string{"log"}, true, "contains " + base + "/log/podstead"},
		{[]string{"link"}, true, "contains " + base + "/log/podstead"},
		{[]string{"log/podstead/pod"}, true, "contains " + base + "/log/podstead"},
		{[]string{"plain"}, !root, ""},
		{[]string{"shared"}, true, "mode 0777"},
		{[]string{"plain", "group"}, true, "mode 0775"},
	} {
		c := &config.Config{
			StateDir: "/var/lib/podstead", RunDir: "/run/podstead", LogDir: filepath.Join(base, "log", "podstead"),
			Socket: "/run/podstead/s",
		}
		for _, dir := range test.dirs {
			if dir != "/" {
				dir = filepath.Join(base, dir)
			}
			c.Policy.HostPaths = append(c.Policy.HostPaths, dir)
		}
		want := test.want
		if !root && strings.Contains(want, "mode") {
			want = "not by root"
		}
		if r := hostPaths(c); (r.grade == Warn) != test.warn || !strings.Contains(r.detail, want) {
			t.Errorf("%v: %+v, want %q", test.dirs, r, want)
		}
	}
}

// TestHostPathsWithoutRoot checks that a daemon without root, which rejects privileged containers, does not recommend them.
func TestHostPathsWithoutRoot(t *testing.T) {
	home := t.TempDir()
	user := map[string]string{"stateDir": home + "/state", "logDir": home + "/log", "configDir": home + "/config", "runDir": home + "/run"}
	c, err := config.Load(config.Sources{User: user})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/", home} {
		c.Policy.HostPaths = []string{dir}
		if r := hostPaths(c); strings.Contains(r.detail, "privileged") || !strings.Contains(r.detail, "no container can mount") {
			t.Errorf("%s: %+v", dir, r)
		}
	}
	shared := t.TempDir() // of this user
	for mode, want := range map[os.FileMode]Grade{0o755: OK, 0o775: Warn} {
		c.Policy.HostPaths = []string{shared}
		if err := os.Chmod(shared, mode); err != nil {
			t.Fatal(err)
		}
		if r := hostPaths(c); r.grade != want {
			t.Errorf("mode %v: %+v", mode, r)
		}
	}
}
