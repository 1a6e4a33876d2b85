package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/vm/internal/wire"
)

// drainTime is how long to wait for output that a child keeps open after its command has exited.
const drainTime = 5 * time.Second

// serve runs commands of the host until it disconnects.
func serve(ctx context.Context) error {
	path, err := findPort("/sys/class/virtio-ports", wire.Port)
	if err != nil {
		return err
	}
	// Not through Go's poller: without a connected host, reading the port returns EOF.
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	port := os.NewFile(uintptr(fd), path) // a descriptor fits
	defer port.Close()
	return answer(ctx, port)
}

// findPort returns the device of the serial port with this name.
func findPort(class, name string) (string, error) {
	files, err := filepath.Glob(filepath.Join(class, "*", "name"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(text)) == name {
			return filepath.Join("/dev", filepath.Base(filepath.Dir(f))), nil
		}
	}
	return "", fmt.Errorf("find port %s: not among %v", name, files)
}

// answer runs the commands that arrive on the port, one after the other. EOF is not an error.
func answer(ctx context.Context, port io.ReadWriter) error {
	commands, answers := json.NewDecoder(port), json.NewEncoder(port)
	for {
		var c wire.Command
		if err := commands.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read command: %w", err)
		}
		end := run(ctx, c, wire.Output{ID: c.ID, Enc: answers})
		if err := answers.Encode(wire.Answer{ID: c.ID, End: &end}); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
}

// run runs a command, at most for its timeout.
func run(ctx context.Context, c wire.Command, out io.Writer) wire.End {
	if len(c.Args) == 0 {
		return wire.End{Status: -1, Error: "no program given"}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...) // the command of the host
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = drainTime
	err := cmd.Run()
	switch {
	case err == nil:
		return wire.End{}
	case ctx.Err() != nil:
		return wire.End{Status: -1, Error: fmt.Sprintf("killed after %s", c.Timeout)}
	case cmd.ProcessState == nil:
		return wire.End{Status: -1, Error: err.Error()}
	}
	return wire.End{Status: cmd.ProcessState.ExitCode(), Error: err.Error()}
}
