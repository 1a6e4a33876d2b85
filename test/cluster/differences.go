package cluster

import "slices"

// Who refuses a pod that the other one accepts.
const (
	Kubernetes = "Kubernetes"
	Podstead   = "Podstead"
	AsYAML     = "Podstead as YAML" // accepted as TOML
	AsTOML     = "Podstead as TOML" // accepted as YAML
)

// Difference is a kind of pods that one program refuses and the other one accepts.
type Difference struct {
	// By is [Kubernetes], [Podstead], [AsYAML] or [AsTOML].
	By string
	// Fields are the fields of its errors, separated by spaces, without indexes and keys of tables. A field that ends in * stands for all
	// that begin so. Init containers count as containers.
	Fields string
	// Error is a regular expression for the errors. Empty: all of them.
	Error string
	// Reason tells why the programs differ.
	Reason string
}

// Differences returns all known differences. An error belongs to the first row that fits.
func Differences() []Difference {
	return slices.Concat(unsupported(), stricter(), ignored())
}

// unsupported are the fields that Podstead refuses.
func unsupported() []Difference {
	return []Difference{
		{
			Podstead, `spec.volumes.awsElasticBlockStore spec.volumes.azureFile spec.volumes.cephfs spec.volumes.cinder
			spec.volumes.csi spec.volumes.fc spec.volumes.flexVolume spec.volumes.flocker spec.volumes.gcePersistentDisk
			spec.volumes.glusterfs spec.volumes.nfs spec.volumes.photonPersistentDisk spec.volumes.portworxVolume
			spec.volumes.rbd spec.volumes.scaleIO spec.volumes.storageos spec.volumes.vsphereVolume`, "",
			"drivers of a cluster mount these; a mount of the host is a `hostPath`",
		},
		{Podstead, "spec.volumes.gitRepo", "", "Kubernetes has disabled it since 1.33, and its pods do not start"},
		{Podstead, "spec.volumes.projected.sources.clusterTrustBundle", "", "the API server of a cluster has these certificates"},
		{
			Podstead, `spec.volumes.configMap.defaultUser spec.volumes.secret.defaultUser spec.volumes.downwardAPI.defaultUser
			spec.volumes.projected.defaultUser spec.volumes.configMap.items.user spec.volumes.secret.items.user
			spec.volumes.downwardAPI.items.user spec.volumes.projected.sources.configMap.items.user
			spec.volumes.projected.sources.secret.items.user spec.volumes.projected.sources.downwardAPI.items.user`,
			"", "disabled by default in Kubernetes, and newer than the version that Podstead follows",
		},
		{
			Podstead, `spec.containers.volumeMounts.bindMountOptions spec.containers.livenessProbe.grpc.mode
			spec.containers.readinessProbe.grpc.mode spec.containers.startupProbe.grpc.mode
			spec.containers.livenessProbe.httpGet.protocol spec.containers.readinessProbe.httpGet.protocol
			spec.containers.startupProbe.httpGet.protocol spec.containers.lifecycle.postStart.httpGet.protocol
			spec.containers.lifecycle.preStop.httpGet.protocol spec.evictionResponders`,
			"", "disabled by default in Kubernetes, and newer than the version that Podstead follows",
		},
		{
			Podstead, "spec.containers.lifecycle.postStart.tcpSocket spec.containers.lifecycle.preStop.tcpSocket", "",
			"the kubelet has no such hook: postStart fails, and preStop does nothing",
		},
		{
			Podstead, "spec.containers.securityContext.seLinuxOptions spec.securityContext.seLinuxOptions", "",
			"Podstead sets no SELinux labels, so the pod would not be confined as it asks",
		},
		{Podstead, "spec.containers.securityContext.windowsOptions spec.securityContext.windowsOptions", "", "for Windows"},
		{Podstead, "spec.os.name", "", "for Windows, except for the name `linux`"},
		{Podstead, "spec.resourceClaims", "", "devices are allocated by the scheduler of a cluster"},
		{
			Podstead, "spec.schedulingGates spec.schedulingGroup", "",
			"controllers of a cluster open the gates; here the pod would never start",
		},
		{Podstead, "spec.containers.resources.*", `Unsupported value: "example.com/x"`, "device plugins of a node have these resources"},
	}
}

// objectNames are fields with names of objects that the API server does not check.
const objectNames = `spec.imagePullSecrets.name spec.volumes.configMap.name spec.volumes.secret.secretName
			spec.volumes.persistentVolumeClaim.claimName spec.volumes.projected.sources.configMap.name
			spec.volumes.projected.sources.secret.name`

