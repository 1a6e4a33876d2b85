package change

import (
	"cmp"
	"reflect"
	"slices"

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
	slices.SortStableFunc(d.changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Container, b.Container))
	})
	return d.changes
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
	d.list("initContainers", d.from.InitContainers, d.to.InitContainers)
	d.list("containers", d.from.Containers, d.to.Containers)
}
