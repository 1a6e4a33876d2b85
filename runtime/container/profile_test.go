package container

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

func TestSeccompProfile(t *testing.T) {
	config := t.TempDir()
	dir := filepath.Join(config, "seccomp")
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"small": 10, "largest": maxSeccompBytes, "large": maxSeccompBytes + 1} {
		if err := os.WriteFile(at(name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(at("fifo"), 0o600), os.Symlink("small", at("link"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"small": 10, "largest": maxSeccompBytes, "link": 10} {
		if p, err := seccompProfile(config, name); err != nil || len(p.Text) != want || p.Path != at(name) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(p.Text), err, want)
		}
	}
	for name, want := range map[string]string{
		"none": "no such file", "large": "larger than 1048576 bytes", "fifo": "not a regular file", ".": "not a regular file",
	} {
		_, err := seccompProfile(config, name)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want the path and %q", name, err, want)
		}
	}
}

// fakeAppArmor returns an interface whose list of loaded profiles contains "mine", and whose parser is a shell script.
func fakeAppArmor(t *testing.T, script string) (a AppArmor, dir string) {
	t.Helper()
	dir = t.TempDir()
	a = AppArmor{
		loaded: filepath.Join(dir, "profiles"), parser: filepath.Join(dir, "parser"),
		text: func(name string) string { return "profile " + name },
	}
	err := os.WriteFile(a.loaded, []byte("mine-too (complain)\nmine (enforce)\n"), 0o600)
	if err == nil {
		err = os.WriteFile(a.parser, []byte("#!/bin/sh\ncd "+dir+"\n"+script), 0o700) // it is executed
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

func TestAppArmor(t *testing.T) {
	a, dir := fakeAppArmor(t, `cat > text; echo "$@" > args`)
	for _, name := range []string{"", "mine"} {
		if err := a.Ensure(t.Context(), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"min", "mine (enforce)", "other"} {
		if err := a.Ensure(t.Context(), name); err == nil || !strings.HasSuffix(err.Error(), "is not loaded") {
			t.Errorf("%q: %v, want the error: is not loaded", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "text")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a profile other than the default was loaded: %v", err)
	}
	if err := a.Ensure(t.Context(), oci.DefaultAppArmor); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"text": "profile " + oci.DefaultAppArmor, "args": "-Kr\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s passed to the parser: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestAppArmorFails(t *testing.T) {
	a, dir := fakeAppArmor(t, "echo syntax error; exit 1")
	if err := a.Ensure(t.Context(), oci.DefaultAppArmor); err == nil || !strings.HasSuffix(err.Error(), "exit status 1: syntax error") {
		t.Errorf("failing parser: %v, want its output", err)
	}
	if err := os.Remove(filepath.Join(dir, "profiles")); err != nil {
		t.Fatal(err)
	}
	if err := a.Ensure(t.Context(), "mine"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no list of profiles: %v", err)
	}
}

// The child process of the parser holds the output open, and must be killed too.
func TestAppArmorTimeout(t *testing.T) {
	a, _ := fakeAppArmor(t, "sleep 600 & sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := a.Ensure(ctx, oci.DefaultAppArmor); err == nil {
		t.Error("no error after the timeout")
	}
}
