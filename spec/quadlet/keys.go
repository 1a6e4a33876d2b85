package quadlet

import "slices"

// verdict is what the conversion does with a key.
type verdict string

const (
	taken   verdict = "taken"
	ignored verdict = "ignored" // a warning: what the pod does stays the same
	lost    verdict = "lost"    // an error unless the user accepts it: what the pod does is not the same
	refused verdict = "refused" // an error
)

// row is what the conversion does with a key of a section.
type row struct {
	section, key string
	verdict      verdict
	text         string // of a taken key the fields of the pod file, else why
	hint         string
	harmless     string // the value for which nothing is lost
	take         func(*converter, *scope, []entry)
}

// Why keys have no effect.
const (
	noPodman    = "there is no Podman whose settings matter"
	noProcess   = "it is a setting of the process of Podman, which does not exist here"
	noLinks     = "pods have the addresses that the host gives them"
	oneNetwork  = "all pods of a host share one network"
	ownRetries  = "pulls are retried with a back-off"
	noSELinux   = "SELinux labels are not set"
	noLabels    = "only pods have labels"
	noLimit     = "pod files have no field for it"
	noUserNS    = "the mapping of IDs cannot be chosen"
	noHealthLog = "podstead events and podstead why show the results of probes"
	onHost      = "commands of the host do not run with pods"
	noBuild     = "images are not built"
	noPlatform  = "images are pulled for the platform of the host"
	asLogin     = "credentials for registries are not read from units"
	claimsOnly  = "volumes are directories"
)

const (
	buildHint   = "build the image with another tool, write its name as Image=NAME, and add it with podstead image import FILE"
	loginHint   = "run podstead login REGISTRY"
	hostHint    = "write an entry of initContainers, or a unit of systemd that starts before podstead.service"
	userNSHint  = "write UserNS=keep-id:uid=NUMBER,gid=NUMBER, or run the pod as root with hostUsers = false in the pod file"
	networkHint = "limit access with the IP address of PublishPort=, or with the firewall of the host"
)

// inSection returns rows as those of a section.
func inSection(section string, list []row) []row {
	for i := range list {
		list[i].section = section
	}
	return list
}

// rowOf returns the row of a key; nil: it has none.
func rowOf(section, key string) *row {
	i, found := slices.BinarySearchFunc(sorted, [2]string{section, key}, func(r *row, want [2]string) int {
		return slices.Compare([]string{r.section, r.key}, want[:])
	})
	if !found {
		return nil
	}
	return sorted[i]
}

// rows are all keys, in the order of the reference page. sorted has them by section and key.
var (
	rows   []row
	sorted []*row
)

func init() {
	rows = slices.Concat(containerRows(), podRows(), volumeRows(), networkRows(), kubeRows(), imageRows(), buildRows(), artifactRows(),
		unitRows(), serviceRows(), installRows())
	for i := range rows {
		sorted = append(sorted, &rows[i])
	}
	slices.SortFunc(sorted, func(a, b *row) int {
		return slices.Compare([]string{a.section, a.key}, []string{b.section, b.key})
	})
}

