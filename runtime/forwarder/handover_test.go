package forwarder

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// build writes this program with more bytes appended to a file, and returns its path. It is another build, unless there are none.
func build(t *testing.T, more string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), program)
	if err := os.WriteFile(path, append(text, more...), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// clientOf returns a client of a build.
func clientOf(t *testing.T, socket, build string, log *slog.Logger) *Client {
	t.Helper()
	c := NewClient(t.Context(), socket, ownNetwork, log)
	c.Program = build
	t.Cleanup(c.Close)
	return c
}

// ask connects to a port and returns the answer of the pod.
func ask(f Forward) (string, error) {
	conn, err := net.Dial(networkOf(f.Protocol, f.Addr), netip.AddrPortFrom(f.Addr, f.Port.Port).String())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	return answerOf(conn)
}

// connects connects to a port in a loop, and reports errors, until the test is done or it is stopped.
func connects(t *testing.T, f Forward) (count *atomic.Int64, stop func()) {
	t.Helper()
	count = new(atomic.Int64)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stopped:
				return
			default:
			}
			if got, err := ask(f); err != nil || got != "pod: hello" {
				t.Errorf("connection %d: %q, %v", count.Load(), got, err)
				return
			}
			count.Add(1)
		}
	}()
	return count, func() { close(stopped); <-done }
}

// executes reports whether a process executes a program.
func executes(pid int, program string) bool {
	same, err := proc.Executes(pid, program)
	return same && err == nil
}

// exited reports whether a process has exited, and its parent knows that.
func exited(pid int) bool {
	_, err := proc.StatOf(pid)
	return errors.Is(err, fs.ErrNotExist)
}

// TestHandOver tests that a client of another build gets a worker of that one, and a first process. No connection is refused meanwhile. The
// worker of before keeps its connections until they end. Then workers are killed.
func TestHandOver(t *testing.T) {
	socket, process := startForwarder(t)
	first := process.Process.Pid
	to := pod(t, "pod")
	tcp, udp := forwardTo(TCP, freePort(t), to), forwardTo(UDP, freePort(t), to)
	all := map[string][]Forward{"tcp": {tcp}, "udp": {udp}}
	discard := slog.New(slog.DiscardHandler)
	c := clientOf(t, socket, "", discard)
	replace := func(build string) {
		t.Helper()
		c.Close() // one daemon is connected
		c = clientOf(t, socket, build, discard)
		if err := c.Replace(t.Context(), Network{}, all); err != nil {
			t.Fatal(err)
		}
	}
	replace(build(t, ""))
	before := workerOf(socket, first)
	stream, datagrams := dialPort(t, tcp), dialPort(t, udp)
	works := func(when string) {
		t.Helper()
		for what, conn := range map[string]net.Conn{"a connection": stream, "a flow": datagrams} {
			if got, err := answerOf(conn); err != nil || got != "pod: hello" {
				t.Errorf("%s: %s: %q, %v", when, what, got, err)
			}
		}
		for _, f := range []Forward{tcp, udp} {
			if got, err := ask(f); err != nil || got != "pod: hello" {
				t.Errorf("%s: %s: %q, %v", when, f, got, err)
			}
		}
	}
	works("before")
	replace(build(t, ""))
	if worker := workerOf(socket, first); worker != before {
		t.Errorf("worker %d was replaced by a copy, %d", before, worker)
	}
	// The port has a queue of connections also while no process accepts them.
	count, stop := connects(t, tcp)
	await(t, "connections before", func() bool { return count.Load() > 0 })
	other := build(t, "other")
	replace(other)
	begun := count.Load()
	await(t, "connections after", func() bool { return count.Load() > begun+1 })
	stop()
	works("after")
	await(t, "the first process executes the other build", func() bool { return executes(first, other) })
	if exited(before) || !Serves(socket) {
		t.Error("the worker of before has exited, or none serves the socket")
	}
	newWorker := func() int {
		all := Processes(socket)
		i := slices.IndexFunc(all, func(pid int) bool { return pid != first && pid != before })
		if i < 0 {
			return 0
		}
		return all[i]
	}
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGTERM} {
		worker := newWorker()
		if worker == 0 || !executes(worker, other) {
			t.Fatalf("worker %d does not execute the other build", worker)
		}
		if err := unix.Kill(worker, signal); err != nil {
			t.Fatal(err)
		}
		await(t, "the port is open again", func() bool { _, err := ask(tcp); return exited(worker) && err == nil })
		await(t, "the UDP port is open again", func() bool { _, err := ask(udp); return err == nil })
		works("after " + unix.SignalName(signal))
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the worker of before has exited", func() bool { return exited(before) })
	if got, err := ask(tcp); err != nil || got != "pod: hello" {
		t.Errorf("without the worker of before: %q, %v", got, err)
	}
}

// TestHandOverAlone tests that a worker leaves its ports without its first process, and then does not count.
func TestHandOverAlone(t *testing.T) {
	socket, first := startForwarder(t)
	f := forwardTo(TCP, freePort(t), pod(t, "pod"))
	all := map[string][]Forward{"u": {f}}
	discard := slog.New(slog.DiscardHandler)
	if err := clientOf(t, socket, "", discard).Replace(t.Context(), Network{}, all); err != nil {
		t.Fatal(err)
	}
	before := workerOf(socket, first.Process.Pid)
	stream := dialPort(t, f)
	if got, err := answerOf(stream); err != nil || got != "pod: hello" {
		t.Fatalf("%q, %v", got, err)
	}
	if err := errors.Join(first.Process.Kill(), ignoreExit(first.Wait())); err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, socket, build(t, "other"), discard)
	if err := c.Replace(t.Context(), Network{}, all); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(f); err != nil || got != "pod: hello" {
		t.Errorf("after: %q, %v", got, err)
	}
	for _, pid := range Processes(socket) {
		if pid != before {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	await(t, "the other worker has exited", func() bool { return !Serves(socket) && Check(f.Port) == nil })
	if err := c.Set(t.Context(), "u", Network{}, nil); err != nil {
		t.Errorf("ports of no worker are closed: %v", err)
	}
	if got, err := answerOf(stream); err != nil || got != "pod: hello" {
		t.Errorf("a connection of before: %q, %v", got, err)
	}
}

// TestHandOverFails tests that a worker keeps its ports if the program of a client cannot be started as one.
func TestHandOverFails(t *testing.T) {
	socket, first := startForwarder(t)
	f := forwardTo(TCP, freePort(t), pod(t, "pod"))
	all := map[string][]Forward{"u": {f}}
	if err := clientOf(t, socket, "", slog.New(slog.DiscardHandler)).Replace(t.Context(), Network{}, all); err != nil {
		t.Fatal(err)
	}
	before := Processes(socket)
	dir := t.TempDir()
	for _, name := range []string{"other", program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nread -r request\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"missing": "no such file", "other": "its name is not " + program, program: "EOF"} {
		path := filepath.Join(dir, name)
		var log strings.Builder
		c := clientOf(t, socket, path, slog.New(slog.NewTextHandler(&log, nil)))
		if err := c.Replace(t.Context(), Network{}, all); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s: %q, want %q", name, log.String(), want)
		}
		if got, err := ask(f); err != nil || got != "pod: hello" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if after := Processes(socket); !slices.Equal(after, before) || first.Process.Pid != before[0] {
		t.Errorf("processes %v, want %v", after, before)
	}
}
