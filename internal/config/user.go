package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// userName is the name of the directories of a user's daemon.
const userName = "podstead"

// ErrNoRuntimeDir reports that a directory for runtime state is not protected from other users.
var ErrNoRuntimeDir = errors.New("runtime directory not usable")

// UserDefaults returns the defaults of settings for the daemon of an ordinary user, by their keys, with the directories of the XDG Base
// Directory Specification. Env is like [os.LookupEnv]. The directories may be missing: a command that uses no daemon needs none of them,
// see [Config.CheckRuntimeDirs].
func UserDefaults(env func(name string) (value string, set bool), uid int) (map[string]string, error) {
	home, _ := env("HOME")
	if u, err := user.LookupId(strconv.Itoa(uid)); !filepath.IsAbs(home) && err == nil {
		home = u.HomeDir
	}
	dir := func(variable, below string) (string, error) {
		if v, _ := env(variable); filepath.IsAbs(v) { // the specification has others ignored
			return filepath.Join(v, userName), nil
		}
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("find directories of user %d: neither HOME nor %s is an absolute path", uid, variable)
		}
		return filepath.Join(home, below, userName), nil
	}
	state, err1 := dir("XDG_DATA_HOME", ".local/share")
	logs, err2 := dir("XDG_STATE_HOME", ".local/state")
	config, err3 := dir("XDG_CONFIG_HOME", ".config")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return map[string]string{
		"stateDir": state, "logDir": logs, "configDir": config, "runDir": filepath.Join(UserRuntimeDir(env, uid), userName),
		"readOnlySocket": NoSocket, "images.certsDir": filepath.Join(config, "certs.d"),
	}, nil
}

// UserRuntimeDir returns the directory for runtime state of all programs of a user. Env is like [os.LookupEnv].
func UserRuntimeDir(env func(name string) (value string, set bool), uid int) string {
	if dir, _ := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join("/run/user", strconv.Itoa(uid)) // of systemd-logind
}

// CheckRuntimeDirs returns an error that is [ErrNoRuntimeDir] if other users can reach the directory for runtime state or that of the
// socket. One of the directories on each path must belong to the user, with mode 0700.
func (c *Config) CheckRuntimeDirs(uid int) error {
	for _, dir := range []string{c.RunDir, filepath.Dir(c.Socket)} {
		if err := checkPrivate(dir, uid); err != nil {
			return err
		}
	}
	return nil
}

// checkPrivate checks that a directory is in one that only the user has access to, or is one. Those at the end of the path may be missing.
func checkPrivate(dir string, uid int) error {
	nearest := ""
	for d := dir; ; d = filepath.Dir(d) {
		st, err := os.Stat(d)
		if err == nil {
			if nearest == "" {
				nearest = d
			}
			if s, ok := st.Sys().(*syscall.Stat_t); ok && int(s.Uid) == uid && st.IsDir() && st.Mode().Perm()&0o077 == 0 {
				return nil
			}
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: %w", ErrNoRuntimeDir, err)
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	if missing := filepath.Dir(dir); len(nearest) < len(missing) {
		return fmt.Errorf("%w: %s does not exist, and must belong to user %d, with mode 0700", ErrNoRuntimeDir, missing, uid)
	}
	return fmt.Errorf("%w: %s, or a directory above it, must belong to user %d, with mode 0700", ErrNoRuntimeDir, dir, uid)
}