func containerRows() []row {
	list := []row{
		{key: "Image", verdict: taken, text: "image", take: takeImage},
		{key: "Pull", verdict: taken, text: "imagePullPolicy", take: takePull},
		{key: "AddCapability", verdict: taken, text: "securityContext.capabilities.add", take: takeCapabilities},
		{key: "DropCapability", verdict: taken, text: "securityContext.capabilities.drop", take: takeCapabilities},
		{key: "AddDevice", verdict: taken, text: "devices", take: takeDevice},
		{key: "Annotation", verdict: taken, text: "annotations", take: takeAnnotations},
		{key: "AppArmor", verdict: taken, text: "securityContext.appArmorProfile", take: takeAppArmor},
		{
			key: "AutoUpdate", verdict: ignored, text: "images are not updated by themselves",
			hint: "write Pull=always and run podstead restart POD, or apply a file with a new image",
		},
		{key: "CgroupsMode", verdict: ignored, text: "cgroups are those of Kubernetes"},
		{key: "ContainerName", verdict: taken, text: "name", take: takeNothing},
		{key: "Entrypoint", verdict: taken, text: "command", take: takeEntrypoint},
		{key: "Environment", verdict: taken, text: "env", take: takeEnvironment},
		{key: "EnvironmentFile", verdict: taken, text: "envFrom, configMaps", take: takeEnvironmentFile},
		{
			key: "EnvironmentHost", verdict: lost, text: "containers do not get the variables of the host",
			hint: "write them with Environment=", harmless: "false",
		},
		{key: "Exec", verdict: taken, text: "args", take: takeExec},
		{key: "ExposeHostPort", verdict: taken, text: "ports.containerPort", take: takeExpose},
		{key: "Group", verdict: taken, text: "securityContext.runAsGroup", take: takeGroup},
		{key: "GroupAdd", verdict: taken, text: "securityContext.supplementalGroups", take: takeGroupAdd},
		{key: "HttpProxy", verdict: ignored, text: "containers do not get the proxy variables of the host", harmless: "false"},
		{key: "LogDriver", verdict: taken, text: "annotations", take: takeLogDriver},
		{key: "LogOpt", verdict: ignored, text: "the host limits the size of logs", hint: "set containerLog in podstead.toml"},
		{key: "Mask", verdict: lost, text: "paths are not masked one by one"},
		{key: "Memory", verdict: taken, text: "resources.limits.memory", take: takeMemory},
		{key: "Mount", verdict: taken, text: "volumeMounts, volumes", take: takeMount},
		{key: "NoNewPrivileges", verdict: taken, text: "securityContext.allowPrivilegeEscalation", take: takeNoNewPrivileges},
		{key: "Notify", verdict: taken, text: "startupProbe", take: takeNotify},
		{key: "PidsLimit", verdict: taken, text: "pidsLimit", take: takePidsLimit},
		{key: "Pod", verdict: taken, text: "containers", take: takePod},
		{key: "ReadOnly", verdict: taken, text: "securityContext.readOnlyRootFilesystem", take: takeReadOnly},
		{key: "ReadOnlyTmpfs", verdict: taken, text: "volumeMounts", take: takeNothing},
		{key: "ReloadCmd", verdict: ignored, text: "there is no systemctl reload", hint: "run podstead exec POD -- COMMAND"},
		{key: "ReloadSignal", verdict: ignored, text: "there is no systemctl reload", hint: "run podstead exec POD -- kill -SIGNAL 1"},
		{key: "Retry", verdict: ignored, text: ownRetries},
		{key: "RetryDelay", verdict: ignored, text: ownRetries},
		{key: "Rootfs", verdict: refused, text: "containers have images", hint: "make an image of the directory, and write Image="},
		{key: "RunInit", verdict: taken, text: "init", take: takeRunInit},
		{key: "SeccompProfile", verdict: taken, text: "securityContext.seccompProfile", take: takeSeccomp},
		{key: "Secret", verdict: taken, text: "env, volumeMounts, volumes", take: takeSecret},
		{key: "SecurityLabelDisable", verdict: ignored, text: noSELinux, harmless: "false"},
		{key: "SecurityLabelFileType", verdict: ignored, text: noSELinux},
		{key: "SecurityLabelLevel", verdict: ignored, text: noSELinux},
		{key: "SecurityLabelNested", verdict: ignored, text: noSELinux, harmless: "false"},
		{key: "SecurityLabelType", verdict: ignored, text: noSELinux},
		{
			key: "StartWithPod", verdict: lost, text: "all containers of a pod start with it",
			hint: "write a pod of its own", harmless: "true",
		},
		{key: "StopSignal", verdict: taken, text: "lifecycle.stopSignal, os", take: takeStopSignal},
		{key: "Sysctl", verdict: taken, text: "securityContext.sysctls", take: takeSysctl},
		{key: "Timezone", verdict: taken, text: "volumeMounts, volumes", take: takeTimezone},
		{key: "Tmpfs", verdict: taken, text: "volumeMounts, volumes", take: takeTmpfs},
		{key: "Ulimit", verdict: taken, text: "ulimits", take: takeUlimit},
		{
			key: "Unmask", verdict: lost, text: "paths are not unmasked one by one",
			hint: "set procMount and hostUsers = false in the pod file, and run the pod as root",
		},
		{key: "User", verdict: taken, text: "securityContext.runAsUser, securityContext.runAsGroup", take: takeUser},
		{key: "WorkingDir", verdict: taken, text: "workingDir", take: takeWorkingDir},
		{key: "RemapUid", verdict: lost, text: noUserNS, hint: userNSHint},
		{key: "RemapGid", verdict: lost, text: noUserNS, hint: userNSHint},
		{key: "RemapUidSize", verdict: lost, text: noUserNS, hint: userNSHint},
		{key: "RemapUsers", verdict: lost, text: noUserNS, hint: userNSHint},
		{key: "VolatileTmp", verdict: taken, text: "volumeMounts, volumes", take: takeVolatileTmp},
	}
	for _, key := range healthKeys {
		list = append(list, row{key: key, verdict: taken, text: "readinessProbe, livenessProbe, startupProbe", take: takeHealth})
	}
	for _, key := range []string{"HealthLogDestination", "HealthMaxLogCount", "HealthMaxLogSize"} {
		list = append(list, row{key: key, verdict: ignored, text: noHealthLog})
	}
	return append(inSection("Container", list), shared("Container")...)
}

