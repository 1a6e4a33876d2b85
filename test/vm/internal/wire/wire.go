// Package wire is the protocol between the host and the agent in the virtual machine of test/vm, over a serial port. The host sends one
// command at a time. The agent sends its output as it comes, and then its result. The package owns the message format only; it must not
// depend on the commands or on the port.
package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Port is the name of the serial port in the virtual machine.
const Port = "podstead.agent"

// Command is a program to run as root.
type Command struct {
	ID   int      `json:"id"`   // also in the answers
	Args []string `json:"args"` // the program, from the PATH of the virtual machine, and its arguments
	Env  []string `json:"env"`  // as "name=value", added to the agent's
	// Timeout is the time after which the program and its children are killed.
	Timeout time.Duration `json:"timeout"`
}

// Answer is a piece of output (standard output and error), or the result.
type Answer struct {
	ID     int    `json:"id"`
	Output []byte `json:"output,omitempty"`
	End    *End   `json:"end,omitempty"`
}

// End is the result of a command.
type End struct {
	Status int    `json:"status"`          // the exit code; -1 if it was killed by a signal or not started
	Error  string `json:"error,omitempty"` // details; empty if the program exited with code 0
}

// Output writes answers with a command's output.
type Output struct {
	ID  int
	Enc *json.Encoder
}

// Write sends p to the host.
func (o Output) Write(p []byte) (int, error) {
	if err := o.Enc.Encode(Answer{ID: o.ID, Output: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Ask sends a command, copies its output to w, and returns its result. It ignores answers to earlier commands that timed out. It blocks
// until the result arrives or the port is closed.
func Ask(port io.ReadWriter, answers *json.Decoder, c Command, w io.Writer) (End, error) {
	if err := json.NewEncoder(port).Encode(c); err != nil {
		return End{}, fmt.Errorf("send %v: %w", c.Args, err)
	}
	for {
		var a Answer
		if err := answers.Decode(&a); err != nil {
			return End{}, fmt.Errorf("read answer to %v: %w", c.Args, err)
		}
		if a.ID != c.ID {
			continue
		}
		if _, err := w.Write(a.Output); err != nil {
			return End{}, fmt.Errorf("output of %v: %w", c.Args, err)
		}
		if a.End != nil {
			return *a.End, nil
		}
	}
}
