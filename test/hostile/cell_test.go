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
	f.intrude("kernel", "", Kernel())
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
	f.intrude("devices", "", Devices(disk, names[filepath.Base(rig.RuntimeUnderTest())]))
}

// TestFiles: no file of the host can be reached by name, file handle, root directory or mount.
func TestFiles(t *testing.T) {
	f := newFixture(t, options{})
	f.intrude("files", FileVolume, Files(f.victim()))
}

// TestMounts: the mounts of a container are those of the pod file, the pod's three files, the termination log, and the kernel's file
// systems.
func TestMounts(t *testing.T) {
	f := newFixture(t, options{})
	f.create("mounts", "restartPolicy = \"Never\"\n"+Play("c", "try", "mounts"))
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
	tries := append(Processes(other, os.Getpid()), Try{fmt.Sprint("shared ", key), "ENOENT"})
	f.intrude("processes", "", tries)
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
	f.intrude("sockets", "", Sockets(name, f.victim()+"-socket", f.Socket()))
}

// namedPipe is a standard stream of a container, as its process sees it.
var namedPipe = regexp.MustCompile(`([12]) \S*/monitor/containers/[0-9a-f]{64}/std(out|err)`)

// TestInheritance: a container's process, and the command of an exec probe, have three descriptors and the environment of the pod file
// and the image. They inherit nothing from the daemon, the shim, the monitor or the OCI runtime.
func TestInheritance(t *testing.T) {
	f := newFixture(t, options{})
	f.create("heir", Play("c", "stay", "descriptors self", "environment self")+`
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
