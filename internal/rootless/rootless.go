package rootless

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/forwarder"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/record"
)

// variable is the environment variable of a daemon in the namespaces. Its value is the descriptor of the lock.
const variable = "PODSTEAD_ROOTLESS_LOCK"

const (
	recordFile = "namespaces.json"
	lockName   = "namespaces.lock"
	// tokenFile is in the directory for runtime state of the engine.
	tokenFile = "namespaces"
	// lockTimeout bounds the time in which other processes create or remove the namespaces.
	lockTimeout = time.Minute
	// programTimeout bounds newuidmap, newgidmap and the start of pasta.
	programTimeout = 20 * time.Second
	// exitTimeout bounds the exit of what the daemon has killed.
	exitTimeout = 5 * time.Second
)

// Error is an error that a person can do something about.
type Error struct{ Message, Hint string }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Namespaces are the namespaces of a daemon without root.
type Namespaces struct {
	StateDir, RunDir, LogDir string
	// Holder is the path of the program of package applet.
	Holder string
	// Args are the arguments of the program in the namespaces. Its working directory is the root directory.
	Args []string
	// Inherit are the descriptors that the program in the namespaces inherits with the standard ones.
	Inherit []int
	// Warn is called with what limits pods; nil: nothing is reported.
	Warn func(message string)

	held int // the descriptor of the lock that Enter has passed; 0: none
}

// names is the content of namespaces.json.
type names struct {
	BootID string `json:"bootID"`
	// RunDir is the runtime directory of the daemons in the namespaces, and Token the content of the file [tokenFile] in it. They have been
	// removed together with all that the daemon and the monitor know of containers if the token is another one.
	RunDir string  `json:"runDir,omitempty"`
	Token  string  `json:"token,omitempty"`
	Holder process `json:"holder"`
	Pasta  process `json:"pasta"` // none: there is no way out of the network namespace
	// PastaError is why pasta could not be started at PastaTried. Empty: it was.
	PastaError string    `json:"pastaError,omitempty"`
	PastaTried time.Time `json:"pastaTried,omitzero"`
	// Forwarder is the first process of package forwarder, ForwarderError why it could not be started at ForwarderTried.
	Forwarder      process   `json:"forwarder,omitzero"`
	ForwarderError string    `json:"forwarderError,omitempty"`
	ForwarderTried time.Time `json:"forwarderTried,omitzero"`
	// HandsOver is true for a forwarder that another build can replace. That of an earlier version is killed.
	HandsOver bool `json:"forwarderHandsOver,omitempty"`
}

// Inside reports whether this process was started by [Namespaces.Enter]: it has the variable, and is in a user namespace that maps a part
// of all IDs. The variable alone can come from the environment of a container or of a user.
func Inside() bool { return inside() }

// inside is evaluated before [Namespaces.Entered] removes the variable.
var inside = sync.OnceValue(func() bool {
	if os.Getenv(variable) == "" {
		return false
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	const all = 1<<32 - 2 // the last ID in the first user namespace
	return err == nil && proc.LastMapped(string(text)) < all
})

// User returns the ID outside of the namespaces of the user who is root in them, for a process that is [Inside].
func User() int { return proc.UIDOutside(0) }

// Entered is called first by a daemon in the namespaces, before it starts a process, which would inherit the lock and the variable.
func (n *Namespaces) Entered() error {
	fd, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return fmt.Errorf("%s=%d: %w", variable, fd, err)
	}
	n.held = fd
	return os.Unsetenv(variable)
}

// unlock releases the lock that Enter has passed.
func (n *Namespaces) unlock() {
	if n.held != 0 {
		_ = errors.Join(unix.Flock(n.held, unix.LOCK_UN), unix.Close(n.held)) // it was locked
		n.held = 0
	}
}

