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

// patience bounds the wait for anything.
const patience = 2 * time.Minute

// podFile is a pod of one container that runs a script. The folder of the gate is /gate in it.
func (b *bench) podFile(name, policy, script string, g *gate) string {
	text := fmt.Sprintf("name = %q\nrestartPolicy = %q\nimageArchives = [%q]\n\n[[containers]]\nname = \"c\"\nimage = %q\ncommand = [\"sh\", \"-c\", %q]\n",
		name, policy, b.archive, busybox, script)
	if g != nil {
		text += fmt.Sprintf("volumeMounts = { gate = \"/gate\" }\n\n[[volumes]]\nname = \"gate\"\nhostPath = { path = %q }\n", g.dir)
	}
	return text
}

// remove kills a pod and returns when it is gone.
func remove(ctx context.Context, r *rig.Rig, name string) error {
	_, err := r.Podstead(ctx, "delete", name, "--force")
	return err
}

// gate is a FIFO in a folder that containers mount: they write a line when they have begun, and the bench knows when.
// It is as if containers had a clock that can be compared with the bench's.
type gate struct {
	dir    string
	fifo   *os.File
	passed chan time.Time
}

// pass is the shell command that opens the gate.
const pass = "echo >/gate/fifo"

func newGate(r *rig.Rig) (*gate, error) {
	dir := filepath.Join(r.Dir, "gate")
	if err := os.Mkdir(dir, 0o755); err != nil { // containers write there
		return nil, err
	}
	path := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // both ends, so that no writer waits and no reader sees an end
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

// await returns when the next container has begun.
func (g *gate) await(ctx context.Context) (time.Time, error) {
	select {
	case at := <-g.passed:
		return at, nil
	case <-time.After(patience):
		return time.Time{}, errors.New("no container began")
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// marker is a time to sleep that nothing else sleeps, so that the process can be found by it.
func marker(n int) string { return strconv.Itoa(100000000 + os.Getpid()*100 + n) }

// await waits for the end of what must not last.
func await(ctx context.Context, holds func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it took too long"))
	defer cancel()
	return rig.Await(ctx, holds)
}
