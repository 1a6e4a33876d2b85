package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/engine"
)

// Process is a process of the rig: a daemon, a shim, a command, or a container's process.
type Process struct {
	PID     int
	Command string
}

// Processes returns the rig's processes. It may miss one that starts or exits meanwhile.
func (r *Rig) Processes() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	marks := r.podMarks()
	var found []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || pid == 1 {
			continue
		}
		dir := filepath.Join("/proc", entry.Name())
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(command) == 0 { // exited, a zombie, or a kernel thread
			continue
		}
		if r.owns(dir, marks) {
			found = append(found, Process{pid, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))})
		}
	}
	return found, nil
}

// owns reports whether a process has the rig's directory in its arguments or environment, has its root there, or is in a cgroup of one
// of its pods.
func (r *Rig) owns(proc string, marks []string) bool {
	for _, file := range []string{"cmdline", "environ"} {
		if text, _ := os.ReadFile(filepath.Join(proc, file)); strings.Contains(string(text), r.Dir+"/") {
			return true
		}
	}
	cgroups, _ := os.ReadFile(filepath.Join(proc, "cgroup"))
	if containsAny(string(cgroups), marks) {
		return true
	}
	mounts, _ := os.ReadFile(filepath.Join(proc, "mountinfo"))
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
			return strings.Contains(line, r.Dir+"/")
		}
	}
	return false
}

// podMarks returns the strings in the names of the pods' cgroups: the UID and, for systemd, its escaped form.
func (r *Rig) podMarks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var marks []string
	for uid := range r.uids {
		marks = append(marks, uid, strings.ReplaceAll(uid, "-", "_"))
	}
	return marks
}

// mounts returns the mount points in the rig's directory, the innermost first.
func (r *Rig) mounts() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], r.Dir+"/") {
			found = append(found, fields[4])
		}
	}
	slices.Reverse(found)
	return found, nil
}

// cgroupDepth is the maximum depth of a pod's cgroup: podstead.slice/podstead-<uid>.slice in a hierarchy such as
// /sys/fs/cgroup/cpu,cpuacct.
const cgroupDepth = 4

// cgroups returns the cgroups of the rig's pods, the innermost last.
func (r *Rig) cgroups() ([]string, error) {
	const root = "/sys/fs/cgroup"
	marks := r.podMarks()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil // cgroups of other programs may disappear
		}
		inside := strings.TrimPrefix(path, root)
		if containsAny(inside, marks) {
			found = append(found, path)
		} else if strings.Count(inside, "/") >= cgroupDepth {
			return filepath.SkipDir
		}
		return nil
	})
	return found, err
}

// Leftovers returns what pods and daemons have left: processes, mounts, cgroups, links, rules, files, and records of the engine, which
// it starts for that. The rig's pods must be removed and its daemon stopped. Images are not leftovers.
func (r *Rig) Leftovers(ctx context.Context) ([]string, error) {
	var left []string
	processes, err := r.Processes()
	for _, p := range processes {
		left = append(left, fmt.Sprintf("process %d: %s", p.PID, p.Command))
	}
	mounts, mountsErr := r.mounts()
	for _, m := range mounts {
		left = append(left, "mount "+m)
	}
	cgroups, cgroupsErr := r.cgroups()
	for _, c := range cgroups {
		left = append(left, "cgroup "+c)
	}
	network, networkErr := r.network()
	left = append(left, network...)
	for _, dir := range []string{
		filepath.Join(r.RunDir(), "volumes"), filepath.Join(r.RunDir(), "images"), filepath.Join(r.RunDir(), "process"),
		filepath.Join(r.StateDir(), "pods"), filepath.Join(r.RunDir(), "ns"), filepath.Join(r.RunDir(), "engine", "s"), r.LogDir(),
		filepath.Join(r.RunDir(), "engine", "bundles"), filepath.Join(r.RunDir(), "engine", "monitor", "containers"),
		filepath.Join(r.RunDir(), "engine", "monitor", "sandboxes"),
		filepath.Join(r.RunDir(), "engine", "runc", engine.Namespace),
		filepath.Join(r.RunDir(), "engine", "io.containerd.runtime.v2.task", engine.Namespace),
		filepath.Join(r.RunDir(), "engine", "io.containerd.sandbox.controller.v1.shim", engine.Namespace),
		filepath.Join(r.StateDir(), "engine", "io.containerd.runtime.v2.task", engine.Namespace),
		filepath.Join(r.StateDir(), "engine", "io.containerd.sandbox.controller.v1.shim", engine.Namespace),
		filepath.Join(r.StateDir(), "engine", "tmpmounts"),
	} {
		entries, _ := os.ReadDir(dir) // a directory may not exist
		for _, e := range entries {
			left = append(left, "file "+filepath.Join(dir, e.Name()))
		}
	}
	temporary, _ := os.ReadDir(r.tempDir())
	for _, e := range temporary {
		if !isInterrupted(e.Name()) {
			left = append(left, "file "+filepath.Join(r.tempDir(), e.Name()))
		}
	}
	if err := errors.Join(err, mountsErr, cgroupsErr, networkErr); err != nil || len(left) > 0 {
		return left, err
	}
	return r.records(ctx)
}

