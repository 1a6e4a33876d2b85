package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// This file gives commands that crun starts in containers what runc gives them: the OOM score of their settings, and a session
// that is known. It must not affect other OCI runtimes.

// SessionFile is the file in which the shim records the session of a command's processes, unless the command itself leads it. It is in the
// bundle of the container and disappears with it.
func SessionFile(bundle, execID string) string { return filepath.Join(bundle, execID+".session") }

// crunCommand is a run of crun that starts a command in a container. Without it, the command would have the OOM score of the shim,
// which protects it. crun starts it from a process that leads its session and exits, so its session is known only while the command is a
// process. A nil crunCommand does nothing. It is not safe for concurrent use.
type crunCommand struct {
	bundle, id, pidFile string
	score               *int
	exited              map[int]int // sessions of processes that have exited meanwhile, by process ID
}

// prepareCommand returns nil for other programs and other runs.
func prepareCommand(c *exec.Cmd) (*crunCommand, error) {
	if !slices.Contains(c.Args, "exec") {
		return nil, nil
	}
	state := filepath.Join(argument(c.Args, "--root"), c.Args[len(c.Args)-1])
	if _, err := os.Stat(filepath.Join(state, "status")); err != nil { // of crun
		return nil, nil
	}
	pidFile := argument(c.Args, "--pid-file")
	id, found := strings.CutSuffix(filepath.Base(pidFile), ".pid")
	if !found {
		return nil, nil
	}
	text, err := os.ReadFile(argument(c.Args, "--process"))
	if err != nil {
		return nil, fmt.Errorf("read settings of process: %w", err)
	}
	var settings struct {
		OOMScoreAdj *int `json:"oomScoreAdj"`
	}
	if err := json.Unmarshal(text, &settings); err != nil {
		return nil, fmt.Errorf("read settings of process: %w", err)
	}
	return &crunCommand{bundle: filepath.Dir(pidFile), id: id, pidFile: pidFile, score: settings.OOMScoreAdj, exited: map[int]int{}}, nil
}

// Started sets the OOM score of crun, which the command inherits. crun has just been executed: it does not start the command before it has
// read the state of the container.
func (e *crunCommand) Started(pid int) error {
	if e == nil || e.score == nil {
		return nil
	}
	score := filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj")
	if err := os.WriteFile(score, []byte(strconv.Itoa(*e.score)), 0o600); err != nil {
		return fmt.Errorf("set OOM score of command: %w", err)
	}
	return nil
}

// Exiting records the session of a process that has exited and was not reaped. It may be the command.
func (e *crunCommand) Exiting(pid int) {
	if session, err := sessionOf(pid); err == nil && e != nil {
		e.exited[pid] = session
	}
}

// Finish records the session of the command in its [SessionFile]. crun has exited, and the command is reaped after [Command.Exiting] only.
// It does nothing if crun has not started the command.
func (e *crunCommand) Finish() error {
	if e == nil {
		return nil
	}
	text, err := os.ReadFile(e.pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("record session of command: %w", err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return fmt.Errorf("record session of command: %w", err)
	}
	session, known := e.exited[pid]
	if !known {
		if session, err = sessionOf(pid); err != nil {
			return fmt.Errorf("record session of command: %w", err)
		}
	}
	return os.WriteFile(SessionFile(e.bundle, e.id), []byte(strconv.Itoa(session)), 0o600)
}

// sessionOf returns the session of a process, also of one that has exited and was not reaped. See proc_pid_stat(5).
func sessionOf(pid int) (int, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name before it may contain spaces
	if len(fields) < 4 {
		return 0, fmt.Errorf("unexpected format of /proc/%d/stat", pid)
	}
	return strconv.Atoi(string(fields[3]))
}

// argument returns the value of an option.
func argument(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}
