package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/runtime/cgroup"
)

const (
	// lowShare and emptyShare are the shares of a file system below which there is a warning, and nothing works.
	lowShare, emptyShare = 0.10, 0.01

	cgroupRoot = "/sys/fs/cgroup"
)

// neededCapabilities are those of a daemon, by their number.
var neededCapabilities = map[string]uint{
	"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_SYS_RESOURCE": unix.CAP_SYS_RESOURCE,
	"CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE, "CAP_KILL": unix.CAP_KILL, "CAP_MKNOD": unix.CAP_MKNOD,
}

func missingCapabilities() []string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	var effective uint64
	for line := range strings.Lines(string(status)) {
		if hex, is := strings.CutPrefix(line, "CapEff:"); is {
			effective, err = strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		}
	}
	if err != nil {
		return nil
	}
	var missing []string
	for name, bit := range neededCapabilities {
		if effective&(1<<bit) == 0 {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

func kernel() look {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return look{Fail, err.Error(), ""}
	}
	release := unix.ByteSliceToString(u.Release[:])
	for _, ns := range []string{"ipc", "mnt", "net", "pid", "uts", "cgroup"} {
		if _, err := os.Stat("/proc/self/ns/" + ns); err != nil {
			return look{Fail, release + " has no " + ns + " namespaces", "use a kernel with CONFIG_NAMESPACES"}
		}
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return look{Fail, err.Error(), ""}
	}
	if !slices.Contains(strings.Fields(string(filesystems)), "overlay") {
		return look{Fail, release + " has no overlay file system, or has not loaded it", "modprobe overlay"}
	}
	return ok("%s with overlay and namespaces", release)
}

func seccomp() look {
	if _, err := os.Stat("/proc/sys/kernel/seccomp/actions_avail"); err != nil {
		return look{
			Warn, "the kernel has none: containers run without a filter of system calls", "use a kernel with CONFIG_SECCOMP_FILTER",
		}
	}
	return ok("containers get the filter RuntimeDefault")
}

// cgroups looks for the controllers that limits of pods need.
func cgroups() look {
	c, err := cgroup.DetectControllers()
	if err != nil {
		return look{Fail, err.Error(), "mount the cgroup file system at " + cgroupRoot}
	}
	if unix.Access(cgroupRoot, unix.W_OK) != nil && os.Geteuid() == 0 {
		return look{Fail, cgroupRoot + " cannot be written", "mount it for writing"}
	}
	return controllers(c)
}

// controllers judges what limits a machine with these controllers can hold.
func controllers(c cgroup.Controllers) look {
	kind := "v1"
	if c.Unified {
		kind = "v2"
	}
	var missing []string
	for _, name := range []string{cgroup.CPU, cgroup.Memory, cgroup.Pids} {
		if !c.Has(name) {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) > 0:
		return look{
			Warn, kind + " without " + strings.Join(missing, ", ") + ": pods with such limits are refused, and processes are not counted without pids",
			"boot with cgroup_enable=" + missing[0] + " on the kernel's command line (a Raspberry Pi: cmdline.txt); in a container, have its manager delegate the controller",
		}
	case !c.Bandwidth:
		return look{Warn, kind + " without CPU bandwidth control: pods with a limit of CPU are refused", "use a kernel with CONFIG_CFS_BANDWIDTH"}
	}
	return ok("%s with cpu, memory and pids", kind)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// mountNamespace makes sure that mounts are seen by everybody, so that they outlive the daemon.
func mountNamespace() look {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return look{Warn, err.Error(), ""}
	}
	first, err := os.Readlink("/proc/1/ns/mnt")
	if errors.Is(err, fs.ErrPermission) {
		return ok("not known: process 1 may not be looked at")
	}
	if err != nil {
		return look{Warn, err.Error(), ""}
	}
	if own != first {
		return look{
			Warn, "this process has another one than process 1",
			"a unit must not use PrivateMounts, PrivateTmp, ProtectSystem or the like: a restarted daemon would not find its mounts",
		}
	}
	return ok("the machine's own")
}

// room looks how much is left on the file system of a folder, which may not be there yet.
func room(dir string) look {
	at := dir
	for !isDir(at) && at != "/" {
		at = filepath.Dir(at)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return look{Fail, at + ": " + err.Error(), ""}
	}
	bytes := share(st.Bavail, st.Blocks)
	inodes := share(st.Ffree, st.Files)
	detail := fmt.Sprintf("%s: %.1f GiB free (%.0f%%), %.0f%% of the inodes", dir,
		float64(st.Bavail)*float64(st.Bsize)/(1<<30), bytes*100, inodes*100)
	if st.Flags&unix.ST_RDONLY != 0 {
		return look{Fail, dir + " is on a file system that is read only", "mount it for writing, or name another folder"}
	}
	switch least := math.Min(bytes, inodes); {
	case least < emptyShare:
		return look{Fail, detail, "make room there"}
	case least < lowShare:
		return look{Warn, detail, "make room there"}
	}
	return ok("%s", detail)
}

// share is how much of a total is free; a file system without a total has no limit.
func share(free, total uint64) float64 {
	if total == 0 {
		return 1
	}
	return float64(free) / float64(total)
}

// clock asks the kernel whether anybody keeps the wall clock right.
func clock() look {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return look{Warn, err.Error(), ""}
	}
	if t.Status&unix.STA_UNSYNC != 0 {
		return look{
			Warn, "not synchronised: times in events may be wrong (grace periods, backoff and probes do not follow it)",
			"run a time service, such as systemd-timesyncd or chrony",
		}
	}
	return ok("synchronised")
}

// podsOnDisk is how many pods have a state file.
func podsOnDisk(c *config.Config) int {
	files, err := filepath.Glob(filepath.Join(c.StateDir, "pods", "*.json"))
	if err != nil {
		return 0
	}
	return len(files)
}
