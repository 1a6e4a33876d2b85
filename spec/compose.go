package spec

import (
	"net/netip"
	"reflect"
	"strconv"
	"strings"
)

// composeWords are the fields of services in a Compose file, and some of Kubernetes' controllers, with what does it in a pod file. Keys are
// in lower case, without "_" and "-". Words that a pod file has at another place, such as privileged, have the hint of that place.
var composeWords = map[string]string{
	"attach":                  "omit it: podstead run FILE shows the output of all containers, podstead logs POD -c CONTAINER that of one",
	"blkioconfig":             "not supported: limits are cpu, memory and ephemeral-storage",
	"build":                   buildHint,
	"capadd":                  "set securityContext.capabilities.add in the container",
	"capdrop":                 "set securityContext.capabilities.drop in the container",
	"cgroup":                  "omit it: a pod has its own cgroup",
	"cgroupparent":            "omit it: a pod has its own cgroup",
	"completions":             "write a pod file for each run",
	"concurrencypolicy":       scheduleHint,
	"configs":                 "set configMaps in the pod, volumes with configMap, and volumeMounts in the container",
	"containername":           "set name in the container",
	"cpucount":                "set resources.limits.cpu",
	"cpupercent":              "set resources.limits.cpu",
	"cpuperiod":               "set resources.limits.cpu",
	"cpuquota":                "set resources.limits.cpu",
	"cpurtperiod":             "not supported: set resources.limits.cpu",
	"cpurtruntime":            "not supported: set resources.limits.cpu",
	"cpus":                    "set resources.limits.cpu",
	"cpuset":                  "set resources.limits.cpu; CPUs cannot be chosen",
	"cpushares":               "set resources.requests.cpu",
	"credentialspec":          "not supported: it is for Windows",
	"dependson":               "set waitFor in the pod, such as pod:NAME:ready, or write an entry of initContainers",
	"deploy":                  "set resources.limits and restartPolicy; write a pod file for each replica",
	"develop":                 "mount the source as hostPath, and restart the pod with podstead restart POD",
	"devicecgrouprules":       devicesHint,
	"dns":                     "set dnsConfig.nameservers in the pod",
	"dnsopt":                  "set dnsConfig.options in the pod",
	"dnssearch":               "set dnsConfig.searches in the pod",
	"domainname":              "set subdomain in the pod",
	"driveropts":              "not supported: mount a directory of the host with hostPath",
	"entrypoint":              "set command in the container; the command of Compose is args",
	"envfile":                 envFileHint,
	"environment":             "set env in the container",
	"expose":                  "omit it: pods reach all ports of each other",
	"extends":                 "write all fields in this file",
	"externallinks":           linksHint,
	"extrahosts":              "set hostAliases in the pod",
	"gpus":                    devicesHint,
	"groupadd":                "set securityContext.supplementalGroups in the pod",
	"healthcheck":             "set livenessProbe, readinessProbe and startupProbe in the container, such as livenessProbe.exec.command",
	"ipc":                     "set hostIPC in the pod; the containers of a pod share one IPC namespace",
	"isolation":               "not supported: it is for Windows",
	"labelfile":               "set labels in the pod",
	"links":                   linksHint,
	"logging":                 "set the annotation podstead.io/log-driver of the pod, or containerLog in podstead.toml",
	"logopt":                  "set containerLog in podstead.toml",
	"macaddress":              "not supported: the pod network chooses it",
	"memlimit":                "set resources.limits.memory",
	"memory":                  "set resources.limits.memory",
	"memreservation":          "set resources.requests.memory",
	"memswaplimit":            "set resources.limits.memory; swap cannot be set",
	"memswappiness":           "set resources.limits.memory; swap cannot be set",
	"models":                  "run the model as a pod of its own",
	"net":                     "set hostNetwork in the pod for the network of the host",
	"networkmode":             "set hostNetwork in the pod for the network of the host",
	"networks":                "omit it: all pods of the host share one network and reach each other by name",
	"oomkilldisable":          "set resources.limits.memory high enough, or omit it",
	"oomscoreadj":             "set resources.requests.memory and resources.limits.memory: their QoS class sets the score",
	"parallelism":             "write a pod file for each run",
	"pid":                     "set hostPID in the pod for the processes of the host, or shareProcessNamespace for those of the pod",
	"pids":                    "set pidsLimit in the pod",
	"pidslimit":               "set pidsLimit in the pod",
	"platform":                "omit it: containers have the platform of the host",
	"poststart":               "set lifecycle.postStart in the container",
	"prestop":                 "set lifecycle.preStop in the container",
	"progressdeadlineseconds": "set update.readyWithinSeconds in the pod",
	"profiles":                "write the pods of each profile into a directory of its own, and apply it",
	"provider":                "not supported: run the program with a unit of systemd",
	"pullpolicy":              "set imagePullPolicy in the container",
	"readonly":                "set securityContext.readOnlyRootFilesystem in the container",
	"replicas":                "write a pod file for each replica",
	"restart":                 "set restartPolicy to Always (the default), OnFailure or Never; podstead stop POD holds with each",
	"revisionhistorylimit":    "omit it: the last three generations that were ready are kept",
	"runtime":                 "set runtimeClassName in the pod to a class of engine.runtimeClasses in podstead.toml",
	"scale":                   "write a pod file for each replica",
	"schedule":                scheduleHint,
	"secrets":                 "set secrets in the pod, volumes with secret, and volumeMounts in the container",
	"securityopt":             "set seccompProfile, appArmorProfile or allowPrivilegeEscalation in securityContext of the container",
	"selector":                "omit it: a pod file is one pod",
	"services":                servicesHint,
	"shmsize":                 "set shmSize in the pod",
	"stdinopen":               "set stdin in the container",
	"stopgraceperiod":         "set terminationGracePeriodSeconds in the pod",
	"stopsignal":              "set lifecycle.stopSignal in the container",
	"strategy":                "set update in the pod",
	"storageopt":              "set resources.limits.ephemeral-storage in the container",
	"sysctls":                 "set securityContext.sysctls in the pod",
	"template":                "write the fields of its metadata and spec in their place",
	"timezone":                scheduleHint,
	"tmpfs":                   "mount an emptyDir volume with medium Memory",
	"ulimit":                  "set ulimits in the container",
	"useapisocket":            "mount the socket of the API with hostPath",
	"user":                    "set runAsUser and runAsGroup in securityContext",
	"usernsmode":              "set keepID or hostUsers in the pod",
	"uts":                     "set hostNetwork in the pod: such a pod has the name of the host",
	"volumeclaimtemplates":    "set volumes in the pod, with persistentVolumeClaim",
	"volumes":                 "set volumes in the pod, with hostPath or persistentVolumeClaim, and volumeMounts in the container",
	"volumesfrom":             "put both containers into one pod, and mount the volume in each",
}

