package vm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const swtpm = "swtpm"

// tpmTimeout is for the exit of a TPM after that of its virtual machine. Tests shorten it.
var tpmTimeout = 10 * time.Second

// tpm is the process of a TPM of a virtual machine. It exits when QEMU does.
type tpm struct {
	cmd  *exec.Cmd
	port *os.File // for QEMU
}

// startTPM starts a TPM with a directory for its state. Its messages are in logs/tpm.
func startTPM(state, logs string) (_ *tpm, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start TPM: %w", err)
	}
	own, port := os.NewFile(uintptr(ends[0]), "TPM"), os.NewFile(uintptr(ends[1]), "QEMU")
	defer own.Close()
	defer func() {
		if err != nil {
			err = fmt.Errorf("start TPM: %w", errors.Join(err, port.Close()))
		}
	}()
	log, err := os.Create(filepath.Join(logs, "tpm"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(swtpm, "socket", "--tpm2", "--tpmstate", "dir="+state, "--ctrl", "type=unixio,clientfd=3", "--terminate")
	cmd.ExtraFiles = []*os.File{own} // 3
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &tpm{cmd, port}, nil
}

// wait waits until the TPM has exited, after QEMU has, and kills it if that takes too long.
func (t *tpm) wait() error {
	exited := make(chan error, 1)
	go func() { exited <- t.cmd.Wait() }()
	timeout := time.NewTimer(tpmTimeout)
	defer timeout.Stop()
	var err error
	select {
	case err = <-exited:
	case <-timeout.C:
		err = errors.Join(t.cmd.Process.Kill(), <-exited)
	}
	if err != nil {
		return fmt.Errorf("TPM: %w", err)
	}
	return nil
}
