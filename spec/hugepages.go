package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// HugePagesPrefix begins the names of the resources of huge pages, such as hugepages-2Mi, and MediumHugePages is the medium of an emptyDir
// in huge pages, or begins it: HugePages-2Mi.
const (
	HugePagesPrefix = "hugepages-"
	MediumHugePages = "HugePages"
)

// IsHugePages reports whether a resource is huge pages.
func IsHugePages(name string) bool { return strings.HasPrefix(name, HugePagesPrefix) }

// HugePages returns the names of the huge pages that containers of the pod request, sorted.
func (p *Pod) HugePages() []string {
	names := map[string]bool{}
	for c := range p.OwnContainers() {
		for name := range c.Resources.Requests {
			if IsHugePages(name) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// InHugePages reports whether the directory is in huge pages.
func (e *EmptyDirVolume) InHugePages() bool { return strings.HasPrefix(e.Medium, MediumHugePages) }

// PageSizeOf returns the size of the pages of an emptyDir in huge pages, such as 2Mi: that of its medium, or the one that containers
// request. The errors are those of the kubelet.
func (p *Pod) PageSizeOf(e *EmptyDirVolume) (string, error) {
	requested := p.HugePages()
	if len(requested) > 1 && e.Medium == MediumHugePages {
		return "", fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", e.Medium)
	}
	for _, name := range requested {
		size := strings.TrimPrefix(name, HugePagesPrefix)
		if e.Medium == MediumHugePages || e.Medium == MediumHugePages+"-"+size {
			return size, nil
		}
	}
	return "", fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", e.Medium)
}

var errPages = errors.New("no size of pages")

// pagesOf returns the size of the pages of a resource in bytes.
func pagesOf(name string) (int64, error) {
	size, err := resource.ParseQuantity(strings.TrimPrefix(name, HugePagesPrefix))
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 {
		return 0, errPages
	}
	return size.Value(), nil
}

// hugePages checks the requests and limits of huge pages of a container (Kubernetes: validateContainerResourceRequirements).
func (v *validator) hugePages(r *Resources) {
	cpuOrMemory := false
	for _, list := range []ResourceList{r.Requests, r.Limits} {
		for _, name := range podResourceNames {
			_, set := list[name]
			cpuOrMemory = cpuOrMemory || set
		}
	}
	for _, list := range []*ResourceList{&r.Limits, &r.Requests} {
		for name, q := range *list {
			if !IsHugePages(name) {
				continue
			}
			at := entry{list, name}
			limit, limited := r.Limits[name]
			page, err := pagesOf(name)
			switch {
			case err != nil || q.Value()%page != 0:
				v.invalid(at, q.String(), q.String()+" is not positive integer multiple of "+name)
			case !limited:
				v.bad(at, "Required value: Limit must be set for non overcommitable resources")
			case q.Cmp(limit) != 0:
				v.invalid(at, q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
			case !cpuOrMemory:
				v.badHint(at, "set a request or limit of cpu or memory", "Forbidden: HugePages require cpu or memory")
			}
		}
	}
}
