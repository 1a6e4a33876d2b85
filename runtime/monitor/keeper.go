package monitor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

const (
	// handoverVariable is the number of the descriptor from which a keeper that was executed in place reads what it keeps.
	handoverVariable = "PODSTEAD_MONITOR_HANDOVER"
	// quickDeaths is how many deaths of monitors in deathWindow are not delayed. maxBackoff bounds the delay of further starts.
	quickDeaths = 5
	deathWindow = 10 * time.Second
	maxBackoff  = time.Second
	// stuckCheck is the interval at which the keeper looks for a monitor that was killed and cannot exit: a thread waits for a disk.
	stuckCheck = 5 * time.Second
	// giveTimeout bounds the wait for a monitor that does not receive its descriptors.
	giveTimeout = 30 * time.Second
)

// self is the running program, also if its file was replaced or removed.
const self = "/proc/self/exe"

// keeper starts the monitor, and keeps descriptors and zombies for the next one. It has one goroutine.
type keeper struct {
	o       options
	lock    int
	held    map[string]int
	link    int // to the monitor; -1: none
	monitor int // process ID
	pidfd   int // of the monitor
	stop    bool
	stuck   []int // process IDs of monitors that were killed and have not exited
	deaths  []time.Time
	buf     [maxMessage]byte
}

func runKeeper(o options) error {
	k := &keeper{o: o, held: map[string]int{}, link: -1, pidfd: -1, lock: -1}
	if fd := os.Getenv(handoverVariable); fd != "" {
		if err := k.takeOver(fd); err != nil {
			return fmt.Errorf("take over from the keeper before: %w", err)
		}
	} else if err := k.acquire(); err != nil {
		return err
	}
	debug.FreeOSMemory()
	for {
		if k.link < 0 {
			if err := k.start(); err != nil {
				logf("keeper: start monitor: %v", err)
				<-time.After(maxBackoff)
				continue
			}
		}
		if err := k.wait(); err != nil {
			return err
		}
		if k.stop && k.link < 0 {
			return nil
		}
	}
}

// acquire creates the state directory and locks it.
func (k *keeper) acquire() error {
	if err := os.MkdirAll(k.o.dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(k.o.dir, lockFile)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("lock %s: another keeper runs: %w", path, err), unix.Close(fd))
	}
	k.lock = fd
	return nil
}

// start starts a monitor.
func (k *keeper) start() error {
	_ = unix.Futimes(k.lock, nil) // now; see Free
	if wait := backoff(k.deaths, time.Now()); wait > 0 {
		<-time.After(wait)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("create connection: %w", err)
	}
	defer closeAll(pair[1])
	pidfd := -1
	pid, err := syscall.ForkExec(self, k.o.arguments(roleMonitor), &syscall.ProcAttr{
		Env: environment(-1), Files: []uintptr{0, 1, 2, linkFD: uintptr(pair[1]), lockFD: uintptr(k.lock)},
		Sys: &syscall.SysProcAttr{PidFD: &pidfd},
	})
	if err == nil && pidfd < 0 {
		pidfd, err = unix.PidfdOpen(pid, 0)
	}
	if err != nil {
		closeAll(pair[0])
		return err
	}
	k.link, k.monitor, k.pidfd = pair[0], pid, pidfd
	return nil
}

// backoff returns how long the next start waits, after these deaths.
func backoff(deaths []time.Time, now time.Time) time.Duration {
	recent := 0
	for _, d := range deaths {
		if now.Sub(d) < deathWindow {
			recent++
		}
	}
	if recent < quickDeaths {
		return 0
	}
	return min(maxBackoff, time.Duration(1<<min(recent-quickDeaths, 8))*10*time.Millisecond)
}

// arguments returns the arguments for another role.
func (o options) arguments(role string) []string {
	args := []string{Name, role, "-state", o.dir, "-score", strconv.Itoa(*o.score)}
	if o.unused > 0 { // a program of an earlier version does not know it
		args = append(args, "-unused", o.unused.String())
	}
	return args
}

// environment returns the environment, with a handover in this descriptor; negative: none.
func environment(handover int) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, handoverVariable+"=") {
			env = append(env, v)
		}
	}
	if handover >= 0 {
		env = append(env, handoverVariable+"="+strconv.Itoa(handover))
	}
	return env
}

