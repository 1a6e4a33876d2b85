package lifecycle_test

import (
	"fmt"
	"slices"

	"github.com/podstead/podstead/spec"
)

// changes are the changes that [redefined] makes.
var changes = []string{"restart", "removeApp", "addApp", "removeInit", "addSidecar", "addInit", "inPlace", "all"}

// containerOf returns the name of a container of the pod.
func containerOf(pod *spec.Pod, number int) string {
	all := slices.Concat(pod.InitContainers, pod.Containers)
	return all[number%len(all)].Name
}

// redefined returns a changed copy of a pod, and the containers that the change restarts.
func redefined(pod *spec.Pod, change string, number int) (to *spec.Pod, restarted []string) {
	next := *pod
	next.InitContainers, next.Containers = slices.Clone(pod.InitContainers), slices.Clone(pod.Containers)
	app := spec.Container{Name: fmt.Sprintf("app-%d", number), Image: "i", RestartPolicy: spec.RestartAlways}
	switch change {
	case "restart":
		restarted = []string{containerOf(pod, number)}
		hook("preStop")(next.Container(restarted[0]))
	case "removeApp":
		if n := len(next.Containers); n > 1 {
			next.Containers = slices.Delete(next.Containers, number%n, number%n+1)
		}
	case "addApp":
		if next.Container(app.Name) == nil {
			next.Containers = append(next.Containers, app)
		}
	case "removeInit":
		if n := len(next.InitContainers); n > 0 {
			next.InitContainers = slices.Delete(next.InitContainers, number%n, number%n+1)
		}
	case "addInit", "addSidecar":
		c := spec.Container{Name: fmt.Sprintf("init-%d", number), Image: "i"}
		if change == "addSidecar" {
			c.RestartPolicy = spec.RestartAlways
		}
		if next.Container(c.Name) == nil {
			next.InitContainers = slices.Insert(next.InitContainers, number%(len(next.InitContainers)+1), c)
		}
	case "inPlace":
		next.TerminationGracePeriodSeconds = spec.Seconds(number)
	case "all":
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			restarted = append(restarted, c.Name)
		}
		next.Containers = []spec.Container{app}
	}
	return &next, restarted
}
