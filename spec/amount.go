package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxUnits is the largest result of [Units]. Two of them can be added.
const maxUnits = 1 << 61

// Units returns an amount of a resource in the units of the scheduler: thousandths of a CPU, or bytes. Fractions are rounded up. A larger
// amount than 2^61 units is 2^61.
func Units(name string, q Quantity) int64 {
	perOne := int64(1)
	if name == ResourceCPU {
		perOne = 1000
	}
	if q.Cmp(*resource.NewQuantity(maxUnits/perOne, resource.DecimalSI)) >= 0 {
		return maxUnits
	}
	if name == ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Amount returns units of a resource as a quantity, such as 250m or 64Mi. Bytes are rounded down to full Mi if there is one.
func Amount(name string, units int64) string {
	if name == ResourceCPU {
		return resource.NewMilliQuantity(units, resource.DecimalSI).String()
	}
	const mi = 1 << 20
	if units > mi {
		units -= units % mi
	}
	return resource.NewQuantity(units, resource.BinarySI).String()
}

// RequestField returns the path of the field that determines a request of the pod: the pod-level request, or that of the container with the
// largest one. It is empty if there is none. A request that is not set in the file has its value from the limit.
func (p *Pod) RequestField(name string) string {
	if _, own := p.Resources.Requests[name]; own {
		return "resources.requests." + name
	}
	field := ""
	var largest Quantity
	for _, list := range []struct {
		name       string
		containers []Container
	}{{"initContainers", p.InitContainers}, {"containers", p.Containers}} {
		for i := range list.containers {
			if q := list.containers[i].Resources.Requests[name]; q.Cmp(largest) > 0 {
				largest, field = q, fmt.Sprintf("%s[%d].resources.requests.%s", list.name, i, name)
			}
		}
	}
	return field
}
