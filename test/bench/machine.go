package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/internal/rig"
)

// machine describes the host and the programs.
func (b *bench) machine(ctx context.Context, r *report) error {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	cgroups := "v1"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		cgroups = "v2"
	}
	runc, err := versionOf(exec.CommandContext(ctx, "runc", "--version"))
	if err != nil {
		return err
	}
	debian, err := versionOf(exec.CommandContext(ctx, "containerd", "--version"))
	if err != nil {
		return err
	}
	r.machine = fmt.Sprintf("%d cores, kernel %s, cgroups %s, %s", runtime.NumCPU(), unix.ByteSliceToString(uts.Release[:]), cgroups,
		runtime.GOARCH)
	r.programs = fmt.Sprintf("embedded containerd %s, %s, runc %s; Debian's containerd %s", module("github.com/containerd/containerd/v2"),
		runtime.Version(), runc, debian)
	rg, err := rig.New()
	if err != nil {
		return err
	}
	defer os.RemoveAll(rg.Dir)
	for _, p := range []struct {
		path string
		size *int64
	}{{rg.Program, &r.program}, {rg.Monitor, &r.monitor}} {
		st, err := os.Stat(p.path)
		if err != nil {
			return err
		}
		*p.size = st.Size()
	}
	return nil
}

// versionOf returns the first word with a leading digit in the output of a program.
func versionOf(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w", cmd.Args, err)
	}
	for field := range strings.FieldsSeq(string(out)) {
		if field[0] >= '0' && field[0] <= '9' {
			return field, nil
		}
	}
	return "", fmt.Errorf("%v: no version in %q", cmd.Args, out)
}

// module returns the version of a module in this program.
func module(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
