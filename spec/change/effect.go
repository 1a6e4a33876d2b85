package change

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
)

// differ collects the differences between two definitions.
type differ struct {
	from, to *spec.Pod
	changes  []Change
	// old and new are the container whose fields are compared, in both definitions; nil: the fields of the pod.
	old, new *spec.Container
	isInit   bool // it is in initContainers
	// source is the value of the pod that is compared, if containers can depend on it.
	source *source
	// resized is the resource of the container whose request or limit is compared; empty: another field is.
	resized string
	diff    string // of the values that are added next
}

// add adds the difference of a field, with the effect of its row.
func (d *differ) add(field, path, old, new string) {
	row, _ := RowOf(field)
	c := Change{Path: path, Old: old, New: new, Diff: d.diff, Effect: row.Effect}
	if strings.HasPrefix(field, "secrets[].data") {
		c.Old, c.New = masked(old), masked(new)
	}
	if d.new != nil {
		d.addToContainer(row, c)
		return
	}
	if path == "annotations."+quoteKey(spec.AliasesAnnotation) ||
		row.Field == "schedule" && (d.from.Schedule == nil) != (d.to.Schedule == nil) {
		c.Effect = row.Larger
	}
	users := d.users(field, path)
	for _, u := range users {
		c.Container, c.Effect = u.name, row.Larger
		if u.isInit {
			c.Effect = NextRound
		}
		d.changes = append(d.changes, c)
	}
	if len(users) == 0 {
		d.changes = append(d.changes, c)
	}
}

// addToContainer adds a change of a field of a container.
func (d *differ) addToContainer(row Row, c Change) {
	if d.hasLarger(row.Field) {
		c.Effect = row.Larger
	} else if d.resized != "" && d.new.RestartsOnResize(d.resized) {
		c.Effect = RestartContainer
	}
	if c.Effect == RestartContainer && d.isInit && !d.new.IsSidecar() {
		c.Effect = NextRound
	}
	if c.Effect < RestartPod {
		c.Container = d.new.Name
	}
	d.changes = append(d.changes, c)
}

// hasLarger reports whether the condition of a row is true for the container whose fields are compared.
func (d *differ) hasLarger(field string) bool {
	switch field {
	case "containers[].ports":
		return !slices.Equal(hostPorts(d.old), hostPorts(d.new))
	case "containers[].lifecycle":
		return hasPostStart(d.new) && !hasPostStart(d.old)
	case "containers[].resources":
		return !d.resizable()
	case "containers[].restartPolicy":
		return d.isInit && d.old.IsSidecar() != d.new.IsSidecar()
	}
	return false
}

// resizable reports whether the resource that is compared can change while the container runs (Kubernetes: ValidatePodResize).
func (d *differ) resizable() bool {
	removed := func(from, to spec.ResourceList) bool {
		old, new := from[d.resized], to[d.resized]
		_, had := from[d.resized]
		_, has := to[d.resized]
		return had && !has || old.Sign() > 0 && new.Sign() <= 0
	}
	from, to := &d.old.Resources, &d.new.Resources
	return (d.resized == spec.ResourceCPU || d.resized == spec.ResourceMemory) && d.from.QOS() == d.to.QOS() &&
		!removed(from.Requests, to.Requests) && !removed(from.Limits, to.Limits)
}

func masked(value string) string {
	if value == "" {
		return ""
	}
	return changedSecret
}

// users returns the containers that depend on the value that is compared and cannot follow it: those that have it in their environment or
// mount it with a subPath.
func (d *differ) users(field, path string) []user {
	uses := func(c *spec.Container) bool { return d.source.usedBy(d.to, c) }
	if d.source == nil {
		volume, ok := d.content(field, path)
		if !ok {
			return nil
		}
		uses = func(c *spec.Container) bool {
			return slices.ContainsFunc(c.VolumeMounts, func(m spec.VolumeMount) bool {
				return m.Name == volume && (m.SubPath != "" || m.SubPathExpr != "")
			})
		}
	}
	var found []user
	for _, list := range []struct {
		from, to []spec.Container
		isInit   bool
	}{{d.from.InitContainers, d.to.InitContainers, true}, {d.from.Containers, d.to.Containers, false}} {
		for i := range list.to {
			c := &list.to[i]
			if find(list.from, c.Name) != nil && uses(c) {
				found = append(found, user{name: c.Name, isInit: list.isInit && !c.IsSidecar()})
			}
		}
	}
	return found
}

// content returns the name of the volume that a field belongs to, if the files of the volume are written by the daemon.
func (d *differ) content(field, path string) (volume string, ok bool) {
	row, _ := RowOf(field)
	if row.If != withSubPath {
		return "", false
	}
	index, _, _ := strings.Cut(strings.TrimPrefix(path, "volumes["), "]")
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(d.to.Volumes) {
		return "", false
	}
	return d.to.Volumes[i].Name, true
}

// hostPorts returns the host ports of a container, sorted.
func hostPorts(c *spec.Container) []spec.ContainerPort {
	var ports []spec.ContainerPort
	for _, p := range c.Ports {
		if p.HostPort != 0 {
			p.Name = ""
			ports = append(ports, p)
		}
	}
	slices.SortFunc(ports, func(a, b spec.ContainerPort) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return ports
}

func hasPostStart(c *spec.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PostStart != nil }

func find(list []spec.Container, name string) *spec.Container {
	if i := slices.IndexFunc(list, func(c spec.Container) bool { return c.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}