// Enter executes this program with [Namespaces.Args] in the namespaces, which it creates if there are none. It returns on errors only. The
// program that it executes calls [Namespaces.Entered] and [Namespaces.Keep].
func (n *Namespaces) Enter(ctx context.Context) error {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return &Error{"enter namespaces: nsenter: not found", "install it (Debian: apt-get install util-linux)"}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	// The directories of the user must exist: those on the path in the namespaces are the same ones. Containers, as other users, pass
	// through the state directory. No other user reads logs.
	const private = 0o700
	if err := errors.Join(os.MkdirAll(filepath.Dir(n.StateDir), private), mkdir(n.StateDir, 0o711), os.MkdirAll(n.LogDir, private),
		os.MkdirAll(n.RunDir, private), os.MkdirAll(n.engineRun(), private)); err != nil {
		return fmt.Errorf("enter namespaces: %w", err)
	}
	if err := closeOnExec(); err != nil {
		return fmt.Errorf("enter namespaces: %w", err)
	}
	lock, err := n.lock(ctx)
	if err != nil {
		return fmt.Errorf("enter namespaces: %w", err)
	}
	defer unix.Close(lock)
	anchor, err := n.anchor(ctx)
	if err != nil {
		return err
	}
	args := []string{
		"nsenter", "--target", strconv.Itoa(anchor.PID), "--user", "--mount", "--net", "--preserve-credentials", "--", program,
	}
	for _, fd := range append(n.Inherit, lock) {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("enter namespaces: %w", err)
		}
	}
	err = syscall.Exec(nsenter, append(args, n.Args...), append(os.Environ(), variable+"="+strconv.Itoa(lock)))
	return fmt.Errorf("enter namespaces: execute %s: %w", nsenter, err)
}

// closeOnExec keeps descriptors of the caller, such as that of a lock of a shell, from the processes that stay.
func closeOnExec() error {
	const first = 3 // after the standard ones
	err := unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) { // before Linux 5.9 and 5.11
		return nil
	}
	return err
}

// mkdir makes a directory, unless it exists.
func mkdir(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// lock locks the record. The caller closes the descriptor.
func (n *Namespaces) lock(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if fd, err := n.tryLock(); err != nil || fd >= 0 {
			return fd, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return -1, fmt.Errorf("lock %s: another process holds it for more than %v", n.lockPath(), lockTimeout)
		}
	}
}

func (n *Namespaces) lockPath() string { return filepath.Join(n.StateDir, lockName) }

// tryLock locks the record. The descriptor is negative if another process holds the lock.
func (n *Namespaces) tryLock() (int, error) {
	path := n.lockPath()
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		return -1, unix.Close(fd)
	}
	return -1, errors.Join(fmt.Errorf("lock %s: %w", path, err), unix.Close(fd))
}

// anchor returns a process in the namespaces. The caller holds the lock.
func (n *Namespaces) anchor(ctx context.Context) (process, error) {
	r, err := n.read()
	if err != nil {
		return process{}, err
	}
	a := n.find(r)
	if a == (process{}) {
		if err := n.checkElsewhere(r); err != nil {
			return process{}, err
		}
		if err := n.clear(ctx, r); err != nil {
			return process{}, fmt.Errorf("end the pods of namespaces that are lost: %w", err)
		}
		if a, err = n.create(ctx); err != nil {
			return process{}, err
		}
		r = names{BootID: r.BootID, RunDir: n.RunDir, Token: rand.Text(), Holder: a}
		// Before anything else is started, which would be lost with a crash. Without the token the next start kills the holder.
		err := n.write(r)
		if err == nil {
			err = n.mark(r.Token)
		}
		if err != nil {
			return process{}, errors.Join(err, a.kill())
		}
	}
	return a, n.connect(ctx, r, a)
}

// connect starts pasta and the forwarder for a process in the namespaces, if they do not run. The caller holds the lock.
func (n *Namespaces) connect(ctx context.Context, r names, anchor process) error {
	before := r
	n.connectPasta(ctx, &r, anchor)
	n.connectForwarder(ctx, &r, anchor)
	if r == before {
		return nil
	}
	if err := n.write(r); err != nil { // such as of a full disk: pods run without it, and the processes are found by their arguments
		n.warn(err.Error())
	}
	return nil
}

