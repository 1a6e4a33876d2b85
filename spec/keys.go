package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// refusal is why a field has no effect or is refused, and what does it here; the hint may be empty.
type refusal struct{ why, hint string }

// clusterOnly are fields of Kubernetes that only matter in a cluster, by table. They are accepted with a warning.
var clusterOnly = map[reflect.Type]map[string]refusal{
	reflect.TypeFor[Pod](): {
		"affinity": noScheduler, "nodeName": noScheduler, "nodeSelector": noScheduler, "schedulerName": noScheduler,
		"tolerations": noScheduler, "topologySpreadConstraints": noScheduler,
		"automountServiceAccountToken": noAccounts,
		"preemptionPolicy":             noPriority, "priority": noPriority, "priorityClassName": noPriority,
		"enableServiceLinks":  {"there are no services", ""},
		"ephemeralContainers": {"ephemeral containers can only be added to a running pod", ""},
	},
}

var (
	noScheduler = refusal{"there is one host, and no scheduler", ""}
	noAccounts  = refusal{"there are no service accounts", ""}
	noPriority  = refusal{"pods do not preempt each other", ""}
)

// unions are the tables in which an empty table is a choice.
var unions = []reflect.Type{
	reflect.TypeFor[EnvVarSource](), reflect.TypeFor[LifecycleHandler](), reflect.TypeFor[Projection](), reflect.TypeFor[Volume](),
}

// noEffect reports whether a value of an omitted field is what Kubernetes does
// without the field.
func noEffect(c *node, t reflect.Type) bool {
	if c.kind == kindTable || c.kind == kindArray {
		return len(c.items) == 0 && (c.kind == kindArray || !slices.Contains(unions, t))
	}
	return c.value == false || c.value == ""
}

var manifestOnly = setOf("apiVersion", "kind", "metadata", "namespace", "spec", "status")

// omitted are the fields of Kubernetes that a pod file cannot set, by table.
// A value that has no effect is accepted with a warning. TestFieldsAreKubernetes
// checks that omitted, clusterOnly and the fields of the types are all fields of
// the Pod API, TestRefusals that docs/design/deviations.md lists them.
var omitted = map[reflect.Type]map[string]refusal{
	reflect.TypeFor[Pod](): {
		"evictionResponders": {"pods are not evicted by requests", "write a preStop hook"},
		"overhead":           {"a pod uses what its containers use", "set resources of the pod"},
		"resourceClaims":     noDevices,
		"schedulingGates":    {"there is no scheduler that waits", "set waitFor"},
		"schedulingGroup":    {"there is no scheduler that places groups of pods", "set waitFor in pods that need each other"},
	},
	reflect.TypeFor[Container](): {
		"volumeDevices": {"volumes are directories, not block devices", "mount the file system on the host, and set volumeMounts"},
	},
	reflect.TypeFor[LifecycleHandler](): {
		"tcpSocket": {"a hook that only connects does nothing, and fails in Kubernetes", "set exec, httpGet or sleep"},
	},
	reflect.TypeFor[Resources]():          {"claims": noDevices},
	reflect.TypeFor[PodSecurityContext](): {"seLinuxChangePolicy": noSELinux, "seLinuxOptions": noSELinux, "windowsOptions": noWindows},
	reflect.TypeFor[SecurityContext]():    {"seLinuxOptions": noSELinux, "windowsOptions": noWindows},
	reflect.TypeFor[VolumeMount](): {
		"bindMountOptions": {"other mount options than readOnly cannot be chosen", "set readOnly"},
	},
	reflect.TypeFor[ConfigMapVolume]():   {"defaultUser": rootOwns},
	reflect.TypeFor[SecretVolume]():      {"defaultUser": rootOwns},
	reflect.TypeFor[ProjectedVolume]():   {"defaultUser": rootOwns},
	reflect.TypeFor[DownwardAPIVolume](): {"defaultUser": rootOwns},
	reflect.TypeFor[KeyToPath]():         {"user": rootOwns},
	reflect.TypeFor[DownwardFile]():      {"user": rootOwns},
	reflect.TypeFor[HTTPGetAction]():     {"protocol": {"requests without TLS use HTTP/1.1", "set scheme to HTTPS, or probe with exec"}},
	reflect.TypeFor[GRPCAction]():        {"mode": {"the connection has no TLS", "probe with exec, or on a port without TLS"}},
	reflect.TypeFor[Projection](): {
		"clusterTrustBundle":  {"there is no API server that has trust bundles", "set configMap with the certificates"},
		"podCertificate":      {"there is no signer for certificates of pods", "set secret with a certificate"},
		"serviceAccountToken": {noAccounts.why, "set secret with a token of the service that the pod uses"},
	},
	reflect.TypeFor[Volume](): {
		"azureFile": onNetwork, "cephfs": onNetwork, "fc": onNetwork, "flocker": onNetwork, "glusterfs": onNetwork, "iscsi": onNetwork,
		"nfs": onNetwork, "portworxVolume": onNetwork, "quobyte": onNetwork, "rbd": onNetwork, "scaleIO": onNetwork, "storageos": onNetwork,
		"awsElasticBlockStore": ofCloud, "azureDisk": ofCloud, "cinder": ofCloud, "gcePersistentDisk": ofCloud,
		"photonPersistentDisk": ofCloud, "vsphereVolume": ofCloud,
		"csi": noDriver, "flexVolume": noDriver,
		"ephemeral": {"there are no storage classes", "set emptyDir, or persistentVolumeClaim to keep the data"},
		"gitRepo":   {"git would run with the rights of the host", "clone the repository in an entry of initContainers into an emptyDir"},
	},
}