// shared are the keys that both containers and pods have.
func shared(section string) []row {
	return append(inSection(section, []row{
		{key: "AddHost", verdict: taken, text: "hostAliases", take: takeAddHost},
		{key: "DNS", verdict: taken, text: "dnsConfig.nameservers, dnsPolicy", take: takeDNS},
		{key: "DNSOption", verdict: taken, text: "dnsConfig.options", take: takeDNSOption},
		{key: "DNSSearch", verdict: taken, text: "dnsConfig.searches", take: takeDNSSearch},
		{key: "HostName", verdict: taken, text: "hostname, hostnameOverride", take: takeHostName},
		{key: "Network", verdict: taken, text: "hostNetwork, hostname", take: takeNetwork},
		{key: "NetworkAlias", verdict: taken, text: "hostname, annotations", take: takeAlias},
		{key: "PublishPort", verdict: taken, text: "ports", take: takePublish},
		{key: "ShmSize", verdict: taken, text: "shmSize, volumes", take: takeShmSize},
		{key: "StopTimeout", verdict: taken, text: "terminationGracePeriodSeconds", take: takeStopTimeout},
		{key: "UserNS", verdict: taken, text: "keepID, hostUsers", take: takeUserNS},
		{key: "Volume", verdict: taken, text: "volumeMounts, volumes", take: takeVolume},
		{key: "Label", verdict: taken, text: "labels, annotations", take: takeLabels},
		{key: "IP", verdict: lost, text: noLinks},
		{key: "IP6", verdict: lost, text: noLinks},
		{key: "GIDMap", verdict: lost, text: noUserNS, hint: userNSHint},
		{key: "UIDMap", verdict: lost, text: noUserNS, hint: userNSHint},
		{key: "SubGIDMap", verdict: lost, text: noUserNS, hint: userNSHint},
		{key: "SubUIDMap", verdict: lost, text: noUserNS, hint: userNSHint},
	}), generatorRows(section)...)
}

// generatorRows are the keys for the command line of Podman that each unit has.
func generatorRows(section string) []row {
	list := []row{
		{key: "ContainersConfModule", verdict: ignored, text: noPodman},
		{key: "GlobalArgs", verdict: ignored, text: noPodman},
		{key: "PodmanArgs", verdict: taken, text: "as the key of each option", take: takeNothing},
		{key: "ServiceName", verdict: taken, text: "waitFor", take: takeNothing},
	}
	if section != "Container" && section != "Pod" {
		list[2] = row{key: "PodmanArgs", verdict: lost, text: "options of Podman are read in [Container] and [Pod] only"}
	}
	return inSection(section, list)
}

func podRows() []row {
	return append([]row{
		{section: "Pod", key: "PodName", verdict: taken, text: "name", take: takeNothing},
		{
			section: "Pod", key: "ExitPolicy", verdict: ignored, harmless: "stop",
			text: "a pod whose containers have exited has no resources that stay",
		},
	}, shared("Pod")...)
}

func volumeRows() []row {
	const claim = "persistentVolumeClaim, hostPath or emptyDir"
	list := []row{
		{key: "VolumeName", verdict: taken, text: claim, take: takeNothing},
		{key: "Device", verdict: taken, text: claim, take: takeNothing},
		{key: "Driver", verdict: taken, text: claim, take: takeNothing},
		{key: "Image", verdict: taken, text: "image", take: takeNothing},
		{key: "Options", verdict: taken, text: claim, take: takeNothing},
		{key: "Type", verdict: taken, text: claim, take: takeNothing},
		{key: "Copy", verdict: ignored, text: "volumes start empty", harmless: "false"},
		{key: "Label", verdict: ignored, text: noLabels},
	}
	for _, key := range []string{"User", "Group", "UID", "GID"} {
		list = append(list, row{
			key: key, verdict: lost, text: "the owner of a volume is root, or fsGroup of the pod", hint: "set fsGroup in the pod file",
		})
	}
	return append(inSection("Volume", list), generatorRows("Volume")...)
}

