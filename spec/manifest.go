package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/rand"
)

// flatten returns a Pod manifest in the form of a pod file.
func flatten(manifest *node, o Options) (*node, Problems, *syntaxError) {
	manifest = onlyItem(manifest)
	if err := isPod(manifest); err != nil {
		return nil, nil, err
	}
	own := isOutput(manifest.child("metadata"))
	root := newTable(nil)
	root.at, root.keyAt = manifest.at, manifest.at
	var problems Problems
	for _, c := range manifest.items {
		switch c.key {
		case "apiVersion", "kind":
		case "metadata", "spec":
			if c.kind != kindTable {
				return nil, nil, &syntaxError{at: c.at, message: fmt.Sprintf("%s: must be a mapping, found %s", c.key, c.describe())}
			}
		case "status":
			if !own {
				problems = append(problems, warnAt(c, "ignored: status is read-only"))
			}
		default:
			problems = append(problems, problemAt(c, unknownField, didYouMean(c.key, manifestKeys)))
		}
	}
	problems = append(problems, flattenMetadata(root, manifest.child("metadata"), own, o)...)
	if pod := manifest.child("spec"); pod != nil {
		pod.fields = fieldsOf(reflect.TypeFor[Pod]())
	}
	for _, c := range items(manifest.child("spec")) {
		switch {
		case slices.Contains(metadataKeys, c.key):
			problems = append(problems, problemAt(c, unknownField, "move it to metadata"))
		case own && c.key == "nodeName":
		default:
			adopt(root, c)
		}
	}
	return root, problems, nil
}

// onlyItem returns the item of a list with one item, as "get -o yaml" prints it.
func onlyItem(manifest *node) *node {
	if kind := manifest.child("kind"); kind != nil && (kind.value == "List" || kind.value == "PodList") {
		if list := items(manifest.child("items")); len(list) == 1 && list[0].kind == kindTable {
			return list[0]
		}
	}
	return manifest
}

// isOutput reports whether a manifest with this metadata is what "podstead get"
// prints. What a person has not written is dropped from it without a warning.
func isOutput(metadata *node) bool {
	return slices.ContainsFunc(items(metadata.child("annotations")), func(c *node) bool { return slices.Contains(OwnAnnotations, c.key) })
}

// flattenMetadata adds the fields of metadata to the root.
func flattenMetadata(root, metadata *node, own bool, o Options) Problems {
	var problems Problems
	for _, c := range items(metadata) {
		switch {
		case c.key == "name" || c.key == "labels":
			adopt(root, c)
		case c.key == "annotations":
			adopt(root, withoutOwn(c))
		case c.key == generateNameKey && metadata.child("name") == nil && c.kind == kindString:
			name := &node{kind: kindString, at: c.at, keyAt: c.keyAt, parent: metadata, key: "name", segment: c.segment}
			name.text = c.text
			generated := generateName(fmt.Sprint(c.value), o.Suffix)
			name.value = generated
			if o.edits != nil {
				*o.edits = append(*o.edits, edit{node: name, value: generated, key: name.key})
			}
			adopt(root, name)
		case c.key == "namespace":
			if c.value != "default" {
				problems = append(problems, warnAt(c, `ignored: the only namespace is "default"`))
			}
		case own && objectMetaKeys[c.key]:
		case objectMetaKeys[c.key]:
			problems = append(problems, warnAt(c, ignored+"it is a field of the pod in the cluster"))
		default:
			problems = append(problems, problemAt(c, unknownField, didYouMean(c.key, metadataKeys)))
		}
	}
	return problems
}

// generateName returns a name with a prefix, as the API server generates it. An
// empty suffix becomes a random one.
func generateName(prefix, suffix string) string {
	const maxPrefix = 63 - 5 // k8s.io/apiserver/pkg/storage/names
	return prefix[:min(len(prefix), maxPrefix)] + cmp.Or(suffix, NameSuffix())
}

// NameSuffix returns a random suffix for [Options].
func NameSuffix() string { return rand.String(5) }