// wait handles messages of the monitor, and its death.
func (k *keeper) wait() error {
	poll := []unix.PollFd{{Fd: int32(k.link), Events: unix.POLLIN}, {Fd: int32(k.pidfd), Events: unix.POLLIN}}
	n, err := retry(func() (int, error) { return unix.Poll(poll, int(stuckCheck/time.Millisecond)) })
	if err != nil {
		return fmt.Errorf("wait for monitor: %w", err)
	}
	k.stuck = slices.DeleteFunc(k.stuck, func(pid int) bool {
		info, err := wait(unix.P_PID, pid, 0)
		return err != nil || info.pid != 0
	})
	if n == 0 {
		if isStuck(k.monitor) {
			k.died()
		}
		return nil
	}
	closed := k.receive()
	if poll[1].Revents == 0 {
		if closed { // a monitor that has closed the connection and does not exit is none
			if err := unix.PidfdSendSignal(k.pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill monitor: %w", err)
			}
			if err := k.awaitExit(); err != nil {
				return err
			}
			k.died()
		}
		return nil
	}
	k.receive() // what it has sent meanwhile
	k.died()
	return nil
}

// awaitExit returns when a monitor that was killed has exited, or cannot exit.
func (k *keeper) awaitExit() error {
	poll := []unix.PollFd{{Fd: int32(k.pidfd), Events: unix.POLLIN}}
	for {
		n, err := retry(func() (int, error) { return unix.Poll(poll, int(stuckCheck/time.Millisecond)) })
		if err != nil {
			return fmt.Errorf("wait for monitor: %w", err)
		}
		if n > 0 || isStuck(k.monitor) {
			return nil
		}
	}
}

// isStuck reports whether a process was killed and cannot exit: its first thread, which runs the loop and waits for no disk, has exited.
// All of its threads have been killed then, so they change nothing when they continue.
func isStuck(pid int) bool {
	s, err := proc.StatOf(pid)
	return err == nil && s.State == 'Z'
}

// died reaps the monitor, if it has exited.
func (k *keeper) died() {
	info, err := wait(unix.P_PID, k.monitor, 0)
	switch {
	case k.stop:
	case err != nil || info.pid == 0:
		logf("keeper: monitor %d was killed, but waits for a disk: starting another one (%v)", k.monitor, err)
		k.stuck = append(k.stuck, k.monitor)
	default:
		logf("keeper: monitor %d exited with code %d: starting it again", k.monitor, info.exitCode())
	}
	closeAll(k.link, k.pidfd)
	k.link, k.pidfd, k.monitor = -1, -1, 0
	k.deaths = append(k.deaths, time.Now())
	if len(k.deaths) > 2*quickDeaths {
		k.deaths = k.deaths[1:]
	}
}

// receive handles all messages that have arrived. It reports whether the monitor has closed the connection.
func (k *keeper) receive() (closed bool) {
	for {
		text, fd, err := receiveMessage(k.link, k.buf[:])
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false
		case errors.Is(err, errLinkClosed):
			return true
		case err != nil:
			logf("keeper: message of monitor: %v", err)
			closeAll(fd)
			return true
		}
		k.handle(text, fd)
	}
}

func (k *keeper) handle(text string, fd int) {
	verb, argument, _ := strings.Cut(text, " ")
	if verb == verbHold && fd >= 0 {
		if old, has := k.held[argument]; has {
			closeAll(old)
		}
		k.held[argument] = fd
		return
	}
	closeAll(fd)
	switch verb {
	case verbRelease:
		for name, held := range k.held {
			if released(argument, name) {
				closeAll(held)
				delete(k.held, name)
			}
		}
	case verbGive:
		if err := k.give(); err != nil {
			logf("keeper: give descriptors: %v", err)
		}
	case verbPing:
		_ = sendMessage(k.link, verbPong, -1) // a monitor that does not read asks again
	case verbReap:
		if pid, start, err := parseReap(argument); err == nil && isProcess(pid, start) {
			_, _ = wait(unix.P_PID, pid, 0) // fails if it is not a child
		}
	case verbUpgrade:
		logf("keeper: execute %s: %v", argument, k.upgrade(argument)) // returns on errors only
	case verbStop:
		k.stop = true
	default:
		logf("keeper: unknown message %q", verb)
	}
}

