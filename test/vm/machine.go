package vm

import (
	"cmp"
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
	// bootTimeout is for the first response, which takes ten seconds on an idle host.
	bootTimeout = 5 * time.Minute
	// answerMargin is how much longer than the agent the host waits for a command.
	answerMargin = 30 * time.Second
	memory       = 2048 // MiB, the default
	qemu         = "qemu-system-x86_64"
)

// kernelArguments make the boot fast and enable cgroup v2 only. The clock is that of the emulated HPET: on a busy host the kernel measures
// the frequency of the processor's counter wrongly, and its clock was five times too fast. The self-tests of the kernel's ciphers have hung
// in the emulation, once in 60 boots.
const kernelArguments = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr audit=0 tsc=unstable clocksource=hpet no_timer_check " +
	"cryptomgr.notests " +
	"systemd.unified_cgroup_hierarchy=1 systemd.show_status=0 systemd.mask=getty@tty1.service systemd.mask=serial-getty@ttyS0.service " +
	"systemd.mask=apparmor.service systemd.mask=systemd-update-utmp.service systemd.mask=systemd-journal-flush.service"

// noUdev keeps udev from running. The kernel itself makes the nodes that most tests need.
const noUdev = " systemd.mask=systemd-udevd.service systemd.mask=systemd-udevd-kernel.socket systemd.mask=systemd-udevd-control.socket " +
	"systemd.mask=systemd-udev-trigger.service"

// Machine is a running QEMU. It is safe for concurrent use, and runs one command at a time.
type Machine struct {
	dir   string
	tpm   *tpm // nil without one
	qemu  *exec.Cmd
	ended chan struct{} // closed when QEMU has exited
	close func() error  // once

	mu      sync.Mutex
	port    net.Conn
	answers *json.Decoder
	id      int
}

// HostAddress is the address at which a virtual machine with a network reaches the ports of the host's loopback address.
const HostAddress = "10.0.2.2"

// GuestAddress is the address of a virtual machine with a network, which it has to give its interface.
const GuestAddress = "10.0.2.15/24"

// Options configure a virtual machine. The directory and the files are required.
type Options struct {
	// directory of the virtual machine's files, with a short path because it contains a socket; the console output is Dir/console
	Dir     string
	Agent   string // the program of test/vm/agent
	Payload string // a file, the second disk
	Disk    string // the first disk, a copy of the image's: see [Image.CopyDisk]
	// Memory is in MiB (default 2048).
	Memory int
	// Network gives the virtual machine an interface, over which it connects to ports of the host. Nothing connects to the virtual machine.
	Network bool
	// Devices lets the virtual machine have devices that [Machine.Execute] adds and removes: its udev runs, and it has the buses
	// "serial.0" of virtio-serial and "scsi.0". Without it udev does not run, and boots are faster.
	Devices bool
	// TPM is the directory with the state of a TPM 2.0. A new one is made if it is empty. Without it, the virtual machine has no TPM.
	TPM string
}

