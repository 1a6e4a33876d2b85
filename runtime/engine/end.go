package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/proctree"
	"github.com/podstead/podstead/runtime/shim"
)

// endTimeout bounds the exit of killed processes.
const endTimeout = 30 * time.Second

// endAll kills the shims and the processes of all containers, without containerd and the OCI runtime, and removes what would be in the
// way of new ones. containerd removes the bundles when it starts.
func (e *Engine) endAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := e.killShims(ctx, func(string) bool { return true }); err != nil {
		return err
	}
	var errs []error
	ids := e.bundleIDs()
	if e.opt.WithoutCgroups { // the records of the monitor are what finds processes
		ids = append(ids, monitor.Recorded(MonitorDir(e.opt.State))...)
	}
	for _, id := range ids {
		errs = append(errs, e.killContainer(ctx, id))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	sockets, err := filepath.Glob(filepath.Join(e.socketDir(), "*"))
	for _, s := range sockets {
		err = errors.Join(err, os.Remove(s))
	}
	return errors.Join(err, e.unmountRoots())
}

// endContainer kills the processes of a container. If it is that of a sandbox, the shim is killed too.
func (e *Engine) endContainer(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if exists(filepath.Join(e.opt.State, sandboxPlugin, Namespace, id)) {
		if err := e.killShims(ctx, func(other string) bool { return other == id }); err != nil {
			return err
		}
	}
	return e.killContainer(ctx, id)
}

// hasInit reports whether the OCI runtime has created a container.
func (e *Engine) hasInit(id string) bool {
	dirs := append(bundleDirs(e.opt.State), monitor.ContainersDir(MonitorDir(e.opt.State)))
	return slices.ContainsFunc(dirs, func(dir string) bool { return exists(filepath.Join(dir, id, initPidFile)) })
}

