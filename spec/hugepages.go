package spec

import (
	"fmt"
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

// HugePages returns the names of the huge pages that the pod and its containers request or limit, sorted.
func (p *Pod) HugePages() []string {
	var names []string
	add := func(r *Resources) {
		for _, list := range []ResourceList{r.Requests, r.Limits} {
			for name := range list {
				if IsHugePages(name) && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	add(&p.Resources)
	for c := range p.OwnContainers() {
		add(&c.Resources)
	}
	slices.Sort(names)
	return names
}

// InHugePages reports whether the directory is in huge pages.
func (e *EmptyDirVolume) InHugePages() bool { return strings.HasPrefix(e.Medium, MediumHugePages) }

// PageSizeOf returns the size in bytes of the pages of an emptyDir in huge pages: that of its medium, or the one that the pod and its
// containers request. The errors are those of the kubelet (getPageSizeMountOption).
func (p *Pod) PageSizeOf(e *EmptyDirVolume) (int64, error) {
	size, named := strings.CutPrefix(e.Medium, MediumHugePages+"-")
	found := int64(0)
	for _, name := range p.HugePages() {
		page := pageSize(name)
		switch {
		case page == 0 || named && page != pageSize(HugePagesPrefix+size) || !named && e.Medium != MediumHugePages:
		case found != 0 && found != page:
			return 0, fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", e.Medium)
		default:
			found = page
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", e.Medium)
	}
	return found, nil
}

// pageSize returns the size of the pages of a resource in bytes; 0: its name has none.
func pageSize(name string) int64 {
	size, err := resource.ParseQuantity(strings.TrimPrefix(name, HugePagesPrefix))
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 {
		return 0
	}
	return size.Value()
}

// defaultPodHugePages sets the pod-level limits and requests of huge pages of a pod with pod-level resources. The limit is the aggregate of
// the limits of its containers, or the pod-level request if that is higher and all containers have a limit. The request is the limit
// (Kubernetes: DefaultPodLevelResources).
func (p *Pod) defaultPodHugePages() {
	r := &p.Resources
	for _, name := range p.HugePages() {
		limit, limited := r.Limits[name]
		request, requested := r.Requests[name]
		if !limited && (!requested || p.limitedByAll(name)) {
			limit = p.aggregate(func(c *Container) Quantity { return c.Resources.Limits[name] })
			if request.Cmp(limit) > 0 {
				limit = request
			}
			r.Limits, limited = r.Limits.with(name, limit), true
		}
		if limited && !requested {
			r.Requests = r.Requests.with(name, limit)
		}
	}
}

// with returns a copy of a list with another amount of a resource.
func (l ResourceList) with(name string, q Quantity) ResourceList {
	list := ResourceList{name: q}
	for other, amount := range l {
		if other != name {
			list[other] = amount
		}
	}
	return list
}

// limitedByAll reports whether all containers have a limit of a resource.
func (p *Pod) limitedByAll(name string) bool {
	for c := range p.OwnContainers() {
		if _, limited := c.Resources.Limits[name]; !limited {
			return false
		}
	}
	return true
}

// hugePages checks the requests and limits of huge pages of a container or of the pod (Kubernetes: validateResourceRequirements).
func (v *validator) hugePages(r *Resources) {
	needsMore := !slices.ContainsFunc(podResourceNames, func(name string) bool {
		_, request := r.Requests[name]
		_, limit := r.Limits[name]
		return request || limit
	})
	for _, list := range []*ResourceList{&r.Limits, &r.Requests} {
		for name, q := range *list {
			if !IsHugePages(name) {
				continue
			}
			at := entry{list, name}
			limit, limited := r.Limits[name]
			page := pageSize(name)
			switch {
			case page == 0 || q.Value()%page != 0:
				v.invalid(at, q.String(), q.String()+" is not positive integer multiple of "+name)
			case !limited:
				v.badHint(at, "set a limit with this value", "Required value: Limit must be set for non overcommitable resources")
			case q.Cmp(limit) != 0:
				v.invalid(at, q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
			case needsMore:
				v.badHint(at, "set a request or limit of cpu or memory", "Forbidden: HugePages require cpu or memory")
			}
		}
	}
}
