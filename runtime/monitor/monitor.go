// Package monitor is the process that is the parent of all containers of a host, and its client. The monitor runs the OCI runtime, writes
// the logs and serves clients that attach. It is started by a keeper, which starts it again when it dies and keeps for it what the death of
// a process would take away: descriptors, and exit codes of its children. When the keeper dies the monitor becomes the keeper.
//
// Each can be killed at any instruction: no container ends, restarts, blocks or loses a line. All state is in files on tmpfs, each of which
// is written before what it stands for is done.
//
// One goroutine owns the state of the monitor. It waits in epoll for output, exits and requests. Other goroutines exist only while a
// request runs the OCI runtime or writes to a disk, and for clients that attach. The package has no notion of pods.
package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/attach"
)

const (
	// gcPercent is the growth of the heap between two garbage collections, in percent.
	gcPercent = 30
	// calmTime is how long nothing may have happened before unused memory is returned to the kernel.
	calmTime = 10 * time.Second
	// keeperCheck is the interval of checks of the keeper. One that does not answer is continued at the first check after the question, and
	// killed at the sixth.
	keeperCheck = 5 * time.Second
	// unusedTime is how long a monitor runs that has neither a client nor a container. The daemon is always connected, so it was killed and
	// does not come back. The next one starts a monitor.
	unusedTime = time.Minute
	// askTimeout bounds the wait for the descriptors that the keeper keeps.
	askTimeout = 30 * time.Second
	// maxAttached is the maximum number of attached clients of all containers.
	maxAttached = 4096
	// maxUnreported bounds the events that wait for the first subscriber.
	maxUnreported = 1024
)

// Names of descriptors that belong to no container.
const (
	listenName = "listen"
	attachName = "attach"
)

// Monitor is the process that is the parent of containers. Its loop owns all fields but those that say otherwise.
type Monitor struct {
	o       options
	base    func() context.Context // that of the process
	loop    *loop
	started time.Time
	count   int // of monitors since the last stop

	held   map[string]int // descriptors that the keeper also has, by name
	unsent []message      // to the keeper
	linked token
	asked  int // checks since the keeper has answered

	connections map[*connection]struct{}
	packet      [maxPacket]byte // of the client whose request is read
	sequence    uint64
	unreported  []Event

	containers map[string]*container
	sandboxes  map[string]*sandboxState
	lanes      map[string]*lane
	attached   *attach.Server // safe for concurrent use
	ooms       *oomWatcher

	flights flights // has its own lock
	jobs    map[*job]struct{}
	runs    int // commands of Run since the start

	stopping    bool // SIGTERM: stop when no container runs
	replacing   bool
	left        time.Time // the last client disconnected, or the last container was removed
	leaving     bool      // the timer runs
	active      time.Time
	calm        bool // the timer runs
	collections int64
	sweeping    bool // a sweep is in progress, or the timer for one runs
	sweepAgain  bool // a child may have exited since the sweep began
	sweepLater  bool // the timer for a later sweep runs
}

// message waits for a keeper that does not read.
type message struct {
	text string
	fd   int // a copy; -1: none
}

// sandboxState is a sandbox.
type sandboxState struct {
	record  sandboxRecord
	ledger  ledger
	written bool // it has a record
}