// connectForwarder starts the forwarder for a process in the namespaces, if none of its processes runs: a worker has all ports, and serves
// the daemon alone. It replaces one whose socket was removed, since no daemon can connect to it, and one that cannot leave its ports to
// another build.
func (n *Namespaces) connectForwarder(ctx context.Context, r *names, anchor process) {
	if n.forwarder(*r) != (process{}) {
		return
	}
	before := r.ForwarderError
	r.ForwarderError, r.ForwarderTried = "", time.Time{}
	err := n.endForwarder(ctx)
	if err == nil {
		r.Forwarder, err = n.startForwarder(ctx, anchor)
		r.HandsOver = true
	}
	if err != nil {
		r.ForwarderError, r.ForwarderTried = err.Error(), time.Now()
		if r.ForwarderError != before {
			n.warn("pods have no host ports: " + r.ForwarderError)
		}
	}
}

// connectPasta starts pasta for a process in the namespaces, if it does not run.
func (n *Namespaces) connectPasta(ctx context.Context, r *names, anchor process) {
	if r.Pasta.runs() {
		return
	}
	before := r.PastaError
	r.PastaError, r.PastaTried = "", time.Time{}
	if r.Pasta = n.runningPasta(); r.Pasta == (process{}) {
		var err error
		if r.Pasta, err = n.startPasta(ctx, anchor); err != nil {
			r.PastaError = err.Error()
			if r.PastaError != before {
				n.warn("pods have no way out of this host: " + r.PastaError)
			}
			if !errors.Is(err, ErrNoPasta) { // the next command looks for it again
				r.PastaTried = time.Now()
			}
		}
	}
}

// retryInterval is the least time between two starts of pasta or the forwarder by [Namespaces.Reconnect] if the first one has failed.
const retryInterval = 30 * time.Second

// Reconnect starts pasta and the forwarder if they do not run and the namespaces exist: the start has failed before, such as without a
// network, or they were killed. A daemon cannot do that, because it is in the network namespace. It does nothing if another process has the
// lock, or if the last try was a short time ago. It moves them to the scope of the pods, see [Namespaces.Delegate].
func (n *Namespaces) Reconnect(ctx context.Context, dir string) error {
	if r, err := n.read(); err != nil || !n.lacks(r, time.Now()) {
		return err
	}
	lock, err := n.tryLock()
	if err != nil || lock < 0 {
		return err
	}
	defer unix.Close(lock)
	r, err := n.read()
	if err != nil || !n.lacks(r, time.Now()) {
		return err
	}
	if err := closeOnExec(); err != nil {
		return err
	}
	err = n.connect(ctx, r, n.find(r))
	n.attachOutlets(ctx, dir)
	return err
}

// lacks reports whether a start of pasta or the forwarder is due.
func (n *Namespaces) lacks(r names, now time.Time) bool {
	due := func(tried time.Time) bool {
		wait := retryInterval - now.Sub(tried)
		return wait <= 0 || wait > retryInterval
	}
	lacks := due(r.PastaTried) && !r.Pasta.runs() ||
		due(r.ForwarderTried) && n.forwarder(r) == (process{})
	return lacks && n.find(r) != (process{})
}

// forwarder returns a process of the forwarder. None: it does not run, daemons cannot connect to it, since its socket was removed, or it is
// that of an earlier version.
func (n *Namespaces) forwarder(r names) process {
	socket := forwarder.Socket(n.RunDir)
	if _, err := os.Lstat(socket); errors.Is(err, fs.ErrNotExist) || r.Forwarder.runs() && !r.HandsOver {
		return process{}
	}
	if r.Forwarder.runs() {
		return r.Forwarder
	}
	all := n.forwarders()
	if len(all) == 0 || !forwarder.Serves(socket) {
		return process{}
	}
	return slices.MaxFunc(all, func(a, b process) int { return cmp.Compare(a.Start, b.Start) }) // earlier ones have left their ports
}

