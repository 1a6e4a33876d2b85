package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/daemon"
)

// TestConverterMissing reads a Compose file without the program that converts it, and with one that cannot be executed.
func TestConverterMissing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "compose.yaml")
	if err := os.WriteFile(file, []byte("services: {web: {image: web}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{converter: func() string { return "" }}
	_, err := a.convertProject(t.Context(), file, false, nil)
	f := explain(invalidFiles([]error{err})) // as commands that read several files report it
	if want := "convert " + file + ": the program podstead-compose is not installed"; f.err == nil || f.err.Error() != want {
		t.Errorf("got %v, want %s", f.err, want)
	}
	if len(f.hints) != 1 || f.hints[0] != daemon.InstallHint(compose.Program) {
		t.Errorf("hints: %q", f.hints)
	}
	other, err := exec.LookPath(compose.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer func(before string) { version = before }(version)
	version = "v2"
	a.converter = func() string { return other }
	_, err = a.convertProject(t.Context(), file, false, nil)
	f = explain(err)
	want := "convert " + file + ": podstead and podstead-compose are not of the same version: v2 and devel"
	if f.err == nil || f.err.Error() != want {
		t.Errorf("got %v, want %s", f.err, want)
	}
	if len(f.hints) != 1 || !strings.HasPrefix(f.hints[0], "try again after an upgrade") {
		t.Errorf("hints: %q", f.hints)
	}
	a.converter = func() string { return file }
	_, err = a.convertProject(t.Context(), file, false, nil)
	if want := "start the converter: fork/exec " + file + ": permission denied"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
