package runtime

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/oci"
)

func TestReadProfile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, size := range map[string]int{"small": 10, "largest": maxProfileBytes, "large": maxProfileBytes + 1} {
		if err := os.WriteFile(at(name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(at("fifo"), 0o600), os.Symlink("small", at("link"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"small": 10, "largest": maxProfileBytes, "link": 10} {
		if text, err := readProfile(at(name)); err != nil || len(text) != want {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(text), err, want)
		}
	}
	for name, want := range map[string]string{"none": "no such file", "large": "larger than 1 MiB", "fifo": "it is no file", ".": "it is no file"} {
		if _, err := readProfile(at(name)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want the path and %q", name, err, want)
		}
	}
}

// fakeAppArmor lists one profile as loaded, and loads by a shell script.
func fakeAppArmor(t *testing.T, script string) (a appArmor, dir string) {
	t.Helper()
	dir = t.TempDir()
	a = appArmor{
		loaded: filepath.Join(dir, "profiles"), parser: filepath.Join(dir, "parser"),
		text: func(name string) (string, error) { return "profile " + name, nil },
	}
	err := os.WriteFile(a.loaded, []byte("mine-too (complain)\nmine (enforce)\n"), 0o600)
	if err == nil {
		err = os.WriteFile(a.parser, []byte("#!/bin/sh\ncd "+dir+"\n"+script), 0o700) //nolint:gosec // it is executed
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

func TestAppArmor(t *testing.T) {
	a, dir := fakeAppArmor(t, `cat > text; echo "$@" > args`)
	for _, name := range []string{"", "mine"} {
		if err := a.ensure(t.Context(), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"min", "mine (enforce)", "other"} {
		if err := a.ensure(t.Context(), name); err == nil || !strings.HasSuffix(err.Error(), "is not loaded") {
			t.Errorf("%q: %v, want an error: it is not loaded", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "text")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a profile of the machine's own was loaded: %v", err)
	}
	if err := a.ensure(t.Context(), oci.DefaultAppArmor); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"text": "profile " + oci.DefaultAppArmor, "args": "-Kr\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s of the parser: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestAppArmorFails(t *testing.T) {
	a, dir := fakeAppArmor(t, "echo syntax error; exit 1")
	if err := a.ensure(t.Context(), oci.DefaultAppArmor); err == nil || !strings.HasSuffix(err.Error(), "exit status 1: syntax error") {
		t.Errorf("a parser that fails: %v", err)
	}
	a.text = func(string) (string, error) { return "", errors.New("no parser") }
	if err := a.ensure(t.Context(), oci.DefaultAppArmor); err == nil || !strings.HasSuffix(err.Error(), "no parser") {
		t.Errorf("no text: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "profiles")); err != nil {
		t.Fatal(err)
	}
	if err := a.ensure(t.Context(), "mine"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no list: %v", err)
	}
}

// TestAppArmorHangs: a parser that does not end is killed when its time is over, with what it has started, which holds its output.
func TestAppArmorHangs(t *testing.T) {
	a, _ := fakeAppArmor(t, "sleep 600 & sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := a.ensure(ctx, oci.DefaultAppArmor); err == nil {
		t.Error("no error")
	}
}
