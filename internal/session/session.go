// Package session defines a command that runs in a container for a client. The API server has the client, and the runtime has the
// container; neither imports the other.
package session

import "io"

// Size is the size of a terminal in characters.
type Size struct {
	Width, Height uint16
}

// Command is a command with its streams. After the end of the context with which it runs, reads and writes must fail.
type Command struct {
	Args []string
	// Stdin is read until EOF, an error, or the exit of the command; nil: the command has none. A read may be in progress after the exit.
	Stdin io.Reader
	// Stdout and Stderr receive the output; nil: it is discarded. With a terminal, all output goes to Stdout. A command waits while a
	// write blocks.
	Stdout, Stderr io.Writer
	// TTY runs the command in a terminal of this size, which Resize changes; nil: never.
	TTY    bool
	Size   Size
	Resize <-chan Size
}

// StartError is the error of a command that cannot be executed. Code is the exit code that shells use: 127 not found, 126 not executable.
type StartError struct {
	Code    int
	Message string
}

// Error implements error.
func (e *StartError) Error() string { return e.Message }
