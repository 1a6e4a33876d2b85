package spec

import (
	"fmt"
	"slices"
	"strings"
)

// resources checks the requests and limits of a container or of the pod.
func (v *validator) resources(r *Resources, allowed []string) {
	for _, list := range []*ResourceList{&r.Requests, &r.Limits} {
		for name := range *list {
			if !IsHugePages(name) && !slices.Contains(allowed, name) {
				v.unsupportedValue(entry{list, name}, name, allowed)
			}
		}
	}
	for _, list := range []*ResourceList{&r.Requests, &r.Limits} {
		for _, name := range []string{ResourceMemory, ResourceEphemeralStorage} {
			v.wholeBytes(entry{list, name}, (*list)[name])
		}
	}
	for name, limit := range r.Limits {
		if request, ok := r.Requests[name]; ok && request.Cmp(limit) > 0 && !IsHugePages(name) {
			v.invalid(entry{&r.Requests, name}, request.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))
		}
	}
	v.hugePages(r)
}

// resizePolicy checks the resize policies of a container (Kubernetes: validateResizePolicy).
func (v *validator) resizePolicy(c *Container) {
	names := unique{}
	for i := range c.ResizePolicy {
		p := &c.ResizePolicy[i]
		v.required(p, "resourceName", p.ResourceName == "")
		v.required(p, "restartPolicy", p.RestartPolicy == "")
		oneOf(v, &p.ResourceName, ResourceCPU, ResourceMemory)
		oneOf(v, &p.RestartPolicy, ResizeNotRequired, ResizeRestartContainer)
		if p.ResourceName != "" && names.seen(p.ResourceName) {
			v.duplicate(&p.ResourceName, p.ResourceName)
		}
		if p.RestartPolicy == ResizeRestartContainer && v.pod.RestartPolicy == RestartNever {
			v.invalid(&p.RestartPolicy, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}

// wholeBytes warns of a number of bytes that is not an integer (kubernetes issues 79950, 49442, 18538).
func (v *validator) wholeBytes(field any, q Quantity) {
	if q.MilliValue()%1000 == 0 {
		return
	}
	text := q.String()
	hint := ""
	if number, milli := strings.CutSuffix(text, "m"); milli {
		hint = fmt.Sprintf("%s is %s thousandths of a byte, %sMi are mebibytes", text, number, number)
	}
	v.advise(CodeMillibytes, hint, "fractional byte value "+quote(text)+" is invalid, must be an integer", field)
}

// podResources checks the pod-level resources (KEP-2837): the aggregate of the containers' requests must fit, and no container
// can have a higher limit.
func (v *validator) podResources() {
	own := &v.pod.Resources
	v.resources(own, podResourceNames)
	for _, name := range slices.Concat(podResourceNames, v.pod.HugePages()) {
		request, set := own.Requests[name]
		aggregate := v.pod.aggregate(func(c *Container) Quantity { return c.Resources.Requests[name] })
		limit, limited := own.Limits[name]
		tooLow := "must be greater than or equal to aggregate container requests of " + aggregate.String()
		switch {
		case set && v.at[entry{&own.Requests, name}] != nil && request.Cmp(aggregate) < 0:
			v.invalid(entry{&own.Requests, name}, request.String(), tooLow)
		case limited && limit.Cmp(aggregate) < 0:
			v.invalid(entry{&own.Limits, name}, limit.String(), tooLow)
		}
		for c := range v.pod.OwnContainers() {
			if own := c.Resources.Limits[name]; limited && own.Cmp(limit) > 0 {
				v.invalid(entry{&c.Resources.Limits, name}, own.String(), "must be less than or equal to pod limits of "+limit.String())
			}
		}
	}
}
