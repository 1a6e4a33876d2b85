package hostcondition

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// appears are the events of a directory after which a path below it may exist.
const appears = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// waitForPath waits until a path exists. Links are followed. It watches the closest directory above the path that exists, and the mounts:
// a mount may contain the path, and inotify(7) does not report it. If the limit of inotify instances or watches is reached, it notices
// the path at the next check, after recheck at most.
func waitForPath(ctx context.Context, path string, recheck time.Duration, report func(string)) error {
	path = filepath.Clean(path)
	mounts, err := openMounts()
	if err != nil {
		return err
	}
	defer unix.Close(mounts)
	notify, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		notify = -1 // poll(2) ignores it
	} else {
		defer unix.Close(notify)
	}
	p, err := newPoller(ctx, unix.PollFd{Fd: int32(mounts), Events: unix.POLLPRI}, unix.PollFd{Fd: int32(notify), Events: unix.POLLIN})
	if err != nil {
		return err
	}
	defer p.close()
	for watched := -1; ; {
		now := watchAbove(notify, path)
		if watched >= 0 && watched != now {
			_, _ = unix.InotifyRmWatch(notify, uint32(watched)) // fails if the directory was deleted
		}
		watched = now
		unmet := pathUnmet(path) // after the directory is watched, so that no change is missed
		if unmet == "" {
			return nil
		}
		report(unmet)
		if err := p.wait(ctx, recheck); err != nil {
			return err
		}
		drain(notify)
	}
}

// watchAbove watches the closest directory above a path that can be watched, and returns the watch; -1: there is none.
func watchAbove(notify int, path string) (watch int) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		watch, err := unix.InotifyAddWatch(notify, dir, appears)
		if err == nil {
			return watch
		}
		if dir == filepath.Dir(dir) {
			return -1
		}
	}
}

// pathUnmet returns why a path cannot be found; empty if it exists.
func pathUnmet(path string) string {
	_, err := os.Stat(filepath.Clean(path))
	if err == nil {
		return ""
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return "not found"
	}
	if failed, is := errors.AsType[*fs.PathError](err); is {
		return failed.Err.Error()
	}
	return err.Error()
}

// waitForMount waits until a path is a mount point. Links are followed.
func waitForMount(ctx context.Context, path string, report func(string)) error {
	mounts, err := openMounts()
	if err != nil {
		return err
	}
	defer unix.Close(mounts)
	p, err := newPoller(ctx, unix.PollFd{Fd: int32(mounts), Events: unix.POLLPRI})
	if err != nil {
		return err
	}
	defer p.close()
	return p.until(ctx, func() (string, error) { return mountUnmet(path) }, report, nil)
}

// openMounts opens mountinfo. It has an event after each change. A file of package os cannot be used: the poller of the Go runtime would
// take the events, since each is reported only once.
func openMounts() (fd int, err error) {
	fd, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: "/proc/self/mountinfo", Err: err}
	}
	return fd, nil
}

// mountUnmet returns that a path is not a mount point; empty if it is.
func mountUnmet(path string) (string, error) {
	path = filepath.Clean(path)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	list, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != path, m.Mountpoint == path })
	if err == nil && len(list) == 0 {
		return "not mounted", nil
	}
	return "", err
}
