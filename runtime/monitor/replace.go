package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/proc"
)

const (
	// versionTimeout bounds the question for the version of a program.
	versionTimeout = 5 * time.Second
	// replaceTimeout bounds the wait for work in progress before the monitor is replaced. Then the next monitor waits for it.
	replaceTimeout = 10 * time.Second
	// replaceCheck is the interval at which it is looked for work in progress.
	replaceCheck = 20 * time.Millisecond
)

// serveReplace checks a program and executes it in place of this one.
func (m *Monitor) serveReplace(c *connection, q request, r replacement) error {
	if !filepath.IsAbs(r.Program) {
		return errorf(ClassInvalid, "program %q: must be an absolute path", r.Program)
	}
	if m.replacing {
		return errorf(ClassUnavailable, "the monitor is being replaced")
	}
	m.replacing = true
	late := time.Now().Add(replaceTimeout)
	go func() {
		ctx, cancel := m.background(versionTimeout)
		defer cancel()
		end := m.flights.begin() // a sweep would reap the program before it is waited for
		err := checkProgram(ctx, r.Program)
		end()
		m.loop.post(func() {
			if err != nil {
				m.replacing = false
				c.answer(q.ID, nil, err)
				return
			}
			m.replaceWhenIdle(c, q, r.Program, late)
		})
	}()
	return nil
}

// checkProgram returns an error for a program that cannot take over from this one.
func checkProgram(ctx context.Context, program string) error {
	v, err := askVersion(ctx, program)
	if err != nil {
		return errorf(ClassPrecondition, "replace the monitor by %s: %v", program, err)
	}
	if !slices.Contains(v.Reads, Format) {
		return errorf(ClassPrecondition, "replace the monitor by %s: version %s reads records of the formats %v, but not %d",
			program, v.Version, v.Reads, Format)
	}
	return nil
}

// askVersion asks a program for its version.
func askVersion(ctx context.Context, program string) (v programVersion, err error) {
	command := exec.CommandContext(ctx, program, roleVersion)
	command.WaitDelay = time.Second
	var output bytes.Buffer
	command.Stdout = &output
	if err := command.Run(); err != nil {
		return v, err
	}
	if err := json.Unmarshal(output.Bytes(), &v); err != nil {
		return v, fmt.Errorf("unexpected answer to %q: %w", roleVersion, err)
	}
	return v, nil
}

// VersionOf returns the version of a program that is podstead-monitor.
func VersionOf(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	v, err := askVersion(ctx, program)
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", program, err)
	}
	return v.Version, nil
}

// Executes reports whether monitor and keeper execute a program.
func (h Hello) Executes(program string) (bool, error) {
	for _, pid := range []int{h.PID, h.Keeper} {
		if same, err := proc.Executes(pid, program); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// replaceWhenIdle replaces the monitor when nothing is in progress, or at the end of the timeout.
func (m *Monitor) replaceWhenIdle(c *connection, q request, program string, end time.Time) {
	if (m.flights.any() || len(m.unsent) > 0 || waitsForDisk()) && time.Now().Before(end) {
		m.loop.after(replaceCheck, func() { m.replaceWhenIdle(c, q, program, end) })
		return
	}
	var err error
	switch {
	case len(m.unsent) > 0:
		err = errorf(ClassUnavailable, "replace the monitor: the keeper does not respond")
	case waitsForDisk():
		// The kernel ends all threads before it executes a program. The monitor would stop until the disk responds.
		err = errorf(ClassUnavailable, "replace the monitor: it waits for a disk")
	}
	if err != nil {
		m.replacing = false
		c.answer(q.ID, nil, err)
		return
	}
	c.answer(q.ID, struct{}{}, nil)
	err = m.execute(program)
	m.replacing = false
	logf("%v", err)
	m.report(Event{Kind: EventFailed, Message: err.Error()})
}

// waitsForDisk reports whether a thread of this process cannot be interrupted.
func waitsForDisk() bool {
	tasks, err := filepath.Glob("/proc/self/task/*/stat")
	if err != nil {
		return false
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // it has exited
		}
		if s, err := proc.ParseStat(text); err == nil && s.State == 'D' {
			return true
		}
	}
	return false
}

// execute executes a program as monitor in this process. It returns on errors only. The keeper keeps the descriptors.
func (m *Monitor) execute(program string) error {
	forks.Lock() // no child has the OOM score of this process meanwhile
	defer forks.Unlock()
	passed := []int{linkFD, lockFD}
	setInherited(passed, true)
	defer setInherited(passed, false)
	args := append(m.o.arguments(roleMonitor), "-replaced", program)
	return fmt.Errorf("replace the monitor by %s: %w", program, execute(program, args, -1))
}
