package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/spec"
)

// resources reports what pods can request, and what they have requested.
func resources(ctx context.Context, c *config.Config, daemon *client.Client) result {
	policy := c.Policy.Admission()
	allocatable, err := runtime.Allocatable(runtime.Options{
		StateDir: c.StateDir, CgroupDriver: runtime.CgroupDriver(c.Engine.CgroupDriver), Reserved: policy.SystemReserved,
	})
	if err != nil {
		return result{Warn, err.Error(), "mount the cgroup hierarchies below /sys/fs/cgroup"}
	}
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	pods, err := daemon.Pods(ctx)
	r := requestsResult(allocatable, pods.Items, err == nil)
	if policy.IgnoreRequests {
		return ok("%s; requests are not enforced", r.detail)
	}
	return r
}

// requestsResult compares the requests of pods, if they are known, with what is allocatable.
func requestsResult(allocatable spec.ResourceList, pods []api.Pod, known bool) result {
	var details, exceeded []string
	requests := func(name string) (requested int64) {
		for i := range pods {
			if p := &pods[i]; !p.Status.Phase.Terminal() {
				requested += spec.Units(name, p.Spec.Request(name))
			}
		}
		return requested
	}
	names := []string{spec.ResourceCPU, spec.ResourceMemory, spec.ResourceEphemeralStorage}
	for _, name := range slices.Sorted(maps.Keys(allocatable)) {
		if pages := allocatable[name]; spec.IsHugePages(name) && (!pages.IsZero() || requests(name) > 0) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		capacity, is := allocatable[name]
		if !is {
			continue
		}
		total := spec.Units(name, capacity)
		detail := fmt.Sprintf("%s %s allocatable", name, spec.Amount(name, total))
		if known {
			requested := requests(name)
			detail += fmt.Sprintf(", %s requested", spec.Amount(name, requested))
			if requested > total {
				exceeded = append(exceeded, name)
			}
		}
		details = append(details, detail)
	}
	detail := strings.Join(details, "; ")
	if len(exceeded) > 0 {
		return result{
			Warn, detail,
			fmt.Sprintf("delete pods that request %s: no further pod that requests it is accepted; running pods are not affected",
				strings.Join(exceeded, " or ")),
		}
	}
	return ok("%s", detail)
}