// bundleIDs returns the IDs of containers and sandboxes that have a bundle.
func (e *Engine) bundleIDs() []string {
	var ids []string
	for _, dir := range bundleDirs(e.opt.State) {
		entries, _ := os.ReadDir(dir) // a directory may not exist
		for _, entry := range entries {
			ids = append(ids, strings.TrimPrefix(entry.Name(), "."))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// killContainer kills the processes of a container, and removes its cgroup.
func (e *Engine) killContainer(ctx context.Context, id string) error {
	var errs []error
	for _, bundles := range bundleDirs(e.opt.State) {
		dirs, err := e.processDirs(filepath.Join(bundles, id), id)
		if err == nil && len(dirs) > 0 {
			err = proctree.KillCgroup(ctx, dirs)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, dir := range dirs {
			if !filepath.IsAbs(dir) { // a PID namespace
				continue
			}
			if err := cgroup.RemoveTree(ctx, dir); err != nil && !errors.Is(err, unix.EBUSY) { // systemd removes scopes
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("kill processes of container %s: %w", id, err)
	}
	return nil
}

// processDirs returns what lists the processes of a container: the directories of its cgroup, one for each hierarchy, or its PID namespace.
// See [proctree.List]. There is none if it has no process.
func (e *Engine) processDirs(bundle, id string) ([]string, error) {
	group, err := bundleCgroup(bundle)
	if err != nil {
		return nil, err
	}
	if group == "" && e.opt.WithoutCgroups {
		name, err := proctree.Contained(monitor.PIDOf(MonitorDir(e.opt.State), id))
		if name == "" {
			return nil, err
		}
		return []string{name}, nil
	}
	return cgroup.Dirs(group)
}

// hasProcesses reports whether a container has processes.
func (e *Engine) hasProcesses(id string) bool {
	for _, bundles := range bundleDirs(e.opt.State) {
		dirs, _ := e.processDirs(filepath.Join(bundles, id), id) // one that cannot be read has none
		for _, dir := range dirs {
			if list, err := proctree.List(dir); err == nil && len(list) > 0 {
				return true
			}
		}
	}
	return false
}

// bundleCgroup returns the cgroup of a container from its bundle; empty: it has none.
func bundleCgroup(bundle string) (string, error) {
	text, err := os.ReadFile(filepath.Join(bundle, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var config struct {
		Linux struct {
			CgroupsPath string `json:"cgroupsPath"`
		} `json:"linux"`
	}
	if json.Unmarshal(text, &config) != nil {
		return "", nil // the bundle of a container that was never created
	}
	return cgroupPath(config.Linux.CgroupsPath), nil
}

// cgroupPath returns the path of a cgroup in the form of the OCI runtime specification, in which slice:prefix:name is a scope of systemd.
func cgroupPath(oci string) string {
	parts := strings.Split(oci, ":")
	if len(parts) != 3 {
		return oci
	}
	full, prefix := "/", ""
	for name := range strings.SplitSeq(strings.TrimSuffix(parts[0], ".slice"), "-") {
		prefix += name
		full = path.Join(full, prefix+".slice")
		prefix += "-"
	}
	return path.Join(full, parts[1]+"-"+parts[2]+".scope")
}

// endLostShims kills the shims of this engine without a bundle, such as after the loss of the directory for runtime state. containerd
// cannot reach them: their containers would run without supervision. The engine does not know these, its caller ends them by their
// cgroups.
func (e *Engine) endLostShims(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := e.killShims(ctx, func(id string) bool { return !hasBundle(e.opt.State, id) }); err != nil {
		e.opt.Log.WarnContext(ctx, "cannot kill shims without a bundle", slog.Any("error", err))
	}
}

// killShims kills the shims of this engine with these IDs and removes their cgroups. A stopped shim is killed too.
func (e *Engine) killShims(ctx context.Context, which func(id string) bool) error {
	var errs []error
	for _, s := range e.shimProcesses() {
		if !which(s.id) {
			continue
		}
		err := e.killShim(ctx, s)
		if err == nil && strings.HasSuffix(s.cgroup, "-shim") {
			err = cgroup.Remove(s.cgroup)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// killShim kills a shim and returns when it has exited.
func (e *Engine) killShim(ctx context.Context, s shimProcess) error {
	p, err := openProcess(s.pid)
	if err == nil {
		defer p.close()
		if e.shimOf(s.pid).id == s.id { // else it has exited, and another process has its PID
			p.kill()
			err = p.wait(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("kill shim %d: %w", s.pid, err)
	}
	return nil
}

// shimProcess is the process of a shim.
type shimProcess struct {
	pid        int
	id, cgroup string
}

// shimProcesses returns the shims of this engine.
func (e *Engine) shimProcesses() (found []shimProcess) {
	all, _ := proc.List()
	for _, pid := range all {
		if s := e.shimOf(pid); s.id != "" {
			found = append(found, s)
		}
	}
	return found
}

// shimOf returns the shim of this engine that a process is, or starts; without an ID if it is none. Its arguments show that: a shim that is
// stopped, or whose socket was removed, cannot be found by the socket.
func (e *Engine) shimOf(pid int) shimProcess {
	id := shimID(proc.Args(pid), e.grpcAddress())
	if id == "" {
		return shimProcess{}
	}
	return shimProcess{pid, id, processCgroup(pid)}
}

// shimID returns the ID of the shim of an engine by its arguments; "": it is none. A process that cleans up after a shim is none.
func shimID(args []string, address string) string {
	if !shim.Invoked(args) || argument(args, "-address") != address || argument(args, "-namespace") != Namespace ||
		args[len(args)-1] == "delete" {
		return ""
	}
	return argument(args, "-id")
}

// argument returns the value of an option of a command line.
func argument(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// processCgroup returns the deepest cgroup of a process in any hierarchy.
func processCgroup(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)) // the process may have exited
	deepest := ""
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 && len(parts[2]) > len(deepest) {
			deepest = parts[2]
		}
	}
	return deepest
}
