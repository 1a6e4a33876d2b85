// Package wire is what the host and the agent in the machine of test/vm say to each other over a serial port: the host asks for one
// command at a time, the agent answers with what it writes as it comes, and last with how it ended. It owns the form of the messages
// only. It must not know what is run, nor where the port is.
package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Port is the name of the serial port in the machine.
const Port = "podstead.agent"

// Command is a program to run as root.
type Command struct {
	ID   int      `json:"id"`   // the answers have it too
	Args []string `json:"args"` // the program, looked for in the machine's PATH, and its arguments
	Env  []string `json:"env"`  // in the form "name=value", added to the agent's
	// Timeout is when the program and its children are killed.
	Timeout time.Duration `json:"timeout"`
}

// Answer is a piece of output, standard output and error in one, or the end.
type Answer struct {
	ID     int    `json:"id"`
	Output []byte `json:"output,omitempty"`
	End    *End   `json:"end,omitempty"`
}

// End is how a command has ended.
type End struct {
	Status int    `json:"status"`          // the exit status; -1 where a signal ended it or it was not started
	Error  string `json:"error,omitempty"` // what else there is to say; empty where the program exited by itself with 0
}

// Output writes answers that carry a command's output.
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

// Ask sends a command over the port, copies its output to w, and returns how it ended. Answers to other commands, which somebody gave
// up, are passed over. It blocks until the end has come or the port is closed.
func Ask(port io.ReadWriter, answers *json.Decoder, c Command, w io.Writer) (End, error) {
	if err := json.NewEncoder(port).Encode(c); err != nil {
		return End{}, fmt.Errorf("ask for %v: %w", c.Args, err)
	}
	for {
		var a Answer
		if err := answers.Decode(&a); err != nil {
			return End{}, fmt.Errorf("wait for %v: %w", c.Args, err)
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