var (
	noDevices = refusal{"there are no drivers that allocate devices", devicesHint}
	noSELinux = refusal{
		"containers have no SELinux labels",
		"set securityContext.seccompProfile, securityContext.appArmorProfile or securityContext.capabilities in the container",
	}
	noWindows = refusal{"containers run on Linux", "set the fields for Linux, such as runAsUser"}
	rootOwns  = refusal{"the files belong to root", "set securityContext.fsGroup of the pod"}
	onNetwork = refusal{"the host mounts storage of the network, not the pod", "mount it on the host, and set hostPath"}
	ofCloud   = refusal{"the host attaches disks of a cloud, not the pod", "attach and mount the disk on the host, and set hostPath"}
	noDriver  = refusal{"there are no storage drivers", "mount the storage on the host, and set hostPath"}
)

// unknownKey reports a key c that the table n, of type t, does not have.
func (d *decoder) unknownKey(n, c *node, t reflect.Type) {
	useless, isUseless := clusterOnly[t][c.key]
	refused, isRefused := omitted[t][c.key]
	if isRefused && noEffect(c, t) {
		useless, isUseless = refusal{"this value has no effect", ""}, true
	}
	switch {
	case isUseless && d.forCluster && !isRefused && c.key != "ephemeralContainers":
		return
	case isUseless:
		c.ignored = true
		d.problems = append(d.problems, warnAt(c, ignored+useless.why))
		return
	case isRefused && d.allowLoss:
		c.ignored = true
		d.problems = append(d.problems, warnAt(c, lost+refused.why))
		return
	case isRefused:
		d.fail(c, c.keyAt, "not supported: "+refused.why, refused.hint)
		return
	}
	if t == reflect.TypeFor[Pod]() && manifestOnly[c.key] && d.format == formatTOML {
		d.fail(c, c.keyAt, "is a field of manifests, not of pod files", "write the fields of metadata and spec at the top level")
		return
	}
	hint := composeHint(t, c.key)
	if hint == envFileHint && d.format == formatTOML {
		hint = envFileShortHint
	}
	if owner := enclosing(n, c.key); owner != nil && (hint == "" || !isComposeList(c)) {
		owner.meant = append(owner.meant, c.key)
		d.fail(c, c.keyAt, fmt.Sprintf("%s is a field of %s, not of %s", quote(c.key), d.tableName(owner), d.tableName(n)),
			d.moveHint(n, owner))
		return
	}
	if inner := insideOf(t, c.key); len(inner) > 0 {
		d.fail(c, c.keyAt, fmt.Sprintf("%s is not a field of %s", quote(c.key), d.tableName(n)), "set it in "+alternatives(inner))
		return
	}
	if places := placesOf(c.key); hint == "" && places != "" {
		d.fail(c, c.keyAt, fmt.Sprintf("%s is not a field of %s", quote(c.key), d.tableName(n)), "set "+places)
		return
	}
	names := n.fields.names()
	n.meant = append(n.meant, nearest(c.key, names))
	d.fail(c, c.keyAt, unknownField, cmp.Or(hint, didYouMean(c.key, names)))
}

const (
	unknownField = "unknown field" // as in Kubernetes' strict decoding
	ignored      = "ignored: "
	lost         = "lost: "
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

// maxPlaces bounds the places in a hint.
const maxPlaces = 3

// placesOf returns where a pod has a key, as in "update.readyWithinSeconds in the pod"; empty: nowhere, or at many places, such as path.
func placesOf(key string) string {
	var ofPod, ofContainer []string
	var walk func(t reflect.Type, at string, found *[]string)
	walk = func(t reflect.Type, at string, found *[]string) {
		for name, i := range fieldsOf(t) {
			inner := t.Field(i).Type
			for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			if name == key {
				*found = append(*found, at+name)
			}
			if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[Container]() {
				walk(inner, at+name+".", found)
			}
		}
	}
	walk(reflect.TypeFor[Pod](), "", &ofPod)
	walk(reflect.TypeFor[Container](), "", &ofContainer)
	places, owner := ofPod, " in the pod"
	if len(ofPod) == 0 {
		places, owner = ofContainer, " in a container"
	}
	if n := len(ofPod) + len(ofContainer); n == 0 || n > maxPlaces || n > len(places) {
		return ""
	}
	slices.Sort(places)
	return alternatives(places) + owner
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