const (
	buildHint   = "build the image with another tool, and set image in the container, and imageArchives in the pod if there is no registry"
	devicesHint = "set devices in the container"
	envFileHint = "set envFrom in the container with a configMapRef or secretRef, " +
		"and envFile in an entry of configMaps or secrets of the pod"
	envFileShortHint = `write envFile = "FILE" in the container`

	linksHint    = "omit it: pods reach each other by name; hostAliases in the pod adds other names"
	scheduleHint = "write a pod file with schedule, such as { cron = \"0 3 * * *\" }"
	servicesHint = "apply the file with podstead apply FILE, or convert it with podstead convert FILE"
)

// composeHint is what does in a pod file what a field of Compose does; empty: the field is not one of Compose, or not at this place.
func composeHint(t reflect.Type, key string) string {
	if t != reflect.TypeFor[Pod]() && t != reflect.TypeFor[Container]() || len(key) > maxComposeWord {
		return ""
	}
	word := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))
	if hint := composeWords[word]; hint != "" || t != reflect.TypeFor[Pod]() {
		return hint
	}
	for name := range fieldsOf(reflect.TypeFor[Container]()) {
		if strings.ToLower(name) == word { // such as working_dir
			return "set " + name + " in containers"
		}
	}
	return ""
}

// maxComposeWord bounds the keys that are looked up.
const maxComposeWord = 32

