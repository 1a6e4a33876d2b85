package live

import (
	"fmt"
	"runtime/debug"
)

// Panic is the value of a panic in a goroutine of this package. It continues in the goroutine of the caller, who can restore a terminal.
type Panic struct {
	Value any
	Stack []byte
}

// Error implements error: a server logs the value.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// carry calls do, and sends a panic of it. The channel must have room.
func carry(panics chan<- *Panic, do func()) {
	defer func() {
		if value := recover(); value != nil {
			panics <- &Panic{value, debug.Stack()}
		}
	}()
	do()
}
