package main

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/spec"
)

// TestInvalidConfigurationWarning: a user who cannot read what the daemon uses gets the name of the socket that is tried.
func TestInvalidConfigurationWarning(t *testing.T) {
	mistake := errors.New("p.toml:1:1: x: unknown field\np.toml:2:1: y: unknown field")
	denied := &fs.PathError{Op: "open", Path: "p.toml", Err: fs.ErrPermission}
	for _, tt := range []struct {
		invalid config.FileError
		want    string
	}{
		{config.FileError{Err: mistake}, "is invalid, what is valid in it is used: p.toml:1:1: x: unknown field (and 1 more)"},
		{
			config.FileError{Err: mistake, LastValid: true},
			"is invalid, the last valid file is used: p.toml:1:1: x: unknown field (and 1 more)",
		},
		{
			config.FileError{Err: mistake, Hidden: true},
			"is invalid, what is valid in it is used with the socket /run/s: p.toml:1:1: x: unknown field (and 1 more)",
		},
		{
			config.FileError{Err: denied, Hidden: true},
			"cannot be read, defaults are used with the socket /run/s: open p.toml: permission denied",
		},
		{
			config.FileError{LastValid: true, Err: spec.Problems{
				{File: "p.toml", Line: 1, Column: 1, Path: "x", Message: "unknown field", Hint: "did you mean \"y\"?"},
			}},
			"is invalid, the last valid file is used: p.toml:1:1: x: unknown field\nhint: did you mean \"y\"?",
		},
	} {
		var out bytes.Buffer
		a := &app{err: &out}
		a.warnConfig(&tt.invalid, "/run/s")
		a.warnConfig(&tt.invalid, "/run/s")
		if want := "podstead: warning: the configuration file " + tt.want + "\n"; out.String() != want {
			t.Errorf("got  %swant %s", &out, want)
		}
	}
}
