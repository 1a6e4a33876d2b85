package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/spec"
)

// HiddenNames returns the names of pods by which other pods of this host do not reach them. With an error it may lack some.
func HiddenNames(pods []*spec.Pod) ([]spec.HiddenName, error) {
	host, err := network.HostNames()
	return spec.HiddenNames(pods, host), err
}

// hiddenNames reports by which names other pods cannot reach pods of this host.
func hiddenNames(ctx context.Context, c *client.Client) result {
	list, unknown := listPods(ctx, c)
	if unknown != nil {
		return *unknown
	}
	var pods []*spec.Pod
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase != api.PhaseSucceeded && p.Status.Phase != api.PhaseFailed {
			pods = append(pods, &spec.Pod{Name: p.Metadata.Name, Hostname: p.Spec.Hostname})
		}
	}
	hidden, err := HiddenNames(pods)
	if err != nil {
		return result{Warn, err.Error(), "correct the hostname or /etc/hosts of the host"}
	}
	var details []string
	for _, h := range hidden {
		details = append(details, h.Pod+": "+h.String())
	}
	if len(details) == 0 {
		return ok("other pods reach all pods by their names")
	}
	if more := len(details) - maxFiles; more > 0 {
		details = append(details[:maxFiles], fmt.Sprintf("and %d more", more))
	}
	return result{Warn, strings.Join(details, "; "), "use another name or hostname, or the address of the pod"}
}
