package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/proctree"
)

// clearings reports what was killed and removed in the cgroups of pods. It is safe for concurrent use.
type clearings struct {
	mu     sync.Mutex
	early  []func() // before there is a receiver
	report func(uid string, cleared podcgroup.Cleared)
}

func (c *clearings) add(uid string, cleared podcgroup.Cleared) {
	if !cleared.Any() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report == nil {
		c.early = append(c.early, func() { c.report(uid, cleared) })
		return
	}
	c.report(uid, cleared)
}

// OnCleared sets the function that receives what was killed and removed in the cgroup of a pod because it belonged to none of the pod's
// containers. The function is called at once with what was found at the start.
func (r *Runtime) OnCleared(report func(uid string, cleared podcgroup.Cleared)) {
	c := &r.cleared
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report = report
	for _, tell := range c.early {
		tell()
	}
	c.early = nil
}

// leftUIDs returns the UIDs of pods that have pinned namespaces or a cgroup with containers. Their records may be lost. Other daemons have
// pods below the same cgroup: what does not show that it belongs to this runtime is left out.
func (r *Runtime) leftUIDs() ([]string, error) {
	var uids []string
	pinned, err := os.ReadDir(r.dirs.Namespaces())
	for _, dir := range pinned {
		uids = append(uids, dir.Name())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	present, presentErr := r.cgroups.Containers()
	for uid, ids := range present {
		if r.hasFiles(uid) || slices.ContainsFunc(ids, func(id string) bool { return r.hasRoot(uid, id) }) || r.isOver(uid, ids) {
			uids = append(uids, uid)
		}
	}
	return uids, errors.Join(err, presentErr)
}

// hasFiles reports whether the directories of the runtime have something of a pod. The log directory does not count: daemons can share it.
func (r *Runtime) hasFiles(uid string) bool {
	for _, pattern := range []string{r.dirs.Pod(uid), r.dirs.Sandboxes(uid), filepath.Join(r.dirs.MemoryLogs(), "*_"+uid)} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// isOver reports whether a pod has logs, and no process in its cgroup: nothing is lost if it is another daemon's.
func (r *Runtime) isOver(uid string, ids []string) bool {
	logs, _ := filepath.Glob(filepath.Join(r.dirs.Log, "*_"+uid))
	return len(logs) > 0 && !slices.ContainsFunc(ids, func(id string) bool {
		list, err := proctree.List(r.cgroups.ProcessDir(uid, id))
		return err != nil || len(list) > 0
	})
}

// hasRoot reports whether the root file system of a process of a container is a layer of this runtime.
func (r *Runtime) hasRoot(uid, id string) bool {
	list, _ := proctree.List(r.cgroups.ProcessDir(uid, id)) // the container may have exited
	return slices.ContainsFunc(list, func(p proctree.Process) bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", p.PID))
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
				return strings.Contains(line, "="+r.dirs.Engine()+"/")
			}
		}
		return false
	})
}