// OwnAnnotations are the annotations with which "podstead get" prints what
// Kubernetes has no fields for. A manifest that has them is accepted, without
// them.
var OwnAnnotations = []string{
	AnnotationAtRest, AnnotationFile, AnnotationNotDurable, AnnotationOutcome, AnnotationOwner, AnnotationPulling,
	AnnotationRequest, AnnotationSpecHash, AnnotationStoppedAt, AnnotationStoppedBy,
}

// The annotations of [OwnAnnotations].
const (
	AnnotationAtRest     = "podstead.io/at-rest"
	AnnotationFile       = "podstead.io/file"
	AnnotationNotDurable = "podstead.io/not-durable"
	AnnotationOutcome    = "podstead.io/outcome"
	AnnotationOwner      = "podstead.io/owner"
	AnnotationPulling    = "podstead.io/pulling"
	AnnotationRequest    = "podstead.io/request"
	AnnotationSpecHash   = "podstead.io/spec-hash"
	AnnotationStoppedAt  = "podstead.io/stopped-at"
	AnnotationStoppedBy  = "podstead.io/stopped-by"
)

func withoutOwn(annotations *node) *node {
	annotations.items = slices.DeleteFunc(annotations.items, func(c *node) bool {
		own := slices.Contains(OwnAnnotations, c.key)
		if own {
			delete(annotations.index, c.key)
		}
		return own
	})
	return annotations
}

// adopt adds c to the fields of the root. Its path stays that of its parent.
func adopt(root, c *node) {
	root.items = append(root.items, c)
	root.index[c.key] = c
}

func items(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.items
}

var (
	manifestKeys = []string{"apiVersion", "kind", "metadata", "spec", "status"}
	metadataKeys = []string{"name", "labels", "annotations", "namespace"}
)

// objectMetaKeys are the fields of ObjectMeta that have no effect without an API server.
var objectMetaKeys = setOf("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
	"generateName", "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid")

func isPod(manifest *node) *syntaxError {
	var kind, version any
	if c := manifest.child("kind"); c != nil {
		kind = c.value
	}
	if c := manifest.child("apiVersion"); c != nil {
		version = c.value
	}
	switch {
	case kind == "Pod" && version == "v1":
		return nil
	case kind == "Pod":
		return &syntaxError{at: manifest.at, message: "not a Pod manifest: apiVersion must be v1"}
	case kind == nil && manifest.child("services") != nil:
		return &syntaxError{at: manifest.at, message: "not a Pod manifest, but a Compose file", hint: servicesHint}
	case kind == nil:
		return &syntaxError{
			at: manifest.at, message: "not a Pod manifest: kind: Required value",
			hint: "begin the manifest with apiVersion: v1 and kind: Pod",
		}
	default:
		name, _ := kind.(string) // empty if it is not a string
		message := fmt.Sprintf(`not a Pod manifest: kind: Unsupported value: %s: supported values: "Pod"`, quote(name))
		return &syntaxError{at: manifest.child("kind").at, message: message, hint: kindHints[name]}
	}
}

const templateHint = `write a Pod with the metadata and the spec of `

// kindHints tell what to do with objects of other kinds.
var kindHints = map[string]string{
	"ConfigMap": "set configMaps in the spec of the Pod, or write its keys as files into configmaps/NAME of the " +
		"configuration directory",
	"Secret": "set secrets in the spec of the Pod, or write its keys as files into secrets/NAME of the configuration " +
		"directory",
	"CronJob":               templateHint + "spec.jobTemplate.spec.template",
	"DaemonSet":             templateHint + "spec.template",
	"Deployment":            templateHint + "spec.template",
	"Job":                   templateHint + "spec.template",
	"ReplicaSet":            templateHint + "spec.template",
	"ReplicationController": templateHint + "spec.template",
	"StatefulSet":           templateHint + "spec.template",
	"PodTemplate":           templateHint + "template",
	"Service":               "set hostPort in the ports of the containers",
	"PersistentVolumeClaim": "remove it: a volume is created when a pod uses it first",
	"List":                  "write one Pod per file",
	"PodList":               "write one Pod per file",
}
