package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/config"
)

// TestInvalidFile: in place of a file that cannot be used there is the last one that was valid, with the variables and flags of now.
// Without one there is what is valid in the file.
func TestInvalidFile(t *testing.T) {
	const valid = "[policy]\npodSecurity = \"restricted\"\n[engine]\nidleTimeout = \"7s\"\n"
	for name, text := range map[string]string{
		"syntax":            "[policy]\npodSecurity = \"baseline\"\n[engine\n",
		"unknown field":     "[policy]\npodSecurity = \"baseline\"\nx = 1\n",
		"wrong type":        "[policy]\npodSecurity = \"baseline\"\n[engine]\nidleTimeout = 7\n",
		"wrong value":       "[policy]\npodSecurity = \"baseline\"\n[engine]\nidleTimeout = \"x\"\n",
		"wrong path":        "socket = \"relative\"\n[policy]\npodSecurity = \"baseline\"\n",
		"settings together": "[policy]\npodSecurity = \"baseline\"\n[images]\ngcLowPercent = 90\n",
		"metrics together":  "[policy]\npodSecurity = \"baseline\"\n[metrics]\naddress = \"0.0.0.0:1\"\n",
		"a check":           "[policy]\npodSecurity = \"baseline\"\n# a check fails\n",
		"a notifier":        "[policy]\npodSecurity = \"baseline\"\n[[notify]]\nx = 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "podstead.toml")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			load := func() (*config.Config, error) {
				return config.Load(config.Sources{
					File: file, Env: func(name string) (string, bool) { return filepath.Join(dir, "state"), name == "PODSTEAD_STATE_DIR" },
					Check: func(c *config.Config) error {
						if c.Policy.PodSecurity == "baseline" {
							return errors.New("a key cannot be read")
						}
						return nil
					},
				})
			}
			fails := func(lastValid bool, policy string) {
				t.Helper()
				c, err := load()
				invalid, ok := errors.AsType[*config.FileError](err)
				if !ok || invalid.LastValid != lastValid || name != "a check" && !strings.Contains(err.Error(), file+":") {
					t.Fatalf("error %#v, want one with a line, last valid file: %v", err, lastValid)
				}
				if c.Policy.PodSecurity != policy || c.Socket != "/run/podstead/podstead.sock" {
					t.Errorf("policy %s, socket %s, want %s", c.Policy.PodSecurity, c.Socket, policy)
				}
				if err := c.KeepValid(); err != nil {
					t.Fatal(err)
				}
			}
			write(text)
			partial := "baseline"
			if name == "syntax" {
				partial = "privileged"
			}
			fails(false, partial)
			write(valid)
			c, err := load()
			if err != nil || c.KeepValid() != nil {
				t.Fatal(err)
			}
			write(text)
			fails(true, "restricted")
			fails(true, "restricted") // the copy was kept
			if err := os.Rename(file, file+"2"); err != nil {
				t.Fatal(err)
			}
			file += "2"
			fails(false, partial) // a copy of another file is not used
		})
	}
}

// TestUnreadableFile: a file that cannot be read is like an invalid one.
func TestUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	c, err := config.Load(config.Sources{File: dir})
	if invalid, ok := errors.AsType[*config.FileError](err); !ok || invalid.LastValid || c == nil || c.RunDir != "/run/podstead" {
		t.Errorf("a directory in place of the file: %v, %+v", err, c)
	}
}

// TestOtherUsers: a file or a copy that this user cannot read is not the same as one that is invalid or missing.
func TestOtherUsers(t *testing.T) {
	dir := t.TempDir()
	file, state := filepath.Join(dir, "podstead.toml"), filepath.Join(dir, "state")
	valid := filepath.Join(state, config.ValidName)
	load := func() (*config.Config, error) {
		return config.Load(config.Sources{
			File: file, Env: func(name string) (string, bool) { return state, name == "PODSTEAD_STATE_DIR" },
		})
	}
	fails := func(lastValid, hidden bool) {
		t.Helper()
		c, err := load()
		if e, ok := errors.AsType[*config.FileError](err); !ok || c == nil || e.LastValid != lastValid || e.Hidden != hidden {
			t.Errorf("error %#v, want one with LastValid %v and Hidden %v", err, lastValid, hidden)
		}
	}
	for _, text := range []string{"[engine]\n", "[engine\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, _ := load(); c.KeepValid() != nil {
			t.Fatal("the valid file was not copied")
		}
	}
	fails(true, false)
	withoutOverride(t)
	if err := os.Chmod(valid, 0); err != nil {
		t.Fatal(err)
	}
	fails(false, true)
	if err := errors.Join(os.Remove(valid), os.Chmod(file, 0)); err != nil {
		t.Fatal(err)
	}
	fails(false, true)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	fails(false, false)
}

// withoutOverride lets the modes of files hold for this test, also if root runs it.
func withoutOverride(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the test
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var set [2]unix.CapUserData
	if err := unix.Capget(&header, &set[0]); err != nil {
		t.Fatal(err)
	}
	set[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &set[0]); err != nil {
		t.Fatal(err)
	}
}
