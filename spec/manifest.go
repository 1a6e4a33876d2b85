package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/rand"
)

// flatten returns a Pod, or the template of one, in the form of a pod file. The name is that of the metadata; nil: it has none. The node
// must be a table.
func (o *Options) flatten(manifest *node, keys []string) (*node, Problems) {
	var problems Problems
	own := isOutput(manifest.child("metadata"))
	root := newTable(nil)
	root.at, root.keyAt = manifest.at, manifest.at
	for _, c := range manifest.items {
		switch {
		case (c.key == "metadata" || c.key == "spec") && c.kind != kindTable:
			problems = append(problems, problemAt(c, fmt.Sprintf("must be a mapping, found %s", c.describe()), ""))
			return root, problems
		case c.key == "status" && slices.Contains(keys, "status"):
			if !own {
				problems = append(problems, o.dropped(c)...)
			}
		case !slices.Contains(keys, c.key):
			problems = append(problems, problemAt(c, unknownField, didYouMean(c.key, keys)))
		}
	}
	problems = append(problems, o.flattenMetadata(root, manifest.child("metadata"), own)...)
	pod := manifest.child("spec")
	if pod != nil {
		pod.fields = fieldsOf(reflect.TypeFor[Pod]())
	}
	for _, secret := range items(pod.child("secrets")) {
		if own && len(secret.items) == 1 && secret.child("name") != nil {
			problems = append(problems, warnAt(secret, "has no values: podstead get does not print them"))
		}
	}
	for _, c := range items(pod) {
		switch {
		case slices.Contains(metadataKeys, c.key):
			problems = append(problems, problemAt(c, unknownField, "move it to metadata"))
		case c.key == "nodeName":
			if !own {
				problems = append(problems, o.dropped(c)...)
			}
		default:
			adopt(root, c)
		}
	}
	return root, problems
}

// dropped is the warning about what a cluster adds to objects, which has no effect elsewhere.
func (o *Options) dropped(c *node) Problems {
	if !o.Verbose {
		return nil
	}
	return Problems{warnAt(c, ignored+"a cluster has added it")}
}

// lastApplied is the annotation in which kubectl apply keeps the manifest before.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// isOutput reports whether a manifest with this metadata is what "podstead get"
// prints. What a person has not written is dropped from it without a warning.
func isOutput(metadata *node) bool {
	return slices.ContainsFunc(items(metadata.child("annotations")), func(c *node) bool { return slices.Contains(OwnAnnotations, c.key) })
}

// flattenMetadata adds the fields of metadata to the root.
func (o *Options) flattenMetadata(root, metadata *node, own bool) Problems {
	var problems Problems
	for _, c := range items(metadata) {
		switch {
		case c.key == "name" || c.key == "labels":
			adopt(root, c)
		case c.key == "annotations":
			if last := c.child(lastApplied); last != nil {
				problems = append(problems, o.dropped(last)...)
				c.remove(lastApplied)
			}
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
			problems = append(problems, o.dropped(c)...)
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
