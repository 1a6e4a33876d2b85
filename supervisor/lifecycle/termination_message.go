package lifecycle

import "strings"

// maxMessages is the maximum total size of the termination messages of a pod in bytes (the kubelet's
// MaxPodTerminationMessageLogLength).
const maxMessages = 12288

// message truncates a termination message to the container's share of the limit. All containers of the pod have equal shares
// (contract 8.1).
func (v *view) message(text string) string {
	share := maxMessages / (len(v.pod.InitContainers) + len(v.pod.Containers) + len(v.facts.Ephemeral))
	return strings.ToValidUTF8(text[:min(len(text), share)], "") // drop a truncated rune
}
