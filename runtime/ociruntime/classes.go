package ociruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ErrNoClass is returned for a runtime class that is not defined.
var ErrNoClass = errors.New("not found")

// Classes are the OCI runtimes of pods with a runtime class. The zero value has no classes. It is safe for concurrent use.
type Classes struct {
	mu       sync.Mutex
	programs map[string]string // by class
	choices  map[string]Choice // by program, of those that were selected
}

// Set replaces the classes: the names or absolute paths of OCI runtimes, by the names of the classes. Programs are not looked up: one that
// is missing must not affect other pods.
func (c *Classes) Set(programs map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs, c.choices = maps.Clone(programs), nil // a program may have been updated
}

// Check returns an [ErrNoClass] if a class is not defined, and an [ErrNotFound] if its OCI runtime is not installed. It runs no program.
func (c *Classes) Check(class string) error {
	_, err := c.program(class)
	return err
}

func (c *Classes) program(class string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	program, defined := c.programs[class]
	switch {
	case !defined && len(c.programs) == 0:
		return "", fmt.Errorf("RuntimeClass %q %w, this host has none", class, ErrNoClass)
	case !defined:
		return "", fmt.Errorf("RuntimeClass %q %w, this host has %s", class, ErrNoClass,
			strings.Join(slices.Sorted(maps.Keys(c.programs)), ", "))
	}
	if err := lookUp(program); err != nil {
		return "", fmt.Errorf("RuntimeClass %q: %w", class, err)
	}
	return program, nil
}

// Select returns the OCI runtime of a class. Its errors are those of [Classes.Check].
func (c *Classes) Select(ctx context.Context, class string) (Choice, error) {
	program, err := c.program(class)
	if err != nil {
		return Choice{}, err
	}
	return c.choose(ctx, program)
}

// choose is [Select] for a program of a class, which is asked for its features once.
func (c *Classes) choose(ctx context.Context, program string) (Choice, error) {
	c.mu.Lock()
	choice, known := c.choices[program]
	c.mu.Unlock()
	if known {
		return choice, nil
	}
	choice, err := Select(ctx, Options{Program: program})
	if err != nil || ctx.Err() != nil { // it may not have been asked
		return choice, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.choices == nil {
		c.choices = map[string]Choice{}
	}
	c.choices[program] = choice
	return choice, nil
}

// RecursiveReadOnly reports whether a program supports recursive read-only mounts. It may be that of a class that was removed.
func (c *Classes) RecursiveReadOnly(ctx context.Context, program string) bool {
	choice, err := c.choose(ctx, program)
	return err == nil && choice.RecursiveReadOnly
}
