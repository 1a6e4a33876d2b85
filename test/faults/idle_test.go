//go:build e2e || soak

package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// idlePods is how many pods run on an idle host, each with three probes.
const idlePods = 20

// usesSaved is after how long the daemon has saved that the images of new pods are used, which is a write.
const usesSaved = 6 * time.Minute

// testIdle checks that nothing is written to the disk of the state, the container engine and the logs while nothing happens but probes. The
// run directory is on another file system: at /run it is in memory.
func testIdle(t *testing.T, idle time.Duration) {
	f := newFixture(t)
	f.Timeout = deadline + idle + usesSaved
	f.Ext4Disk()
	f.Env = append(f.Env, "PODSTEAD_LOG_DIR="+filepath.Join(f.StateDir(), "log"))
	f.MustRun("get")
	probe := "\n[containers.%s]\n%s\nperiodSeconds = 5\ntimeoutSeconds = 30\nfailureThreshold = 100\n"
	text := "terminationGracePeriodSeconds = 1\n" +
		container("web", "trap 'exit 0' TERM; echo ok >/tmp/index.html; httpd -f -p 8080 -h /tmp & wait") +
		fmt.Sprintf(probe, "startupProbe", "tcpSocket = { port = 8080 }") +
		fmt.Sprintf(probe, "livenessProbe", `httpGet = { path = "/index.html", port = 8080 }`) +
		fmt.Sprintf(probe, "readinessProbe", `exec = { command = ["cat", "/tmp/index.html"] }`)
	for i := range idlePods {
		f.MustCreate("idle-"+strconv.Itoa(i), text)
	}
	for i := range idlePods {
		f.Until("idle-"+strconv.Itoa(i), "ready", func(p *api.Pod) bool {
			return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready
		})
	}
	if idle > usesSaved {
		<-time.After(usesSaved)
	}
	disk := newDiskWatch(f)
	f.Await(disk.quiet)
	start, writes := time.Now(), []string(nil)
	for time.Since(start) < idle && len(writes) == 0 {
		<-time.After(time.Second)
		writes = disk.writes()
	}
	if len(writes) > 0 {
		t.Errorf("%d pods that only run probes had these writes after %v:\n%s", idlePods, time.Since(start), strings.Join(writes, "\n"))
	}
	for i := range idlePods {
		p := f.get("idle-" + strconv.Itoa(i))
		if s := p.Status.ContainerStatuses[0]; !s.Ready || s.RestartCount > 0 {
			t.Errorf("pod %s is not ready, or was restarted: %+v", p.Metadata.Name, s)
		}
	}
	written := filepath.Join(f.StateDir(), "written") // the watch finds a write
	f.Check(os.WriteFile(written, []byte("x"), 0o600))
	if list := strings.Join(disk.writes(), "\n"); !strings.Contains(list, "sectors") || !strings.Contains(list, written) {
		t.Errorf("writes found of a file that was written: %s", list)
	}
	f.MustRun("delete", "--all", "--force")
}

// diskWatch finds writes to the disk of a rig's state.
type diskWatch struct {
	f        *fixture
	stat     string // of the device
	disk     int    // a descriptor of the disk
	notify   int    // fanotify, which names the files
	sectors  uint64
	quietFor time.Time
}

func newDiskWatch(f *fixture) *diskWatch {
	f.Helper()
	var st unix.Stat_t
	f.Check(unix.Stat(f.StateDir(), &st))
	w := &diskWatch{f: f, stat: fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev))}
	var err error
	w.disk, err = unix.Open(f.StateDir(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	f.Check(err)
	f.Cleanup(func() { _ = unix.Close(w.disk) })
	w.notify, err = unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK,
		unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC)
	f.Check(err)
	f.Cleanup(func() { _ = unix.Close(w.notify) })
	f.Check(unix.FanotifyMark(w.notify, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, unix.FAN_MODIFY, unix.AT_FDCWD, f.StateDir()))
	w.quietFor = time.Now()
	return w
}

// quiet returns nil when the disk had no writes for some seconds: what the start of the pods has caused is written.
func (w *diskWatch) quiet() error {
	if list := w.writes(); len(list) > 0 {
		w.quietFor = time.Now()
		return fmt.Errorf("writes after the start: %v", list)
	}
	if time.Since(w.quietFor) < 8*time.Second { // longer than the period of the probes and the journal's commit interval
		return errors.New("not quiet for long enough")
	}
	return nil
}

// writes describes the writes since the last call.
func (w *diskWatch) writes() (list []string) {
	w.f.Helper()
	w.f.Check(unix.Syncfs(w.disk)) // what was written to memory counts at once
	text, err := os.ReadFile(w.stat)
	w.f.Check(err)
	sectors, err := strconv.ParseUint(strings.Fields(string(text))[6], 10, 64)
	w.f.Check(err)
	if sectors != w.sectors {
		list = append(list, fmt.Sprintf("%d sectors", sectors-w.sectors))
	}
	w.sectors = sectors
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.notify, buffer)
		if n <= 0 || err != nil {
			break
		}
		for part := buffer[:n]; len(part) > 0; {
			var e unix.FanotifyEventMetadata
			_, err := binary.Decode(part, binary.NativeEndian, &e)
			w.f.Check(err)
			list = append(list, describe(&e))
			part = part[e.Event_len:]
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// describe names the file and the process of a write, and closes the descriptor of the file.
func describe(e *unix.FanotifyEventMetadata) string {
	defer unix.Close(int(e.Fd))
	path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", e.Fd))
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", e.Pid))
	return fmt.Sprintf("%s by process %d %s", path, e.Pid, strings.TrimSpace(string(command)))
}
