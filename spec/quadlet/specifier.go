package quadlet

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Host is what specifiers of systemd stand for.
type Host struct {
	Home, User, UID, Group, GID, Shell string
	Runtime, State, Cache, Log, Config string // directories
	Hostname, MachineID, Kernel        string
}

// ThisHost returns the values for the calling user: those of the system manager for root, else those of the user manager.
func ThisHost() Host {
	h := Host{Runtime: "/run", State: "/var/lib", Cache: "/var/cache", Log: "/var/log", Config: "/etc"}
	if u, err := user.Current(); err == nil {
		h.Home, h.User, h.UID, h.GID = u.HomeDir, u.Username, u.Uid, u.Gid
		if g, err := user.LookupGroupId(u.Gid); err == nil {
			h.Group = g.Name
		}
	}
	h.Shell = os.Getenv("SHELL")
	if os.Geteuid() != 0 {
		h.Runtime = os.Getenv("XDG_RUNTIME_DIR")
		h.State = homeDirectory("XDG_STATE_HOME", h.Home, ".local/state")
		h.Cache = homeDirectory("XDG_CACHE_HOME", h.Home, ".cache")
		h.Config = homeDirectory("XDG_CONFIG_HOME", h.Home, ".config")
		h.Log = filepath.Join(h.State, "log")
	}
	h.Hostname, _ = os.Hostname() // empty: an error if a unit uses it
	if id, err := os.ReadFile("/etc/machine-id"); err == nil {
		h.MachineID = strings.TrimSpace(string(id))
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return h
}

func homeDirectory(variable, home, below string) string {
	if path := os.Getenv(variable); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(home, below)
}

// credentialsDirectory stands for the directory of credentials, until credential replaces it.
const credentialsDirectory = "/run/credentials/"

// specifiers replaces the specifiers of systemd.unit(5) in a value. Those of a user or a host have the value at the time of the conversion.
func (h *Host) specifiers(u *unit, text string) (string, error) {
	if !strings.Contains(text, "%") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if b.Len() > maxExpanded {
			return "", fmt.Errorf("%q is longer than %d bytes with its specifiers", clip(text), maxExpanded)
		}
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", fmt.Errorf("%q ends with %%: write %%%% for the character", clip(text))
		}
		if text[i] == '%' {
			b.WriteByte('%')
			continue
		}
		value, err := h.specifier(u, text[i])
		if err != nil {
			return "", err
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

func (h *Host) specifier(u *unit, c byte) (string, error) {
	service := u.service()
	prefix, _, _ := strings.Cut(service, "@")
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	values := map[byte]string{
		'n': service + ".service", 'N': service, 'p': prefix, 'P': unescapeName(prefix), 'i': u.instance, 'I': unescapeName(u.instance),
		'j': last, 'J': unescapeName(last), 'f': "/" + strings.TrimPrefix(unescapeName(u.pathName(prefix)), "/"),
		'h': h.Home, 'u': h.User, 'U': h.UID, 'g': h.Group, 'G': h.GID, 's': h.Shell,
		't': h.Runtime, 'S': h.State, 'C': h.Cache, 'L': h.Log, 'E': h.Config, 'T': "/tmp", 'V': "/var/tmp",
		'H': h.Hostname, 'm': h.MachineID, 'v': h.Kernel, 'a': architecture(),
		'd': credentialsDirectory + service + ".service", 'y': u.path, 'Y': u.dir,
	}
	values['l'], _, _ = strings.Cut(h.Hostname, ".")
	value, known := values[c]
	switch {
	case c == 'b':
		return "", fmt.Errorf("%%b is not supported: it changes with each boot, and a pod file does not")
	case !known:
		return "", fmt.Errorf("unknown specifier %%%s", clip(string(rune(c))))
	case value == "" && c != 'i' && c != 'I':
		return "", fmt.Errorf("%%%c has no value on this host", c)
	}
	return value, nil
}

// architecture returns the name that systemd has for that of this program.
func architecture() string {
	names := map[string]string{"amd64": "x86-64", "386": "x86"}
	if name := names[runtime.GOARCH]; name != "" {
		return name
	}
	return runtime.GOARCH
}

// unescapeName returns what a part of the name of a unit stands for: - is /, and \xNN a character (systemd-escape).
func unescapeName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); {
		switch {
		case name[i] == '-':
			b.WriteByte('/')
		case strings.HasPrefix(name[i:], `\x`):
			if text, size := unescape(name[i:]); size > 1 {
				b.WriteString(text)
				i += size
				continue
			}
			b.WriteByte(name[i])
		default:
			b.WriteByte(name[i])
		}
		i++
	}
	return b.String()
}

// clip shortens a text in messages.
func clip(text string) string {
	const limit = 80
	runes := []rune(text)
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
