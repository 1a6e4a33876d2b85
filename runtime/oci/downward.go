package oci

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
)

// Downward is what a pod can be told of itself and its machine, by environment variables and by files (the downward API).
type Downward struct {
	Pod *spec.Pod
	UID string
	// PodIPs and HostIPs are the addresses of the pod and of the machine, the preferred one first.
	PodIPs, HostIPs []string
	// NodeName is the machine's host name.
	NodeName string
	// Allocatable is what the machine has, by the name of the resource: what a container that has no limit is told.
	Allocatable spec.ResourceList
}

// Field is the value of a field by its path, as in fieldRef. What the pod does not have (a label, an address) is empty.
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
	case "spec.serviceAccountName": // nobody gives one to a pod that no API server knows
		return "", nil
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

// formatMap writes a map as the kubelet does for a file: a line for each key, sorted, with the value quoted.
func formatMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%v=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// Resource is the request or limit of a container that a resourceFieldRef asks for, in units of its divisor and rounded up.
// A limit that is not set is the pod's, else what the machine has; a request that is not set is zero. The container of a
// reference that names none is the given one.
func (d *Downward) Resource(container string, ref *spec.ResourceFieldRef) (string, error) {
	if ref.ContainerName != "" {
		container = ref.ContainerName
	}
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
		for _, list := range []spec.ResourceList{c.Resources.Limits, d.Pod.Resources.Limits, d.Allocatable} {
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
