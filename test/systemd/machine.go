package systemd

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bootTimeout = 2 * time.Minute
	diskSize    = 2 << 30 // a sparse file
)

//go:embed init.sh
var initScript []byte

// Machine is a systemd in namespaces, with a disk that outlasts it. It is not safe for concurrent use.
type Machine struct {
	dir, cgroup, repository string

	process *os.Process // nil while the machine is off
	ended   chan string // receives how process 1 ended
}

// New makes the disk of a machine in dir, an empty directory. The machine is off.
func New(ctx context.Context, dir, repository string) (*Machine, error) {
	m := &Machine{dir: dir, repository: repository, cgroup: "podstead-test-systemd-" + strconv.Itoa(os.Getpid())}
	if err := os.Mkdir(filepath.Join(dir, "root"), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "init.sh"), initScript, 0o600); err != nil {
		return nil, err
	}
	tree := filepath.Join(dir, "tree")
	if err := writeTree(tree); err != nil {
		return nil, fmt.Errorf("make disk: %w", err)
	}
	disk := filepath.Join(dir, "disk")
	f, err := os.Create(disk)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(diskSize), f.Close()); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", tree,
		disk).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("make disk: %w\n%s", err, out)
	}
	return m, os.RemoveAll(tree)
}

// Boot starts the machine and returns when it runs scripts.
func (m *Machine) Boot(ctx context.Context) error {
	if err := m.start(); err != nil {
		return fmt.Errorf("boot machine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for {
		out, err := m.Run(ctx, "true")
		if err == nil {
			return nil
		}
		select {
		case how := <-m.ended:
			m.ended <- how
			err = errors.New(how)
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
			continue
		}
		console, _ := os.ReadFile(filepath.Join(m.dir, "console")) // evidence only
		return fmt.Errorf("boot machine: %w\n%s\nconsole:\n%s", errors.Join(err, m.Close()), out, console)
	}
}

// start starts process 1, which is killed when this process exits.
func (m *Machine) start() error {
	console, err := os.Create(filepath.Join(m.dir, "console"))
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", filepath.Join(m.dir, "init.sh"), m.dir, m.cgroup, m.repository)
	cmd.Stdout, cmd.Stderr = console, console
	cmd.SysProcAttr = &unix.SysProcAttr{
		Setsid: true, Pdeathsig: unix.SIGKILL,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
	}
	m.ended = make(chan string, 1)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the parent death signal is sent when this thread exits
		defer runtime.UnlockOSThread()
		defer console.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			m.ended <- fmt.Sprintf("process 1 ended: %v", cmd.Wait())
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	m.process = cmd.Process
	return nil
}

// Run runs a script as root in the machine until its first command that fails, and returns its output.
func (m *Machine) Run(ctx context.Context, script string) (string, error) {
	if m.process == nil {
		return "", errors.New("run script: the machine is off")
	}
	cmd := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(m.process.Pid), "--all", "--", "systemd-run", "--quiet", "--pipe",
		"--wait", "--collect",
		"--service-type=exec", "--setenv=HOME=/root", "--setenv=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "sh", "-ec",
		script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second // for programs of the script that keep the output open
	err := cmd.Run()
	select {
	case how := <-m.ended:
		m.ended <- how
		err = errors.Join(err, fmt.Errorf("the machine is off: %s", how))
	default:
	}
	return out.String(), err
}

// Root returns the path of the root directory of the machine, until it is turned off. Files that are written there are not synced.
func (m *Machine) Root() string { return fmt.Sprintf("/proc/%d/root", m.process.Pid) }

// Reboot runs systemctl reboot, and boots again when the machine has shut down.
func (m *Machine) Reboot(ctx context.Context) error {
	_, _ = m.Run(ctx, "systemctl --no-block reboot") // the script can be killed before it reports
	return m.Rebooted(ctx)
}

// Rebooted boots again when the machine has shut down.
func (m *Machine) Rebooted(ctx context.Context) error {
	select {
	case how := <-m.ended:
		m.ended <- how
	case <-ctx.Done():
		return fmt.Errorf("reboot machine: %w", ctx.Err())
	}
	return errors.Join(m.Close(), m.Boot(ctx))
}

// extShutdown is EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: the file system stops at once, and loses what was not synced.
const (
	extShutdown   = 0x8004587d
	extNoLogFlush = 2
)

// Cut cuts the power: what was not synced is lost. It boots again.
func (m *Machine) Cut(ctx context.Context) error {
	root, err := os.Open(m.Root())
	if err != nil {
		return fmt.Errorf("cut power: %w", err)
	}
	err = unix.IoctlSetPointerInt(int(root.Fd()), extShutdown, extNoLogFlush) // a descriptor fits into an int
	if err = errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("cut power: %w", err)
	}
	return errors.Join(m.Close(), m.Boot(ctx))
}

// Close kills the machine and returns when nothing is left of it but its directory. The disk keeps what was written.
func (m *Machine) Close() error {
	if m.process == nil {
		return nil
	}
	_ = m.process.Kill()                   // it may have exited
	for ended := false; !ended; m.thaw() { // the kernel ends all other processes of the namespace before
		select {
		case <-m.ended:
			ended = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	m.process = nil
	end := time.Now().Add(bootTimeout)
	for {
		left := m.left()
		if left == "" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("close machine: %s still exists", left)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// thaw thaws the cgroups. With cgroup v1, a killed process of a frozen cgroup does not exit, and runc freezes the cgroup of a container for
// a moment before it starts.
func (m *Machine) thaw() {
	_ = filepath.WalkDir(filepath.Join("/sys/fs/cgroup/freezer", m.cgroup), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.WriteFile(filepath.Join(path, "freezer.state"), []byte("THAWED"), 0) // tried again
		}
		return nil
	})
}

// left removes the cgroups, and returns one that could not be removed, or the loop device of the disk: the kernel detaches it some time
// after the last process has exited.
func (m *Machine) left() string {
	v1, _ := filepath.Glob("/sys/fs/cgroup/*/" + m.cgroup) // a valid pattern
	for _, top := range append(v1, filepath.Join("/sys/fs/cgroup", m.cgroup)) {
		var dirs []string
		_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for len(dirs) > 0 {
			_ = unix.Rmdir(dirs[len(dirs)-1]) // tried again
			dirs = dirs[:len(dirs)-1]
		}
		if _, err := os.Stat(top); err == nil {
			return top
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file") // a valid pattern
	for _, loop := range loops {
		if file, err := os.ReadFile(loop); err == nil && strings.TrimSpace(string(file)) == filepath.Join(m.dir, "disk") {
			return loop
		}
	}
	return ""
}
