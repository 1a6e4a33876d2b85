package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
)

// waiting shows on a terminal what the command waits for, until the returned function is called. Elsewhere it shows nothing.
func (a *app) waiting(format string, args ...any) (done func()) {
	width := a.width()
	if width == nil {
		return func() {}
	}
	out, err := a.out, a.err
	line := startActivity(err, width, fmt.Sprintf(format, args...))
	a.out, a.err = line.Writer(out), line.Writer(err)
	return func() {
		a.out, a.err = out, err
		line.Stop()
	}
}

// listed returns names for a text, and only the number of those after the third.
func listed(names map[string]string) string {
	const most = 3
	list := slices.Sorted(maps.Values(names))
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// reach connects to the daemon, and starts it if it is not running.
func (a *app) reach(ctx context.Context, s *ondemand.Starter) error {
	defer a.waiting("Waiting for the daemon")()
	return s.Connect(ctx)
}
