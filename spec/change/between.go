package change

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
)

// Between returns the differences between two definitions of one pod, sorted by path. It returns none if a running pod of the definition
// from needs no change to have the definition to. Either may come from a state file ([spec.Pod.WithSecretValues]).
//
// Values are compared after relative paths are resolved and defaults are set. A pod or a container whose hash is equal is unchanged, even
// if the definitions have the defaults of different versions. Ephemeral containers are not compared.
func Between(from, to *spec.Pod) []Change {
	if from.Name == to.Name && from.Hash != "" && from.Hash == to.Hash {
		return nil
	}
	d := &differ{from: from, to: to}
	d.pod()
	Sort(d.changes)
	return d.changes
}

// Sort sorts changes by path.
func Sort(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Container, b.Container))
	})
}

// OfImage returns the change of a container whose image is replaced by another one of the same name, by their digests. No definition shows
// it, so [Between] does not return it.
func OfImage(path string, c *spec.Container, isInit bool, old, new string) Change {
	effect := RestartContainer
	if isInit && !c.IsSidecar() {
		effect = NextRound
	}
	return Change{Path: path, Container: c.Name, Old: imageValue(c.Image, old), New: imageValue(c.Image, new), Effect: effect}
}

// shortDigest is how many characters of the digest of an image are shown.
const shortDigest = 12

func imageValue(reference, digest string) string {
	algorithm, encoded, ok := strings.Cut(digest, ":")
	if !ok {
		algorithm, encoded = "", digest
	}
	return fmt.Sprintf("%q (%s:%s)", reference, algorithm, encoded[:min(len(encoded), shortDigest)])
}

// pod compares the pods.
func (d *differ) pod() {
	a, b := reflect.ValueOf(d.from).Elem(), reflect.ValueOf(d.to).Elem()
	for name, i := range fieldsOf(a.Type()) {
		switch name {
		case "containers", "initContainers":
		case "labels", "annotations":
			d.values(nil, name, name, a.Field(i), b.Field(i)) // as in the kubelet, variables keep their values until the next start
		case "configMaps", "secrets":
			d.objects(name, a.Field(i), b.Field(i))
		default:
			d.walk(name, name, a.Field(i), b.Field(i))
		}
	}
	d.pages()
	d.list("initContainers", d.from.InitContainers, d.to.InitContainers)
	d.list("containers", d.from.Containers, d.to.Containers)
}

// pages adds a change of each emptyDir in huge pages that gets pages of another size, since containers request others.
func (d *differ) pages() {
	for i := range d.to.Volumes {
		v := &d.to.Volumes[i]
		j := slices.IndexFunc(d.from.Volumes, func(old spec.Volume) bool { return old.Name == v.Name })
		if j < 0 || v.EmptyDir == nil || d.from.Volumes[j].EmptyDir == nil || d.from.Volumes[j].EmptyDir.Medium != v.EmptyDir.Medium {
			continue
		}
		old, err1 := d.from.PageSizeOf(v.EmptyDir)
		new, err2 := d.to.PageSizeOf(v.EmptyDir)
		if err1 != nil || err2 != nil || old == new {
			continue
		}
		value := func(size int64) string {
			return fmt.Sprintf("%q (%s)", v.EmptyDir.Medium, resource.NewQuantity(size, resource.BinarySI))
		}
		d.add("volumes[].emptyDir.medium", fmt.Sprintf("volumes[%d].emptyDir.medium", i), value(old), value(new))
	}
}