// Outlet describes a process that connects the network namespace with the host: pasta or the forwarder.
type Outlet struct {
	Needed bool   // the namespaces exist
	PID    int    // 0: it does not run
	Error  string // why it could not be started; empty if it was not tried, or has exited
}

// Forwarder returns the state of the forwarder of host ports.
func (n *Namespaces) Forwarder() (Outlet, error) {
	r, err := n.read()
	if err != nil {
		return Outlet{}, err
	}
	return Outlet{Needed: n.find(r) != (process{}), Error: r.ForwarderError, PID: n.forwarder(r).PID}, nil
}

// Outlet returns the state of pasta.
func (n *Namespaces) Outlet() (Outlet, error) {
	r, err := n.read()
	if err != nil {
		return Outlet{}, err
	}
	o := Outlet{Needed: n.find(r) != (process{}), Error: r.PastaError}
	if r.Pasta.runs() {
		o.PID = r.Pasta.PID
	}
	return o, nil
}

// checkElsewhere returns an error if the namespaces are in use with another runtime directory that exists, or if the runtime directory is
// in use with another state directory, such as that of a home directory that is not mounted. Pods there would be killed.
func (n *Namespaces) checkElsewhere(r names) error {
	if state := readToken(n.engineRun()).state(); state != "" && state != stateID(n.StateDir) && len(n.monitors()) > 0 {
		used, _, _ := strings.Cut(state, "\n")
		message := fmt.Sprintf("enter namespaces: the pods in the runtime directory %s have the state directory %s", n.RunDir, used)
		if used == n.StateDir {
			message += ", which is another directory now"
		}
		return &Error{
			message, "mount it or set XDG_DATA_HOME to the directory above it; to end its pods, run podstead daemon stop --pods with that",
		}
	}
	if r.RunDir == "" || r.RunDir == n.RunDir || !r.hasToken() {
		return nil
	}
	other := &Namespaces{StateDir: n.StateDir, RunDir: r.RunDir}
	if other.find(r) == (process{}) {
		return nil
	}
	return &Error{
		fmt.Sprintf("enter namespaces: the pods in %s run with the runtime directory %s, not %s", n.StateDir, r.RunDir, n.RunDir),
		fmt.Sprintf("set XDG_RUNTIME_DIR to %s, or first run podstead daemon stop --pods with that", filepath.Dir(r.RunDir)),
	}
}

func (n *Namespaces) warn(message string) {
	if n.Warn != nil {
		n.Warn(message)
	}
}

// find returns a process in the namespaces of the record: the holder or, if it was killed, the keeper or the monitor of containers. It
// returns none if there is no such process, or if its runtime directory is lost: systemd removes that of a user who has logged out, and
// mounts another one after the next login, which the mount namespace of the holder receives.
func (n *Namespaces) find(r names) process {
	if r.RunDir != n.RunDir || !r.hasToken() {
		return process{}
	}
	isAnchor := func(p process) bool { return p.runs() && p.namespace("user") != "" && n.hasRunDir(p) && p.runs() }
	if isAnchor(r.Holder) { // before all processes of the host are searched for others
		return r.Holder
	}
	all := n.monitors()
	if i := slices.IndexFunc(all, isAnchor); i >= 0 {
		return all[i]
	}
	return process{}
}

// hasToken reports whether the runtime directory of the record is the one with which the namespaces were created.
func (r names) hasToken() bool {
	return r.Token != "" && readToken((&Namespaces{RunDir: r.RunDir}).engineRun()).value() == r.Token
}

// token is the text of the file [tokenFile]: the token, and the state directory with its identity.
type token string

func readToken(dir string) token {
	text, _ := os.ReadFile(filepath.Join(dir, tokenFile)) // without the file there is no token
	return token(text)
}

// value is the token.
func (t token) value() string {
	value, _, _ := strings.Cut(string(t), "\n")
	return value
}

