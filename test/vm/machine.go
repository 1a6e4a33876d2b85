package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/vm/internal/wire"
)

const (
	// bootTimeout is for the first answer, which takes ten seconds on an idle machine.
	bootTimeout = 3 * time.Minute
	// answerMargin is how much later than the agent the host gives a command up.
	answerMargin = 30 * time.Second
	memory       = 2048 // MiB
)

// kernelArguments make the boot fast, and the cgroups those of v2 alone.
const kernelArguments = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr audit=0 tsc=reliable no_timer_check " +
	"systemd.unified_cgroup_hierarchy=1 systemd.show_status=0 systemd.mask=getty@tty1.service systemd.mask=serial-getty@ttyS0.service " +
	"systemd.mask=apparmor.service systemd.mask=systemd-update-utmp.service systemd.mask=systemd-journal-flush.service"

// Machine is a running QEMU. It is safe for concurrent use, and runs one command at a time.
type Machine struct {
	dir   string
	qemu  *exec.Cmd
	ended chan struct{} // closed when QEMU has ended, by whatever cause
	close func() error  // once

	mu      sync.Mutex
	port    net.Conn
	answers *json.Decoder
	id      int
}

// Options say what a machine is made of. All but Disk are required.
type Options struct {
	Dir     string // of the machine's files, with a short path since a socket lies there; the console's output is Dir/console
	Agent   string // the program of test/vm/agent
	Payload string // a file, the second disk
	// Disk is the first disk where what is written is to stay: a copy of the image's, see [Image.CopyDisk]. Without one it is the image's,
	// and what is written is gone with the machine.
	Disk string
}

// Boot starts a machine from the image and returns when it runs commands. It lives until [Machine.Close], or until this process ends.
func Boot(ctx context.Context, image Image, o Options) (*Machine, error) {
	initramfs := filepath.Join(o.Dir, "initramfs")
	if err := writeInitramfs(initramfs, o.Agent, image.modules); err != nil {
		return nil, fmt.Errorf("boot machine: %w", err)
	}
	m := &Machine{dir: o.Dir, ended: make(chan struct{})}
	m.close = sync.OnceValue(m.kill)
	m.qemu = exec.Command("qemu-system-x86_64", arguments(image, o, initramfs)...) // Close ends it
	if err := m.start(); err != nil {
		return nil, fmt.Errorf("boot machine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	if err := m.meet(ctx); err != nil {
		err = errors.Join(fmt.Errorf("boot machine: %w", err), m.Close())
		return nil, fmt.Errorf("%w\nconsole:\n%s\nqemu:\n%s", err, tail(filepath.Join(o.Dir, "console")), tail(filepath.Join(o.Dir, "qemu")))
	}
	return m, nil
}

// arguments are QEMU's. A /dev/kvm is not used, since on a machine that is emulated itself it is slower than TCG, if it works at all.
func arguments(image Image, o Options, initramfs string) []string {
	root := "if=none,id=root,format=raw,cache=unsafe,file=" + o.Disk
	if o.Disk == "" {
		root += image.Disk + ",snapshot=on"
	}
	return []string{
		"-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "qemu64", "-smp", "2", "-m", strconv.Itoa(memory),
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none",
		"-kernel", image.Kernel, "-initrd", initramfs, "-append", kernelArguments,
		"-drive", root, "-device", "virtio-blk-pci,drive=root",
		"-drive", "if=none,id=payload,format=raw,readonly=on,file=" + o.Payload, "-device", "virtio-blk-pci,drive=payload",
		"-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
		"-chardev", "socket,id=agent,path=" + filepath.Join(o.Dir, "agent") + ",server=on,wait=off",
		"-device", "virtserialport,chardev=agent,name=" + wire.Port,
		"-serial", "file:" + filepath.Join(o.Dir, "console"),
	}
}

// start starts QEMU so that it dies with this process.
func (m *Machine) start() error {
	log, err := os.Create(filepath.Join(m.dir, "qemu"))
	if err != nil {
		return err
	}
	m.qemu.Stdout, m.qemu.Stderr = log, log
	m.qemu.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the signal comes when this thread ends
		defer runtime.UnlockOSThread()
		defer close(m.ended)
		defer log.Close()
		err := m.qemu.Start()
		started <- err
		if err == nil {
			_ = m.qemu.Wait() // it is killed
		}
	}()
	return <-started
}

// meet connects to the agent and waits for its first answer.
func (m *Machine) meet(ctx context.Context) error {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for {
		port, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(m.dir, "agent"))
		if err == nil {
			m.port, m.answers = port, json.NewDecoder(port)
			return m.Run(ctx, io.Discard, wire.Command{Args: []string{"true"}, Timeout: bootTimeout})
		}
		select {
		case <-t.C:
		case <-m.ended:
			return errors.New("qemu has ended")
		case <-ctx.Done():
			return fmt.Errorf("connect to the agent: %w", ctx.Err())
		}
	}
}

// ExitError is a command that has ended with something else than 0.
type ExitError struct {
	Args []string
	wire.End
}

func (e *ExitError) Error() string { return fmt.Sprintf("run %v: %s", e.Args, e.End.Error) }

// Command is a program to run in a machine; see [Machine.Run].
type Command = wire.Command

// Run runs a command as root in the machine to its end and writes its output, as it comes, to w. Its error is an [ExitError] where the
// command failed. The end of ctx, or no answer for some time after the command's timeout, makes the machine unusable.
func (m *Machine) Run(ctx context.Context, w io.Writer, c Command) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+answerMargin)
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = m.port.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	m.id++
	c.ID = m.id
	end, err := wire.Ask(m.port, m.answers, c, w)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	if end != (wire.End{}) {
		return &ExitError{c.Args, end}
	}
	return nil
}

// Close kills the machine, as a loss of power does: of its own disk it keeps what it had written and not what it was about to. It
// returns when the machine has ended. Closing it again says the same.
func (m *Machine) Close() error { return m.close() }

func (m *Machine) kill() error {
	err := unix.Kill(-m.qemu.Process.Pid, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		err = nil
	}
	<-m.ended
	if m.port != nil {
		err = errors.Join(err, m.port.Close())
	}
	return err
}

// tail is the end of a file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}
