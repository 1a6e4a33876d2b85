package supervisor

import (
	"fmt"
	"strings"

	"github.com/podstead/podstead/spec"
)

// holder describes the pod that has a name, for the [NameTakenError] of a new pod.
func holder(l *loop, pod *spec.Pod) string {
	if l == nil {
		return "it is being created"
	}
	p := l.snapshot.Load()
	text := "created earlier"
	if p.Owner.By != "" {
		text = "created by " + p.Owner.String()
	}
	switch {
	case p.Facts.Stop.Delete:
		text = "it is being deleted, " + text
	case !p.Facts.Stop.Requested.IsZero() && !p.AtRest:
		text = "it is being stopped, " + text
	}
	switch {
	case p.Pod.Hash != pod.Hash:
		text += " from a different pod file with " + containersOf(p.Pod)
	case p.Pod.Dir != pod.Dir:
		text += " from a pod file in " + p.Pod.Dir
	}
	return text
}

// containersOf lists the first containers of a pod with their images.
func containersOf(pod *spec.Pod) string {
	const most = 3
	var list []string
	for i := range pod.Containers[:min(len(pod.Containers), most)] {
		list = append(list, fmt.Sprintf("%s (%s)", pod.Containers[i].Name, pod.Containers[i].Image))
	}
	if more := len(pod.Containers) - most; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	noun := "container "
	if len(pod.Containers) > 1 {
		noun = "containers "
	}
	return noun + strings.Join(list, ", ")
}

// different reports whether the existing pod is of a different file.
func different(l *loop, pod *spec.Pod) bool {
	if l == nil {
		return false
	}
	p := l.snapshot.Load()
	return p.Pod.Hash != pod.Hash || p.Pod.Dir != pod.Dir
}

// fileOf returns the file in the pods directory that the existing pod follows; empty: it follows none.
func fileOf(l *loop) string {
	if l == nil {
		return ""
	}
	return l.snapshot.Load().Owner.File
}

// stoppingOf returns the UID of the existing pod if it is of the same file, is being stopped and will be deleted: because this was
// requested, or because it has lost its client. A pod that its client keeps is not deleted.
func stoppingOf(l *loop, pod *spec.Pod) string {
	if l == nil {
		return ""
	}
	p := l.snapshot.Load()
	lost := p.Owner.Session != "" && !p.Owner.Keep && !p.Owner.Process.Running()
	if different(l, pod) || p.Facts.Stop.Requested.IsZero() || !p.Facts.Stop.Delete && !lost {
		return ""
	}
	return p.Facts.UID
}

// terminatedOf returns the UID of the existing pod if it has terminated, and was kept by a session that has ended. The file may have
// changed since: the next run of it replaces the pod, as a job does that a timer runs every night.
func terminatedOf(l *loop, pod *spec.Pod) string {
	if l == nil {
		return ""
	}
	p := l.snapshot.Load()
	if !p.Owner.Keep || p.Owner.Process.Running() || !p.AtRest || !p.Status.Phase.Terminal() || p.Pod.Dir != pod.Dir {
		return ""
	}
	return p.Facts.UID
}
