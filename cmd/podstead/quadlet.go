package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/quadlet"
)

// areUnits reports whether arguments are units of Quadlet, or directories with units.
func areUnits(args []string) bool {
	for _, path := range args {
		if quadlet.Extensions[filepath.Ext(path)] != "" {
			return true
		}
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			if err == nil && quadlet.Extensions[filepath.Ext(e.Name())] != "" {
				return true
			}
		}
	}
	return false
}

// convertUnits prints the pod file of units, or writes a file for each of their pods.
func (a *app) convertUnits(paths []string, o spec.Options, short bool, directory string) error {
	host := quadlet.ThisHost()
	pods, problems := quadlet.Convert(paths, &host, o, short)
	a.problems(problems)
	if len(pods) == 0 {
		return invalidFiles(nil)
	}
	if directory == "" {
		if len(pods) == 1 {
			return a.printLines(string(pods[0].Text))
		}
		var names []string
		for _, p := range pods {
			names = append(names, p.Name)
		}
		return &failure{
			status: statusUsage, err: fmt.Errorf("the units define several pods: %s", strings.Join(names, ", ")),
			hints: []string{"write a file for each with podstead convert UNIT --output-dir DIR"},
		}
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("write pod files: %w", err)
	}
	for _, p := range pods {
		path := filepath.Join(directory, p.Name+".toml")
		if err := writeNew(path, p.Text); err != nil {
			return err
		}
		fmt.Fprintln(a.out, plain.Text(path))
	}
	return nil
}

// writeNew writes a file that does not exist. Only its owner can read it: units can have passwords in variables.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &failure{
			status: statusUsage, err: fmt.Errorf("%s exists", plain.Text(path)),
			hints: []string{"delete it, or write into another directory"},
		}
	}
	if err != nil {
		return fmt.Errorf("write pod file: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write pod file: %w", err)
	}
	return nil
}
