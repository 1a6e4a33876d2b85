package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/podstead/podstead/api/channel"
)

// SignalError is the cause of a cancelled context when the program has received a signal that terminates it.
type SignalError struct {
	Signal syscall.Signal
}

// Error implements error.
func (e *SignalError) Error() string { return "received " + unix.SignalName(e.Signal) }

// ExitCode is the exit code of a shell for a program that the signal has terminated.
func (e *SignalError) ExitCode() int { return 128 + int(e.Signal) }

// endings are the signals that end a session. In raw mode, Ctrl-C is a character for the session and sends no signal.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalOptions are the streams of a session.
type TerminalOptions struct {
	// In is the input; nil: the session has none. With Raw it must be a terminal.
	In io.Reader
	// Raw puts the terminal in raw mode during the session: each key is passed on as it is typed.
	Raw bool
	// DetachKeys end the session when they are typed one after the other; empty: no keys do. They are read in raw mode only.
	DetachKeys []byte
	// KeepOnSignal does not end the session when the program receives a signal: the caller handles signals.
	KeepOnSignal bool
}

// Session is what [Terminal] passes to a session.
type Session struct {
	// In is the input without the detach keys; nil: none.
	In io.Reader
	// Size is the size of the terminal in raw mode. Resize receives its changes; nil: there is no terminal.
	Size   channel.Size
	Resize <-chan channel.Size
}

// Terminal calls run with a context that is cancelled when the program receives a signal that terminates it (with a [*SignalError] as its
// cause) or the user types the detach keys ([ErrDetached]). If run fails then, Terminal returns the cause. The terminal is restored before
// that, also if run panics. The first signal restores it as well, and the next one has its default action: it ends the program even if run
// does not return.
func Terminal(ctx context.Context, o TerminalOptions, run func(context.Context, Session) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	if !o.KeepOnSignal {
		signal.Notify(signals, endings...)
		defer signal.Stop(signals)
	}
	session := Session{In: o.In}
	restore := func() {}
	if o.Raw {
		var err error
		if restore, err = session.raw(ctx, o, func() { cancel(ErrDetached) }); err != nil {
			return err
		}
		defer restore()
	}
	go func() {
		select {
		case s := <-signals:
			restore() // the next signal may end the program
			signal.Stop(signals)
			if number, ok := s.(syscall.Signal); ok {
				cancel(&SignalError{Signal: number})
			}
		case <-ctx.Done():
		}
	}()
	err := run(ctx, session)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// raw puts the terminal in raw mode until restore is called. Calls of restore can be repeated and concurrent.
func (s *Session) raw(ctx context.Context, o TerminalOptions, detach func()) (restore func(), err error) {
	f, ok := o.In.(*os.File)
	if !ok {
		return nil, errors.New("set terminal to raw mode: the input is not a terminal")
	}
	fd := int(f.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("set terminal to raw mode: %w", err)
	}
	if len(o.DetachKeys) > 0 {
		s.In = &detacher{in: o.In, keys: o.DetachKeys, detach: detach}
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	s.Size = sizeOf(fd)
	resize := make(chan channel.Size)
	s.Resize = resize
	go func() {
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			select {
			case resize <- sizeOf(fd):
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		_ = term.Restore(fd, before) // a closed terminal needs none
	}, nil
}

// sizeOf returns the size of a terminal, the zero size if it reports none.
func sizeOf(fd int) channel.Size {
	width, height, err := term.GetSize(fd)
	if err != nil || width < 0 || height < 0 || width > 1<<16-1 || height > 1<<16-1 {
		return channel.Size{}
	}
	return channel.Size{Width: uint16(width), Height: uint16(height)}
}
