package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// LintWaits warns of pods that wait for what never happens: for a pod that is neither among the parts, which can be of several files, nor
// among the other pods of the host, or for the success of a pod that never terminates. A single pod can wait for one that is applied
// later. All parts must be valid.
func LintWaits(parts []Part, others []*Pod) (problems Problems) {
	pods := map[string]*Pod{}
	for _, p := range others {
		pods[p.Name] = p
	}
	for i := range parts {
		pods[parts[i].Pod.Name] = parts[i].Pod
	}
	for i := range parts {
		p := &parts[i]
		var found Problems
		for j, entry := range p.Pod.WaitFor {
			c := ParseWaitCondition(entry)
			of := pods[c.Object]
			w := warnAt(p.root.child("waitFor").items[j], "")
			w.Code = CodeWaitUnfulfilled
			switch {
			case c.Kind != WaitPod:
				continue
			case of == nil && len(parts) > 1:
				w.Message = "there is no pod " + quote(c.Object) + " in these files or on this host"
				w.Hint = didYouMean(c.Object, slices.Sorted(maps.Keys(pods)))
			case of != nil && c.State == WaitSucceeded && of.restarting() != "":
				w.Message = fmt.Sprintf("pod %s never succeeds: restartPolicy Always starts its container %s again", quote(c.Object),
					quote(of.restarting()))
				w.Hint = "wait for pod:" + c.Object + ":ready, or set another restartPolicy in that pod"
			default:
				continue
			}
			found = append(found, w)
		}
		allowed := allowedIn(p.format, p.data)
		for _, w := range allowed.filter(found, p.root).in(p.file) {
			if !slices.Contains(problems, w) { // replicas have the same ones
				problems = append(problems, w)
			}
		}
	}
	return problems
}

// restarting returns a container that is started again whatever its exit code is; empty: there is none.
func (p *Pod) restarting() string {
	i := slices.IndexFunc(p.Containers, func(c Container) bool { return cmp.Or(c.RestartPolicy, p.RestartPolicy) == RestartAlways })
	if i < 0 {
		return ""
	}
	return p.Containers[i].Name
}
