// Command intruder plays a hostile container: it tries what a process that has been taken over would try, and says what came of
// it. Nothing that it does harms a machine that keeps it in: what is opened for writing is not written to, and all that it fills,
// makes or eats has a bound.
//
//	intruder try ATTEMPT...    makes each attempt, one argument each, in their order
//	intruder stay ATTEMPT...   the same, and then goes on until SIGTERM
//
// An attempt is a name and its words, such as "write /proc/sys/kernel/core_pattern". Of each there is one line
//
//	ATTEMPT: OUTCOME
//
// where the outcome is "done", what was found, or the name of the error: "EROFS". Attempts that go on for a while, such as
// "swap", do so beside those that follow. The last line is "that was all".
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

// attempt makes one attempt. What it returns is one line: what was found, or "" for what has nothing to tell.
type attempt func(words []string) (string, error)

// attempts are all that there are, by name.
var attempts = map[string]attempt{}

func init() {
	for _, group := range []map[string]attempt{fileAttempts, kernelAttempts, looks, networkAttempts, packetAttempts, floods, races} {
		maps.Copy(attempts, group)
	}
}

func main() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	if len(os.Args) < 2 || os.Args[1] != "try" && os.Args[1] != "stay" {
		fmt.Fprintln(os.Stderr, "intruder: want try or stay, and attempts")
		os.Exit(64)
	}
	for _, line := range os.Args[2:] {
		fmt.Println(line + ": " + outcome(line))
	}
	fmt.Println("that was all")
	if os.Args[1] == "stay" {
		<-term
	}
}

// outcome makes an attempt and says in a word what came of it.
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

// words wraps an attempt that needs so many words.
func words(n int, a attempt) attempt {
	return func(words []string) (string, error) {
		if len(words) != n {
			return "", fmt.Errorf("want %d words", n)
		}
		return a(words)
	}
}
