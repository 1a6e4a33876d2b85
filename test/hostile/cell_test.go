//go:build e2e

package hostile

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/internal/rig"
)

// TestKernel: host-wide kernel settings cannot be changed, and most cannot be read.
func TestKernel(t *testing.T) {
	f := newFixture(t, options{})
	cgroup := "/sys/fs/cgroup"
	if _, err := os.Stat(cgroup + "/cgroup.controllers"); err != nil { // cgroup v1 has a hierarchy for each controller
		cgroup += "/memory"
	}
	f.intrude("kernel", "", []try{
		{"capabilities CapEff", "00000000a80425fb"},
		{"capabilities CapBnd", "00000000a80425fb"},
		{"capabilities CapInh", "0000000000000000"},
		{"capabilities CapAmb", "0000000000000000"},
		{"write /proc/sys/kernel/core_pattern", "EROFS"},
		{"write /proc/sys/kernel/panic", "EROFS"},
		{"write /proc/sys/vm/panic_on_oom", "EROFS"},
		{"write /proc/sys/net/ipv4/ip_forward", "EROFS"},
		{"write /proc/sys/fs/binfmt_misc/register", "EROFS|ENOENT"},
		{"write /proc/sysrq-trigger", "EROFS|ENOENT"},
		{"write /proc/irq/default_smp_affinity", "EROFS"},
		{"write /sys/kernel/uevent_helper", "EROFS|ENOENT"},
		{"mkdir /sys/kernel/intruder", "EROFS"},
		{"mkdir " + cgroup + "/intruder", "EROFS"},
		{"write " + cgroup + "/cgroup.procs", "EROFS"},
		{"write " + cgroup + "/notify_on_release", "EROFS|ENOENT"},
		{"write " + cgroup + "/release_agent", "EROFS|ENOENT"},
		{"remount /sys", "EPERM"},
		{"remount /proc/sys", "EPERM"},
		{"unmount /proc/sys", "EPERM"},
		{"unmount /proc/timer_list", "EPERM"},
		{"mount proc /tmp/proc", "EPERM"},
		{"mount sysfs /tmp/sys", "EPERM"},
		{"mount cgroup:memory /tmp/cgroup", "EPERM"},
		{"mount cgroup2 /tmp/cgroup2", "EPERM"},
		{"mount binfmt_misc /tmp/binfmt", "EPERM"},
		{"mount debugfs /tmp/debug", "EPERM"},
		{"mount tmpfs /tmp/tmpfs", "EPERM"},
		{"mount overlay /tmp/overlay", "EPERM"},
		{"new-fs tmpfs", "EPERM"},
		{"open-tree /", "EPERM"},
		{"pivot", "EPERM"},
		{"unshare user", "EPERM"},
		{"unshare mount", "EPERM"},
		{"unshare net", "EPERM"},
		{"unshare pid", "EPERM"},
		{"unshare cgroup", "EPERM"},
		{"enter /proc/1/ns/net", "EPERM"},
		{"enter /proc/1/ns/mnt", "EPERM"},
		{"read /proc/kcore", "0 bytes|ENOENT"},
		{"read /proc/keys", "0 bytes"},
		{"read /proc/timer_list", "0 bytes"},
		{"list /proc/acpi", "0 entries|ENOENT"},
		{"list /proc/scsi", "0 entries|ENOENT"},
		{"list /sys/firmware", "0 entries"},
		{"read /proc/kmsg", "EPERM"},
		{"kernel-log", "EPERM"},
		{"hostname", "EPERM"},
		{"clock", "EPERM"},
		{"reboot", "EPERM"},
		{"module", "EPERM"},
		{"kexec", "EPERM"},
		{"bpf", "EPERM"},
		{"perf", "EPERM"},
		{"userfault", "EPERM"},
		{"uring", "EPERM"},
		{"fanotify", "EPERM"},
		{"accounting", "EPERM"},
		{"quota", "EPERM"},
		{"swap-on /dev/zero", "EPERM"},
		{"add-key", "EPERM"},
		{"keyring", "EPERM"},
		{"nice", "EACCES"},
	})
}