// Boot starts a virtual machine from the image and returns when it runs commands. It runs until [Machine.Close], or until this process
// exits.
func Boot(ctx context.Context, image Image, o Options) (*Machine, error) {
	initramfs := filepath.Join(o.Dir, "initramfs")
	if err := writeInitramfs(initramfs, o.Agent, image.modules); err != nil {
		return nil, fmt.Errorf("boot machine: %w", err)
	}
	m := &Machine{dir: o.Dir, ended: make(chan struct{})}
	m.close = sync.OnceValue(m.kill)
	m.qemu = exec.Command(qemu, arguments(image, o, initramfs)...) // Close stops it
	if err := m.startAll(o); err != nil {
		return nil, fmt.Errorf("boot machine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	if err := m.meet(ctx); err != nil {
		err = errors.Join(fmt.Errorf("boot machine: %w", err), m.Close())
		return nil, fmt.Errorf("%w\nconsole:\n%s\nqemu:\n%s", err, tail(filepath.Join(o.Dir, "console")),
			tail(filepath.Join(o.Dir, "qemu")))
	}
	return m, nil
}

// arguments returns QEMU's arguments. KVM is not used: on a host that is emulated itself it is slower than TCG, if it works at all.
func arguments(image Image, o Options, initramfs string) []string {
	kernel := kernelArguments
	if !o.Devices {
		kernel += noUdev
	}
	args := []string{
		"-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "qemu64", "-smp", "2",
		"-m", strconv.Itoa(cmp.Or(o.Memory, memory)), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-kernel", image.Kernel, "-initrd", initramfs, "-append", kernel,
		"-drive", "if=none,id=root,format=raw,cache=unsafe,file=" + o.Disk, "-device", "virtio-blk-pci,drive=root",
		"-drive", "if=none,id=payload,format=raw,readonly=on,file=" + o.Payload, "-device", "virtio-blk-pci,drive=payload",
		"-device", "virtio-rng-pci", "-device", "virtio-serial-pci,id=serial",
		"-qmp", "unix:" + filepath.Join(o.Dir, qmpSocket) + ",server=on,wait=off",
		"-chardev", "socket,id=agent,path=" + filepath.Join(o.Dir, "agent") + ",server=on,wait=off",
		"-device", "virtserialport,chardev=agent,name=" + wire.Port,
		"-serial", "file:" + filepath.Join(o.Dir, "console"),
	}
	if o.Devices {
		args = append(args, "-device", "virtio-scsi-pci,id=scsi")
	}
	if o.TPM != "" {
		args = append(args, "-chardev", "socket,id=tpm,fd=3", "-tpmdev", "emulator,id=tpm,chardev=tpm", "-device", "tpm-crb,tpmdev=tpm")
	}
	if !o.Network {
		return append(args, "-nic", "none")
	}
	return append(args, "-netdev", "user,id=network", "-device", "virtio-net-pci,netdev=network,romfile=")
}

// startAll starts the TPM, if there is one, and QEMU.
func (m *Machine) startAll(o Options) error {
	if o.TPM == "" {
		return m.start()
	}
	var err error
	if m.tpm, err = startTPM(o.TPM, m.dir); err != nil {
		return err
	}
	m.qemu.ExtraFiles = []*os.File{m.tpm.port} // 3
	err = errors.Join(m.start(), m.tpm.port.Close())
	if err != nil {
		err = errors.Join(err, m.tpm.wait())
	}
	return err
}

// start starts QEMU so that it is killed when this process exits.
func (m *Machine) start() error {
	log, err := os.Create(filepath.Join(m.dir, "qemu"))
	if err != nil {
		return err
	}
	m.qemu.Stdout, m.qemu.Stderr = log, log
	m.qemu.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the parent death signal is sent when this thread exits
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

// meet connects to the agent and waits for its first response.
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
			return errors.New("qemu has exited")
		case <-ctx.Done():
			return fmt.Errorf("connect to the agent: %w", ctx.Err())
		}
	}
}

// ExitError is a command that failed.
type ExitError struct {
	Args []string
	wire.End
}

func (e *ExitError) Error() string { return fmt.Sprintf("run %v: %s", e.Args, e.End.Error) }

// Command is a program to run in a virtual machine; see [Machine.Run].
type Command = wire.Command

// Run runs a command as root in the virtual machine and copies its output to w as it comes. The error is an [ExitError] if the command
// failed. If ctx is done, or the agent does not respond in time after the command's timeout, the virtual machine is unusable.
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

// Wait waits until the virtual machine has shut down. It does not boot again.
func (m *Machine) Wait(ctx context.Context) error {
	select {
	case <-m.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the machine to shut down: %w", ctx.Err())
	}
}

// Close kills the virtual machine, like a loss of power: its own disk keeps what was written, without what was still buffered. It
// returns when QEMU has exited. Further calls return the same result.
func (m *Machine) Close() error { return m.close() }

func (m *Machine) kill() error {
	err := unix.Kill(-m.qemu.Process.Pid, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		err = nil
	}
	<-m.ended
	if m.tpm != nil {
		err = errors.Join(err, m.tpm.wait())
	}
	if m.port != nil {
		err = errors.Join(err, m.port.Close())
	}
	return err
}

// tail returns the end of a file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}
