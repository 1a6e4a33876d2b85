package container

import (
	"context"
	"encoding/binary"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// dirNotifier waits for changes of directories with inotify(7), for all containers with one instance: Linux limits a user to 128 of them.
// It has none while nothing is watched. The zero value is ready for use. It is safe for concurrent use.
type dirNotifier struct {
	mu    sync.Mutex
	file  *os.File                      // nil: nothing is watched, or the limit of instances is reached
	done  chan struct{}                 // closed when nothing reads the file any more
	users int                           // subscriptions
	by    map[int32]map[*dirNotify]bool // by watch descriptor
}

// dirNotify is a subscription to the changes of directories. It belongs to one goroutine.
type dirNotify struct {
	notifier *dirNotifier
	watches  map[int32]bool // watch descriptors
	changed  chan struct{}
}

// subscribe returns a subscription to no directory. The caller closes it.
func (n *dirNotifier) subscribe() *dirNotify {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.users++
	return &dirNotify{n, map[int32]bool{}, make(chan struct{}, 1)}
}

// open creates the instance. The caller holds the lock. A file of package os waits without a thread.
func (n *dirNotifier) open() {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return
	}
	n.file, n.done, n.by = os.NewFile(uintptr(fd), "inotify"), make(chan struct{}), map[int32]map[*dirNotify]bool{}
	go n.read(n.file, n.done)
}

// read notifies subscriptions until the file is closed.
func (n *dirNotifier) read(file *os.File, done chan<- struct{}) {
	defer close(done)
	buffer := make([]byte, 16<<10)
	for {
		size, err := file.Read(buffer)
		if err != nil {
			return
		}
		n.mu.Lock()
		if n.file == file {
			n.notify(buffer[:size])
		}
		n.mu.Unlock()
	}
}

// notify notifies the subscriptions to which events belong. The caller holds the lock.
func (n *dirNotifier) notify(events []byte) {
	for len(events) >= unix.SizeofInotifyEvent {
		watch, mask := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:])
		events = events[unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(events[12:])):]
		if mask&unix.IN_Q_OVERFLOW != 0 { // events were lost, of any directory
			for _, list := range n.by {
				wake(list)
			}
			continue
		}
		wake(n.by[watch])
	}
}

func wake(list map[*dirNotify]bool) {
	for d := range list {
		select {
		case d.changed <- struct{}{}:
		default:
		}
	}
}

// deviceEvents are the events of a directory after which a path below it may be another device. Writing to a device is none.
const deviceEvents = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
	unix.IN_ONLYDIR

// watch watches exactly these directories. One that cannot be watched is checked at the interval. It returns false if none can, since the
// limit of instances is reached.
func (d *dirNotify) watch(dirs []string) bool {
	n := d.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil {
		n.open()
	}
	if n.file == nil {
		return false
	}
	now := map[int32]bool{}
	_ = n.control(func(fd int) {
		for _, dir := range dirs { // again, too: another directory may have the path
			added, err := unix.InotifyAddWatch(fd, dir, deviceEvents)
			if err != nil {
				continue
			}
			watch := int32(added)
			now[watch] = true
			if n.by[watch] == nil {
				n.by[watch] = map[*dirNotify]bool{}
			}
			n.by[watch][d] = true
		}
		for watch := range d.watches {
			if !now[watch] {
				n.drop(fd, watch, d)
			}
		}
	})
	d.watches = now
	return true
}

// control calls a function with the descriptor of the instance. The caller holds the lock.
func (n *dirNotifier) control(do func(fd int)) error {
	control, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	return control.Control(func(fd uintptr) { do(int(fd)) })
}

// drop ends the subscription to a directory. The caller holds the lock.
func (n *dirNotifier) drop(fd int, watch int32, d *dirNotify) {
	delete(n.by[watch], d)
	if len(n.by[watch]) == 0 {
		delete(n.by, watch)
		_, _ = unix.InotifyRmWatch(fd, uint32(watch)) // fails if the directory was deleted
	}
}

// wait returns after a change, after an interval at most, or with the error of ctx.
func (d *dirNotify) wait(ctx context.Context, interval time.Duration) error {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-d.changed:
		timer.Reset(quietInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// close ends the subscription. The last one closes the instance.
func (d *dirNotify) close() {
	n := d.notifier
	n.mu.Lock()
	n.users--
	file, done := n.file, n.done
	if n.users > 0 && file != nil {
		_ = n.control(func(fd int) {
			for watch := range d.watches {
				n.drop(fd, watch, d)
			}
		})
		file = nil
	}
	if n.users == 0 {
		n.file = nil
	}
	n.mu.Unlock()
	if file != nil {
		_ = file.Close()
		<-done
	}
}