// runMonitor runs a monitor until it must stop.
func runMonitor(o options, signals chan os.Signal, base func() context.Context) error {
	debug.SetGCPercent(gcPercent)
	runtime.GOMAXPROCS(2)
	setInherited([]int{linkFD, lockFD}, false)
	if o.replaced != "" {
		_ = unix.Futimes(lockFD, nil) // the process is older than this monitor; see Free
	}
	m := &Monitor{
		o: o, base: base, started: time.Now(), active: time.Now(), jobs: map[*job]struct{}{}, held: map[string]int{},
		connections: map[*connection]struct{}{}, containers: map[string]*container{}, sandboxes: map[string]*sandboxState{},
		lanes: map[string]*lane{}, attached: attach.NewServer(),
	}
	m.attached.MaxConnections = maxAttached
	var err error
	m.loop, err = newLoop(func(what any) { m.report(Event{Kind: EventFailed, Message: fmt.Sprintf("internal error: %v", what)}) })
	if err != nil {
		return err
	}
	for _, dir := range []string{containersDir, sandboxesDir} {
		if err := os.MkdirAll(filepath.Join(o.dir, dir), 0o700); err != nil {
			return err
		}
	}
	if err := m.countUp(); err != nil {
		logf("count monitors: %v", err)
	}
	if err := m.receiveHeld(); err != nil {
		return fmt.Errorf("receive descriptors from the keeper: %w", err)
	}
	if m.linked, err = m.loop.watch(linkFD, m.keeperReady); err != nil {
		return err
	}
	if m.ooms, err = newOOMWatcher(m); err != nil {
		return err
	}
	m.handleSignals(signals)
	if m.count > 1 {
		m.report(Event{Kind: EventRestarted, PID: os.Getpid()})
	}
	if err := m.recoverAll(); err != nil {
		return err
	}
	if err := m.serveAttach(); err != nil {
		return err
	}
	if err := m.serveRequests(); err != nil {
		return err
	}
	if o.replaced != "" {
		m.tell(verbUpgrade+" "+o.replaced, -1)
	}
	m.sweep()
	m.touch()
	m.leave()
	m.checkKeeper()
	return m.loop.run()
}

// countUp counts the monitors since the last stop.
func (m *Monitor) countUp() error {
	path := filepath.Join(m.o.dir, countFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text))) // one that was not written completely counts from 0
	m.count = n + 1
	return os.WriteFile(path, []byte(strconv.Itoa(m.count)), 0o600)
}

// receiveHeld asks the keeper for the descriptors of the monitor before.
func (m *Monitor) receiveHeld() error {
	if err := sendMessage(linkFD, verbGive, -1); err != nil {
		return err
	}
	var buf [maxMessage]byte
	for end := time.Now().Add(askTimeout); ; {
		text, fd, err := receiveMessage(linkFD, buf[:])
		if errors.Is(err, unix.EAGAIN) {
			poll := []unix.PollFd{{Fd: linkFD, Events: unix.POLLIN}}
			n, err := retry(func() (int, error) { return unix.Poll(poll, int(max(time.Until(end), 0)/time.Millisecond)) })
			if err != nil || n == 0 {
				return errors.Join(err, fmt.Errorf("no answer in %v", askTimeout))
			}
			continue
		}
		if errors.Is(err, errLinkClosed) {
			m.becomeKeeper()
		}
		if err != nil {
			return err
		}
		verb, name, _ := strings.Cut(text, " ")
		switch {
		case verb == verbGiven:
			return nil
		case verb == verbGave && fd >= 0:
			if old, has := m.held[name]; has {
				closeAll(old)
			}
			m.held[name] = fd
		default:
			closeAll(fd)
		}
	}
}

// hold keeps a descriptor beyond the death of the monitor, until release. It is closed by release.
func (m *Monitor) hold(name string, fd int) {
	if old, has := m.held[name]; has && old == fd {
		return // of the monitor before
	}
	m.held[name] = fd
	m.tell(verbHold+" "+name, fd)
}

// release closes the descriptors with this name, or whose names start with it if it ends in a slash.
func (m *Monitor) release(name string) {
	for held, fd := range m.held {
		if released(name, held) {
			closeAll(fd)
			delete(m.held, held)
		}
	}
	m.tell(verbRelease+" "+name, -1)
}

// tell sends a message to the keeper. It waits in a queue while the keeper does not read.
func (m *Monitor) tell(text string, fd int) {
	if len(m.unsent) == 0 {
		if !isBusy(sendMessage(linkFD, text, fd)) {
			return // a keeper that has exited is noticed by the loop
		}
	}
	if fd >= 0 {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			logf("keep %s: %v", text, err)
			return
		}
		fd = dup
	}
	m.unsent = append(m.unsent, message{text, fd})
	m.loop.change(m.linked, unix.EPOLLIN|unix.EPOLLOUT)
}

