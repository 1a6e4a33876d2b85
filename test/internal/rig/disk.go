package rig

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// ReadOnlyDisk makes the state directory read-only, also for a daemon that runs, and returns a function that makes it writable again.
// Files that are open stay writable: an open file prevents a remount. It is writable again at the end of the test.
func (f *Fixture) ReadOnlyDisk() (writable func()) {
	f.Helper()
	f.Check(unix.Mount(f.StateDir(), f.StateDir(), "", unix.MS_BIND, ""))
	writable = sync.OnceFunc(func() {
		if err := unix.Unmount(f.StateDir(), unix.MNT_DETACH); err != nil {
			f.Error("make the disk writable:", err)
		}
	})
	f.Cleanup(writable)
	f.Check(unix.Mount("", f.StateDir(), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	return writable
}

// slowDisk makes a disk slow until its standard input ends: $1 is the device, $2 the number of writes per second, $0 the directory. Without
// cgroup v1, whose root has such limits, the file system hangs repeatedly for the time of ten writes.
const slowDisk = `
limit=/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device
if [ -e $limit ]; then
	echo "$1 $2" >$limit && echo slow && read end
	echo "$1 0" >$limit
	exit
fi
(
	trap stop=1 TERM # after the command that runs, so that the file system is not left frozen
	while [ -z "$stop" ] && fsfreeze -f "$0"; do sleep $((1000 / $2))e-2; fsfreeze -u "$0"; sleep 0.1; done
) &
echo slow && read end
kill $!
wait $!
true`

// SlowDisk limits the writes per second of a [Fixture.Ext4Disk], and returns a function that removes the limit. It is removed at the end
// of the test, or when the process of the test dies.
func (f *Fixture) SlowDisk(writes int) (fast func()) {
	f.Helper()
	var st unix.Stat_t
	f.Check(unix.Stat(f.StateDir(), &st))
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	return f.whileRuns("slow", slowDisk, f.StateDir(), device, fmt.Sprint(writes))
}

// whileRuns starts a shell script, and returns a function that ends its standard input and waits for its exit. The script must write ready
// when it has done its work, and undo it when its standard input ends: at the end of the test at the latest, or when the process of the
// test dies.
func (f *Fixture) whileRuns(ready, script string, args ...string) (end func()) {
	f.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(f.Context()), "sh", append([]string{"-c", script}, args...)...)
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // signals to the group of the test, such as Ctrl-C, must not prevent it
	hold, err := cmd.StdinPipe()
	f.Check(err)
	out, err := cmd.StdoutPipe()
	f.Check(err)
	f.Check(cmd.Start())
	end = sync.OnceFunc(func() {
		_ = hold.Close()
		if err := cmd.Wait(); err != nil {
			f.Errorf("end of %s: %v", ready, err)
		}
	})
	f.Cleanup(end)
	_, err = io.ReadFull(out, make([]byte, len(ready)))
	f.Check(err)
	return end
}
