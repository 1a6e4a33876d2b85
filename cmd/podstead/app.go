package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/rootless"
	"github.com/podstead/podstead/internal/view"
)

// app is the program with its inputs and outputs.
type app struct {
	in       io.Reader
	out, err io.Writer
	// hostRoot is the root directory with the units of systemd; empty: there are none.
	hostRoot string
	// start starts the daemon's container engine.
	start func(context.Context, *config.Config, logger) (daemon.Runtime, error)
	// idle is [serviceIdle]; nil: there is no systemd.
	idle func(ctx context.Context, socket string) bool
	// hostStopping is [daemon.HostStopping]; nil: there is no systemd.
	hostStopping func(context.Context) (bool, error)
	// converter returns the path of [compose.Program]; empty: it is not installed.
	converter func() string

	args    []string // the command line
	project projectFlags
	warned  bool // of the configuration file
	scoped  bool // reported that the system's daemon is used
	// ofSystem is true for a user other than root who uses the system's daemon, and cannot start it.
	ofSystem bool
	// outlet is the way out of the network of the pods without root; nil: they have that of the host.
	outlet func() (rootless.Outlet, error)
	// user has the defaults of the configuration that was loaded, if it is that of a user's daemon.
	user map[string]string
}

type logger = *slog.Logger

// colour reports whether stdout is a terminal that shows colours (https://no-color.org).
func (a *app) colour() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && a.isTerminal()
}

// width returns a function that returns the columns of the terminal that stderr is; nil: it is not a terminal, or cannot erase a line.
func (a *app) width() func() int {
	f, ok := a.err.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() int {
		const least = 80 // of a terminal that does not report its size
		columns, _, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 {
			return least
		}
		return columns
	}
}

// screen returns stdout for tables.
func (a *app) screen() view.Screen {
	s := view.Screen{W: a.out, Colour: a.colour()}
	if f, ok := a.out.(*os.File); ok && a.isTerminal() {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.Width = columns
		}
	}
	return s
}

// isTerminal reports whether stdout is a terminal.
func (a *app) isTerminal() bool {
	f, ok := a.out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// untilSignal returns a context that ends at the first SIGINT or SIGTERM, so that the command can remove an incomplete file. The next one
// has its default action: it ends a command that does not react to the first.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		defer cancel()
		defer signal.Stop(signals)
		select {
		case <-signals:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// note prints a line to stderr, prefixed with the name of the program.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.err, plain.Text(a.pages("podstead: "+fmt.Sprintf(format, args...))))
}

// hint prints what a person can do. TestHints follows all hints of the program.
func (a *app) hint(text string) { fmt.Fprintln(a.err, plain.Text(a.pages("hint: "+text))) }

// page matches the path of a page in the repository.
var page = lazyregexp.New(`\bdocs/(howto|reference)/[a-z-]+\.md\b`)

// pages replaces the paths of pages by those of installed pages, or else by their addresses.
func (a *app) pages(text string) string {
	return page.ReplaceAllStringFunc(text, func(path string) string {
		installed := filepath.Join("/usr/share/doc/podstead", path)
		if _, err := os.Stat(filepath.Join(a.hostRoot, installed)); err == nil && a.hostRoot != "" {
			return installed
		}
		return "https://github.com/podstead/podstead/blob/main/" + path
	})
}