func networkRows() []row {
	list := []row{
		{key: "NetworkName", verdict: taken, text: "hostname", take: takeNothing},
		{key: "Subnet", verdict: ignored, text: oneNetwork},
		{key: "Gateway", verdict: ignored, text: oneNetwork},
		{key: "IPRange", verdict: ignored, text: oneNetwork},
		{key: "InterfaceName", verdict: ignored, text: oneNetwork},
		{key: "IPAMDriver", verdict: ignored, text: oneNetwork},
		{key: "IPv6", verdict: ignored, text: oneNetwork, hint: "set network.subnets in podstead.toml", harmless: "false"},
		{key: "Options", verdict: ignored, text: oneNetwork},
		{key: "Label", verdict: ignored, text: noLabels},
		{key: "NetworkDeleteOnStop", verdict: ignored, text: oneNetwork, harmless: "false"},
		{key: "Driver", verdict: lost, text: oneNetwork + ", a bridge", harmless: "bridge"},
		{
			key: "Internal", verdict: lost, text: oneNetwork + ", from which other hosts can be reached",
			hint: networkHint, harmless: "false",
		},
		{key: "DisableDNS", verdict: lost, text: "pods reach each other by their names", harmless: "false"},
		{key: "DNS", verdict: lost, text: oneNetwork, hint: "write DNS= in the .container or .pod units"},
	}
	return append(inSection("Network", list), generatorRows("Network")...)
}

func kubeRows() []row {
	list := []row{
		{key: "Yaml", verdict: taken, text: "the pods of the file", take: takeNothing},
		{key: "ConfigMap", verdict: taken, text: "configMaps", take: takeNothing},
		{key: "PublishPort", verdict: taken, text: "ports", take: takeNothing},
		{key: "AutoUpdate", verdict: ignored, text: "images are not updated by themselves", hint: "apply a file with a new image"},
		{key: "ExitCodePropagation", verdict: ignored, text: "the state of the pod has the exit codes", harmless: "none"},
		{
			key: "KubeDownForce", verdict: ignored, text: "volumes are kept when a pod is deleted",
			hint: "delete them with podstead volume rm VOLUME", harmless: "false",
		},
		{key: "LogDriver", verdict: ignored, text: "the host configures where logs go", hint: "set the annotation podstead.io/log-driver"},
		{key: "LogOpt", verdict: ignored, text: "the host limits the size of logs", hint: "set containerLog in podstead.toml"},
		{key: "SetWorkingDirectory", verdict: ignored, text: "host paths are absolute"},
		{key: "Network", verdict: ignored, text: oneNetwork, hint: "set hostNetwork in the Kubernetes file for the network of the host"},
		{
			key: "UserNS", verdict: lost, text: noUserNS,
			hint: "for a user namespace, run the pod without root, or as root with hostUsers: false in the Kubernetes file",
		},
		{key: "RemapUid", verdict: lost, text: noUserNS},
		{key: "RemapGid", verdict: lost, text: noUserNS},
		{key: "RemapUidSize", verdict: lost, text: noUserNS},
		{key: "RemapUsers", verdict: lost, text: noUserNS},
	}
	return append(inSection("Kube", list), generatorRows("Kube")...)
}

func imageRows() []row {
	list := []row{
		{key: "Image", verdict: taken, text: "image", take: takeNothing},
		{key: "ImageTag", verdict: taken, text: "image", take: takeNothing},
		{key: "Policy", verdict: taken, text: "imagePullPolicy", take: takeNothing},
		{key: "AllTags", verdict: ignored, text: "only the tag that the pod uses is pulled", harmless: "false"},
		{key: "Arch", verdict: lost, text: noPlatform},
		{key: "OS", verdict: lost, text: noPlatform, harmless: "linux"},
		{key: "Variant", verdict: lost, text: noPlatform},
		{key: "AuthFile", verdict: lost, text: asLogin, hint: loginHint},
		{key: "Creds", verdict: lost, text: asLogin, hint: loginHint},
		{key: "CertDir", verdict: lost, text: "the host configures registries", hint: "see docs/howto/registries.md"},
		{key: "TLSVerify", verdict: lost, text: "the host configures registries", hint: "see docs/howto/registries.md", harmless: "true"},
		{key: "DecryptionKey", verdict: refused, text: "encrypted images are not supported"},
		{key: "Retry", verdict: ignored, text: ownRetries},
		{key: "RetryDelay", verdict: ignored, text: ownRetries},
	}
	return append(inSection("Image", list), generatorRows("Image")...)
}

