package doctor

import (
	"context"
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

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime/cgroup"
)

const (
	// warnShare and failShare are the free shares of a file system below which the check warns and fails.
	warnShare, failShare = 0.10, 0.01

	cgroupRoot = "/sys/fs/cgroup"
)

// requiredCapabilities are the capabilities that the daemon requires, with their numbers.
var requiredCapabilities = map[string]uint{
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
		if hex, found := strings.CutPrefix(line, "CapEff:"); found {
			effective, err = strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		}
	}
	if err != nil {
		return nil
	}
	var missing []string
	for name, bit := range requiredCapabilities {
		if effective&(1<<bit) == 0 {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

func kernel() result {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return result{Fail, err.Error(), ""}
	}
	release := unix.ByteSliceToString(u.Release[:])
	for _, ns := range []string{"ipc", "mnt", "net", "pid", "uts", "cgroup"} {
		if _, err := os.Stat("/proc/self/ns/" + ns); err != nil {
			return result{Fail, release + " without " + ns + " namespaces", "use a kernel with CONFIG_NAMESPACES"}
		}
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return result{Fail, err.Error(), ""}
	}
	if !slices.Contains(strings.Fields(string(filesystems)), "overlay") {
		return result{Fail, release + " without the overlay file system", "load the module with modprobe overlay"}
	}
	return ok("%s with overlay and namespaces", release)
}

// overlay reports whether the daemon that runs uses overlayfs, which it has tried in the state directory.
func overlay(ctx context.Context, dir string, daemon *client.Client) result {
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	v, err := daemon.Version(ctx)
	switch {
	case err != nil:
		return ok("tried when the daemon starts")
	case v.NoOverlayReason != "":
		return result{
			Warn, "each container has a copy of the files of its image, which takes time and disk space: " + v.NoOverlayReason,
			"move " + dir + " to a local file system such as ext4, xfs or btrfs, unless it is on one now; then remove all pods and " +
				"images, and restart the daemon",
		}
	}
	return ok("containers share the files of images")
}

func seccomp() result {
	if _, err := os.Stat("/proc/sys/kernel/seccomp/actions_avail"); err != nil {
		return result{
			Warn, "not supported by the kernel; containers run without a seccomp profile", "use a kernel with CONFIG_SECCOMP_FILTER",
		}
	}
	return ok("supported; containers run with the RuntimeDefault profile")
}

// cgroups checks the controllers that resource limits require.
func cgroups() result {
	c, err := cgroup.DetectControllers()
	if err != nil {
		return result{Fail, err.Error(), "mount the cgroup file system at " + cgroupRoot}
	}
	if mounts := readOnly(c.Mounts); len(mounts) > 0 && os.Geteuid() == 0 {
		list := strings.Join(mounts, ", ")
		return result{Fail, list + ": read-only", "mount read-write: " + list}
	}
	return controllers(c)
}

// readOnly returns those of the mount points in which nothing can be created. With cgroup v1, systemd mounts the hierarchies read-write in
// a directory that is read-only, in which Podstead creates nothing.
func readOnly(mounts []string) []string {
	return slices.DeleteFunc(slices.Clone(mounts), func(mount string) bool {
		return unix.Access(mount, unix.W_OK) == nil
	})
}

// controllers reports the resource limits that cannot be enforced with the controllers.
func controllers(c cgroup.Controllers) result {
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
		return result{
			Warn,
			kind + " without " + strings.Join(missing, ", ") +
				"; pods with these limits are rejected, and without pids processes are not limited",
			"boot with cgroup_enable=" + missing[0] +
				" on the kernel command line (Raspberry Pi: cmdline.txt); in a container, delegate the controller to it",
		}
	case !c.Bandwidth:
		return result{
			Warn, kind + " without CPU bandwidth control; pods with a CPU limit are rejected", "use a kernel with CONFIG_CFS_BANDWIDTH",
		}
	}
	return ok("%s with cpu, memory and pids", kind)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// mountNamespace checks that podstead runs in the mount namespace of the host: mounts in another one disappear with the daemon.
func mountNamespace() result {
	self, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return result{Warn, err.Error(), ""}
	}
	host, err := os.Readlink("/proc/1/ns/mnt")
	if errors.Is(err, fs.ErrPermission) {
		return ok("unknown, no permission to read /proc/1/ns/mnt")
	}
	if err != nil {
		return result{Warn, err.Error(), ""}
	}
	if self != host {
		return result{
			Warn, "not the mount namespace of process 1; a restarted daemon would not find its mounts",
			"remove PrivateMounts, PrivateTmp, ProtectSystem and similar settings from the unit",
		}
	}
	return ok("mount namespace of process 1")
}

