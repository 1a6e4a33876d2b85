//go:build e2e

package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/suite"
)

// inside is set in the process that runs the tests in its own mount namespace, so that no mount is left on the host.
const inside = "PODSTEAD_VOLUME_TEST_INSIDE"

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests need root")
		os.Exit(1)
	}
	switch {
	case os.Getenv(inside) == "":
		os.Exit(runInside())
	case os.Getenv(crashDir) != "":
		os.Exit(workUntilKilled(os.Getenv(crashDir)))
	}
	os.Exit(suite.Main(m.Run, suite.Options{Together: true}))
}

func runInside() int {
	runtime.LockOSThread() // Pdeathsig applies to the thread, not to the process
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// clean tears down a pod's volumes at the end of a test and checks that nothing is left.
func clean(t *testing.T, s *Set, uid string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for range 2 { // repeated, it is a no-op
			if err := s.Teardown(ctx, uid); err != nil {
				t.Error(err)
			}
		}
		wantNoVolumes(t, s, uid)
	})
}

func wantNoVolumes(t *testing.T, s *Set, uid string) {
	t.Helper()
	for _, dir := range []string{s.runDir(uid), s.diskDir(uid)} {
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", dir, err)
		}
		if list := mountsBelow(t, dir); len(list) > 0 {
			t.Errorf("mounts are left: %v", list)
		}
	}
}

// mountsBelow returns the mount points below dir.
func mountsBelow(t *testing.T, dir string) []string {
	t.Helper()
	list, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, m := range list {
		places = append(places, m.Mountpoint)
	}
	return places
}

// tmpfsAt mounts a tmpfs with a propagation until the end of the test.
func tmpfsAt(t *testing.T, dir string, propagation uintptr) string {
	t.Helper()
	filetest.Mkdir(t, dir)
	if err := errors.Join(unix.Mount("tmpfs", dir, "tmpfs", 0, ""), unix.Mount("", dir, "", propagation, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func prepare(t *testing.T, s *Set, pod Pod) {
	t.Helper()
	if err := s.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// mountsOf returns the sources of the mounts of a container.
func mountsOf(t *testing.T, s *Set, pod Pod, run string, mounts ...spec.VolumeMount) []string {
	t.Helper()
	list, err := s.Mounts(t.Context(), pod, Request{Run: run, Container: &spec.Container{Name: "app", VolumeMounts: mounts}})
	if err != nil {
		t.Fatal(err)
	}
	sources := make([]string, len(list))
	for i, m := range list {
		sources[i] = m.Source
	}
	return sources
}

func fileSystem(t *testing.T, path string) uint32 {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		t.Fatal(err)
	}
	return uint32(s.Type) // 32 bits on all architectures
}

// testTimeout bounds waiting loops.
const testTimeout = 2 * time.Minute

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