// keeperReady sends what waits, and notices the death of the keeper.
func (m *Monitor) keeperReady(events uint32) {
	for len(m.unsent) > 0 && events&unix.EPOLLOUT != 0 {
		next := m.unsent[0]
		if isBusy(sendMessage(linkFD, next.text, next.fd)) {
			break
		}
		closeAll(next.fd)
		m.unsent = m.unsent[1:]
	}
	if len(m.unsent) == 0 {
		m.unsent = nil
		m.loop.change(m.linked, unix.EPOLLIN)
	}
	var buf [maxMessage]byte
	text, fd, err := receiveMessage(linkFD, buf[:])
	closeAll(fd)
	switch {
	case errors.Is(err, unix.EAGAIN):
	case text == verbPong:
		m.asked = 0
	case err != nil:
		m.becomeKeeper()
	default:
		logf("unexpected message of the keeper: %q", text)
	}
}

// becomeKeeper replaces this process by a keeper, which starts a monitor. It returns only if that is not possible now. The loop tries
// again.
func (m *Monitor) becomeKeeper() {
	logf("the keeper has exited: becoming the keeper")
	h := handover{lock: lockFD, link: -1, pidfd: -1, held: m.held}
	err := h.execute(self, m.o.arguments(roleKeeper))
	logf("become the keeper: %v", err)
	<-time.After(maxBackoff) // without a keeper nothing must be done that cannot be recovered
}

// keeperPID returns the process ID of the keeper.
func keeperPID() int { return os.Getppid() }

// checkKeeper asks the keeper for an answer. One that does not respond is continued (SIGCONT), in case it is stopped, and then killed: this
// process becomes the keeper.
func (m *Monitor) checkKeeper() {
	m.loop.after(keeperCheck, m.checkKeeper)
	switch m.asked++; m.asked {
	case 1:
		m.tell(verbPing, -1)
	case 2:
		m.signalKeeper(unix.SIGCONT)
	case 7:
		m.signalKeeper(unix.SIGKILL)
		m.asked = 0
	}
}

// signalKeeper sends a signal to a keeper that does not respond.
func (m *Monitor) signalKeeper(s unix.Signal) {
	fd, err := openKeeper()
	if err == nil {
		err = errors.Join(unix.PidfdSendSignal(fd, s, nil, 0), unix.Close(fd))
	}
	text := fmt.Sprintf("the keeper does not respond, sent %v", unix.SignalName(s))
	if err != nil {
		text = fmt.Sprintf("the keeper does not respond: %v", err)
	}
	logf("%s", text)
	m.report(Event{Kind: EventFailed, Message: text})
}

// openKeeper returns a pidfd of the keeper: the parent of this process, which has created their connection. After the death of the keeper
// the parent is another process.
func openKeeper() (int, error) {
	peer, err := unix.GetsockoptUcred(linkFD, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	pid := keeperPID()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, err
	}
	if pid != int(peer.Pid) || keeperPID() != pid {
		return -1, errors.Join(unix.ESRCH, unix.Close(fd))
	}
	return fd, nil
}

// handleSignals passes signals to the loop.
func (m *Monitor) handleSignals(signals chan os.Signal) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for {
			select {
			case s := <-signals:
				if s == unix.SIGTERM || s == unix.SIGINT {
					m.loop.post(m.terminate)
				}
			case <-children:
				m.loop.post(m.sweep)
			}
		}
	}()
}

// terminate stops the monitor when no container runs. systemd signals the whole cgroup when the host shuts down, and the monitor must
// outlive the containers to receive their last output and their exit codes.
func (m *Monitor) terminate() {
	m.stopping = true
	m.stopIfIdle()
}

func (m *Monitor) stopIfIdle() {
	if !m.stopping || m.flights.any() {
		return
	}
	for _, c := range m.containers {
		if c.rec.Phase != Exited || !c.reported {
			return
		}
	}
	m.stop()
}

// leave stops the monitor if it is not used for a while. It is called when a client disconnects or a container is removed.
func (m *Monitor) leave() {
	m.left = time.Now()
	if !m.leaving {
		m.leaving = true
		m.loop.after(m.unusedTime(), m.checkUse)
	}
}

func (m *Monitor) unusedTime() time.Duration { return cmp.Or(m.o.unused, unusedTime) }

func (m *Monitor) checkUse() {
	m.leaving = false
	if len(m.connections) > 0 || len(m.containers) > 0 || isReadable(m.held[listenName]) { // the last one: a client is connecting
		return // leave is called after that
	}
	left := m.unusedTime() - time.Since(m.left)
	if m.flights.any() || m.replacing {
		left = m.unusedTime()
	}
	if left > 0 {
		m.leaving = true
		m.loop.after(left, m.checkUse)
		return
	}
	logf("no client and no container for %v: the monitor stops", m.unusedTime())
	m.stop()
}

