package oci

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
)

// Downward contains what the downward API can provide to a pod about itself and the host, in environment variables and files.
type Downward struct {
	Pod *spec.Pod
	UID string
	// PodIPs and HostIPs are the addresses of the pod and of the host, the preferred one first.
	PodIPs, HostIPs []string
	// NodeName is the host name of the host.
	NodeName string
	// Allocatable is the capacity of the host by resource name. It is the value for a limit that is not set.
	Allocatable spec.ResourceList
}

// Field returns the value of a field by its path, as in fieldRef. A field that the pod does not have (a label, an address) is
// empty.
func (d *Downward) Field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return d.Pod.Name, nil
	case "metadata.namespace":
		return "default", nil
	case "metadata.uid":
		return d.UID, nil
	case "metadata.labels":
		return formatMap(d.Pod.Labels), nil
	case "metadata.annotations":
		return formatMap(d.Pod.Annotations), nil
	case "spec.nodeName":
		return d.NodeName, nil
	case "spec.serviceAccountName":
		return d.Pod.ServiceAccount(), nil
	case "status.podIP":
		return first(d.PodIPs), nil
	case "status.podIPs":
		return strings.Join(d.PodIPs, ","), nil
	case "status.hostIP":
		return first(d.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(d.HostIPs, ","), nil
	}
	for prefix, m := range map[string]map[string]string{"metadata.labels['": d.Pod.Labels, "metadata.annotations['": d.Pod.Annotations} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			return m[strings.TrimSuffix(rest, "']")], nil
		}
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// formatMap formats a map as the kubelet does for a file: one line for each key, sorted, with the value quoted.
func formatMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%v=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// Resource returns the request or limit selected by a resourceFieldRef, in units of its divisor and rounded up. For a limit that
// is not set it is the limit of the pod, or else the capacity of the host. A request, or a limit of huge pages, that is not set is zero. If
// the reference names no container, container is used.
func (d *Downward) Resource(container string, ref *spec.ResourceFieldRef) (string, error) {
	container = cmp.Or(ref.ContainerName, container)
	c := d.Pod.Container(container)
	if c == nil {
		return "", fmt.Errorf("container %s not found", container)
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	var quantity spec.Quantity
	switch kind {
	case "requests":
		quantity = c.Resources.Requests[name]
	case "limits":
		for i, list := range []spec.ResourceList{c.Resources.Limits, d.Pod.Resources.Limits, d.Allocatable} {
			if i > 0 && spec.IsHugePages(name) {
				break
			}
			if q, set := list[name]; set {
				quantity = q
				break
			}
		}
	default:
		return "", fmt.Errorf("unsupported container resource: %v", ref.Resource)
	}
	amount := func(q *spec.Quantity) float64 {
		if name == "cpu" {
			return float64(q.MilliValue())
		}
		return float64(q.Value())
	}
	divisor := amount(resource.NewQuantity(1, resource.DecimalSI))
	if ref.Divisor != nil && !ref.Divisor.IsZero() {
		divisor = amount(ref.Divisor)
	}
	return strconv.FormatInt(int64(math.Ceil(amount(&quantity)/divisor)), 10), nil
}
