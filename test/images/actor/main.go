// Command actor is the container, hook or exec probe of the conformance tests. It logs its events, each as a line "<RFC 3339 with
// nanoseconds> <name> <event>" in a file that all actors of a pod share. A test reads their order and times from it.
//
//	actor NAME [key=value]...
//
// The events are Starting, Started (delay later), Looping (it does not exit by itself), Terminating (SIGTERM received) and Exiting.
// Paths are relative to the directory of the shared file. The keys:
//
//	delay=1s     the time from Starting to Started
//	run=1s       the time from Started to the exit
//	until=FILE   runs until the file exists
//	if=FILE      exits immediately: with 0 if the file exists, else with 1
//	exit=3,0     the exit code of the first run, of the second and all later ones; 0 by default
//	term=1s      the time from SIGTERM to the exit; "never" ignores the signal
//	touch=FILE   creates a file before Started
//	leave=1s     leaves a process that holds the output open for so long
//	eat=self     allocates memory after Started until it is killed; eat=child: a child process does, and the actor continues
//
// Without run, until and if, it runs until SIGTERM.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// logDir is the directory of the shared file.
const logDir = "/timeline"

func main() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	p, err := parse(logDir, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "actor:", err)
		os.Exit(64)
	}
	status, err := p.perform(term)
	if err != nil {
		fmt.Fprintln(os.Stderr, "actor:", err)
		os.Exit(70)
	}
	os.Exit(status)
}

// perform runs the actor and returns its exit code.
func (p *part) perform(term <-chan os.Signal) (int, error) {
	before, err := p.runs()
	if err != nil {
		return 0, err
	}
	status := p.exit[min(before, len(p.exit)-1)]
	if err := errors.Join(p.record("Starting"), p.leaveBehind()); err != nil {
		return 0, err
	}
	if p.act(term, time.After(p.delay)) {
		return status, p.record("Exiting")
	}
	if p.touch != "" {
		if err := os.WriteFile(p.at(p.touch), nil, 0o600); err != nil {
			return 0, err
		}
	}
	if err := p.record("Started"); err != nil {
		return 0, err
	}
	if err := p.eatMemory(); err != nil {
		return 0, err
	}
	if p.ifFile != "" {
		if !p.exists(p.ifFile) {
			status = 1
		}
		return status, p.record("Exiting")
	}
	end, err := p.end()
	if err != nil {
		return 0, err
	}
	p.act(term, end)
	return status, p.record("Exiting")
}

// end returns a channel that is ready when the actor exits by itself.
func (p *part) end() (<-chan time.Time, error) {
	switch {
	case p.run >= 0:
		return time.After(p.run), nil
	case p.until != "":
		end := make(chan time.Time)
		go func() {
			for !p.exists(p.until) {
				<-time.After(10 * time.Millisecond)
			}
			close(end)
		}()
		return end, nil
	}
	return nil, p.record("Looping")
}

// act waits for end. It reports whether SIGTERM came first, after the time that terminating takes.
func (p *part) act(term <-chan os.Signal, end <-chan time.Time) (terminated bool) {
	for {
		select {
		case <-end:
			return false
		case <-term:
			if err := p.record("Terminating"); err != nil {
				fmt.Fprintln(os.Stderr, "actor:", err)
			}
			if p.term >= 0 {
				<-time.After(p.term)
				return true
			}
		}
	}
}
