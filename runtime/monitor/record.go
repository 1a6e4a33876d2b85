package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// Files of the state directory:
//
//	lock                           held by keeper and monitor; its time is that of the last start of a monitor
//	log                            messages of keeper and monitor
//	monitor.sock, attach.sock
//	monitors                       how many monitors there were since boot or the last stop
//	sandboxes/NAME.json            a sandboxRecord
//	containers/ID/container.json   a record
//	containers/ID/exit.json        an Exit; exists before the process is reaped
//	containers/ID/stdout, stderr, stdin
//	containers/ID/log/             the spool and the record of the log, see crilog.Feed
//	containers/ID/runtime.json     errors of the OCI runtime
//	containers/ID/init.pid         written by the OCI runtime
//	containers/ID/execs/EXEC/      command.json, exit.json, process.json, runtime.json and init.pid of a command
const (
	containersDir = "containers"
	sandboxesDir  = "sandboxes"
	execsDir      = "execs"
	recordFile    = "container.json"
	commandFile   = "command.json"
	exitFile      = "exit.json"
	pidFile       = "init.pid"
	processFile   = "process.json"
	logFile       = "runtime.json"
	countFile     = "monitors"
	lockFile      = "lock"
	logDir        = "log"
)

// ContainersDir returns the directory that has a directory for each container of a monitor, by its state directory.
func ContainersDir(state string) string { return filepath.Join(state, containersDir) }

// CommandOf returns the container and the command that an OCI runtime starts, by the path of its PID file. It is false for another path.
func CommandOf(file string) (container, exec string, ok bool) {
	parts := strings.Split(file, "/")
	if len(parts) < 5 || parts[len(parts)-1] != pidFile || parts[len(parts)-3] != execsDir || parts[len(parts)-5] != containersDir {
		return "", "", false
	}
	return parts[len(parts)-4], parts[len(parts)-2], true
}

// InUse reports whether a state directory has records of containers or sandboxes.
func InUse(state string) (bool, error) {
	for _, dir := range []string{containersDir, sandboxesDir} {
		entries, err := os.ReadDir(filepath.Join(state, dir))
		if len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// PIDOf returns the first process of a container in a state directory, 0 if it does not run.
func PIDOf(state, id string) int {
	var r record
	if err := readRecord(filepath.Join(ContainersDir(state), id, recordFile), &r); err != nil || r.PID == 0 || !isProcess(r.PID, r.Start) {
		return 0
	}
	return r.PID
}

// Recorded returns the IDs of the containers in a state directory.
func Recorded(state string) (ids []string) {
	entries, _ := os.ReadDir(ContainersDir(state)) // there may be none
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

// FirstProcesses returns the start times of the first processes of all containers in a state directory, by their IDs. The processes may
// have exited.
func FirstProcesses(state string) map[int]uint64 {
	entries, _ := os.ReadDir(ContainersDir(state)) // there may be none
	running := map[int]uint64{}
	for _, e := range entries {
		var r record
		if err := readRecord(filepath.Join(ContainersDir(state), e.Name(), recordFile), &r); err == nil && r.PID > 0 {
			running[r.PID] = r.Start
		}
	}
	return running
}

// maxRecord bounds the size of a record, in bytes.
const maxRecord = 1 << 20

// record is what is known of a container. It is written before what it stands for is done.
type record struct {
	Format int    `json:"format"`
	Create Create `json:"create"`
	Phase  Phase  `json:"phase"`
	// Starting is true once the start of the container was requested.
	Starting bool `json:"starting,omitempty"`
	// PID and Start identify the first process.
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
	// Orphans is true if other processes can outlive the first one.
	Orphans bool `json:"orphans,omitempty"`
	// Cgroup is the directory that lists the processes or, for a container without a cgroup, its PID namespace, see [proctree.List].
	// Memory is the directory of the memory controller, if there is one.
	Cgroup  string `json:"cgroup,omitempty"`
	Memory  string `json:"memory,omitempty"`
	Unified bool   `json:"unified,omitempty"` // Memory is of cgroup v2
	// InputClosed is true if the standard input was closed for good.
	InputClosed bool `json:"inputClosed,omitempty"`
}

// commandRecord is what is known of a command in a container.
type commandRecord struct {
	Format  int    `json:"format"`
	ID      string `json:"id"`
	Mark    string `json:"mark,omitempty"` // of a Run, which no monitor continues
	PID     int    `json:"pid,omitempty"`  // 0: the OCI runtime starts it
	Start   uint64 `json:"start,omitempty"`
	Session int    `json:"session,omitempty"`
}

// sandboxRecord is what is known of a sandbox.
type sandboxRecord struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// Accounted is the number of OOM kills of containers that have exited.
	Accounted int64 `json:"accounted,omitempty"`
}

// writeRecord writes a file completely or not at all. It is on tmpfs, so it is not synced.
func writeRecord(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err = os.WriteFile(path+".new", text, 0o600); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return nil
}

// readRecord reads a file. If there is none the error is [fs.ErrNotExist].
func readRecord(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err == nil && len(text) > maxRecord {
		err = fmt.Errorf("larger than %d bytes", maxRecord)
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// readExit reads an exit. It is nil if there is none.
func readExit(dir string) (*Exit, error) {
	var e Exit
	err := readRecord(filepath.Join(dir, exitFile), &e)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// readable returns an error for a format that this program does not read.
func readable(format int) error {
	if slices.Contains(reads, format) {
		return nil
	}
	return fmt.Errorf("format %d of the record is not supported, this program reads %v", format, reads)
}

// name is what is a name of a file, and of a container, command or sandbox.
var name = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

const maxName = 128

// checkName returns an error if a name cannot be that of a directory.
func checkName(what, s string) error {
	if len(s) > maxName || !name.MatchString(s) {
		return errorf(ClassInvalid, "%s %.200q: must be at most %d characters A-Z, a-z, 0-9, '.', '_' and '-', the first a letter or digit",
			what, s, maxName)
	}
	return nil
}

// found is what a new monitor finds of a container.
type found struct {
	// exists: the first process, of the record or of the PID file, exists, as a process or a zombie.
	exists bool
	// recorded: its exit is recorded.
	recorded bool
	// status is the status of the container in the OCI runtime, empty if it has none. It is asked for only if a run of the OCI runtime may
	// have been interrupted.
	status string
}

// The statuses of the OCI specification that matter.
const (
	statusCreated = "created"
	statusRunning = "running"
	statusStopped = "stopped"
)

// verdict is what becomes of a container whose monitor has died.
type verdict struct {
	phase  Phase
	remove bool // it was not created completely
	ended  bool // its process has exited, and the exit is not known yet
}

// settle decides what becomes of a container. No run of the OCI runtime for it is in progress.
func (r *record) settle(f found) verdict {
	switch {
	case f.recorded:
		return verdict{phase: Exited}
	case r.Phase == Creating:
		if !f.exists || f.status != statusCreated {
			return verdict{remove: true}
		}
		return verdict{phase: Created}
	case !f.exists:
		return verdict{phase: Exited, ended: true}
	case r.Phase == Created && r.Starting && (f.status == statusRunning || f.status == statusStopped):
		return verdict{phase: Running}
	case r.Phase == Created:
		return verdict{phase: Created}
	}
	return verdict{phase: Running}
}
