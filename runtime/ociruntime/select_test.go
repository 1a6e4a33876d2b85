package ociruntime

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
)

// programs makes scripts the only programs in PATH beside those of the system's shell.
func programs(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func options(t *testing.T, program string) Options {
	t.Helper()
	groups, err := podcgroup.New(podcgroup.Cgroupfs, "/podstead-trial-test", false)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Program: program, Dir: filepath.Join(t.TempDir(), "trial"), Pause: "/bin/sh", Cgroups: groups, Timeout: time.Minute}
}

func TestSelect(t *testing.T) {
	const (
		works  = "case $* in *rootfs*|*run*--bundle*) exit 0;; esac; exit 1"
		broken = "echo starting >&2; echo 'cgroups in hybrid mode not supported' >&2; exit 1"
		silent = "exit 3"
	)
	for _, test := range []struct {
		name, program  string
		programs       map[string]string
		want, contains string
	}{
		{"crun works", "auto", map[string]string{"crun": works, "runc": broken}, "crun", "crun works on this host"},
		{"default", "", map[string]string{"crun": works}, "crun", "crun works on this host"},
		{
			"crun does not work", "auto",
			map[string]string{"crun": broken, "runc": works},
			"runc",
			"does not work on this host: cgroups in hybrid mode not supported",
		},
		{
			"crun prints nothing", "auto",
			map[string]string{"crun": silent, "runc": works},
			"runc",
			"does not work on this host: exit status 3",
		},
		{"no crun", "auto", map[string]string{"runc": broken}, "runc", "crun is not installed"},
		{"configured", "runc", map[string]string{"crun": works, "runc": broken}, "runc", ""},
		{"configured crun is not tried", "crun", map[string]string{"crun": broken, "runc": works}, "crun", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			programs(t, test.programs)
			o := options(t, test.program)
			got, err := Select(t.Context(), o)
			if err != nil || got.Program != test.want || !strings.Contains(got.Reason, test.contains) ||
				(got.Reason == "") != (test.contains == "") {
				t.Errorf("%+v, %v, want %s because %q", got, err, test.want, test.contains)
			}
			if _, err := os.Stat(o.Dir); err == nil {
				t.Error("the directory of the trial was kept")
			}
		})
	}
}

func TestNoRuntime(t *testing.T) {
	for _, test := range []struct {
		program  string
		programs map[string]string
		want     string
	}{
		{"auto", nil, "OCI runtime not found: neither crun nor runc is in PATH"},
		{"runc", map[string]string{"crun": ""}, `OCI runtime not found: exec: "runc": executable file not found in $PATH`},
		{"/no/such/runc", nil, "OCI runtime not found: "},
		{
			"auto",
			map[string]string{"crun": "echo broken >&2; exit 1"},
			`"runc": executable file not found in $PATH (crun does not work on this host: broken)`,
		},
	} {
		programs(t, test.programs)
		_, err := Select(t.Context(), options(t, test.program))
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.program, err, test.want)
		}
	}
	programs(t, nil)
	if err := Check("auto"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v, want %v", err, exec.ErrNotFound)
	}
}

// An OCI runtime that hangs is killed.
func TestTrialHangs(t *testing.T) {
	programs(t, map[string]string{"crun": "exec /bin/sleep 1000", "runc": ""})
	o := options(t, Auto)
	o.Timeout = 50 * time.Millisecond
	got, err := Select(t.Context(), o)
	if err != nil || got.Program != "runc" || !strings.Contains(got.Reason, "a container did not exit within 50ms") {
		t.Errorf("%+v, %v", got, err)
	}
}

// What an earlier trial has left is removed, and a daemon that stops does not wait.
func TestTrialWasKilled(t *testing.T) {
	programs(t, map[string]string{"crun": "exit 0", "runc": ""})
	o := options(t, Auto)
	if err := os.MkdirAll(filepath.Join(o.Dir, "rootfs", "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Select(t.Context(), o); err != nil || got.Program != "crun" {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Select(ctx, o); err != nil || got.Program != "runc" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRecursiveReadOnly(t *testing.T) {
	if !listsRecursiveReadOnly([]byte(`{"mountOptions": ["ro", "rro"]}`)) || listsRecursiveReadOnly([]byte(`{"mountOptions": ["ro"]}`)) ||
		listsRecursiveReadOnly([]byte("rro")) {
		t.Error("the list of features is misread")
	}
	for output, want := range map[string]bool{
		"crun version 1.8.1\ncommit: f8a\n": true, "crun version 1.4\n": true, "crun version 2.0\n": true, "crun version 1.3\n": false,
		"crun version 0.17\n":  false,
		"runc version 1.8.1\n": false, "": false,
	} {
		if got := isCrunSince(output, 1, 4); got != want {
			t.Errorf("%q: %v, want %v", output, got, want)
		}
	}
}