// TestDevices: device nodes can be created, but only harmless devices can be opened.
func TestDevices(t *testing.T) {
	f := newFixture(t, options{})
	var root unix.Stat_t
	f.Check(unix.Stat("/", &root))
	disk := fmt.Sprintf("device b %d %d", unix.Major(root.Dev), unix.Minor(root.Dev))
	names := map[string]string{
		"runc": "fd full mqueue null ptmx pts random shm stderr stdin stdout termination-log tty urandom zero",
		// core is a link to /proc/kcore
		"crun": "core fd full mqueue null ptmx pts random shm stderr stdin stdout termination-log tty urandom zero",
	}
	f.intrude("devices", "", []try{
		{"devices", names[filepath.Base(rig.RuntimeUnderTest())]},
		{"read /dev/core", "0 bytes|ENOENT"},
		{disk, "EPERM"},
		{"device b 7 0", "EPERM"},    // a loop device
		{"device c 1 1", "EPERM"},    // memory
		{"device c 1 4", "EPERM"},    // I/O ports
		{"device c 1 11", "EPERM"},   // the kernel log
		{"device c 4 0", "EPERM"},    // the console
		{"device c 10 229", "EPERM"}, // fuse
		{"device c 10 232", "EPERM"}, // kvm
		{"device c 1 3", "0 bytes"},  // null
		{"read /dev/kmsg", "ENOENT"},
	})
}

// TestFiles: no file of the host can be reached by name, file handle, root directory or mount.
func TestFiles(t *testing.T) {
	f := newFixture(t, options{})
	victim := f.victim()
	f.intrude("files", "volumeMounts = { data = \"/data\" }\n[[volumes]]\nname = \"data\"\nemptyDir = {}\n", []try{
		{"read " + victim + "/a", "ENOENT"},
		{"read /proc/1/root" + victim + "/a", "ENOENT"},
		{"read /proc/self/root" + victim + "/a", "ENOENT"},
		{"above " + victim + "/a", "not found"},
		{"handle /data", "EPERM"},
		{"handle /etc/hosts", "EPERM"},
		{"handle /", "EPERM"},
		{"find / podstead", "nothing"},
		{"find / .sock", "nothing"},
		{"find / containerd", "nothing"},
		{"symlink " + victim + " /data/link", "done"},
		{"read /data/link/a", "ENOENT"},
		{"remove /etc/hosts", "EBUSY"},
		{"remove /dev/termination-log", "EBUSY"},
		{"unmount /etc/hosts", "EPERM"},
		{"unmount /data", "EPERM"},
		{"chroot-up " + victim + "/a", "not found"}, // last, because it leaves the root directory
	})
}

// TestMounts: the mounts of a container are those of the pod file, the pod's three files, the termination log, and the kernel's file
// systems.
func TestMounts(t *testing.T) {
	f := newFixture(t, options{})
	f.create("mounts", "restartPolicy = \"Never\"\n"+play("c", "try", "mounts"))
	f.Until("mounts", "done", ended)
	for entry := range strings.SplitSeq(f.outcomes("mounts", "c")["mounts"], ", ") {
		what, from, bound := strings.Cut(entry, " from ")
		path, _, _ := strings.Cut(what, " ")
		switch {
		case bound && !strings.HasPrefix(path, "/proc/") && !strings.HasPrefix(path, "/sys/"):
			switch path {
			case "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log", "/dev/shm":
			default:
				f.Errorf("%s is %s of the host", path, from)
			}
		case strings.HasSuffix(what, " cgroup rw"), strings.HasSuffix(what, " cgroup2 rw"), strings.HasSuffix(what, " sysfs rw"):
			f.Errorf("%s is writable", path)
		}
	}
}

