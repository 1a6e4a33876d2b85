package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/internal/rig"
)

const busybox = "localhost/podstead/busybox:1"

// timeout is the limit of each wait.
const timeout = 2 * time.Minute

// podFile returns a pod with one container that runs a script. The gate's directory is mounted at /gate.
func (b *bench) podFile(name, policy, script string, g *gate) string {
	text := fmt.Sprintf("name = %q\nrestartPolicy = %q\nimageArchives = [%q]\n\n[[containers]]\nname = \"c\"\nimage = %q\ncommand = "+
		"[\"sh\", \"-c\", %q]\n",
		name, policy, b.archive, busybox, script)
	if g != nil {
		text += fmt.Sprintf("volumeMounts = { gate = \"/gate\" }\n\n[[volumes]]\nname = \"gate\"\nhostPath = { path = %q }\n", g.dir)
	}
	return text
}

// remove deletes a pod by force.
func remove(ctx context.Context, r *rig.Rig, name string) error {
	_, err := r.Podstead(ctx, "delete", name, "--force")
	return err
}

// gate is a FIFO in a directory that containers mount. They write a line when they start, so that the bench can compare times by its own
// clock.
type gate struct {
	dir    string
	fifo   *os.File
	passed chan time.Time
}

// pass is the shell command that writes to the gate.
const pass = "echo >/gate/fifo"

// newGate creates a gate in a new directory of the rig.
func newGate(r *rig.Rig, name string) (*gate, error) {
	dir := filepath.Join(r.Dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil { // containers write there
		return nil, err
	}
	return newGateIn(dir)
}

// newGateIn creates a gate in a directory that exists.
func newGateIn(dir string) (*gate, error) {
	path := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // both ends, so that writers do not block and the reader gets no EOF
	if err != nil {
		return nil, err
	}
	g := &gate{dir, f, make(chan time.Time, 64)}
	go func() {
		buf := make([]byte, 1)
		for {
			if _, err := f.Read(buf); err != nil {
				return
			}
			g.passed <- time.Now()
		}
	}()
	return g, nil
}

func (g *gate) close() { _ = g.fifo.Close() }

// await waits for the start of the next container.
func (g *gate) await(ctx context.Context) (time.Time, error) {
	select {
	case at := <-g.passed:
		return at, nil
	case <-time.After(timeout):
		return time.Time{}, errors.New("timed out waiting for a container")
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// marker returns a unique number of seconds to sleep, by which a process can be found.
func marker(n int) string { return strconv.Itoa(100000000 + os.Getpid()*100 + n) }

// await waits until the condition holds.
func await(ctx context.Context, holds func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("timed out"))
	defer cancel()
	return rig.Await(ctx, holds)
}
