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

// allHints returns its hints, and those of the failures that it wraps.
func (f *failure) allHints() []string {
	hints := slices.Clone(f.hints)
	for _, wrapped := range allOf[*failure](f.err) {
		hints = append(hints, wrapped.allHints()...)
	}
	return hints
}

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
	for _, e := range allOf[*api.Error](err) {
		if len(e.Refusals) > 1 {
			for _, r := range e.Refusals {
				fmt.Fprintln(a.err, plain.Text(r.Error()))
			}
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
func problemsOf(err error) (problems []api.Problem) {
	for _, e := range allOf[*api.Error](err) {
		problems = append(problems, e.Problems...)
	}
	for _, list := range allOf[spec.Problems](err) {
		for _, p := range list {
			problems = append(problems, api.Problem(p))
		}
	}
	return problems
}

// allOf returns the errors of a type that an error is or wraps: [errors.AsType] returns the first one only. Errors that one of them wraps
// are not returned.
func allOf[E error](err error) []E {
	if e, is := err.(E); is { //nolint:errorlint // it walks the tree of errors itself
		return []E{e}
	}
	switch wrapper := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return allOf[E](wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		var all []E
		for _, one := range wrapper.Unwrap() {
			all = append(all, allOf[E](one)...)
		}
		return all
	}
	return nil
}

// explain returns the exit code and the hints of an error.
func explain(err error) *failure {
	f := &failure{status: statusFailed, err: err}
	for i, wrapped := range allOf[*failure](err) {
		if i == 0 {
			f.status = wrapped.status
		}
		f.addHints(wrapped.allHints()...)
	}
	if e, ok := errors.AsType[*bundle.Error](err); ok {
		f.hints = append(f.hints, e.Hint)
	}
	f.err = withoutProblems(err)
	for i, e := range allOf[*api.Error](err) {
		f.apply(e, i == 0)
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

// withoutProblems returns an error without those that are problems of files, which report prints; nil: there is no other.
func withoutProblems(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, one := range joined.Unwrap() {
			rest = append(rest, withoutProblems(one))
		}
		return errors.Join(rest...)
	}
	if _, ok := errors.AsType[spec.Problems](err); ok {
		return nil
	}
	return err
}

// apply adds the hints of an error response and, if it is the first one, sets the exit code.
func (f *failure) apply(e *api.Error, first bool) {
	switch {
	case !first:
	case e.Status == http.StatusNotFound && e.Reason != api.ReasonFileNotFound: // otherwise the pod and the container exist
		f.status = statusNotFound
	case e.Status == http.StatusBadRequest:
		f.status = statusUsage
	}
	f.addHints(e.Hint)
	for _, r := range e.Refusals {
		f.addHints(r.Hint)
	}
}

// addHints adds hints, each once.
func (f *failure) addHints(hints ...string) {
	for _, hint := range hints {
		if hint != "" && !slices.Contains(f.hints, hint) {
			f.hints = append(f.hints, hint)
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