// TestProcesses: processes of the host and of other pods are not visible, nor are their memory and shared memory.
func TestProcesses(t *testing.T) {
	f := newFixture(t, options{})
	other := f.processOf(neighbour, "/bin/testserver")
	const key = 0x70736873
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	f.Check(err)
	f.Cleanup(func() {
		if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
			f.Error(err)
		}
	})
	f.intrude("processes", "", []try{
		{"processes", "intruder"},
		{fmt.Sprint("signal ", other), "ESRCH"},
		{fmt.Sprint("trace ", other), "ESRCH"},
		{fmt.Sprint("peek ", other), "ESRCH"},
		{fmt.Sprint("signal ", os.Getpid()), "ESRCH"},
		{fmt.Sprint("read /proc/", other, "/environ"), "ENOENT"},
		{fmt.Sprint("list /proc/", other, "/root"), "ENOENT"},
		{fmt.Sprint("shared ", key), "ENOENT"},
	})
}

// TestSockets: no socket of the host can be reached, neither by path nor by abstract name.
func TestSockets(t *testing.T) {
	f := newFixture(t, options{})
	name := "@podstead-hostile-" + fmt.Sprint(os.Getpid())
	for _, address := range []string{name, f.victim() + "-socket"} {
		l, err := net.Listen("unix", address)
		f.Check(err)
		f.Cleanup(func() {
			if err := l.Close(); err != nil {
				f.Error(err)
			}
		})
	}
	f.intrude("sockets", "", []try{
		{"sockets", "none"},
		{"dial unix " + name, "ECONNREFUSED"},
		{"dial unix " + f.victim() + "-socket", "ENOENT"},
		{"dial unix " + f.Socket(), "ENOENT"},
		{"dial unix /run/podstead/podstead.sock", "ENOENT"},
		{"dial unix /run/containerd/containerd.sock", "ENOENT"},
		{"dial unix /var/run/docker.sock", "ENOENT"},
	})
}

// namedPipe is a standard stream of a container, as its process sees it.
var namedPipe = regexp.MustCompile(`([12]) \S*/monitor/containers/[0-9a-f]{64}/std(out|err)`)

// TestInheritance: a container's process, and the command of an exec probe, have three descriptors and the environment of the pod file
// and the image. They inherit nothing from the daemon, the shim, the monitor or the OCI runtime.
func TestInheritance(t *testing.T) {
	f := newFixture(t, options{})
	f.create("heir", play("c", "stay", "descriptors self", "environment self")+`
env.MINE = "1"
  [containers.startupProbe]
  exec = { command = ["sh", "-c", "/bin/intruder try 'descriptors self' 'environment self' > /tmp/out && cat /tmp/out > /proc/1/fd/1"] }
  periodSeconds = 1
  timeoutSeconds = 100
`)
	f.Until("heir", "ready", isReady)
	var text string
	f.Await(func() error { // the order of the two outputs is undefined
		text = f.MustRun("logs", "heir")
		if n := strings.Count(text, "finished\n"); n < 2 {
			return fmt.Errorf("%d of 2 outputs are complete:\n%s", n, text)
		}
		return nil
	})
	if f.Monitor != "" { // its pipes have names
		text = namedPipe.ReplaceAllString(text, "$1 pipe")
	}
	for _, want := range []string{
		"environment self: HOME HOSTNAME MINE PATH\n",
		// The shell adds two. By PODSTEAD_EXEC the daemon finds processes that a probe has left behind.
		"environment self: HOME HOSTNAME MINE PATH PODSTEAD_EXEC PWD SHLVL\n",
		"descriptors self: 0 /dev/null, 1 pipe, 2 pipe\n",
		"descriptors self: 0 /dev/null, 1 /tmp/out, 2 pipe\n",
	} {
		if got := strings.Count(text, want); got != 1 {
			f.Errorf("%q occurs %d times, want 1, in:\n%s", want, got, text)
		}
	}
	if strings.Contains(text, secret) {
		f.Error("the container has the daemon's environment")
	}
}
