package podcgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/proctree"
)

// clearTimeout is the time for the exit of killed processes. After it, those that are left are named.
const clearTimeout = 5 * time.Second

// Cleared is what was killed and removed in the cgroup of a pod. The zero value is nothing.
type Cleared struct {
	Processes []string // such as "sleep (PID 123)"
	Cgroups   []string // names of cgroups that were not those of containers
}

// Any reports whether there was anything.
func (c Cleared) Any() bool { return len(c.Processes)+len(c.Cgroups) > 0 }

// String lists what was cleared, for a person.
func (c Cleared) String() string {
	var parts []string
	if len(c.Processes) > 0 {
		parts = append(parts, "processes "+proctree.Few(c.Processes))
	}
	if len(c.Cgroups) > 0 {
		parts = append(parts, "cgroups "+proctree.Few(c.Cgroups))
	}
	return strings.Join(parts, ", ")
}

// Clear kills every process in the cgroup of a pod and removes the cgroups in it, in all hierarchies. What is in the cgroup of a pod
// belongs to the pod, whoever has put it there. The caller makes sure that the pod has no sandbox. After 5 s, the error names the
// processes that have not exited. Those that have exited are returned with an error as well.
//
// Without cgroups it kills the PID namespaces of processes that have mounted a file of the pod, as all containers have /etc/hosts.
func (g Groups) Clear(ctx context.Context, uid string) (Cleared, error) {
	pod, err := cgroup.Dirs(g.Pod(uid))
	if g.Without(uid) {
		pod, err = proctree.Mounting("/pods/" + uid + "/")
	}
	if err != nil || len(pod) == 0 {
		return Cleared{}, err
	}
	var cleared Cleared
	names, err := namesOf(pod)
	for _, dir := range pod {
		for _, child := range children(dir) {
			if g.containerID(child) == "" {
				cleared.Cgroups = append(cleared.Cgroups, child)
			}
		}
	}
	slices.Sort(cleared.Cgroups)
	cleared.Cgroups = slices.Compact(cleared.Cgroups)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, clearTimeout)
		defer cancel()
		err = proctree.KillCgroup(limited, pod)
	}
	for _, dir := range pod {
		for _, child := range children(dir) {
			if err == nil {
				err = cgroup.RemoveTree(ctx, filepath.Join(dir, child))
			}
		}
	}
	if err != nil {
		left, _ := namesOf(pod) // the next call reports those
		maps.DeleteFunc(names, func(pid int, _ string) bool { return left[pid] != "" })
		cleared.Cgroups = nil
		err = fmt.Errorf("clear cgroup %s: %w", cmp.Or(g.Pod(uid), "of pod "+uid), err)
	}
	cleared.Processes = slices.Sorted(maps.Values(names))
	return cleared, err
}

// namesOf returns the names of the processes in the directories of a cgroup, by PID.
func namesOf(dirs []string) (map[int]string, error) {
	names := map[int]string{}
	var errs []error
	for _, dir := range dirs {
		list, err := proctree.List(dir)
		errs = append(errs, err)
		for _, p := range list {
			names[p.PID] = p.Describe()
		}
	}
	return names, errors.Join(errs...)
}

// children returns the names of the cgroups in one.
func children(dir string) []string {
	entries, _ := os.ReadDir(dir) // removed meanwhile
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// containerID returns the ID in the name of a container's cgroup; "" for another name.
func (g Groups) containerID(name string) string {
	if g.systemd {
		var scope bool
		name, scope = strings.CutSuffix(strings.TrimPrefix(name, unitPrefix+"-"), ".scope")
		if !scope {
			return ""
		}
	}
	const digits = 64 // of a SHA-256
	if len(name) != digits || strings.Trim(name, "0123456789abcdef") != "" {
		return ""
	}
	return name
}

// Containers returns the IDs of the containers and of the processes of sandboxes that have a cgroup, by the UID of their pod. A pod
// without such a cgroup has no IDs. The cgroups may be those of another daemon.
func (g Groups) Containers() (map[string][]string, error) {
	parents, err := cgroup.Dirs(g.Parent())
	found := map[string][]string{}
	for _, parent := range parents {
		for _, name := range children(parent) {
			uid := g.podUID(name)
			if uid == "" {
				continue
			}
			ids := found[uid]
			for _, child := range children(filepath.Join(parent, name)) {
				if id := g.containerID(child); id != "" && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
			found[uid] = ids
		}
	}
	return found, err
}

// podUID returns the UID in the name of a pod's cgroup; "" for another name.
func (g Groups) podUID(name string) string {
	if g.systemd {
		var slice bool
		name, slice = strings.CutSuffix(strings.TrimPrefix(name, unitPrefix+"-"), ".slice")
		if !slice {
			return ""
		}
		name = strings.ReplaceAll(name, "_", "-")
	}
	if uuid.Validate(name) != nil {
		return ""
	}
	return name
}
