package spec

import "slices"

// WaitCycles returns cycles in which pods wait for each other, so that none of them would start: at least one for each of the pods that is
// part of any. A cycle begins and ends with the same pod. The others are the pods of the host; one with the name of a new pod is replaced
// by it.
func WaitCycles(pods, others []*Pod) [][]string {
	waits, isNew := map[string][]string{}, map[string]bool{}
	for _, p := range pods {
		waits[p.Name], isNew[p.Name] = append(waits[p.Name], p.WaitsForPods()...), true
	}
	for _, p := range others {
		if !isNew[p.Name] {
			waits[p.Name] = append(waits[p.Name], p.WaitsForPods()...)
		}
	}
	var cycles [][]string
	found := map[string]bool{}
	for _, p := range pods {
		for _, next := range p.WaitsForPods() {
			if path := PathOfWaits(waits, next, p.Name); path != nil && !found[p.Name] {
				cycle := append([]string{p.Name}, path...)
				for _, name := range cycle {
					found[name] = true
				}
				cycles = append(cycles, cycle)
			}
		}
	}
	return cycles
}

// PathOfWaits returns a shortest path from one pod to another by what they wait for, with both; nil: there is none.
func PathOfWaits(waits map[string][]string, from, to string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if name == to {
			var path []string
			for ; name != ""; name = before[name] {
				path = append(path, name)
			}
			slices.Reverse(path)
			return path
		}
		for _, next := range waits[name] {
			if _, seen := before[next]; !seen {
				before[next] = name
				queue = append(queue, next)
			}
		}
	}
	return nil
}
