package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
)

// oomWatcher receives the OOM notifications of the kernel: changes of memory.events with cgroup v2, an eventfd for each container with v1.
// The loop owns it.
type oomWatcher struct {
	m           *Monitor
	inotify     int
	byWatch     map[int32]*container // cgroup v2
	byContainer map[*container]int32
	eventfds    map[*container]oomFD // cgroup v1
}

type oomFD struct {
	fd    int
	token token
}

func newOOMWatcher(m *Monitor) (*oomWatcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create inotify: %w", err)
	}
	w := &oomWatcher{
		m: m, inotify: fd, byWatch: map[int32]*container{}, byContainer: map[*container]int32{}, eventfds: map[*container]oomFD{},
	}
	_, err = m.loop.watch(fd, func(uint32) { w.changed() })
	return w, err
}

// watchMemory begins to account for the memory of a container.
func (c *container) watchMemory() {
	if c.rec.Memory == "" {
		return
	}
	c.ledger = &c.m.sandboxOf(c.rec.Create.Sandbox).ledger
	c.memory = c.ledger.watch(cgroup.MemoryGroupIn(c.rec.Memory, c.rec.Unified))
	if err := c.m.ooms.add(c); err != nil && !isGone(err) {
		logf("container %s: OOM notifications: %v", c.id, err)
	}
}

func (w *oomWatcher) add(c *container) error {
	if c.rec.Unified {
		wd, err := unix.InotifyAddWatch(w.inotify, filepath.Join(c.rec.Memory, "memory.events"), unix.IN_MODIFY)
		if err != nil {
			return err
		}
		w.byWatch[int32(wd)], w.byContainer[c] = c, int32(wd)
		return nil
	}
	control, err := os.Open(filepath.Join(c.rec.Memory, "memory.oom_control"))
	if err != nil {
		return err
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	text := strconv.Itoa(fd) + " " + strconv.Itoa(int(control.Fd()))
	if err := os.WriteFile(filepath.Join(c.rec.Memory, "cgroup.event_control"), []byte(text), 0); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	t, err := w.m.loop.watch(fd, func(uint32) {
		var count [8]byte
		_, _ = unix.Read(fd, count[:])                   // resets it
		if _, err := os.Stat(c.rec.Memory); err == nil { // the removal of the cgroup notifies, too
			w.notify(c)
		}
	})
	if err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	w.eventfds[c] = oomFD{fd, t}
	return nil
}

// remove stops the notifications for a container.
func (w *oomWatcher) remove(c *container) {
	if wd, has := w.byContainer[c]; has {
		delete(w.byContainer, c)
		delete(w.byWatch, wd)
		_, _ = unix.InotifyRmWatch(w.inotify, uint32(wd)) // the cgroup may have been removed
	}
	if e, has := w.eventfds[c]; has {
		delete(w.eventfds, c)
		w.m.loop.unwatch(e.token)
		closeAll(e.fd)
	}
}

// changed handles changes of memory.events.
func (w *oomWatcher) changed() {
	var buf [4096]byte
	n, err := unix.Read(w.inotify, buf[:])
	if err != nil {
		return
	}
	seen := map[*container]bool{}
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
		at += unix.SizeofInotifyEvent + int(e.Len)
		c := w.byWatch[e.Wd]
		if c == nil || seen[c] {
			continue
		}
		seen[c] = true
		if kills, err := cgroup.MemoryGroupIn(c.rec.Memory, true).OOMKills(); err == nil && kills > 0 {
			w.notify(c)
		}
	}
}

func (w *oomWatcher) notify(c *container) {
	if c.memory == nil {
		return
	}
	c.memory.oomNotified()
	w.m.report(Event{Kind: EventOOM, Container: c.id, Sandbox: c.rec.Create.Sandbox})
}