// state is the [stateID] of the state directory.
func (t token) state() string {
	_, state, _ := strings.Cut(string(t), "\n")
	return state
}

// mark writes the token to the directory for runtime state.
func (n *Namespaces) mark(value string) error {
	return atomicfile.Write(filepath.Join(n.engineRun(), tokenFile), []byte(value+"\n"+stateID(n.StateDir)), 0o600)
}

// stateID returns the path of a directory, and the device and the inode of what is there. A file system that is mounted there later has
// others.
func stateID(dir string) string {
	var st unix.Stat_t
	_ = unix.Stat(dir, &st) // Enter has made it
	return fmt.Sprintf("%s\n%d %d", dir, st.Dev, st.Ino)
}

// hasRunDir reports whether the run directory of a process is that of this one.
func (n *Namespaces) hasRunDir(p process) bool {
	own, err := os.Stat(n.RunDir)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(filepath.Join(p.path("root"), n.RunDir))
	return err == nil && os.SameFile(own, theirs)
}

// engineRun is the directory for runtime state of the engine.
func (n *Namespaces) engineRun() string { return record.Dirs{Run: n.RunDir}.EngineRun() }

// monitorState is the state directory of the monitor.
func (n *Namespaces) monitorState() string { return engine.MonitorDir(n.engineRun()) }

// monitors returns the keepers and monitors, which are in another user namespace than this process. A container can start a process with
// their arguments, but not in the PID namespace of the host.
func (n *Namespaces) monitors() []process {
	own := process{PID: os.Getpid()}.namespace("user")
	return slices.DeleteFunc(n.allMonitors(), func(p process) bool { return p.namespace("user") == own })
}

// monitorsIn returns the keepers and monitors in a user namespace.
func (n *Namespaces) monitorsIn(name string) []process {
	return slices.DeleteFunc(n.allMonitors(), func(p process) bool { return p.namespace("user") != name })
}

func (n *Namespaces) allMonitors() (found []process) {
	pids := process{PID: os.Getpid()}.namespace("pid")
	for _, pid := range monitor.Processes(n.monitorState()) {
		if p := processOf(pid); p.PID != 0 && p.namespace("pid") == pids {
			found = append(found, p)
		}
	}
	return found
}

// forwarders returns the processes of the forwarder. A container can start a process with their arguments, but not in the PID namespace of
// the host. The first one is in the user namespace of the host, so a process in these namespaces may not inspect it, but knows its user.
func (n *Namespaces) forwarders() (found []process) {
	pids := process{PID: os.Getpid()}.namespace("pid")
	for _, pid := range forwarder.Processes(forwarder.Socket(n.RunDir)) {
		p := processOf(pid)
		if p.PID == 0 {
			continue
		}
		in := p.namespace("pid")
		var st unix.Stat_t
		if in == pids || in == "" && unix.Stat(p.path(""), &st) == nil && int(st.Uid) == os.Geteuid() {
			found = append(found, p)
		}
	}
	return found
}

// endForwarder kills the processes of the forwarder.
func (n *Namespaces) endForwarder(ctx context.Context) error {
	return killAll(ctx, func() ([]process, error) { return n.forwarders(), nil })
}

// clear ends what earlier namespaces have left: all processes in the user namespaces of the holder, the keeper and the monitor, or else
// containers by the records of their monitor. A daemon in new namespaces could not reach them, and its containers would use the same
// volumes.
func (n *Namespaces) clear(ctx context.Context, r names) error {
	dirs := []*Namespaces{n}
	if r.RunDir != "" && r.RunDir != n.RunDir {
		dirs = append(dirs, &Namespaces{StateDir: n.StateDir, RunDir: r.RunDir})
	}
	left := map[int]uint64{}
	anchors := []process{r.Holder}
	for _, d := range dirs {
		maps.Copy(left, monitor.FirstProcesses(d.monitorState()))
		anchors = append(anchors, d.monitors()...)
	}
	own := process{PID: os.Getpid()}.namespace("user")
	for _, a := range anchors {
		ns, err := userNamespaceOf(a)
		if err != nil { // it has exited, or is another process
			continue
		}
		defer ns.close()
		if name := a.namespace("user"); name == "" || name == own || !a.runs() {
			continue
		}
		if err := killAll(ctx, ns.processes); err != nil {
			return err
		}
	}
	for _, d := range dirs { // they would start others
		if err := d.endForwarder(ctx); err != nil {
			return err
		}
		if err := killAll(ctx, func() ([]process, error) { return d.monitors(), nil }); err != nil {
			return err
		}
	}
	err := killAll(ctx, func() (running []process, err error) {
		for pid, start := range left {
			if p := (process{pid, start}); p.runs() {
				running = append(running, p)
			}
		}
		return running, nil
	})
	return errors.Join(err, r.Pasta.killIfRuns(), n.runningPasta().killIfRuns())
}