// stop stops the monitor and the keeper. Records stay. The next monitor replaces none, therefore it counts from 1.
func (m *Monitor) stop() {
	for _, name := range []string{Socket, attach.Socket, countFile} {
		_ = os.Remove(filepath.Join(m.o.dir, name)) // a client gets ECONNREFUSED
	}
	m.tell(verbStop, -1)
	m.loop.stop()
}

// report emits an event, and keeps it for the first subscriber if there is none.
func (m *Monitor) report(e Event) {
	for c := range m.connections {
		if c.subscribed {
			m.emit(e)
			return
		}
	}
	if len(m.unreported) < maxUnreported {
		m.unreported = append(m.unreported, e)
	}
}

// serveRequests accepts clients.
func (m *Monitor) serveRequests() error {
	fd, has := m.held[listenName]
	if !has {
		var err error
		if fd, err = listen(m.o.dir); err != nil {
			return err
		}
		m.hold(listenName, fd)
	}
	_, err := m.loop.watch(fd, func(uint32) { m.accept(fd) })
	return err
}

// pauseAccept accepts no clients for a second after an error, such as too many open files.
func (m *Monitor) pauseAccept(err error) {
	logf("accept client: %v", err)
	fd := m.held[listenName]
	for t, w := range m.loop.watched {
		if w.fd == fd {
			m.loop.change(t, 0)
			m.loop.after(time.Second, func() { m.loop.change(t, unix.EPOLLIN) })
		}
	}
}

// serveAttach serves clients that attach to containers.
func (m *Monitor) serveAttach() error {
	fd, has := m.held[attachName]
	if !has {
		l, err := attach.Listen(filepath.Join(m.o.dir, attach.Socket))
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		f, err := l.File()
		if err != nil {
			return errors.Join(err, l.Close())
		}
		fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err := errors.Join(err, f.Close(), l.Close()); err != nil {
			return err
		}
		m.hold(attachName, fd)
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(dup), attach.Socket)
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("serve attach clients: %w", err)
	}
	go func() {
		if err := m.attached.Serve(l.(*net.UnixListener)); err != nil {
			logf("serve attach clients: %v", err)
		}
	}()
	return nil
}

// touch returns unused memory to the kernel when nothing happens for a while.
func (m *Monitor) touch() {
	m.active = time.Now()
	if m.calm {
		return
	}
	m.calm = true
	m.loop.after(calmTime, m.checkCalm)
}

func (m *Monitor) checkCalm() {
	m.calm = false
	if left := calmTime - time.Since(m.active); left > 0 {
		m.calm = true
		m.loop.after(left, m.checkCalm)
		return
	}
	var stats debug.GCStats
	if debug.ReadGCStats(&stats); stats.NumGC == m.collections {
		return
	}
	debug.FreeOSMemory() // collects
	debug.ReadGCStats(&stats)
	m.collections = stats.NumGC
}

// flights are the runs of the OCI runtime, and what follows until the process that one has started is registered. A child that exits
// meanwhile may be such a process. It is safe for concurrent use.
type flights struct {
	mu     sync.Mutex
	last   int
	births map[int]uint64 // the time before which the process of a flight did not exist, as proc.Stat.Start
}

// begin begins a flight. The caller calls end.
func (f *flights) begin() (end func()) {
	now, err := bootTicks()
	if err != nil {
		now = 0
	}
	return f.beginAt(now)
}

// beginAt begins a flight whose process may have existed since a time; 0: since ever.
func (f *flights) beginAt(now uint64) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	n := f.last
	if f.births == nil {
		f.births = map[int]uint64{}
	}
	f.births[n] = now
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.births, n)
	}
}

// any reports whether there is a flight.
func (f *flights) any() bool {
	_, some := f.oldest()
	return some
}

// oldest returns the time before which no process of a flight existed.
func (f *flights) oldest() (birth uint64, some bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.births {
		if !some || b < birth {
			birth, some = b, true
		}
	}
	return birth, some
}
