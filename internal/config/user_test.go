package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/config"
)

// lookupIn returns a function like [os.LookupEnv] for these variables.
func lookupIn(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, set := env[name]
		return v, set
	}
}

// TestUserDefaults tests the directories of a user, with the variables of the XDG Base Directory Specification and without.
func TestUserDefaults(t *testing.T) {
	run := t.TempDir()
	if err := os.Chmod(run, 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": "/home/ada", "XDG_RUNTIME_DIR": run, "XDG_STATE_HOME": "relative"}
	c := loadUser(t, env)
	for name, got := range map[string]string{
		"/home/ada/.local/share/podstead": c.StateDir, "/home/ada/.local/state/podstead": c.LogDir,
		"/home/ada/.config/podstead": c.ConfigDir, "/home/ada/.config/podstead/pods.d": c.Pods.Dir,
		"/home/ada/.config/podstead/certs.d": c.Images.CertsDir, "/home/ada/.local/share/podstead/images": c.Images.Dir,
		filepath.Join(run, "podstead"): c.RunDir, filepath.Join(run, "podstead/podstead.sock"): c.Socket, config.NoSocket: c.ReadOnlySocket,
	} {
		if got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	}
	if !c.Rootless() {
		t.Error("not rootless")
	}
	env["XDG_DATA_HOME"], env["XDG_STATE_HOME"], env["XDG_CONFIG_HOME"] = "/d", "/s", "/c"
	if c := loadUser(t, env); c.StateDir != "/d/podstead" || c.LogDir != "/s/podstead" || c.ConfigDir != "/c/podstead" {
		t.Errorf("got %s, %s, %s", c.StateDir, c.LogDir, c.ConfigDir)
	}
}

// loadUser loads the configuration of a user.
func loadUser(t *testing.T, env map[string]string) *config.Config {
	t.Helper()
	user, err := config.UserDefaults(lookupIn(env), os.Getuid())
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Sources{User: user})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUserFile tests that the file of a user is read, and overrides defaults of the user.
func TestUserFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "podstead", "podstead.toml")
	if err := errors.Join(os.Chmod(dir, 0o700), os.Mkdir(filepath.Dir(file), 0o755),
		os.WriteFile(file, []byte("logDir = \"/logs\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	c := loadUser(t, map[string]string{"HOME": "/home/ada", "XDG_RUNTIME_DIR": dir, "XDG_CONFIG_HOME": dir})
	if c.LogDir != "/logs" || c.File() != file {
		t.Errorf("log directory %s of %s", c.LogDir, c.File())
	}
}

// TestRuntimeDirs tests that directories for runtime state that others have access to are refused, whatever names them. A command that
// needs none can load the configuration.
func TestRuntimeDirs(t *testing.T) {
	const open, missing = "/usr", "/missing-podstead"
	private, other := t.TempDir(), os.Getuid()+1
	if err := os.Chmod(private, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, dir, socket string
		uid               int
		want              string // in the error; empty: there is none
	}{
		{"of the user", private, "", os.Getuid(), ""},
		{"missing in one of the user", filepath.Join(private, "a/b"), "", os.Getuid(), ""},
		{"open to others", open, "", os.Getuid(), open + "/podstead, or a directory above it, must belong to user"},
		{"of another user", private, "", other, "belong"},
		{"missing", missing, "", os.Getuid(), missing + " does not exist"},
		{"no directory", os.Args[0], "", os.Getuid(), "not a directory"},
		{"socket open to others", private, filepath.Join(open, "p.sock"), os.Getuid(), open + ", or a directory above it"},
		{"socket of the user", private, filepath.Join(private, "p.sock"), os.Getuid(), ""},
	} {
		user, err := config.UserDefaults(lookupIn(map[string]string{"HOME": "/home/ada", "XDG_RUNTIME_DIR": test.dir}), os.Getuid())
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Sources{User: user, Env: lookupIn(map[string]string{"PODSTEAD_SOCKET": test.socket})})
		if test.socket == "" {
			c, err = config.Load(config.Sources{User: user})
		}
		if err != nil {
			t.Fatal(err)
		}
		err = c.CheckRuntimeDirs(test.uid)
		refused := errors.Is(err, config.ErrNoRuntimeDir)
		if refused != (test.want != "") || refused && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// TestPaths tests paths of which another user can replace a part.
func TestPaths(t *testing.T) {
	other := os.Getuid() + 1
	top := t.TempDir()
	private := filepath.Join(top, "private")
	shared, open := filepath.Join(top, "shared"), filepath.Join(top, "open")
	errs := []error{os.Chmod(top, 0o755), os.Chmod(filepath.Dir(top), 0o755)}
	for dir, mode := range map[string]os.FileMode{private: 0o700, shared: 0o777 | os.ModeSticky, open: 0o777} {
		errs = append(errs, os.Mkdir(dir, 0o700), os.Chmod(dir, mode))
	}
	link := filepath.Join(shared, "link")
	errs = append(errs, os.Symlink("../private", link), os.Symlink(private, filepath.Join(open, "link")))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	check := func(name, run, state, want string) {
		t.Helper()
		c, err := config.Load(config.Sources{
			User: map[string]string{"runDir": filepath.Join(run, "podstead"), "stateDir": state, "readOnlySocket": config.NoSocket},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(c.CheckRuntimeDirs(os.Getuid()), c.CheckStateDir(os.Getuid()))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	check("a link of the user", link, private, "")
	check("a link that others can replace", filepath.Join(open, "link"), private, "other users can write to "+open)
	check("a state directory that others can replace", private, filepath.Join(open, "state"), "other users can write to "+open)
	check("a state directory that does not exist", private, filepath.Join(shared, "a/b"), "")
	if os.Getuid() == 0 { // only root can give a file away
		if err := os.Lchown(link, other, other); err != nil {
			t.Fatal(err)
		}
		check("a link of another user", link, private, link+" belongs to user "+strconv.Itoa(other))
		if err := os.Chown(shared, other, other); err != nil {
			t.Fatal(err)
		}
		check("a state directory of another user", private, shared, shared+" belongs to user")
	}
}

// TestUserWithoutVariables tests a user without a session, such as that of a service: nothing is set. Only the directories of a user who
// does not exist are not known.
func TestUserWithoutVariables(t *testing.T) {
	const missing = 2000000000
	defaults, err := config.UserDefaults(lookupIn(nil), os.Getuid())
	if want := filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "podstead"); err != nil || defaults["runDir"] != want {
		t.Errorf("got %v, %v", defaults, err)
	}
	if _, err := config.UserDefaults(lookupIn(nil), missing); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("of a user who does not exist: %v", err)
	}
}

// TestNamesDaemon tests which files name the socket of a daemon.
func TestNamesDaemon(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "logDir = '/l'\n": false, "socket = '/s/p.sock'\n": true, "runDir = '/r'\n": true, "runDir = '/r'\nunknown = 1\n": true,
	} {
		file := filepath.Join(t.TempDir(), "podstead.toml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Sources{File: file})
		if c == nil || c.NamesDaemon() != want {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}
