package rootless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/applet"
	"github.com/podstead/podstead/runtime/forwarder"
	"github.com/podstead/podstead/runtime/oci"
)

// outputDelay is the time in which a program that has exited closes its output.
const outputDelay = time.Second

// create creates the namespaces and returns their holder.
func (n *Namespaces) create(ctx context.Context) (process, error) {
	users, err := rangesIn(SubUIDs)
	if err != nil {
		return process{}, err
	}
	groups, err := rangesIn(SubGIDs)
	if err != nil {
		return process{}, err
	}
	const flags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET
	return n.start(ctx, flags, nil, func(pid int) error {
		target := strconv.Itoa(pid)
		if err := runMapper(ctx, "newuidmap", append([]string{target}, mapping(os.Getuid(), users)...)); err != nil {
			return err
		}
		return runMapper(ctx, "newgidmap", append([]string{target}, mapping(os.Getgid(), groups)...))
	})
}

// hold starts a holder in the namespaces of this process.
func (n *Namespaces) hold(ctx context.Context) (process, error) {
	return n.start(ctx, 0, []string{applet.HolderMapped}, func(int) error { return nil })
}

// start starts a holder. It calls prepare before the holder uses its namespaces.
func (n *Namespaces) start(ctx context.Context, flags uintptr, args []string, prepare func(pid int) error) (process, error) {
	wait, release, err := os.Pipe()
	if err != nil {
		return process{}, err
	}
	defer release.Close()
	defer wait.Close()
	cmd := exec.Command(n.Holder) // without a context: it outlives this process
	cmd.Args, cmd.Env, cmd.Dir = append([]string{applet.HolderName}, args...), []string{}, "/"
	cmd.ExtraFiles = []*os.File{wait} // WaitFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
	p, err := launch(ctx, cmd, applet.HolderReady, func(pid int) error {
		if err := prepare(pid); err != nil {
			return err
		}
		_, err := release.Write([]byte{0})
		return err
	})
	if _, explained := errors.AsType[*Error](err); err == nil || explained {
		return p, err
	}
	return process{}, createError(err)
}

// launch starts a program that stays, and waits until it writes ready to a descriptor, the one after those of the command. It calls prepare
// in between.
func launch(ctx context.Context, cmd *exec.Cmd, ready string, prepare func(pid int) error) (_ process, err error) {
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	reports, report, err := os.Pipe()
	if err != nil {
		return process{}, err
	}
	defer reports.Close()
	defer report.Close()
	cmd.ExtraFiles = append(cmd.ExtraFiles, report)
	if err := cmd.Start(); err != nil {
		return process{}, err
	}
	defer func() {
		if err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	_ = report.Close()
	if err := prepare(cmd.Process.Pid); err != nil {
		return process{}, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := reports.SetReadDeadline(deadline); err != nil {
			return process{}, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(reports, 4096))
	if err != nil {
		return process{}, err
	}
	p := processOf(cmd.Process.Pid)
	if string(text) != ready || p == (process{}) {
		return process{}, fmt.Errorf("%s has exited: %s", filepath.Base(cmd.Args[0]), text)
	}
	go func() { _ = cmd.Wait() }() // it is reaped if it is killed while this process runs
	return p, nil
}

// createError explains why namespaces cannot be created.
func createError(err error) error {
	hint := "run podstead doctor, which checks what pods without root need"
	if text, _ := os.ReadFile(appArmorRestriction); strings.TrimSpace(string(text)) == "1" {
		hint = AppArmorHint
	}
	return &Error{"create namespaces: " + err.Error(), hint}
}

// appArmorRestriction has 1 if AppArmor lets only programs with a profile use user namespaces (Ubuntu 23.10 and later).
const appArmorRestriction = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

// AppArmorHint is the hint if AppArmor restricts user namespaces.
const AppArmorHint = "permit user namespaces as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, " +
	"or load an AppArmor profile with userns for podstead"

// runMapper runs newuidmap or newgidmap.
func runMapper(ctx context.Context, program string, args []string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return &Error{"create namespaces: " + program + ": not found", "install it (Debian: apt-get install uidmap)"}
	}
	if err := run(ctx, path, args); err != nil {
		return &Error{"create namespaces: " + err.Error(), "run podstead doctor, which checks what pods without root need"}
	}
	return nil
}

// run runs a program. The error has what it has written.
func run(ctx context.Context, path string, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	var out strings.Builder
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay, cmd.Dir = &out, &out, outputDelay, "/"
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // a program in the background has kept the output
		return nil
	}
	const most = 500
	text := strings.TrimSpace(out.String())
	text = text[strings.LastIndexByte(text, '\n')+1:] // pasta has more to tell
	return fmt.Errorf("%s: %w: %s", filepath.Base(path), err, text[:min(len(text), most)])
}

// ErrNoPasta reports that pasta is not installed.
var ErrNoPasta = errors.New("pasta is not installed (Debian: apt-get install passt)")

// pastaFile is the file with the PID of pasta.
func (n *Namespaces) pastaFile() string { return filepath.Join(n.RunDir, "pasta.pid") }

// runningPasta returns the pasta that was started with this runtime directory, and may not be recorded: the starter was killed before, or
// the record was lost. None: it does not run.
func (n *Namespaces) runningPasta() process {
	text, err := os.ReadFile(n.pastaFile())
	if err != nil {
		return process{}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return process{}
	}
	p := processOf(pid)
	line, _ := os.ReadFile(p.path("cmdline")) // it may have exited
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	if i := slices.Index(args, "--pid"); i < 0 || i+1 >= len(args) || args[i+1] != n.pastaFile() {
		return process{}
	}
	return p
}

// startPasta connects the network namespace of a process with the networks of the host. Connections out of it are made by pasta, with the
// addresses of the host. Nothing connects into it, and the host's loopback is not reached, apart from its name server by
// [oci.ForwardedDNS].
func (n *Namespaces) startPasta(ctx context.Context, anchor process) (process, error) {
	path, err := exec.LookPath("pasta")
	if err != nil {
		return process{}, ErrNoPasta
	}
	file := n.pastaFile()
	if err := os.RemoveAll(file); err != nil {
		return process{}, err
	}
	if err := run(ctx, path, []string{
		"--config-net", "--no-map-gw", "--dns-forward", oci.ForwardedDNS, "--tcp-ports", "none", "--udp-ports", "none",
		"--tcp-ns", "none", "--udp-ns", "none",
		"--pid", file, strconv.Itoa(anchor.PID),
	}); err != nil {
		return process{}, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return process{}, fmt.Errorf("pasta: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return process{}, fmt.Errorf("pasta: read %s: %w", file, err)
	}
	p := processOf(pid)
	if p == (process{}) {
		return p, errors.New("pasta has exited")
	}
	return p, nil
}

// startForwarder starts the forwarder of host ports for a process in the namespaces. It stays in the network namespace of the host.
func (n *Namespaces) startForwarder(ctx context.Context, anchor process) (process, error) {
	user, err := os.Open(anchor.path("ns/user"))
	if err != nil {
		return process{}, err
	}
	defer user.Close()
	cmd := exec.Command(n.Holder) // without a context: it outlives this process
	cmd.Args = forwarder.Args(n.Holder, forwarder.Socket(n.RunDir))
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH")}, "/"
	cmd.ExtraFiles = []*os.File{user} // UserFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p, err := launch(ctx, cmd, forwarder.Ready, func(int) error { return nil })
	if err != nil {
		return process{}, fmt.Errorf("start the forwarder: %w", err)
	}
	return p, nil
}
