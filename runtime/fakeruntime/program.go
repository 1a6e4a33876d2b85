package fakeruntime

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Forever is the run time of a process that exits only on a signal.
const Forever time.Duration = math.MaxInt64

// Program is the behavior of the process of a run. The zero value exits at once with 0.
type Program struct {
	Runs   time.Duration  // time until it exits by itself, or [Forever]
	Exit   lifecycle.Exit // exit without a signal; a missing reason is set
	Term   Term
	Output []Line // ordered by time

	// StartError, if not empty, is why the process cannot be started.
	StartError string
	// Refused, if not nil, is why the container cannot be created.
	Refused *lifecycle.Failure
}

// Term is how a process handles its stop signal. The zero value exits at once with 0.
type Term struct {
	Ignored bool
	Takes   time.Duration
	Code    int
}

// Line is a line of output.
type Line struct {
	After  time.Duration // time since the start of the process
	Stderr bool
	Text   string
}

// Read interprets the commands used in tests: true, false, sleep, echo, and sh -c with a list of those, exit, wait, and trap for
// TERM, separated by semicolons, ampersands and newlines. As in a container, the first process ignores SIGTERM without a trap.
// Without a command it is a server that exits with 0 on the stop signal. Any other command is not found.
func Read(argv []string) Program {
	if len(argv) == 0 {
		return Program{Runs: Forever}
	}
	p := Program{Term: Term{Ignored: true}}
	script := strings.Join(argv, " ")
	if argv[0] == "sh" && len(argv) == 3 && argv[1] == "-c" {
		script = argv[2]
	}
	for statement := range strings.FieldsFuncSeq(script, func(c rune) bool { return c == ';' || c == '\n' }) {
		// A background command is waited for by the wait that follows it.
		ended, err := p.statement(strings.TrimSuffix(strings.TrimSpace(statement), "& wait"))
		if err != nil {
			return Program{StartError: err.Error()}
		}
		if ended {
			break
		}
	}
	return p
}

// statement adds one statement and reports whether it is the last.
func (p *Program) statement(s string) (ended bool, err error) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return false, nil
	}
	p.Exit.Code = 0
	switch words[0] {
	case "true":
	case "false":
		p.Exit.Code = 1
	case "sleep":
		seconds, err := strconv.ParseFloat(strings.Join(words[1:], ""), 64)
		if err != nil {
			return false, fmt.Errorf("read script: sleep: %w", err)
		}
		p.Runs += time.Duration(seconds * float64(time.Second))
	case "echo":
		text, toStderr := strings.CutSuffix(strings.Join(words[1:], " "), ">&2")
		p.Output = append(p.Output, Line{After: p.Runs, Stderr: toStderr, Text: strings.Trim(text, ` "'`)})
	case "exit":
		p.Exit.Code, err = strconv.Atoi(strings.Join(words[1:], ""))
		return true, err
	case "trap":
		return false, p.trap(s)
	default:
		return false, fmt.Errorf("exec: %q: executable file not found in $PATH", words[0])
	}
	return false, nil
}

// trap parses trap ” TERM and trap 'exit N' TERM.
func (p *Program) trap(s string) error {
	action := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(s, "trap "), " TERM"), `'"`)
	p.Term = Term{Ignored: true}
	if action == "" {
		return nil
	}
	code, err := strconv.Atoi(strings.TrimPrefix(action, "exit "))
	if err != nil {
		return fmt.Errorf("read script: trap: %w", err)
	}
	p.Term = Term{Code: code}
	return nil
}

// advance updates a run to the current time: it writes the output that is due and terminates the process at its exit time. It
// returns the time of the next change, or zero for never. The caller holds the lock.
func (r *Runtime) advance(n *run) time.Time {
	if n.ended {
		return time.Time{}
	}
	now := time.Now()
	over := !n.ends.IsZero() && !n.ends.After(now)
	for n.written < len(n.program.Output) {
		line := n.program.Output[n.written]
		at := n.started.Add(line.After)
		if over && at.After(n.ends) {
			break
		}
		if at.After(now) {
			return at
		}
		r.log(n, at, line)
		n.written++
	}
	n.ended = over
	return n.ends
}

func (r *Runtime) podLogs(uid, pod string) string {
	return filepath.Join(r.options.LogDir, spec.FileName(pod)+"_"+uid)
}

func (r *Runtime) logPath(uid, pod string, n *run) string {
	return filepath.Join(r.podLogs(uid, pod), n.Container, strconv.Itoa(n.Restarts)+".log")
}

// log writes a line. As with the real shim, a log that cannot be written does not stop the container.
func (r *Runtime) log(n *run, at time.Time, l Line) {
	if r.options.LogDir == "" {
		return
	}
	path := r.logPath(n.uid, n.pod, n)
	if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return
	}
	defer f.Close()
	stream := "stdout"
	if l.Stderr {
		stream = "stderr"
	}
	fmt.Fprintf(f, "%s %s F %s\n", at.UTC().Format(time.RFC3339Nano), stream, l.Text)
}

func (r *Runtime) removeLog(uid string, pod *spec.Pod, n *run) error {
	if r.options.LogDir == "" {
		return nil
	}
	if err := os.Remove(r.logPath(uid, pod.Name, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (r *Runtime) removeLogs(uid string, pod *spec.Pod) error {
	if r.options.LogDir == "" {
		return nil
	}
	return os.RemoveAll(r.podLogs(uid, pod.Name))
}