// buildRows are refused: what uses the unit has the error. A pod does not need the unit itself.
func buildRows() []row {
	var list []row
	for _, key := range []string{
		"Annotation", "Arch", "AuthFile", "BuildArg", "ContainersConfModule", "DNS", "DNSOption", "DNSSearch", "Environment", "File",
		"ForceRM",
		"GlobalArgs", "GroupAdd", "IgnoreFile", "ImageTag", "Label", "Network", "PodmanArgs", "Pull", "Retry", "RetryDelay", "Secret",
		"ServiceName", "SetWorkingDirectory", "Target", "TLSVerify", "Variant", "Volume",
	} {
		list = append(list, row{section: "Build", key: key, verdict: refused, text: noBuild, hint: buildHint})
	}
	return list
}

func artifactRows() []row {
	var list []row
	for _, key := range []string{
		"Artifact", "AuthFile", "CertDir", "ContainersConfModule", "Creds", "DecryptionKey", "GlobalArgs", "PodmanArgs", "Quiet", "Retry",
		"RetryDelay", "ServiceName", "TLSVerify",
	} {
		list = append(list, row{
			section: "Artifact", key: key, verdict: refused, text: "OCI artifacts are not mounted",
			hint: "make an image of the files, and mount it: Mount=type=image",
		})
	}
	return list
}

func unitRows() []row {
	order := func(key string) row {
		return row{key: key, verdict: taken, text: "waitFor, initContainers", take: takeNothing}
	}
	list := []row{
		order("After"), order("Before"), order("BindsTo"), order("PartOf"), order("Requires"), order("Requisite"), order("Upholds"),
		order("Wants"),
		{key: "RequiresMountsFor", verdict: taken, text: "waitFor", take: takeNothing},
		{key: "WantsMountsFor", verdict: taken, text: "waitFor", take: takeNothing},
		{key: "ConditionPathExists", verdict: taken, text: "waitFor", take: takeCondition},
		{key: "AssertPathExists", verdict: taken, text: "waitFor", take: takeCondition},
		{key: "ConditionPathIsMountPoint", verdict: taken, text: "waitFor", take: takeCondition},
		{key: "AssertPathIsMountPoint", verdict: taken, text: "waitFor", take: takeCondition},
		{key: "Description", verdict: taken, text: "none: it is for people", take: takeNothing},
		{key: "Documentation", verdict: taken, text: "none: it is for people", take: takeNothing},
		{key: "SourcePath", verdict: taken, text: "none: it is for people", take: takeNothing},
		{key: "DefaultDependencies", verdict: ignored, text: "the daemon starts pods when the host has booted", harmless: "true"},
		{key: "StartLimitBurst", verdict: ignored, text: "restarts are not limited, their back-off grows"},
		{key: "StartLimitIntervalSec", verdict: ignored, text: "restarts are not limited, their back-off grows"},
		{key: "StartLimitInterval", verdict: ignored, text: "restarts are not limited, their back-off grows"},
		{key: "StopWhenUnneeded", verdict: ignored, text: "pods run until they are stopped or deleted", harmless: "false"},
		{key: "OnFailure", verdict: lost, text: "no units start when a pod fails", hint: "write a command as [[notify]] in podstead.toml"},
		{
			key: "OnSuccess", verdict: lost, text: "no units start when a pod succeeds",
			hint: "write a command as [[notify]] in podstead.toml",
		},
		{key: "Conflicts", verdict: lost, text: "pods do not stop each other"},
	}
	return append(inSection("Unit", list), row{
		section: "Quadlet", key: "DefaultDependencies", verdict: taken, text: "none: pulls are retried until the network is online",
		take: takeNothing,
	})
}

