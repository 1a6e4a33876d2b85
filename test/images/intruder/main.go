// Command intruder is a hostile container: it makes the attempts of a compromised process and prints their outcomes. On a host that
// contains it, it does no harm: files opened for writing are not written to, and everything that it creates or allocates has a limit.
//
//	intruder try ATTEMPT...    makes each attempt, one argument each, in order
//	intruder stay ATTEMPT...   the same, and then runs until SIGTERM
//
// An attempt is a name and its arguments, such as "write /proc/sys/kernel/core_pattern". It prints one line for each:
//
//	ATTEMPT: OUTCOME
//
// The outcome is "done", what was found, or the name of the error, such as "EROFS". Attempts that take time, such as "swap", continue in
// the background. The last line is "finished".
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attempt makes one attempt. It returns what was found in one line, or "".
type attempt func(words []string) (string, error)

// attempts are all attempts, by name.
var attempts = map[string]attempt{}

func init() {
	for _, group := range []map[string]attempt{
		fileAttempts, kernelAttempts, inspections, networkAttempts, packetAttempts, floods, races, leases,
	} {
		maps.Copy(attempts, group)
	}
}

func main() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	if len(os.Args) < 2 || os.Args[1] != "try" && os.Args[1] != "stay" {
		fmt.Fprintln(os.Stderr, "usage: intruder try|stay ATTEMPT...")
		os.Exit(64)
	}
	for _, line := range os.Args[2:] {
		fmt.Println(line + ": " + outcome(line))
	}
	fmt.Println("finished")
	if os.Args[1] == "stay" {
		<-term
	}
}

// outcome makes an attempt and returns its outcome.
func outcome(line string) string {
	words := strings.Fields(line)
	if len(words) == 0 || attempts[words[0]] == nil {
		return "no such attempt"
	}
	found, err := attempts[words[0]](words[1:])
	if errno, is := errors.AsType[unix.Errno](err); is {
		return unix.ErrnoName(errno)
	}
	switch {
	case err != nil:
		return err.Error()
	case found == "":
		return "done"
	}
	return found
}

// words wraps an attempt that needs so many arguments.
func words(n int, a attempt) attempt {
	return func(words []string) (string, error) {
		if len(words) != n {
			return "", fmt.Errorf("want %d words", n)
		}
		return a(words)
	}
}
