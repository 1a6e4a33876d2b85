package spec

import (
	"slices"
	"strings"
)

// resources checks what a container, or the pod as a whole, requests and limits, of the resources that it can have.
func (v *validator) resources(r *Resources, allowed []string) {
	for _, list := range []*ResourceList{&r.Requests, &r.Limits} {
		for name := range *list {
			at := entry{list, name}
			switch {
			case strings.HasPrefix(name, "hugepages-"):
				v.bad(at, "huge pages are known to Kubernetes, not supported here")
			case !slices.Contains(allowed, name):
				v.badHint(at, didYouMean(name, allowed), "must be %s, not %s", either(allowed), quote(name))
			}
		}
	}
	for name, limit := range r.Limits {
		if request, ok := r.Requests[name]; ok && request.Cmp(limit) > 0 {
			v.bad(entry{&r.Requests, name}, "%s is more than the limit %s", request.String(), limit.String())
		}
	}
}

// podResources checks what the pod as a whole has against what its containers have (KEP-2837): together they cannot ask for
// more, and none can be allowed more.
func (v *validator) podResources() {
	own := &v.pod.Resources
	v.resources(own, podResourceNames)
	for _, name := range podResourceNames {
		whole, set := own.Requests[name]
		asked := v.pod.together(func(c *Container) Quantity { return c.Resources.Requests[name] })
		limit, limited := own.Limits[name]
		switch {
		case set && v.at[entry{&own.Requests, name}] != nil && whole.Cmp(asked) < 0:
			v.bad(entry{&own.Requests, name}, "%s is less than the %s that the containers request together", whole.String(), asked.String())
		case limited && limit.Cmp(asked) < 0:
			v.bad(entry{&own.Limits, name}, "%s is less than the %s that the containers request together", limit.String(), asked.String())
		}
		for c := range v.pod.ownContainers() {
			if most := c.Resources.Limits[name]; limited && most.Cmp(limit) > 0 {
				v.bad(entry{&c.Resources.Limits, name}, "%s is more than the limit of the pod, %s", most.String(), limit.String())
			}
		}
	}
}
