package change

import "strings"

// Row is the effect of a change of a field, and of everything in it that has no row.
type Row struct {
	// Field is the path without indexes, such as "containers[].image". Init containers have the fields of containers.
	Field  string
	Effect Effect
	// Why is why the effect is not smaller, or how the change takes effect, for people.
	Why string
	// Larger is the effect in the cases of If. Without a case, both are zero.
	Larger Effect
	If     string
}

// atContainer is the reason for most fields of a container.
const atContainer = "Set when the container is created."

// atSandbox is the reason for most fields of the pod.
const atSandbox = "Set when the pod sandbox is created."

// atContent is the reason for volumes whose files are written by the daemon.
const atContent = "The files of the volume follow."

// withSubPath is when a container does not see that the files of a volume follow.
const withSubPath = "A container mounts the volume with a `subPath`."

// rows is the table. A row overrides those of the tables that contain its field.
var rows = []Row{
	{Field: "name", Effect: ReplacePod, Why: "A pod of another name is another pod."},
	{Field: "labels", Effect: InPlace, Why: "Volumes of the downward API follow, variables of a container at its next start."},
	{
		Field: "annotations", Effect: InPlace, Why: "Volumes of the downward API follow, variables of a container at its next start.",
		Larger: RestartPod, If: "The annotation is `podstead.io/aliases`: names of pods are set up with the pod sandbox.",
	},
	{Field: "restartPolicy", Effect: InPlace, Why: "Used when a container exits."},
	{Field: "terminationGracePeriodSeconds", Effect: InPlace, Why: "Used when a container stops."},
	{Field: "activeDeadlineSeconds", Effect: InPlace, Why: "Counts from the creation of the pod."},
	{
		Field: "backoffLimit", Effect: InPlace,
		Why: "Used when a container exits. Earlier failures count. Under `Never` the containers get the rule by which they are retried.",
	},
	{Field: "ttlSecondsAfterFinished", Effect: InPlace, Why: "Counts from the end of the pod."},
	{Field: "restartBackoff", Effect: InPlace, Why: "Used when a container exits."},
	{
		Field: "initContainers", Effect: NextRound,
		Why: "An init container that was added, removed or moved runs when the pod starts again. " +
			"Sidecars start and stop as the containers of `containers`.",
		Larger: RestartPod, If: "As for `containers`.",
	},
	{
		Field: "containers", Effect: RestartContainer, Why: "A container that was added starts, and one that was removed stops. " +
			"Their order is used when the pod starts again.",
		Larger: RestartPod,
		If: "The container has host ports, moves between `initContainers` and `containers`, or changes the limits or the " +
			"QoS class of the pod.",
	},
	{Field: "volumes", Effect: RestartPod, Why: "Set up with the pod sandbox."},
	{
		Field: "volumes[].emptyDir", Effect: RestartPod,
		Why: "Set up with the pod sandbox. If the medium, the size of its huge pages or the type of the volume " +
			"changes, its content is lost.",
	},
	{Field: "volumes[].image.pullPolicy", Effect: InPlace, Why: "Used when the image is pulled."},
	{Field: "volumes[].configMap", Effect: InPlace, Why: atContent, Larger: RestartContainer, If: withSubPath},
	{Field: "volumes[].secret", Effect: InPlace, Why: atContent, Larger: RestartContainer, If: withSubPath},
	{Field: "volumes[].projected", Effect: InPlace, Why: atContent, Larger: RestartContainer, If: withSubPath},
	{Field: "volumes[].downwardAPI", Effect: InPlace, Why: atContent, Larger: RestartContainer, If: withSubPath},
	{
		Field: "imageArchives", Effect: InPlace,
		Why: "Where an image comes from is not part of what runs. A container whose image is another one restarts, see " +
			"`containers[].image`.",
	},
	{Field: "waitFor", Effect: NextRound, Why: "Used when the pod starts."},
	{Field: "systemd", Effect: InPlace, Why: "Used at boot, and after systemctl daemon-reload."},
	{
		Field: "schedule", Effect: InPlace, Why: "Used at the next time. What runs continues.",
		Larger: ReplacePod, If: "A schedule is added or removed.",
	},
	{Field: "job", Effect: InPlace, Why: "Used when the next pod of the Job starts, terminates or fails."},
	{Field: "update", Effect: InPlace, Why: "Used when the pod file changes."},
	{Field: "onUnhealthy", Effect: InPlace, Why: "The steps start again at the first one."},
	{Field: "unhealthyAfterSeconds", Effect: InPlace, Why: "The steps start again at the first one."},
	{
		Field: "configMaps", Effect: InPlace, Why: "Volumes follow.",
		Larger: RestartContainer, If: "A container has the key in its environment, or mounts it with a `subPath`.",
	},
	{
		Field: "secrets", Effect: InPlace, Why: "Volumes follow.",
		Larger: RestartContainer, If: "A container has the key in its environment, or mounts it with a `subPath`.",
	},
	{Field: "hostNetwork", Effect: RestartPod, Why: atSandbox},
	{Field: "hostPID", Effect: RestartPod, Why: "All containers join the namespaces of the pod."},
	{Field: "hostIPC", Effect: RestartPod, Why: atSandbox},
	{Field: "shareProcessNamespace", Effect: RestartPod, Why: atSandbox},
	{Field: "hostUsers", Effect: RestartPod, Why: atSandbox},
	{Field: "keepID", Effect: RestartPod, Why: atSandbox},
	{Field: "hostname", Effect: RestartPod, Why: atSandbox},
	{Field: "subdomain", Effect: RestartPod, Why: atSandbox},
	{Field: "hostnameOverride", Effect: RestartPod, Why: atSandbox},
	{Field: "setHostnameAsFQDN", Effect: RestartPod, Why: atSandbox},
	{Field: "hostAliases", Effect: InPlace, Why: "/etc/hosts follows."},
	{Field: "dnsPolicy", Effect: RestartPod, Why: atSandbox},
	{Field: "dnsConfig", Effect: RestartPod, Why: atSandbox},
	{Field: "securityContext", Effect: RestartPod, Why: "Applies to the volumes, the namespaces and all containers of the pod."},
	{Field: "securityContext.fsGroupChangePolicy", Effect: NextRound, Why: "Used when the pod starts."},
	{Field: "readinessGates", Effect: InPlace, Why: "Used when the readiness of the pod is determined."},
	{Field: "imagePullSecrets", Effect: InPlace, Why: "Used when an image is pulled."},
	{Field: "serviceAccountName", Effect: InPlace, Why: "Variables of a container follow at its next start."},
	{Field: "os", Effect: InPlace, Why: "There is one value."},
	{Field: "runtimeClassName", Effect: RestartPod, Why: atSandbox},
	{Field: "resources", Effect: RestartPod, Why: "The limits of the pod's cgroup are set when the pod sandbox is created."},
	{Field: "pidsLimit", Effect: RestartPod, Why: "The limits of the pod's cgroup are set when the pod sandbox is created."},
	{Field: "shmSize", Effect: RestartPod, Why: atSandbox},

	{Field: "containers[].name", Effect: RestartContainer, Why: "The container of the old name stops, and one of the new name starts."},
	{
		Field: "containers[].image", Effect: RestartContainer, Why: atContainer + " The image counts too: see " +
			"[Take a newer image](../howto/images-without-a-registry.md#take-a-newer-image).",
	},
	{Field: "containers[].imagePullPolicy", Effect: InPlace, Why: "Used when the image is pulled."},
	{Field: "containers[].command", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].args", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].workingDir", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].env", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].envFrom", Effect: RestartContainer, Why: atContainer},
	{
		Field: "containers[].ports", Effect: InPlace,
		Why:    "Ports without a host port are informational, and names are resolved at every use.",
		Larger: RestartPod, If: "The port has a host port, which is set up with the pod sandbox.",
	},
	{
		Field: "containers[].resources", Effect: InPlace,
		Why: "The cgroups of the running container and of the pod follow. A `resizePolicy` of `RestartContainer` restarts the " +
			"container.",
		Larger: RestartPod,
		If: "The QoS class of the pod changes, a request or limit is removed, or the resource is `ephemeral-storage` or huge pages. " +
			"Kubernetes does not allow these for a resize.",
	},
	{Field: "containers[].resizePolicy", Effect: InPlace, Why: "Used when `resources` change."},
	{Field: "containers[].ulimits", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].init", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].volumeMounts", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].devices", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].livenessProbe", Effect: InPlace, Why: "The probe restarts."},
	{Field: "containers[].readinessProbe", Effect: InPlace, Why: "The probe restarts."},
	{Field: "containers[].startupProbe", Effect: InPlace, Why: "The probe restarts, unless it has succeeded."},
	{
		Field: "containers[].lifecycle", Effect: InPlace, Why: "Used when the container stops; a `postStart` hook when it starts again.",
		Larger: RestartContainer, If: "The container had no `postStart` hook and has one now.",
	},
	{
		Field: "containers[].restartPolicy", Effect: InPlace, Why: "Used when the container exits.",
		Larger: RestartPod, If: "An init container becomes a sidecar, or a sidecar an init container.",
	},
	{Field: "containers[].maxRestarts", Effect: InPlace, Why: "Used when the container exits. Earlier restarts count."},
	{Field: "containers[].restartPolicyRules", Effect: InPlace, Why: "Used when the container exits."},
	{Field: "containers[].restartBackoff", Effect: InPlace, Why: "Used when the container exits."},
	{Field: "containers[].securityContext", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].terminationMessagePath", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].terminationMessagePolicy", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].stdin", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].stdinOnce", Effect: RestartContainer, Why: atContainer},
	{Field: "containers[].tty", Effect: RestartContainer, Why: atContainer},
}

// Rows returns the table, in the order of the reference.
func Rows() []Row { return rows }

// RowOf returns the row of a field, given by its path without indexes, and whether there is one. "containers" and "initContainers" apply to
// containers that were added, removed or moved, not to the fields of a container.
func RowOf(field string) (Row, bool) {
	best, found := Row{}, false
	for _, r := range rows {
		inside, isIn := strings.CutPrefix(field, r.Field)
		isList := r.Field == "containers" || r.Field == "initContainers"
		if !isIn || inside != "" && (isList || inside[0] != '.' && inside[0] != '[') {
			continue
		}
		if !found || len(r.Field) > len(best.Field) {
			best, found = r, true
		}
	}
	return best, found
}