// stricter are values that Podstead refuses since they fail later in a cluster, or do something else than they seem to.
func stricter() []Difference {
	return []Difference{
		{
			Podstead, "spec.containers.image spec.volumes.image.reference", "must be an image reference",
			"the kubelet fails with InvalidImageName",
		},
		{Podstead, objectNames, "", "no object can have this name, so the pod would wait for it. A name is a directory of the host"},
		{
			Podstead, `spec.containers.env.valueFrom.resourceFieldRef.containerName
			spec.volumes.downwardAPI.items.resourceFieldRef.containerName
			spec.volumes.projected.sources.downwardAPI.items.resourceFieldRef.containerName`, "Not found: container",
			"the kubelet fails: the container does not exist",
		},
		{Podstead, "spec.containers.workingDir", "must be an absolute path", "the OCI runtime fails"},
		{
			Podstead, "spec.containers.securityContext.capabilities.add", "must be a Linux capability",
			"the container runtime fails: it adds the prefix CAP_",
		},
		{
			Podstead,
			"spec.containers.securityContext.seccompProfile.localhostProfile spec.securityContext.seccompProfile.localhostProfile",
			"must not be empty", "the kubelet fails: localhostProfile must be set",
		},
		{
			Podstead, "spec.volumes.emptyDir.mode", "must be",
			"disabled by default in Kubernetes, which drops it without a look at its value",
		},
		{Podstead, "spec.volumes.emptyDir.medium", "Unsupported value", "the kubelet fails: unknown storage medium"},
		{
			Podstead, "spec.volumes.configMap.items.path spec.volumes.secret.items.path spec.volumes.downwardAPI.items.path",
			"Duplicate value",
			"the kubelet keeps one of the two files",
		},
		{
			Podstead, "spec.securityContext.sysctls.name", "Duplicate value",
			"the same parameter with dots and with slashes has two values",
		},
		{Podstead, "spec.dnsConfig.options.name", "must not contain spaces or colons", "it would be another option in /etc/resolv.conf"},
		{
			Podstead, "spec.containers.volumeMounts.mountPath", "/dev is set up|/proc in|/sys in",
			"content of the container's choice there defeats the protection of the OCI runtime (CVE-2025-31133)",
		},
		{
			Podstead, "spec.containers.volumeMounts.mountPath", "must not be the root directory",
			"the OCI runtime fails, or the image is hidden",
		},
		{
			Podstead, "spec.containers.volumeMounts.mountPath", "must not contain ':'",
			"the API forbids it in the description of the field only",
		},
		{
			Podstead, "spec.containers.volumeMounts.mountPropagation", "hostUsers",
			"mounts do not leave the mount namespace of a user namespace",
		},
		{Podstead, "spec.containers.ports.hostIP", "", "the port cannot be forwarded from this address"},
		{
			Podstead, "spec.containers.ports.hostPort spec.containers.ports.containerPort", "Duplicate value",
			"a port of the host belongs to one port of the pod as long as the pod runs, also if an init container has it",
		},
		{
			Podstead, "spec.containers.ports.hostPort", "must match containerPort",
			"in the network of the host, the ports of init containers are not forwarded either",
		},
		{
			Podstead, "spec.terminationGracePeriodSeconds", "greater than or equal to 0",
			"the API server makes it 1; a negative number is a mistake",
		},
		{Podstead, `spec.terminationGracePeriodSeconds spec.containers.livenessProbe.terminationGracePeriodSeconds
			spec.containers.startupProbe.terminationGracePeriodSeconds`, "2147483647", "more than 68 years"},
		{
			Podstead, "spec.containers.resources.* spec.resources.*", "out of range",
			"more than 8 EiB; Kubernetes takes it as the largest amount",
		},
	}
}

// ignored are the fields that Podstead accepts with a warning, whatever their values are.
func ignored() []Difference {
	return []Difference{
		{Kubernetes, "metadata.name", "name or generateName is required", "the name of the file is the default"},
		{
			Kubernetes, "metadata.generateName metadata.finalizers metadata.ownerReferences.*", "",
			"ignored with a warning: they are for the API server",
		},
		{Kubernetes, "", "parsing time", "times in metadata are ignored with a warning"},
		{Kubernetes, "", "the namespace of the provided object", "ignored with a warning: there is one namespace"},
		{Kubernetes, "", "Pod Overhead set", "an empty value of a field that is not supported is ignored with a warning"},
		{Kubernetes, `spec.affinity.* spec.nodeName spec.nodeSelector spec.preemptionPolicy spec.priority spec.priorityClassName
			spec.tolerations.* spec.topologySpreadConstraints.*`, "", "ignored with a warning: they choose a node"},
		{Kubernetes, "spec.ephemeralContainers*", "", "ignored with a warning: they can only be added to a running pod"},
		{AsYAML, "spec.containers.lifecycle.stopSignal", "empty .spec.os.name", "a pod file is for Linux"},
		{
			Kubernetes, `spec.securityContext.seLinuxChangePolicy spec.resources.claims
			spec.securityContext.windowsOptions spec.containers.securityContext.windowsOptions`, "",
			"an empty value of a field that is not supported is ignored with a warning",
		},
		{Kubernetes, "spec.volumes.hostPath.path", "must not contain '..'", "a relative path is relative to the directory of the file"},
	}
}
