package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podstead/podstead/internal/atomicfile"
)

// FileError reports that the configuration file cannot be used. It may be that a person is editing it.
type FileError struct {
	Err error // [spec.Problems], unless the file cannot be read
	// LastValid reports that the last valid file is used in its place. Otherwise it is what is valid in the file.
	LastValid bool
	// Hidden reports that this user cannot read the file, or its last valid copy: the daemon, which can, may use another configuration.
	Hidden bool
}

// Error returns the message of Err.
func (e *FileError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

// ValidName is the name of the copy of the last valid file, in the state directory that is in effect without the file.
const ValidName = "podstead.toml"

// validCopy is where the daemon copies a file that it uses.
type validCopy struct {
	path string // of the copy; empty: the configuration was not loaded from a file that a later one could replace
	text []byte
}

// header is the first line of the copy. Daemons with different files may have the same state directory.
func header(file string) string { return fmt.Sprintf("# The last valid content of %q.\n", file) }

// KeepValid copies the file of the configuration for a later [Load], unless it was loaded from such a copy.
func (c *Config) KeepValid() error {
	if c.valid.path == "" {
		return nil
	}
	if text, err := os.ReadFile(c.valid.path); err == nil && bytes.Equal(text, c.valid.text) {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(c.valid.path), 0o711)
	if err == nil {
		err = atomicfile.Write(c.valid.path, c.valid.text, 0o600) // a notifier may have a token
	}
	if err != nil {
		return fmt.Errorf("copy configuration: %w", err)
	}
	return nil
}

// validPath returns the path of the copy.
func validPath(from *Sources) (string, error) {
	c := &Config{}
	for _, s := range from.settings() {
		if s.field(c) != any(&c.StateDir) {
			continue
		}
		if err := errors.Join(s.set(c, s.Default), s.override(c, *from)); err != nil {
			return "", err
		}
	}
	return filepath.Join(c.StateDir, ValidName), nil
}

// loadValid loads the copy of the last valid file. It returns an error if there is none.
func loadValid(from *Sources, file string) (*Config, error) {
	path, err := validPath(from)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(text, []byte(header(file))) {
		return nil, fs.ErrNotExist
	}
	return build(from, path, text)
}
