package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// userName is the name of the directories of a user's daemon.
const userName = "podstead"

// ErrNoRuntimeDir reports that a user has no directory for runtime state.
var ErrNoRuntimeDir = errors.New("XDG_RUNTIME_DIR is not set")

// UserDefaults returns the defaults of settings for the daemon of an ordinary user, by their keys, with the directories of the XDG Base
// Directory Specification. Env is like [os.LookupEnv].
func UserDefaults(env func(name string) (value string, set bool), uid int) (map[string]string, error) {
	home, _ := env("HOME")
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
	run, err4 := userRuntimeDir(env, uid)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return map[string]string{
		"stateDir": state, "logDir": logs, "configDir": config, "runDir": filepath.Join(run, userName),
		"readOnlySocket": NoSocket, "images.certsDir": filepath.Join(config, "certs.d"),
	}, nil
}

// userRuntimeDir returns the directory for the runtime state of a user, which nobody else must have access to.
func userRuntimeDir(env func(string) (string, bool), uid int) (string, error) {
	dir, _ := env("XDG_RUNTIME_DIR")
	set := filepath.IsAbs(dir)
	if !set {
		dir = "/run/user/" + strconv.Itoa(uid)
	}
	st, err := os.Stat(dir)
	if !set && errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoRuntimeDir
	}
	if err != nil {
		return "", fmt.Errorf("find runtime directory: %w", err)
	}
	if s, ok := st.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != uid || st.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("runtime directory %s: must belong to user %d, with mode 0700", dir, uid)
	}
	return dir, nil
}
