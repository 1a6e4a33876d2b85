// Package ociruntime selects the OCI runtime of new containers: the configured program, or with [Auto] crun if it works on this host, else
// runc. It finds out by running a container, see [Options].
//
// The package owns that container, its directory and its cgroup. It must not affect existing containers: each keeps the OCI runtime that
// created it.
package ociruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/oci"
)

// Auto selects crun if it is installed and works on this host, else runc.
const Auto = "auto" // the value of engine.runtime

// The programs that [Auto] selects from.
const (
	crun = "crun"
	runc = "runc"
)

// ErrNotFound is returned if no OCI runtime is installed.
var ErrNotFound = errors.New("OCI runtime not found")

// Options configure a selection. The others than Program are required for [Auto] only.
type Options struct {
	// Program is the name or the absolute path of an OCI runtime, or [Auto] (default).
	Program string
	// Dir is the path of a directory for the container of a trial. It is created and removed, with what a trial that was killed has left.
	Dir string
	// Pause is the absolute path of the program of the container, which is that of pause processes.
	Pause   string
	Cgroups podcgroup.Groups
	Host    oci.Host
	// Memory is the path of a file that keeps the result of a trial until something changes that it depends on; empty: it is not kept.
	Memory string
	// Timeout bounds the run of the container (default 30 seconds, far longer than it takes on a slow host).
	Timeout time.Duration
}

// Choice is a selected OCI runtime.
type Choice struct {
	// Program is its name or absolute path.
	Program string
	// Reason explains the choice of [Auto]. It is empty for a program that was configured.
	Reason string
	// UserNamespaces is the program for containers with a user namespace.
	UserNamespaces string
	// RecursiveReadOnly is true if it supports recursive read-only mounts.
	RecursiveReadOnly bool
}

// Check returns an [ErrNotFound] if [Select] would find no program, without running one.
func Check(program string) error {
	if cmp.Or(program, Auto) != Auto {
		return lookUp(program)
	}
	if lookUp(crun) != nil && lookUp(runc) != nil {
		return fmt.Errorf("%w: neither crun nor runc is in PATH: %w", ErrNotFound, exec.ErrNotFound)
	}
	return nil
}

func lookUp(program string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return nil
}

// Select selects an OCI runtime. With [Auto] it runs a container, unless an earlier one has worked. If nothing is found, the error is an
// [ErrNotFound].
func Select(ctx context.Context, o Options) (Choice, error) {
	if err := Check(o.Program); err != nil {
		return Choice{}, err
	}
	choice, automatic := Choice{Program: o.Program}, cmp.Or(o.Program, Auto) == Auto
	if automatic {
		if kept, found := o.recall(); found {
			return kept, nil
		}
		choice = o.auto(ctx)
		if err := lookUp(choice.Program); err != nil {
			return Choice{}, fmt.Errorf("%w (%s)", err, choice.Reason)
		}
	}
	choice.UserNamespaces = choice.Program
	if lacksRecursiveBinds(ctx, choice.Program) && lookUp(runc) == nil {
		choice.UserNamespaces = runc
		if choice.Reason != "" {
			choice.Reason += "; pods with hostUsers = false use runc, because crun before 1.9 does not mount volumes in volumes for them"
		}
	}
	choice.RecursiveReadOnly = recursiveReadOnly(ctx, choice.Program)
	if automatic && ctx.Err() == nil { // else the programs were not asked for their versions
		_ = o.keep(choice) // without it the next daemon runs a container
	}
	return choice, nil
}

func (o Options) auto(ctx context.Context) Choice {
	if lookUp(crun) != nil {
		return Choice{Program: runc, Reason: "crun is not installed"}
	}
	if err := o.try(ctx, crun); err != nil {
		return Choice{Program: runc, Reason: fmt.Sprintf("crun does not work on this host: %v", err)}
	}
	return Choice{Program: crun, Reason: "crun works on this host"}
}
