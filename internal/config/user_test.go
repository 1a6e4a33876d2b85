package config_test

import (
	"errors"
	"os"
	"path/filepath"
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

// TestUserRuntimeDir tests that a runtime directory of others, or that others can read, is refused.
func TestUserRuntimeDir(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"HOME": "/home/ada", "XDG_RUNTIME_DIR": dir}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := config.UserDefaults(lookupIn(env), os.Getuid()); err == nil || !strings.Contains(err.Error(), "mode 0700") {
		t.Errorf("open to others: %v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := config.UserDefaults(lookupIn(env), os.Getuid()+1); err == nil || !strings.Contains(err.Error(), "must belong to user") {
		t.Errorf("of another user: %v", err)
	}
	env["XDG_RUNTIME_DIR"] = filepath.Join(dir, "missing")
	if _, err := config.UserDefaults(lookupIn(env), os.Getuid()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	delete(env, "XDG_RUNTIME_DIR")
	const nobody = 4000000000 // has no session
	if _, err := config.UserDefaults(lookupIn(env), nobody); !errors.Is(err, config.ErrNoRuntimeDir) {
		t.Errorf("without the variable: %v", err)
	}
	delete(env, "HOME")
	env["XDG_RUNTIME_DIR"] = dir
	if _, err := config.UserDefaults(lookupIn(env), os.Getuid()); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("without HOME: %v", err)
	}
}
