package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// clusterOnly are fields of a Kubernetes pod that mean nothing on one machine:
// they are accepted with a warning.
var clusterOnly = setOf("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulerName",
	"serviceAccountName", "automountServiceAccountToken", "enableServiceLinks", "priorityClassName")

var manifestOnly = setOf("apiVersion", "kind", "metadata", "namespace", "spec", "status")

// omitted are the fields of Kubernetes that a pod file does not have, by table.
// A test holds that these, clusterOnly and the fields of the types are together
// all fields that there are.
var omitted = map[reflect.Type][]string{
	reflect.TypeFor[Pod](): {
		"ephemeralContainers", "evictionResponders", "hostnameOverride", "nodeName", "os", "overhead", "preemptionPolicy",
		"resourceClaims", "schedulingGates", "schedulingGroup", "serviceAccount", "setHostnameAsFQDN",
	},
	reflect.TypeFor[Container]():          {"resizePolicy", "volumeDevices"},
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

// unknownKey tells a key c that the table n, of type t, does not have.
func (d *decoder) unknownKey(n, c *node, t reflect.Type) {
	if t == reflect.TypeFor[Pod]() && clusterOnly[c.key] {
		c.ignored = true
		d.problems = append(d.problems, warnAt(c, "means nothing on one machine; it is left out"))
		return
	}
	if slices.Contains(omitted[t], c.key) {
		d.fail(c, c.keyAt, "known to Kubernetes, not supported here", "")
		return
	}
	if t == reflect.TypeFor[Pod]() && manifestOnly[c.key] {
		d.fail(c, c.keyAt, "is a key of manifests, not of pod files", "the fields of metadata and spec are written at the top level")
		return
	}
	if owner := enclosing(n, c.key); owner != nil {
		owner.meant = append(owner.meant, c.key)
		d.fail(c, c.keyAt, fmt.Sprintf("%s is no key of %s, but of %s", quote(c.key), d.tableName(n), d.tableName(owner)), d.moveHint(n, owner))
		return
	}
	if inner := insideOf(t, c.key); len(inner) > 0 {
		d.fail(c, c.keyAt, fmt.Sprintf("%s is no key of %s", quote(c.key), d.tableName(n)), "it is a key of "+strings.Join(inner, " or "))
		return
	}
	names := n.fields.names()
	n.meant = append(n.meant, nearest(c.key, names))
	d.fail(c, c.keyAt, "unknown key", didYouMean(c.key, names))
}

// enclosing is the nearest table around n that has the key.
func enclosing(n *node, key string) *node {
	for n = n.parent; n != nil; n = n.parent {
		if _, ok := n.fields[key]; ok {
			return n
		}
	}
	return nil
}

// insideOf are the keys of a table under which it has tables with the key.
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

// moveHint says where a line goes that was meant for the table owner, which
// encloses n.
func (d *decoder) moveHint(n, owner *node) string {
	if d.yaml || !n.header {
		return "move it there"
	}
	if owner.parent == nil {
		return "this line belongs to " + d.tableName(owner) + "; move it to the top of the file, above the first [header]"
	}
	return fmt.Sprintf("this line belongs to that table; move it above its header [%s]", n.name())
}