// records returns the engine's records other than images, see [recordsOf], without garbage.
func (r *Rig) records(ctx context.Context) ([]string, error) {
	if _, err := os.Stat(filepath.Join(r.StateDir(), "engine")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	e, err := engine.Start(ctx, engine.Options{
		Root: filepath.Join(r.StateDir(), "engine"), State: filepath.Join(r.RunDir(), "engine"), ShimPath: r.Shim,
		MonitorPath: r.Monitor,
	})
	if err != nil {
		return nil, err
	}
	ctx = namespaces.WithNamespace(ctx, engine.Namespace)
	left, err := recordsOf(ctx, e)
	for end := time.Now().Add(garbageTime); err == nil && len(left) > 0 && time.Now().Before(end); left, err = recordsOf(ctx, e) {
		<-time.After(20 * time.Millisecond)
	}
	return left, errors.Join(err, e.Close())
}

// garbageTime is longer than it takes until an engine that has started has collected the garbage of the one before.
const garbageTime = 5 * time.Second

// recordsOf returns the records of containers, sandboxes, leases, and writable snapshots.
func recordsOf(ctx context.Context, e *engine.Engine) ([]string, error) {
	var left []string
	containers, containersErr := e.Client().Containers(ctx)
	for _, c := range containers {
		left = append(left, "container "+c.ID())
	}
	sandboxes, sandboxesErr := e.Client().SandboxStore().List(ctx)
	for _, s := range sandboxes {
		left = append(left, "sandbox "+s.ID)
	}
	held, leasesErr := e.Client().LeasesService().List(ctx)
	for _, l := range held {
		_, isWork := l.Labels["podstead.io/image-work"]
		if _, expires := l.Labels["containerd.io/gc.expire"]; isWork && expires {
			continue // keeps the content of an interrupted pull for the next one
		}
		left = append(left, fmt.Sprintf("lease %s %v", l.ID, l.Labels))
	}
	snapshotsErr := e.Client().SnapshotService("overlayfs").Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		if info.Kind != snapshots.KindCommitted {
			left = append(left, fmt.Sprintf("snapshot %s (%v)", info.Name, info.Kind))
		}
		return nil
	})
	return left, errors.Join(containersErr, sandboxesErr, leasesErr, snapshotsErr)
}

// AwaitNoLeftovers waits until nothing is left. The error lists what is.
func (r *Rig) AwaitNoLeftovers(ctx context.Context) error {
	return Await(ctx, func() error {
		left, err := r.Leftovers(ctx)
		if len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("left behind:\n%s", strings.Join(left, "\n")))
		}
		return err
	})
}

// Close kills all processes of the rig and removes its directory. It is for the end of a test, including a failed one.
func (r *Rig) Close(ctx context.Context) error {
	return errors.Join(r.CutPower(ctx), os.RemoveAll(r.Dir))
}

// CutPower simulates a loss of power: it removes the rig's processes, mounts, cgroups, network, and the directory for runtime state,
// which is cleared at boot. The boot ID does not change.
func (r *Rig) CutPower(ctx context.Context) error {
	r.client.Close()
	err := Await(ctx, r.killAll)
	mounts, mountsErr := r.mounts()
	for _, m := range mounts {
		if e := unix.Unmount(m, unix.MNT_DETACH); e != nil && !errors.Is(e, unix.EINVAL) {
			err = errors.Join(err, fmt.Errorf("unmount %s: %w", m, e))
		}
	}
	cgroups, cgroupsErr := r.cgroups()
	for _, dir := range slices.Backward(cgroups) {
		err = errors.Join(err, Await(ctx, func() error { return ignore(unix.Rmdir(dir), unix.ENOENT) }))
	}
	return errors.Join(err, mountsErr, cgroupsErr, r.removeNetwork(), os.RemoveAll(r.RunDir()))
}

// killAll kills the rig's processes. It returns an error if there were any.
func (r *Rig) killAll() error {
	processes, err := r.Processes()
	for _, p := range processes {
		err = errors.Join(err, fmt.Errorf("process %d is still running: %s", p.PID, p.Command))
		_ = unix.Kill(p.PID, unix.SIGKILL)
	}
	return err
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

func ignore(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return err
}