// isComposeList reports whether a value has the form of Compose, a list of strings, in place of the tables of a pod file.
func isComposeList(n *node) bool {
	return n.kind == kindArray && len(n.items) > 0 && n.items[0].kind == kindString
}

// composeItemHint is the hint to a list, or an element of one, that has the form of Compose and not that of a table; empty: it has no such
// form.
func composeItemHint(f format, n *node) string {
	if (n.key == "labels" || n.key == "annotations") && isComposeList(n) {
		return composeLabels(f, n)
	}
	text, isString := n.value.(string)
	if number, isNumber := n.value.(int64); isNumber {
		text = strconv.FormatInt(number, 10)
	} else if !isString {
		return ""
	}
	if n.parent == nil || n.parent.kind != kindArray {
		return ""
	}
	item := ""
	switch n.parent.key {
	case "ports":
		item = f.table(composePort(text))
	case "volumes", "secrets":
		return composeWords[n.parent.key]
	case "volumeMounts":
		if item = f.table(composeMount(text)); item == "" {
			return composeWords["volumes"]
		}
	case "env": // the value may be a secret
		if name, _, found := strings.Cut(text, "="); found && bareKey.MatchString(name) {
			item = f.table([]pair{{"name", name}, {"value", "..."}})
		}
	}
	if item == "" {
		return ""
	}
	return "write " + item
}

// composeLabels is the hint to labels that are a list of NAME=VALUE.
func composeLabels(f format, n *node) string {
	text, _ := n.items[0].value.(string)
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" || len(text) > 64 {
		return ""
	}
	return "write " + f.assign(n.key, f.table([]pair{{name, value}}))
}

// composeMount returns the fields of VOLUME:PATH[:OPTIONS].
func composeMount(text string) []pair {
	volume, path, _ := strings.Cut(text, ":")
	path, options, _ := strings.Cut(path, ":")
	if !bareKey.MatchString(volume) || !strings.HasPrefix(path, "/") {
		return nil
	}
	pairs := []pair{{"name", volume}, {"mountPath", path}}
	if options == "ro" {
		pairs = append(pairs, pair{"readOnly", true})
	}
	return pairs
}

// composePort returns the fields of [HOST_IP:][HOST:]CONTAINER[/PROTOCOL].
func composePort(text string) []pair {
	text, protocol, _ := strings.Cut(text, "/")
	i := strings.LastIndexByte(text, ':')
	container, err := strconv.ParseUint(text[i+1:], 10, 16)
	if err != nil || container == 0 {
		return nil
	}
	pairs := []pair{{"containerPort", container}}
	if i >= 0 {
		published := text[:i]
		address := ""
		if j := strings.LastIndexByte(published, ':'); j >= 0 {
			address, published = strings.Trim(published[:j], "[]"), published[j+1:]
		}
		host, err := strconv.ParseUint(published, 10, 16)
		if err != nil || host == 0 {
			return nil
		}
		pairs = append(pairs, pair{"hostPort", host})
		if _, err := netip.ParseAddr(address); err == nil {
			pairs = append(pairs, pair{"hostIP", address})
		} else if address != "" {
			return nil
		}
	}
	switch protocol = strings.ToUpper(protocol); Protocol(protocol) {
	case "", ProtocolTCP:
	case ProtocolUDP, ProtocolSCTP:
		pairs = append(pairs, pair{"protocol", protocol})
	default:
		return nil
	}
	return pairs
}

// composeRestart returns the restart policy that a word of Compose stands for, or "".
func composeRestart(value string) RestartPolicy {
	word, _, _ := strings.Cut(value, ":") // on-failure:5
	return map[string]RestartPolicy{
		"no": RestartNever, "false": RestartNever, "always": RestartAlways, "unless-stopped": RestartAlways, "on-failure": RestartOnFailure,
	}[word]
}