// writeFile writes a file to the disk in a directory. The file is removed before it is written, so that none is left if the disk hangs.
func writeFile(dir string) error {
	f, err := os.CreateTemp(dir, ".podstead-doctor-*")
	if err != nil {
		return err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.WriteString("podstead doctor")
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// diskSpace checks the free space of the file system of a directory, which may not exist yet, and that files can be written to it: a file
// system with errors can refuse writes although it is not mounted read-only. User: the daemon runs as this user.
func diskSpace(dir string, user bool) result {
	existing := dir
	for !isDir(existing) && existing != "/" {
		existing = filepath.Dir(existing)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(existing, &st); err != nil {
		return result{Fail, existing + ": " + err.Error(), ""}
	}
	bytes := share(st.Bavail, st.Blocks)
	inodes := share(st.Ffree, st.Files)
	detail := fmt.Sprintf("%s: %.1f GiB free (%.0f%%), %.0f%% of inodes free", dir,
		float64(st.Bavail)*float64(st.Bsize)/(1<<30), bytes*100, inodes*100)
	if st.Flags&unix.ST_RDONLY != 0 {
		return result{Fail, dir + " is on a read-only file system", "mount it read-write, or set another directory"}
	}
	err := writeFile(existing)
	switch free := math.Min(bytes, inodes); {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		if user {
			return result{Fail, err.Error(), "change the owner or the mode of the directory, or set another one"}
		}
		return result{Warn, detail + "; cannot check whether it is writable: " + err.Error(), "run podstead doctor as root"}
	case err != nil && free >= failShare:
		return result{Fail, dir + ": " + err.Error(), "check dmesg for disk errors, and repair or replace it, or set another directory"}
	case free < failShare:
		return result{Fail, detail, "free disk space in " + dir}
	case free < warnShare:
		return result{Warn, detail, "free disk space in " + dir}
	}
	return ok("%s", detail)
}

// runDirectory checks the directory for runtime state, which has values of secrets: the OCI runtime reads the environment of a container
// from a file in it.
func runDirectory(dir string, user bool) result {
	r := diskSpace(dir, user)
	var st unix.Statfs_t
	for unix.Statfs(dir, &st) != nil && dir != "/" {
		dir = filepath.Dir(dir)
	}
	kind := uint32(st.Type) // of a size and a sign that depend on the processor
	if kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC {
		return r
	}
	r.detail += "; it is on a disk, which then has values of secrets in environment variables"
	if r.grade == OK {
		r.grade, r.hint = Warn, "set runDir to a directory in memory, such as /run/podstead"
		if user {
			r.hint = "use a directory of your own with mode 0700 in memory for XDG_RUNTIME_DIR"
		}
	}
	return r
}

// share returns the free share of a total. A file system that reports no total, such as btrfs for inodes, has no limit.
func share(free, total uint64) float64 {
	if total == 0 {
		return 1
	}
	return float64(free) / float64(total)
}

// clock checks that the wall clock is synchronised (adjtimex(2), STA_UNSYNC).
func clock() result {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return result{Warn, err.Error(), ""}
	}
	if t.Status&unix.STA_UNSYNC != 0 {
		return result{
			Warn, "not synchronised; times of events may be wrong (grace periods, back-off and probes are not affected)",
			"run a time service, such as systemd-timesyncd or chrony",
		}
	}
	return ok("synchronised")
}

// savedPods returns the number of pods that have a state file.
func savedPods(c *config.Config) int {
	files, err := filepath.Glob(filepath.Join(c.StateDir, "pods", "*.json"))
	if err != nil {
		return 0
	}
	return len(files)
}
