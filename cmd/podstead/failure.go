package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/rootless"
	"github.com/podstead/podstead/spec"
)

// The exit codes of all commands.
const (
	statusFailed      = 1
	statusUsage       = 2 // the command line, the configuration or a pod file is invalid
	statusNotFound    = 3
	statusUnavailable = 4
	statusTimeout     = 5
	statusChanges     = 6 // plan --exit-code: apply would change something
)

// failure is an error with its exit code and hints for the user.
type failure struct {
	status int
	err    error
	hints  []string
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// errExited is the error of a command that has exited with a code other than 0, if that is not to be printed.
var errExited = errors.New("command terminated")

// errChanges is the result of plan --exit-code if apply would change something.
var errChanges = errors.New("there are changes")

// argumentError returns the error of a file that the command line names: one that does not exist is an error of the command line.
func argumentError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &failure{status: statusUsage, err: err}
	}
	return err
}

// usage returns an error of the command line.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return &failure{
		status: statusUsage, err: fmt.Errorf(format, args...),
		hints: []string{"run " + cmd.CommandPath() + " --help for usage"},
	}
}

// report prints an error with its problems and hints, and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	f := explain(err)
	if f.err != nil {
		a.note("%s", strings.ReplaceAll(f.err.Error(), "\n", "; "))
	}
	for _, problem := range problemsOf(err) {
		a.problem(problem)
	}
	if e, ok := errors.AsType[*api.Error](err); ok && len(e.Refusals) > 1 {
		for _, r := range e.Refusals {
			fmt.Fprintln(a.err, plain.Text(r.Error()))
		}
	}
	for _, hint := range f.hints {
		a.hint(hint)
	}
	return f.status
}

// problems prints the problems of a file.
func (a *app) problems(list spec.Problems) {
	for _, p := range list {
		a.problem(api.Problem(p))
	}
}

// problem prints a problem of a file.
func (a *app) problem(p api.Problem) {
	text := spec.Problem(p).String()
	switch {
	case p.Warning && p.Code != "":
		text += " (warning: " + p.Code + ")"
	case p.Warning:
		text += " (warning)"
	case p.Code != "": // a warning that is an error
		text += " (" + p.Code + ")"
	}
	fmt.Fprintln(a.err, plain.Text(a.pages(text)))
	if p.Hint != "" {
		a.hint(p.Hint)
	}
}

// problemsOf returns the problems of files that an error wraps.
func problemsOf(err error) []api.Problem {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e.Problems
	}
	list, _ := errors.AsType[spec.Problems](err)
	problems := make([]api.Problem, len(list))
	for i, p := range list {
		problems[i] = api.Problem(p)
	}
	return problems
}

// explain returns the exit code and the hints of an error.
func explain(err error) *failure {
	f := &failure{status: statusFailed, err: err}
	if wrapped, ok := errors.AsType[*failure](err); ok {
		f.status, f.hints = wrapped.status, wrapped.hints
	}
	if e, ok := errors.AsType[*bundle.Error](err); ok {
		f.hints = append(f.hints, e.Hint)
	}
	if _, ok := errors.AsType[spec.Problems](err); ok {
		f.err = nil // report prints the problems
	}
	if e, ok := errors.AsType[*api.Error](err); ok {
		f.apply(e)
	}
	if _, ok := errors.AsType[*wait.RemainsError](err); ok {
		f.hints = append(f.hints,
			"repair the disk: the daemon removes the pod when its state can be saved. If the daemon restarts before that, delete the "+
				"pod again")
	}
	if e, ok := errors.AsType[*rootless.Error](err); ok {
		f.hints = append(f.hints, e.Hint)
	}
	if e, ok := errors.AsType[*ondemand.Error](err); ok {
		f.hints = append(f.hints, e.Hints...)
	}
	switch {
	case errors.Is(err, follow.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		f.status = statusTimeout
	case errors.Is(err, api.ErrUnavailable):
		f.status = statusUnavailable
	case errors.Is(err, follow.ErrFailed):
		f.status = statusFailed
	case errors.Is(err, follow.ErrStopped), errors.Is(err, errChanges), errors.Is(err, errExited):
		f.err = nil // the user has requested it
	}
	return f
}

// apply sets the exit code and the hints of an error response.
func (f *failure) apply(e *api.Error) {
	switch e.Status {
	case http.StatusNotFound:
		if e.Reason != api.ReasonFileNotFound { // the pod and the container exist
			f.status = statusNotFound
		}
	case http.StatusBadRequest:
		f.status = statusUsage
	}
	if e.Hint != "" {
		f.hints = append(f.hints, e.Hint)
	}
	for _, r := range e.Refusals {
		if r.Hint != "" && !slices.Contains(f.hints, r.Hint) {
			f.hints = append(f.hints, r.Hint)
		}
	}
}

// explainDaemon returns the exit code and the hints of an error of the daemon.
func explainDaemon(err error, c *config.Config) *failure {
	f := explain(err)
	if f.err == nil { // problems of the configuration, which a client of an on-demand daemon must see too
		f.err = err
	}
	if f.status == statusFailed {
		f.status = statusUnavailable
	}
	if daemon.InUse(err) {
		f.status = ondemand.StatusInUse
	}
	if hint := daemon.Hint(err, c); hint != "" {
		f.hints = append(f.hints, hint)
	}
	return f
}