// give sends all descriptors to the monitor.
func (k *keeper) give() error {
	for name, fd := range k.held {
		if err := k.send(verbGave+" "+name, fd); err != nil {
			return err
		}
	}
	return k.send(verbGiven, -1)
}

// send sends a message to the monitor, which reads it unless it dies.
func (k *keeper) send(text string, fd int) error {
	for end := time.Now().Add(giveTimeout); ; {
		err := sendMessage(k.link, text, fd)
		if !isBusy(err) || time.Now().After(end) {
			return err
		}
		if errors.Is(err, unix.ETOOMANYREFS) { // the socket has room
			<-time.After(time.Millisecond)
		}
		poll := []unix.PollFd{{Fd: int32(k.link), Events: unix.POLLOUT}, {Fd: int32(k.pidfd), Events: unix.POLLIN}}
		if _, err := retry(func() (int, error) { return unix.Poll(poll, int(time.Second/time.Millisecond)) }); err != nil {
			return err
		}
		if poll[1].Revents != 0 {
			return errLinkClosed
		}
	}
}

// upgrade executes another program as keeper, with all that this one keeps.
func (k *keeper) upgrade(program string) error {
	h := handover{lock: k.lock, link: k.link, monitor: k.monitor, pidfd: k.pidfd, held: k.held}
	return h.execute(program, k.o.arguments(roleKeeper))
}

// takeOver reads what this keeper keeps.
func (k *keeper) takeOver(fd string) error {
	n, err := strconv.Atoi(fd)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(n), "handover")
	defer f.Close()
	h := handover{lock: -1, link: -1, pidfd: -1, held: map[string]int{}}
	if err := h.read(f); err != nil {
		return err
	}
	k.lock, k.link, k.monitor, k.pidfd, k.held = h.lock, h.link, h.monitor, h.pidfd, h.held
	return nil
}

// handover is what one keeper passes to the next one in the same process.
type handover struct {
	lock, link, monitor, pidfd int // -1: none; monitor is a process ID
	held                       map[string]int
}

// execute replaces this process by a keeper. It returns on errors only, and has changed nothing then.
func (h *handover) execute(program string, args []string) error {
	fd, err := unix.MemfdCreate("handover", 0)
	if err != nil {
		return fmt.Errorf("create handover: %w", err)
	}
	f := os.NewFile(uintptr(fd), "handover")
	defer f.Close()
	if _, err = f.Write(h.text()); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return fmt.Errorf("write handover: %w", err)
	}
	fds := h.descriptors()
	defer setInherited(fds, false)
	setInherited(fds, true)
	return execute(program, args, fd)
}

func (h *handover) descriptors() []int {
	fds := []int{h.lock, h.link, h.pidfd}
	for _, fd := range h.held {
		fds = append(fds, fd)
	}
	return fds
}

func setInherited(fds []int, inherited bool) {
	flag := unix.FD_CLOEXEC
	if inherited {
		flag = 0
	}
	for _, fd := range fds {
		if fd >= 0 {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flag) // fails only for a descriptor that is not open
		}
	}
}

// text is one line for each value.
func (h *handover) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "lock %d\nlink %d\nmonitor %d\npidfd %d\n", h.lock, h.link, h.monitor, h.pidfd)
	for name, fd := range h.held {
		fmt.Fprintf(&b, "held %d %s\n", fd, name)
	}
	return b.Bytes()
}

func (h *handover) read(f *os.File) error {
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 3)
		if len(fields) < 2 {
			return fmt.Errorf("line %q", lines.Text())
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			return fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if into := map[string]*int{"lock": &h.lock, "link": &h.link, "monitor": &h.monitor, "pidfd": &h.pidfd}[fields[0]]; into != nil {
			*into = n
		} else if len(fields) == 3 {
			h.held[fields[2]] = n
		}
	}
	setInherited(h.descriptors(), false)
	return lines.Err()
}
