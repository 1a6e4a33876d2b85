package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// commandTimeout bounds the command that requests a reboot. The host goes down after the command has returned.
	commandTimeout = time.Minute
	// outputTimeout bounds the wait for processes that the command has left behind.
	outputTimeout = time.Second
	// maxOutput is the length of the command's output in errors.
	maxOutput = 256
	// saveInterval is the time between two writes of the ages of reboots that count. There are none if no reboot counts.
	saveInterval = time.Hour
)

// rebootHost reboots the host. It is safe for concurrent use.
type rebootHost struct {
	file     string
	now      func() lifecycle.Instant
	inMemory func(dir string) (bool, error)

	mu        sync.Mutex // of the record and its file
	settings  sync.Mutex
	maxPerDay int
	command   []string
}

// newReboots returns a host that keeps its [RebootRecord] in a file.
func newReboots(file string, now func() lifecycle.Instant, maxPerDay int, command []string) *rebootHost {
	h := &rebootHost{file: file, now: now, inMemory: inMemory}
	h.Set(maxPerDay, command)
	return h
}

// Set sets the number of reboots in [rebootDay] (0: reboots are disabled), and the command that requests one.
func (h *rebootHost) Set(maxPerDay int, command []string) {
	h.settings.Lock()
	defer h.settings.Unlock()
	h.maxPerDay, h.command = maxPerDay, command
}

func (h *rebootHost) limits() (maxPerDay int, command []string) {
	h.settings.Lock()
	defer h.settings.Unlock()
	return h.maxPerDay, h.command
}

// LoadReboots reads a record. A file that does not exist is an empty record.
func LoadReboots(file string) (RebootRecord, error) {
	var r RebootRecord
	_, err := RebootFormat.Read(file, &r)
	if errors.Is(err, fs.ErrNotExist) {
		return RebootRecord{}, nil
	}
	if err != nil {
		return RebootRecord{}, fmt.Errorf("read record of reboots: %w", err)
	}
	return r, nil
}

func (h *rebootHost) save(r RebootRecord) error {
	return RebootFormat.Write(h.file, r, statefile.Unknown{})
}

// Reboot records a reboot on the disk and requests it. Without a readable and durable record the host is not rebooted.
func (h *rebootHost) Reboot(ctx context.Context, pod string) error {
	maxPerDay, command := h.limits()
	if err := h.record(pod, maxPerDay); err != nil {
		return lifecycle.Failure{Reason: lifecycle.ReasonRebootHeldBack, Message: err.Error()}
	}
	if err := run(ctx, command, pod); err != nil {
		return lifecycle.Failure{Reason: lifecycle.ReasonRebootFailed, Message: err.Error()}
	}
	return nil
}

func (h *rebootHost) record(pod string, maxPerDay int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	dir := filepath.Dir(h.file)
	if volatile, err := h.inMemory(dir); err != nil || volatile {
		return cmp.Or(err, fmt.Errorf("%s is in memory: the next boot would not know of this reboot", dir))
	}
	r, err := LoadReboots(h.file)
	if err != nil {
		return err
	}
	next, err := r.Request(pod, maxPerDay, h.now())
	if err != nil {
		return err
	}
	if err := h.save(next); err != nil {
		return fmt.Errorf("save record of reboots: %w", err)
	}
	return nil
}

// inMemory reports whether the files of a directory are lost at a reboot.
func inMemory(dir string) (bool, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return false, fmt.Errorf("save record of reboots: statfs %s: %w", dir, err)
	}
	kind := int64(stat.Type) //nolint:unconvert // 32 bits wide elsewhere
	return kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC, nil
}

// run runs the command that requests a reboot.
func run(ctx context.Context, command []string, pod string) error {
	if len(command) == 0 {
		return errors.New("reboot.command is empty")
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "PODSTEAD_POD="+pod)
	cmd.WaitDelay = outputTimeout
	out, err := cmd.CombinedOutput()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	text := strings.Join(strings.Fields(string(out[:min(len(out), maxOutput)])), " ")
	if text != "" {
		text = ": " + text
	}
	return fmt.Errorf("run %s: %w%s", command[0], err, text)
}

// Run saves the ages of the reboots that count from time to time, until ctx ends, so that uptime of a boot counts in the next one. It
// writes nothing if there are none.
func (h *rebootHost) Run(ctx context.Context) {
	for range guard.Every(ctx, saveInterval) {
		h.age()
	}
	h.age()
}

// age saves the ages. After an error the old ones count for longer.
func (h *rebootHost) age() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r, err := LoadReboots(h.file); err == nil && len(r.Reboots) > 0 {
		_ = h.save(r.At(h.now()))
	}
}
