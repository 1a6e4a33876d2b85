package lifecycle

import "strings"

// maxMessages is what the termination messages of all containers of a pod may hold together, in bytes
// (MaxPodTerminationMessageLogLength of the kubelet).
const maxMessages = 12288

// message is as much of a termination message as a container may show of it: an equal share for each container of whatever
// kind (contract 8.1).
func (v *view) message(text string) string {
	share := maxMessages / (len(v.pod.InitContainers) + len(v.pod.Containers) + len(v.facts.Ephemeral))
	return strings.ToValidUTF8(text[:min(len(text), share)], "") // without half a letter
}
