package supervisor_test

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// compare is a simple [change.Between]: labels, the restart policy, probes, ports, resources and removed hooks change in place, a container
// that changed otherwise is restarted, hostNetwork replaces the pod.
func compare(from, to *spec.Pod) []change.Change {
	var list []change.Change
	if from.HostNetwork != to.HostNetwork {
		list = append(list, change.Change{Path: "hostNetwork", Effect: change.ReplacePod})
	}
	if !maps.Equal(from.Labels, to.Labels) {
		list = append(list, change.Change{Path: "labels"})
	}
	if from.RestartPolicy != to.RestartPolicy {
		list = append(list, change.Change{Path: "restartPolicy"})
	}
	for kind, both := range map[string][2][]spec.Container{
		"containers": {from.Containers, to.Containers}, "initContainers": {from.InitContainers, to.InitContainers},
	} {
		effect := change.RestartContainer
		if kind == "initContainers" {
			effect = change.NextRound
		}
		for i := range max(len(both[0]), len(both[1])) {
			if i >= len(both[0]) || i >= len(both[1]) {
				list = append(list, change.Change{Path: fmt.Sprintf("%s[%d]", kind, i), Effect: change.InPlace})
				continue
			}
			a, b := both[0][i], both[1][i]
			if b.Lifecycle == nil {
				b.Lifecycle = a.Lifecycle
			}
			inPlace := !reflect.DeepEqual(both[0][i], both[1][i])
			a.ReadinessProbe, b.ReadinessProbe = nil, nil
			a.Ports, b.Ports = nil, nil
			a.Resources, b.Resources = spec.Resources{}, spec.Resources{}
			switch c := (change.Change{Path: fmt.Sprintf("%s[%d]", kind, i), Container: b.Name, Effect: effect}); {
			case !reflect.DeepEqual(a, b):
				list = append(list, c)
			case inPlace:
				c.Effect = change.InPlace
				list = append(list, c)
			}
		}
	}
	return list
}

func (m *machine) stop(name string) {
	m.t.Helper()
	if err := m.Stop(m.t.Context(), name, supervisor.StopOptions{By: "test"}); err != nil {
		m.t.Fatal(err)
	}
	m.until(name, "stopped", func(s supervisor.Snapshot) bool { return s.AtRest })
}

func (m *machine) startAgain(name string) {
	m.t.Helper()
	if err := m.Start(m.t.Context(), name, "", "test"); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) restart(name, container string) {
	m.t.Helper()
	if err := m.Restart(m.t.Context(), name, "", container, "test"); err != nil {
		m.t.Fatal(err)
	}
}

// stage prepares a new definition.
func (m *machine) stage(to *spec.Pod) supervisor.Staged {
	m.t.Helper()
	staged, err := m.Stage(m.t.Context(), to, nil, func(string, lifecycle.Progress) {})
	if err != nil {
		m.t.Fatal(err)
	}
	return staged
}

// redefine stages a new definition and changes the pod.
func (m *machine) redefine(to *spec.Pod) []change.Change {
	m.t.Helper()
	changes, err := m.Redefine(m.t.Context(), "", to, m.stage(to), state.Owner{By: "test"})
	if err != nil {
		m.t.Fatal(err)
	}
	return changes
}

// ids returns the container IDs of the app containers.
func ids(s supervisor.Snapshot) map[string]string {
	list := map[string]string{}
	for _, c := range s.Status.ContainerStatuses {
		list[c.Name] = c.ContainerID
	}
	return list
}

// allRunning reports whether all app containers run.
func allRunning(s supervisor.Snapshot) bool {
	for _, c := range s.Status.ContainerStatuses {
		if c.State.Running == nil {
			return false
		}
	}
	return s.Status.Phase == lifecycle.PhaseRunning
}
