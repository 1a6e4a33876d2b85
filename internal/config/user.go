package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
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

// CheckRuntimeDirs returns an error that is [ErrNoRuntimeDir] if other users can reach the directory for runtime state or those of the
// sockets, or can replace a part of their paths. One of the directories on each path must belong to the user, with mode 0700.
func (c *Config) CheckRuntimeDirs(uid int) error {
	dirs := []string{c.RunDir, filepath.Dir(c.Socket)}
	if c.HasReadOnlySocket() {
		dirs = append(dirs, filepath.Dir(c.ReadOnlySocket))
	}
	for _, dir := range dirs {
		at, private, err := checkPath(dir, uid)
		missing := filepath.Dir(dir)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrNoRuntimeDir, err)
		case private:
		case len(at) < len(missing) && strings.HasPrefix(missing, at):
			return fmt.Errorf("%w: %s does not exist, and must belong to user %d, with mode 0700", ErrNoRuntimeDir, missing, uid)
		default:
			return fmt.Errorf("%w: %s, or a directory above it, must belong to user %d, with mode 0700", ErrNoRuntimeDir, dir, uid)
		}
	}
	return nil
}

// CheckStateDir returns an error if other users can replace the state directory, or write to it: it names processes that a daemon kills.
func (c *Config) CheckStateDir(uid int) error {
	at, _, err := checkPath(c.StateDir, uid)
	if err != nil {
		return fmt.Errorf("state directory %s: %w", c.StateDir, err)
	}
	if st, err := os.Stat(at); err == nil && at == c.StateDir && owner(st) != uid {
		return fmt.Errorf("state directory %s must belong to user %d", at, uid)
	}
	return nil
}

func owner(st fs.FileInfo) int {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

// checkPath follows the path of a directory, as the kernel does, up to the last part that exists, which is the result. Private: no other
// user passes through it. It is an error if another user can replace a part of the path.
func checkPath(dir string, uid int) (at string, private bool, err error) {
	const maxLinks = 40 // as path_resolution(7)
	at, rest := "/", strings.Split(dir, "/")
	for links := 0; len(rest) > 0; rest = rest[1:] {
		path := filepath.Join(at, rest[0])
		st, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return at, private, nil
		}
		if err != nil {
			return at, false, err
		}
		const others, group = 0o002, 0o020
		is := func(bit fs.FileMode) bool { return st.Mode().Perm()&bit != 0 && st.Mode()&fs.ModeSticky == 0 }
		switch by := owner(st); {
		case private:
		case by != 0 && by != uid:
			return at, false, fmt.Errorf("%s belongs to user %d", path, by)
		case st.IsDir() && (is(others) || is(group) && by != uid && !ofRoot(st)):
			return at, false, fmt.Errorf("other users can write to %s", path)
		}
		switch {
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if links++; err != nil || links > maxLinks {
				return at, false, errors.Join(err, fmt.Errorf("%s: a link that cannot be followed", path))
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest, private = append(append([]string{""}, strings.Split(target, "/")...), rest[1:]...), false
		case !st.IsDir():
			return at, false, fmt.Errorf("%s: not a directory", path)
		default:
			at = path
			private = private || owner(st) == uid && st.Mode().Perm()&0o077 == 0
		}
	}
	return at, private, nil
}

// ofRoot reports whether the group of a file is root.
func ofRoot(st fs.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && s.Gid == 0
}
