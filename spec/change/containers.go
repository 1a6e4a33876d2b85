package change

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/podstead/podstead/spec"
)

// list compares the containers of a list by name.
func (d *differ) list(name string, from, to []spec.Container) {
	var before, after []string
	for i := range to {
		c, path := &to[i], name+"["+strconv.Itoa(i)+"]"
		old := find(from, c.Name)
		if old == nil {
			d.lone(name, path, c, Change{New: strconv.Quote(c.Name)})
			continue
		}
		after = append(after, c.Name)
		if old.Hash == "" || old.Hash != c.Hash {
			d.old, d.new, d.isInit = old, c, name == "initContainers"
			d.walk("containers[]", path, reflect.ValueOf(withPolicy(old)).Elem(), reflect.ValueOf(withPolicy(c)).Elem())
			d.old, d.new, d.isInit = nil, nil, false
		}
	}
	for i := range from {
		if c := &from[i]; find(to, c.Name) == nil {
			d.lone(name, name+"["+strconv.Itoa(i)+"]", c, Change{Old: strconv.Quote(c.Name)})
			continue
		}
		before = append(before, from[i].Name)
	}
	if !slices.Equal(before, after) {
		d.changes = append(d.changes, Change{
			Path: name, Old: format(reflect.ValueOf(before)), New: format(reflect.ValueOf(after)), Effect: NextRound,
		})
	}
}

// lone adds a container that only one list has.
func (d *differ) lone(list, path string, c *spec.Container, change Change) {
	row, _ := RowOf(list)
	change.Path, change.Container, change.Effect = path, c.Name, row.Effect
	if list == "initContainers" && c.IsSidecar() {
		change.Effect = RestartContainer
	}
	hasHostPort := slices.ContainsFunc(c.Ports, func(p spec.ContainerPort) bool { return p.HostPort != 0 })
	other := d.from
	if change.New == "" {
		other = d.to
	}
	if hasHostPort || other.Container(c.Name) != nil || !sameLimits(d.from, d.to) {
		change.Container, change.Effect = "", row.Larger
	}
	d.changes = append(d.changes, change)
}

// sameLimits reports whether the cgroup and the OOM scores of two definitions are equal.
func sameLimits(a, b *spec.Pod) bool {
	request, other := a.Request(spec.ResourceCPU), b.Request(spec.ResourceCPU)
	equal := request.Cmp(other) == 0 && a.QOS() == b.QOS()
	for _, name := range []string{spec.ResourceCPU, spec.ResourceMemory} {
		bound, other := a.Bound(name), b.Bound(name)
		equal = equal && bound.Cmp(other) == 0
	}
	for _, name := range slices.Concat(a.HugePages(), b.HugePages()) {
		pages, other := a.Request(name), b.Request(name)
		equal = equal && pages.Cmp(other) == 0
	}
	return equal
}

// withPolicy returns a container with its pull policy, which is a default that "podstead get" prints. That of an image with the tag latest
// is not known, since it depends on where the image comes from.
func withPolicy(c *spec.Container) *spec.Container {
	if c.ImagePullPolicy != "" || spec.DefaultPullPolicy(c.Image, false) != spec.PullIfNotPresent {
		return c
	}
	set := *c
	set.ImagePullPolicy = spec.PullIfNotPresent
	return &set
}
