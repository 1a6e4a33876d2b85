// Command actor plays a container, a hook or an exec probe of the conformance suite, and writes down what it does: each of its
// events is a line "<RFC 3339 with nanoseconds> <name> <event>" in a file that all actors of a pod share, so that a test sees
// who ran when, to a clock of one machine.
//
//	actor NAME [key=value]...
//
// The events are Starting, Started (delay later), Looping (it has no end of its own), Terminating (the signal came) and Exiting.
// Paths are seen from the folder of the shared file. The keys:
//
//	delay=1s     the time from Starting to Started
//	run=1s       the time from Started to the end
//	until=FILE   runs until there is such a file
//	if=FILE      ends at once: with 0 if there is such a file, else with 1
//	exit=3,0     the status of the first run, of the second and all that follow; 0 by default
//	term=1s      the time from SIGTERM to the end; "never" ignores the signal
//	touch=FILE   makes a file before Started
//	leave=1s     leaves a process behind that holds the output open for so long
//	eat=self     takes memory after Started until it is killed; eat=child: has a process do that, and goes on when it has ended
//
// With none of run, until and if it goes on until SIGTERM.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stage is where the shared file lies.
const stage = "/tale"

func main() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	p, err := parse(stage, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "actor:", err)
		os.Exit(64)
	}
	status, err := p.play(term)
	if err != nil {
		fmt.Fprintln(os.Stderr, "actor:", err)
		os.Exit(70)
	}
	os.Exit(status)
}

// play plays the part and returns the exit status.
func (p *part) play(term <-chan os.Signal) (int, error) {
	before, err := p.runs()
	if err != nil {
		return 0, err
	}
	status := p.exit[min(before, len(p.exit)-1)]
	if err := errors.Join(p.tell("Starting"), p.leaveBehind()); err != nil {
		return 0, err
	}
	if p.act(term, time.After(p.delay)) {
		return status, p.tell("Exiting")
	}
	if p.touch != "" {
		if err := os.WriteFile(p.at(p.touch), nil, 0o600); err != nil {
			return 0, err
		}
	}
	if err := p.tell("Started"); err != nil {
		return 0, err
	}
	if err := p.eatMemory(); err != nil {
		return 0, err
	}
	if p.ifFile != "" {
		if !p.exists(p.ifFile) {
			status = 1
		}
		return status, p.tell("Exiting")
	}
	end, err := p.end()
	if err != nil {
		return 0, err
	}
	p.act(term, end)
	return status, p.tell("Exiting")
}

// end is when the part is over of itself.
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
	return nil, p.tell("Looping")
}

// act waits for the end, and reports whether the signal came before, with what that takes.
func (p *part) act(term <-chan os.Signal, end <-chan time.Time) (told bool) {
	for {
		select {
		case <-end:
			return false
		case <-term:
			if err := p.tell("Terminating"); err != nil {
				fmt.Fprintln(os.Stderr, "actor:", err)
			}
			if p.term >= 0 {
				<-time.After(p.term)
				return true
			}
		}
	}
}
