package compose

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"
)

// Trigger restarts a container when files change, see develop.watch of Compose.
type Trigger struct {
	// Pods are the pods of the service, one for each replica.
	Pods []string
	// Container is the container of the service.
	Container string
	// Path is the absolute path of a file or a directory, with all files below it.
	Path string
	// Include are patterns of files below Path; empty: all. Ignore are those of files that are left out. They have the form of
	// .dockerignore, and are relative to Path.
	Include, Ignore []string
}

// triggers returns those of the services of pods, and reports those that are not supported.
func (c *converter) triggers(pods []*pod) (list []Trigger) {
	for _, w := range pods {
		for _, name := range w.services {
			s := c.p.Services[name]
			if s.Develop == nil {
				continue
			}
			for i := range s.Develop.Watch {
				t := &s.Develop.Watch[i]
				if c.restarts([]string{"services", name, "develop", "watch", strconv.Itoa(i)}, &s, t) {
					list = append(list, Trigger{w.names(), dnsName(name), t.Path, t.Include, t.Ignore})
				}
			}
		}
	}
	return list
}

// restarts reports whether a trigger restarts its container. What it copies to the container must be mounted there.
func (c *converter) restarts(at []string, s *types.ServiceConfig, t *types.Trigger) bool {
	const noCopies = "files are not copied to containers"
	mount := fmt.Sprintf("mount the files with volumes: [\"%s:%s\"]", oneLine(t.Path), oneLine(t.Target))
	switch t.Action {
	case types.WatchActionRestart:
		return true
	case types.WatchActionSync, types.WatchActionSyncRestart:
		if !mounted(s, t) {
			c.report(at, fmt.Sprintf("ignored: action %s: %s", t.Action, noCopies), mount, true)
			return false
		}
		return t.Action == types.WatchActionSyncRestart
	case types.WatchActionSyncExec: // its key exec is reported
	case types.WatchActionRebuild:
		c.report(at, fmt.Sprintf("ignored: action %s: images are not built", t.Action),
			"set imageArchives in the pod file: a change of an archive restarts its containers", true)
	default:
		c.drop(at, "action "+quote(string(t.Action))+" is not known")
	}
	return false
}

// mounted reports whether the files that a trigger copies are those of a bind mount at the target.
func mounted(s *types.ServiceConfig, t *types.Trigger) bool {
	return slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		source, err := filepath.EvalSymlinks(v.Source) // as the library does with the path
		if err != nil {
			source = v.Source
		}
		relative, err := filepath.Rel(source, t.Path)
		return v.Type == types.VolumeTypeBind && err == nil && filepath.IsLocal(relative) &&
			path.Join(v.Target, filepath.ToSlash(relative)) == path.Clean(t.Target)
	})
}
