package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// defaultRules are the rules of containerd's default profile. Words in angle brackets are replaced. containerd's own text is a template,
// which makes the program larger (TestMethodsByName). TestDefaultProfile compares the rules.
const defaultRules = `<abi>
<tunables>

profile <name> flags=(attach_disconnected,mediate_deleted) {
  <base>
  network,
  capability,
  file,
  umount,

  # Signals of the host, the OCI runtimes, the daemon, containers with this profile, and RootlessKit.
  signal (receive) peer=unconfined,
  signal (receive) peer=runc,
  signal (receive) peer=crun,
  signal (receive) peer=<daemon>,
  signal (send,receive) peer=<name>,
  <rootlesskit>

  # In /proc, files of processes and /proc/sys/kernel/shm* are writable.
  deny @{PROC}/* w,
  deny @{PROC}/{[^1-9/],[^1-9/][^0-9/],[^1-9s/][^0-9y/][^0-9s/],[^1-9/][^0-9/][^0-9/][^0-9/]*}/** w,
  deny @{PROC}/sys/[^k]** w,
  deny @{PROC}/sys/kernel/{?,??,[^s][^h][^m]**} w,
  deny @{PROC}/sysrq-trigger rwklx,
  deny @{PROC}/kcore rwklx,

  deny mount,

  # In /sys, /sys/fs/cgroup is writable.
  deny /sys/[^f]*/** wklx,
  deny /sys/f[^s]*/** wklx,
  deny /sys/fs/[^c]*/** wklx,
  deny /sys/fs/c[^g]*/** wklx,
  deny /sys/fs/cg[^r]*/** wklx,
  deny /sys/firmware/** rwklx,
  deny /sys/devices/virtual/powercap/** rwklx,
  deny /sys/kernel/security/** rwklx,

  # Containers with this profile can trace each other.
  ptrace (trace,tracedby,read,readby) peer=<name>,
}
`

// appArmorHost is what the default profile depends on.
type appArmorHost struct {
	dir         string // the directory with the files that profiles include
	daemon      string // the profile of the daemon
	rootlessKit string // the path of the program; empty: it is not installed
}

// thisHost returns what the default profile depends on, of this host.
func thisHost() appArmorHost {
	h := appArmorHost{dir: "/etc/apparmor.d", daemon: "unconfined"}
	// Without AppArmor, the file cannot be read. The mode of the profile follows its name.
	current, err := os.ReadFile("/proc/self/attr/current")
	if fields := strings.Fields(string(current)); err == nil && len(fields) > 0 {
		h.daemon = fields[0]
	}
	if path, err := exec.LookPath("rootlesskit"); err == nil {
		h.rootlessKit = path
	}
	return h
}

// defaultProfile returns the text of the default profile.
func (h appArmorHost) defaultProfile(name string) string {
	abi, tunables, base, rootlessKit := "", "@{PROC}=/proc/", "", ""
	if h.has("abi/3.0") {
		abi = "abi <abi/3.0>,"
	}
	if h.has("tunables/global") {
		tunables = "#include <tunables/global>"
	}
	if h.has("abstractions/base") {
		base = "#include <abstractions/base>"
	}
	if h.rootlessKit != "" {
		rootlessKit = "signal (receive) peer=" + h.rootlessKit + ","
	}
	return strings.NewReplacer("<abi>", abi, "<tunables>", tunables, "<base>", base, "<name>", name, "<daemon>", h.daemon,
		"<rootlesskit>", rootlessKit).Replace(defaultRules)
}

// has reports whether profiles can include a file.
func (h appArmorHost) has(file string) bool {
	_, err := os.Stat(filepath.Join(h.dir, file))
	return err == nil
}