func (p process) killIfRuns() error {
	if !p.runs() {
		return nil
	}
	return p.kill()
}

// Keep is called by a daemon in the namespaces when it has the lock of its engine. It starts a holder if there is none, and releases the
// lock that [Namespaces.Enter] has passed.
func (n *Namespaces) Keep(ctx context.Context) error {
	defer n.unlock()
	r, err := n.read()
	if err != nil || r.Holder.runs() {
		return err
	}
	if r.Holder, err = n.hold(ctx); err != nil {
		return err
	}
	if err := n.write(r); err != nil { // such as of a full disk: the next daemon would not find it, and finds the monitor
		n.warn(err.Error())
		return r.Holder.kill()
	}
	return nil
}

// Release removes the namespaces if neither a container nor another daemon uses them. A daemon in them calls it when its engine is closed:
// they exist until it exits. They stay if another process is in them: it can be that of a container whose record is lost, which only the
// next start can kill, by them.
func (n *Namespaces) Release(ctx context.Context) error {
	n.unlock() // the engine did not start
	lock, err := n.lock(ctx)
	if err != nil {
		return err
	}
	defer unix.Close(lock)
	if used, err := monitor.InUse(n.monitorState()); used || err != nil {
		return err
	}
	switch engineLock, err := os.Open(engine.LockPath(record.Dirs{State: n.StateDir}.Engine())); {
	case err == nil:
		defer engineLock.Close()
		if unix.Flock(int(engineLock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			return nil // another daemon has it
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	r, err := n.read()
	if err != nil {
		return err
	}
	if used, err := n.usedByOthers(ctx, r); used || err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(n.StateDir, recordFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(n.endForwarder(ctx), r.Pasta.killIfRuns(), r.Holder.killIfRuns())
}

// usedByOthers reports whether processes are in the user namespace of this one that are no part of the daemon. Those that are about to exit
// get a time for that.
func (n *Namespaces) usedByOthers(ctx context.Context, r names) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, exitTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	self := processOf(os.Getpid())
	ns, err := userNamespaceOf(self)
	if err != nil {
		return false, err
	}
	defer ns.close()
	for {
		all, err := ns.processes()
		if err != nil {
			return false, err
		}
		parts := append(n.monitorsIn(self.namespace("user")), self, r.Holder, r.Pasta)
		parts = append(parts, n.forwarders()...)
		if !slices.ContainsFunc(all, func(p process) bool { return !slices.Contains(parts, p) }) {
			return false, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return true, nil
		}
	}
}

// read reads the record. That of an earlier boot, or one that cannot be read, has no processes.
func (n *Namespaces) read() (names, error) {
	boot, err := proc.BootID()
	if err != nil {
		return names{}, err
	}
	var r names
	text, err := os.ReadFile(filepath.Join(n.StateDir, recordFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err != nil || json.Unmarshal(text, &r) != nil || r.BootID != boot {
		r = names{}
	}
	r.BootID = boot
	return r, nil
}

func (n *Namespaces) write(r names) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = atomicfile.Write(filepath.Join(n.StateDir, recordFile), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record namespaces: %w", err)
	}
	return nil
}
