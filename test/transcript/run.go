package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Shell runs steps in a directory.
type Shell struct {
	Dir string
	Env []string
	// Timeout is the maximum duration of a step. A command is killed after it, with its children.
	Timeout time.Duration
	// Credential is the user who runs commands; nil: that of this process.
	Credential *syscall.Credential
	// Replace replaces paths of the test in outputs by those that pages show; nil: nothing. Actual does the reverse in commands and in
	// files.
	Replace, Actual *strings.Replacer
}

// Result is the output of a command that has exited.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run executes a step of a page. The error of a command contains its output.
func (s *Shell) Run(ctx context.Context, step *Step) error {
	if step.File != "" {
		path := s.actual(step.File)
		if path == step.File {
			path = filepath.Join(s.Dir, step.File)
		}
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(s.actual(step.Text)), 0o644))
	}
	began := time.Now()
	until := func(string) bool { return false }
	if step.Interrupt {
		until = func(stdout string) bool {
			complete := stdout[:strings.LastIndex(stdout, "\n")+1]
			return complete != "" && (!step.Checked || Compare(split(step.Output).stdout, complete, true) == nil)
		}
	}
	for {
		r, err := s.Exec(ctx, s.actual(step.Command), until)
		if err != nil {
			return fmt.Errorf("%w\nstdout:\n%s\nstderr:\n%s\nwant:\n%s", err, r.Stdout, r.Stderr, strings.Join(step.Output, "\n"))
		}
		err = check(step, &r)
		if err == nil || !reading.MatchString(step.Command) || time.Since(began) > s.Timeout {
			return err
		}
		select {
		case <-time.After(readInterval):
		case <-ctx.Done():
			return err
		}
	}
}

// readInterval is the time between two attempts of a command that only reads.
const readInterval = 200 * time.Millisecond

// reading matches commands that only read what is eventually as the page shows it. They are repeated until then.
var reading = regexp.MustCompile(`^\w+ (system (df|prune .*--dry-run)|why |events( \w[\w-]*)?(;|$))`)

// shown are the lines that a page shows, by the stream that has them.
type shown struct{ stdout, stderr []string }

// problem matches an error of a pod file.
var problem = regexp.MustCompile(`^[\w./-]+:\d+:\d+: `)

func split(lines []string) shown {
	var s shown
	for _, line := range lines {
		// A hint follows an error. Some commands print hints on stdout.
		if strings.HasPrefix(line, "podstead: ") || problem.MatchString(line) || strings.HasPrefix(line, "hint: ") && len(s.stderr) > 0 {
			s.stderr = append(s.stderr, line)
		} else {
			s.stdout = append(s.stdout, line)
		}
	}
	return s
}

// check compares a result with the page. A page must show the error of a command that fails. It may omit notes on stderr.
func check(step *Step, r *Result) error {
	want := split(step.Output)
	if r.Code != 0 && !step.Interrupt && len(want.stderr) == 0 {
		return fmt.Errorf("exit code %d, stdout:\n%s\nstderr:\n%s", r.Code, r.Stdout, r.Stderr)
	}
	if !step.Checked {
		return nil
	}
	for _, line := range want.stderr {
		if err := Compare([]string{"...", line, "..."}, r.Stderr, false); err != nil {
			return fmt.Errorf("stderr: %w", err)
		}
	}
	if err := Compare(want.stdout, r.Stdout, step.Interrupt); err != nil {
		return fmt.Errorf("%w\nstderr:\n%s", err, r.Stderr)
	}
	return nil
}

// terminal matches commands that need a terminal.
var terminal = regexp.MustCompile(` (-it|-ti) `)

// Exec executes a line with bash and returns its result. A command with -it has a terminal, on which a user enters exit after two seconds:
// a shell discards what was entered before it was ready. When the function until returns true for the output so far, the command and its
// children receive SIGINT, as from Ctrl-C. It is an error if the command does not exit in time.
func (s *Shell) Exec(ctx context.Context, line string, until func(stdout string) bool) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	stdout := &watched{until: func(text string) bool { return until(s.replaced(text)) }, met: make(chan struct{})}
	var stderr bytes.Buffer
	if terminal.MatchString(line) {
		line = `(sleep 2; printf 'exit\n') | script -qec '` + strings.ReplaceAll(line, "'", `'\''`) + `' /dev/null`
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.Credential}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	var err error
	select {
	case err = <-exited:
	case <-stdout.met:
		err = errors.Join(syscall.Kill(-cmd.Process.Pid, syscall.SIGINT), <-exited)
	}
	r := Result{cmd.ProcessState.ExitCode(), s.replaced(stdout.String()), s.replaced(stderr.String())}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil && exit != nil {
		err = nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%s: not finished after %v: %w", line, s.Timeout, ctx.Err())
	}
	return r, err
}

func (s *Shell) replaced(text string) string {
	if s.Replace == nil {
		return text
	}
	return s.Replace.Replace(text)
}

func (s *Shell) actual(text string) string {
	if s.Actual == nil {
		return text
	}
	return s.Actual.Replace(text)
}

// watched is an output that reports when it meets a condition. It is safe for concurrent use.
type watched struct {
	until func(string) bool
	met   chan struct{} // closed once

	mu   sync.Mutex
	text bytes.Buffer
	done bool
}

// Write adds to the output.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if !w.done && w.until(w.text.String()) {
		w.done = true
		close(w.met)
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
