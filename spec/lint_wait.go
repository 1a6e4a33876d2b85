package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// LintWaits warns of pods of a file that wait for what never happens: for a pod that does not exist or has a schedule, or for the success
// of a pod that does not terminate. The others are the pods of other files and of the host. Complete reports that a pod that is not among
// them is a mistake: one file can wait for a pod that is applied later. All parts must be valid.
func LintWaits(parts []Part, others []*Pod, complete bool) (problems Problems) {
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
			message, hint := waitsFor(c, pods)
			if message == "" || pods[c.Object] == nil && !complete {
				continue
			}
			at := p.root.child("waitFor").items[j]
			found = append(found, Problem{
				Line: at.at.line, Column: at.at.column, Path: at.path(), Message: message, Hint: hint, Warning: true,
				Code: CodeWaitUnfulfilled,
			})
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

// waitsFor returns why a condition is never met, and what to do; empty: it can be met.
func waitsFor(c WaitCondition, pods map[string]*Pod) (message, hint string) {
	of := pods[c.Object]
	switch {
	case c.Kind != WaitPod:
	case of == nil:
		return "there is no pod " + quote(c.Object) + " in these files or on this host",
			didYouMean(c.Object, slices.Sorted(maps.Keys(pods)))
	case of.Schedule != nil:
		return fmt.Sprintf("pod %s does not run itself: its schedule starts runs with other names", quote(c.Object)),
			"wait for what a run leaves, such as path:/srv/backup/done"
	case c.State == WaitSucceeded && of.restarting() != "":
		return fmt.Sprintf("pod %s never succeeds: restartPolicy Always starts its container %s again", quote(c.Object),
			quote(of.restarting())), "wait for pod:" + c.Object + ":ready, or set another restartPolicy in that pod"
	}
	return "", ""
}

// restarting returns a container that is started again whatever its exit code is; empty: there is none.
func (p *Pod) restarting() string {
	i := slices.IndexFunc(p.Containers, func(c Container) bool { return cmp.Or(c.RestartPolicy, p.RestartPolicy) == RestartAlways })
	if i < 0 {
		return ""
	}
	return p.Containers[i].Name
}