func serviceRows() []row {
	list := []row{
		{key: "Restart", verdict: taken, text: "restartPolicy", take: takeRestart},
		{key: "RestartSec", verdict: taken, text: "restartBackoff", take: takeRestartSec},
		{key: "RestartMaxDelaySec", verdict: taken, text: "restartBackoff.maxSeconds", take: takeNothing},
		{key: "RestartSteps", verdict: ignored, text: "the back-off doubles"},
		{key: "TimeoutStartSec", verdict: taken, text: "startupProbe.failureThreshold", take: takeNothing},
		{key: "TimeoutStopSec", verdict: taken, text: "terminationGracePeriodSeconds", take: takeStopTimeout},
		{key: "TimeoutSec", verdict: taken, text: "startupProbe.failureThreshold, terminationGracePeriodSeconds", take: takeStopTimeout},
		{key: "RuntimeMaxSec", verdict: taken, text: "activeDeadlineSeconds", take: takeRuntimeMax},
		{key: "Type", verdict: taken, text: "restartPolicy, waitFor", take: takeType},
		{key: "RemainAfterExit", verdict: taken, text: "none: a pod that has completed stays", take: takeNothing},
		{key: "Environment", verdict: taken, text: "the values of ${NAME} in other keys", take: takeNothing},
		{
			key: "EnvironmentFile", verdict: lost, text: "variables of the service are read from Environment= only",
			hint: "write EnvironmentFile= into [Container]",
		},
		{key: "PassEnvironment", verdict: ignored, text: noProcess},
		{key: "LoadCredential", verdict: taken, text: "the files of %d in other keys", take: takeNothing},
		{key: "LoadCredentialEncrypted", verdict: taken, text: "secrets.credentialFile, for the files of %d in Volume=", take: takeNothing},
		{
			key: "SetCredential", verdict: lost, text: "credentials are not given to pods",
			hint: "write the value to a file of /etc/podstead/secrets",
		},
		{
			key: "SetCredentialEncrypted", verdict: lost, text: "credentials are not decrypted for pods",
			hint: "write the value to a file of /etc/podstead/secrets",
		},
		{key: "MemoryMax", verdict: taken, text: "resources.limits.memory", take: takeMemory},
		{key: "CPUQuota", verdict: taken, text: "resources.limits.cpu", take: takeCPUQuota},
		{key: "TasksMax", verdict: taken, text: "pidsLimit", take: takePidsLimit},
		{key: "ExecReload", verdict: ignored, text: "there is no systemctl reload", hint: "run podstead exec POD -- COMMAND"},
		{key: "RestartPreventExitStatus", verdict: lost, text: noLimit, hint: "set restartPolicyRules in the pod file"},
		{key: "RestartForceExitStatus", verdict: lost, text: noLimit, hint: "set restartPolicyRules in the pod file"},
		{
			key: "SuccessExitStatus", verdict: lost, text: "only the exit code 0 is a success",
			hint: "set restartPolicyRules in the pod file",
		},
	}
	for _, key := range []string{"ExecCondition", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost"} {
		list = append(list, row{key: key, verdict: lost, text: onHost, hint: hostHint})
	}
	list = append(list, row{
		key: "ExecStart", verdict: refused, text: "Quadlet writes it", hint: "write the command into Exec= of [Container]",
	})
	for _, key := range []string{
		"CPUAccounting", "Delegate", "IOAccounting", "KillMode", "LogExtraFields", "LogRateLimitBurst", "LogRateLimitIntervalSec",
		"MemoryAccounting", "NotifyAccess", "OOMPolicy", "PIDFile", "Slice", "StandardError", "StandardOutput", "SyslogIdentifier",
		"TasksAccounting", "TimeoutAbortSec", "TimeoutStartFailureMode", "TimeoutStopFailureMode", "UMask", "WorkingDirectory",
	} {
		list = append(list, row{key: key, verdict: ignored, text: noProcess})
	}
	return inSection("Service", list)
}

func installRows() []row {
	list := []row{
		{key: "WantedBy", verdict: taken, text: "none: pods of the pods directory start at boot", take: takeNothing},
		{key: "RequiredBy", verdict: taken, text: "none: pods of the pods directory start at boot", take: takeNothing},
		{key: "UpheldBy", verdict: taken, text: "none: pods of the pods directory start at boot", take: takeNothing},
		{key: "DefaultInstance", verdict: taken, text: "name", take: takeNothing},
		{key: "Alias", verdict: ignored, text: "pods have one name"},
		{key: "Also", verdict: ignored, text: "convert the other units too"},
	}
	return inSection("Install", list)
}

// takeNothing is for keys that are read where their unit is used, or that need no field.
func takeNothing(*converter, *scope, []entry) {}
