package converter

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/podstead/podstead/internal/compose"
)

// triggers returns those of the services of pods, and reports those that are not supported.
func (c *converter) triggers(pods []*pod) (list []compose.Trigger) {
	for _, w := range pods {
		for _, name := range w.services {
			s := c.p.Services[name]
			if s.Develop == nil {
				continue
			}
			for i := range s.Develop.Watch {
				t := &s.Develop.Watch[i]
				if c.restarts([]string{"services", name, "develop", "watch", strconv.Itoa(i)}, &s, t) {
					list = append(list, compose.Trigger{
						Pods: w.names(), Container: compose.DNSName(name), Path: t.Path, Include: t.Include, Ignore: t.Ignore,
					})
				}
			}
		}
	}
	return list
}

// restarts reports whether a trigger restarts its container. What it copies to the container must be mounted there.
func (c *converter) restarts(at []string, s *types.ServiceConfig, t *types.Trigger) bool {
	const noCopies = "files are not copied to containers"
	mount := fmt.Sprintf("mount the files with volumes: [\"%s:%s\"]", compose.OneLine(t.Path), compose.OneLine(t.Target))
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
