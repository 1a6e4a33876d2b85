// Package execcommand gives commands that crun starts in containers what runc gives them: a session of their own and the OOM score of their
// settings. It must not affect other OCI runtimes.
package execcommand

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SessionFile is the file in which the shim records the session of a command's processes, unless the command itself leads it. It is in the
// bundle of the container and disappears with it.
func SessionFile(bundle, execID string) string { return filepath.Join(bundle, execID+".session") }

// Command is a run of crun that starts a command in a container. Without this package, the command would be in the session of the shim and have
// its OOM score, which protects it.
type Command struct {
	bundle, id string
	score      *int
}

// Prepare makes crun the leader of a session, which the command inherits. It returns nil for other programs and other runs.
func Prepare(c *exec.Cmd) (*Command, error) {
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
	if c.SysProcAttr == nil {
		c.SysProcAttr = &unix.SysProcAttr{}
	}
	c.SysProcAttr.Setsid, c.SysProcAttr.Setpgid = true, false // a leader of a session leads a process group, too
	return &Command{bundle: filepath.Dir(pidFile), id: id, score: settings.OOMScoreAdj}, nil
}

// Started sets the OOM score of crun, which the command inherits, and records the session. crun has just been executed: it does not start the
// command before it has read the state of the container. e can be nil.
func (e *Command) Started(pid int) error {
	if e == nil {
		return nil
	}
	if e.score != nil {
		score := filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj")
		if err := os.WriteFile(score, []byte(strconv.Itoa(*e.score)), 0o600); err != nil {
			return fmt.Errorf("set OOM score of command: %w", err)
		}
	}
	return os.WriteFile(SessionFile(e.bundle, e.id), []byte(strconv.Itoa(pid)), 0o600)
}

// argument returns the value of an option.
func argument(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}
