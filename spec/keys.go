package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// clusterOnly are fields of Kubernetes that have no effect on a single host, by
// table. They are accepted with a warning.
var clusterOnly = map[reflect.Type][]string{
	reflect.TypeFor[Pod](): {
		"affinity", "automountServiceAccountToken", "enableServiceLinks", "ephemeralContainers", "nodeName", "nodeSelector", "preemptionPolicy",
		"priority", "priorityClassName", "schedulerName", "tolerations", "topologySpreadConstraints",
	},
	reflect.TypeFor[Container](): {"resizePolicy"},
}

// unions are the tables in which an empty table is a choice.
var unions = []reflect.Type{
	reflect.TypeFor[EnvVarSource](), reflect.TypeFor[LifecycleHandler](), reflect.TypeFor[Projection](), reflect.TypeFor[Volume](),
}

// noEffect reports whether a value of an omitted field is what Kubernetes does
// without the field.
func noEffect(c *node, t reflect.Type) bool {
	switch {
	case c.kind == kindTable:
		return len(c.items) == 0 && !slices.Contains(unions, t)
	case c.kind == kindArray:
		return len(c.items) == 0
	default:
		return c.value == false || c.value == ""
	}
}

var manifestOnly = setOf("apiVersion", "kind", "metadata", "namespace", "spec", "status")

// omitted lists the fields of Kubernetes that a pod file cannot set, by table.
// A value that has no effect is accepted with a warning. TestFieldsAreKubernetes
// checks that omitted, clusterOnly and the fields of the types are all fields of
// the Pod API.
var omitted = map[reflect.Type][]string{
	reflect.TypeFor[Pod](): {
		"evictionResponders", "hostnameOverride", "overhead", "resourceClaims", "schedulingGates", "schedulingGroup",
		"setHostnameAsFQDN",
	},
	reflect.TypeFor[Container]():          {"volumeDevices"},
	reflect.TypeFor[EnvVarSource]():       {"fileKeyRef"},
	reflect.TypeFor[LifecycleHandler]():   {"tcpSocket"},
	reflect.TypeFor[Resources]():          {"claims"},
	reflect.TypeFor[PodSecurityContext](): {"seLinuxChangePolicy", "seLinuxOptions", "windowsOptions"},
	reflect.TypeFor[SecurityContext]():    {"seLinuxOptions", "windowsOptions"},
	reflect.TypeFor[VolumeMount]():        {"bindMountOptions"},
	reflect.TypeFor[ConfigMapVolume]():    {"defaultUser"},
	reflect.TypeFor[SecretVolume]():       {"defaultUser"},
	reflect.TypeFor[ProjectedVolume]():    {"defaultUser"},
	reflect.TypeFor[DownwardAPIVolume]():  {"defaultUser"},
	reflect.TypeFor[EmptyDirVolume]():     {"mode"},
	reflect.TypeFor[KeyToPath]():          {"user"},
	reflect.TypeFor[DownwardFile]():       {"user"},
	reflect.TypeFor[HTTPGetAction]():      {"protocol"},
	reflect.TypeFor[GRPCAction]():         {"mode"},
	reflect.TypeFor[Projection]():         {"clusterTrustBundle", "podCertificate", "serviceAccountToken"},
	reflect.TypeFor[Volume](): {
		"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "ephemeral", "fc", "flexVolume",
		"flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "iscsi", "nfs", "photonPersistentDisk", "portworxVolume",
		"quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
	},
}

// unknownKey reports a key c that the table n, of type t, does not have.
func (d *decoder) unknownKey(n, c *node, t reflect.Type) {
	refused := slices.Contains(omitted[t], c.key)
	if slices.Contains(clusterOnly[t], c.key) || refused && noEffect(c, t) {
		c.ignored = true
		message := ignoredField
		if c.key == "ephemeralContainers" {
			message = ignoredEphemeral
		}
		d.problems = append(d.problems, warnAt(c, message))
		return
	}
	if refused {
		d.fail(c, c.keyAt, "not supported on a single host", "")
		return
	}
	if t == reflect.TypeFor[Pod]() && manifestOnly[c.key] && d.format == formatTOML {
		d.fail(c, c.keyAt, "is a field of manifests, not of pod files", "write the fields of metadata and spec at the top level")
		return
	}
	hint := composeHint(t, c.key)
	if owner := enclosing(n, c.key); owner != nil && (hint == "" || !isComposeList(c)) {
		owner.meant = append(owner.meant, c.key)
		d.fail(c, c.keyAt, fmt.Sprintf("%s is a field of %s, not of %s", quote(c.key), d.tableName(owner), d.tableName(n)), d.moveHint(n, owner))
		return
	}
	if inner := insideOf(t, c.key); len(inner) > 0 {
		d.fail(c, c.keyAt, fmt.Sprintf("%s is not a field of %s", quote(c.key), d.tableName(n)), "set it in "+alternatives(inner))
		return
	}
	names := n.fields.names()
	n.meant = append(n.meant, nearest(c.key, names))
	d.fail(c, c.keyAt, unknownField, cmp.Or(hint, didYouMean(c.key, names)))
}

const (
	unknownField = "unknown field" // as in Kubernetes' strict decoding
	ignoredField = "ignored: not supported on a single host"
	// ignoredEphemeral is the warning for the ephemeral containers of a manifest.
	ignoredEphemeral = "ignored: ephemeral containers can only be added to a running pod"
)

// enclosing returns the innermost table around n that has the key, or nil.
func enclosing(n *node, key string) *node {
	for n = n.parent; n != nil; n = n.parent {
		if _, ok := n.fields[key]; ok {
			return n
		}
	}
	return nil
}

// insideOf returns the keys of the tables in a table of type t that have the key.
func insideOf(t reflect.Type, key string) []string {
	var inner []string
	for name, i := range fieldsOf(t) {
		ft := t.Field(i).Type
		if ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct {
			if _, ok := fieldsOf(ft)[key]; ok {
				inner = append(inner, name)
			}
		}
	}
	slices.Sort(inner)
	return inner
}

func (d *decoder) tableName(n *node) string {
	return cmp.Or(n.path(), d.subject, "the pod")
}

// moveHint tells where to move a line from the table n to the enclosing table
// owner.
func (d *decoder) moveHint(n, owner *node) string {
	switch {
	case d.format != formatTOML || !n.header:
		return "move it to " + d.tableName(owner)
	case owner.parent == nil:
		return "move it to the top of the file, above the first [header]"
	default:
		return fmt.Sprintf("move it above the header [%s]", n.name())
	}
}
