package converter

import (
	"slices"
	"strings"
)

// Verdict is what becomes of a key.
type Verdict string

// The verdicts.
const (
	// Taken keys have the same effect here.
	Taken Verdict = "taken"
	// Dropped keys are left out with a warning: the application behaves the same.
	Dropped Verdict = "dropped"
	// Lost keys change how the application behaves: an error, or a warning if the user allows losses.
	Lost Verdict = "lost"
	// Refused keys have no meaning here, and the project does not work without them: an error.
	Refused Verdict = "refused"
)

// Key is a row of the table of keys.
type Key struct {
	// Path is the key with those above it. Names that the user chooses and positions in lists are not in it: services.ports.target.
	Path    string
	Verdict Verdict
	// Note is what a key becomes, or why it is not taken.
	Note string
	// Hint tells what to do instead; it may be empty.
	Hint string
	// Whole rows hold for all keys below.
	Whole bool
	// Default are values that mean nothing else than the absence of the key.
	Default []string
}

// find returns the row of a path.
func find(path string) (*Key, bool) {
	i, found := slices.BinarySearchFunc(sorted, path, func(k Key, path string) int { return strings.Compare(k.Path, path) })
	if !found {
		return nil, false
	}
	return &sorted[i], true
}

var sorted = slices.SortedFunc(slices.Values(Keys), func(a, b Key) int { return strings.Compare(a.Path, b.Path) })

const (
	noDevices  = "a container has devices with a path or a CDI name, by its `devices`"
	noSwarm    = "it is for Swarm"
	noWindows  = "it is for Windows"
	oneNetwork = "all pods share one network"
)

// Keys are all keys of Compose, in the order of the reference page.
var Keys = []Key{
	{Path: "name", Verdict: Taken, Note: "label `project`, and first part of the names of persistent volumes"},
	{Path: "version", Verdict: Taken, Note: "obsolete, no effect"},
	{Path: "include", Verdict: Taken, Note: "files below the directory of the project"},
	{
		Path: "services", Verdict: Taken,
		Note: "pods; services that share the network of another one are containers of its pod. " +
			"The pod of `my_db` is `my-db`, and other pods reach it by both names",
	},
	{Path: "services.annotations", Verdict: Taken, Note: "`annotations` of the pod"},
	{Path: "services.attach", Verdict: Dropped, Note: "podstead logs shows the output of each container", Whole: true},
	{Path: "services.blkio_config", Verdict: Lost, Note: "limits of disk I/O are not supported", Whole: true},
	{
		Path: "services.build", Verdict: Refused, Note: "images are not built; with `image`, that one is used, and the key is lost",
		Hint: "build the image with another tool, set image, and add it with podstead image import FILE", Whole: true,
	},
	{Path: "services.cap_add", Verdict: Taken, Note: "`securityContext.capabilities.add`"},
	{Path: "services.cap_drop", Verdict: Taken, Note: "`securityContext.capabilities.drop`"},
	{
		Path: "services.cgroup", Verdict: Lost, Note: "a container has a cgroup namespace of its own", Default: []string{"private"},
	},
	{Path: "services.cgroup_parent", Verdict: Lost, Note: "a pod has a cgroup of its own"},
	{Path: "services.command", Verdict: Taken, Note: "`args`"},
	{Path: "services.configs", Verdict: Taken, Note: "volumes and `volumeMounts`"},
	{Path: "services.configs.gid", Verdict: Dropped, Note: "files keep their owner, as without Swarm"},
	{Path: "services.configs.mode", Verdict: Taken, Note: "`mode` of configs with `content` or `environment`"},
	{Path: "services.configs.source", Verdict: Taken, Note: "name of the config"},
	{Path: "services.configs.target", Verdict: Taken, Note: "`mountPath`"},
	{Path: "services.configs.uid", Verdict: Dropped, Note: "files keep their owner, as without Swarm"},
	{
		Path: "services.container_name", Verdict: Taken,
		Note: "`hostname`, by which other pods reach the pod too, or an alias as for `networks.aliases`",
	},
	{Path: "services.cpu_count", Verdict: Dropped, Note: noWindows},
	{Path: "services.cpu_percent", Verdict: Dropped, Note: noWindows},
	{Path: "services.cpu_period", Verdict: Taken, Note: "with `cpu_quota`, `resources.limits.cpu`"},
	{Path: "services.cpu_quota", Verdict: Taken, Note: "`resources.limits.cpu`"},
	{Path: "services.cpu_rt_period", Verdict: Lost, Note: "real-time scheduling is not supported"},
	{Path: "services.cpu_rt_runtime", Verdict: Lost, Note: "real-time scheduling is not supported"},
	{Path: "services.cpus", Verdict: Taken, Note: "`resources.limits.cpu`"},
	{Path: "services.cpuset", Verdict: Lost, Note: "CPUs cannot be chosen", Hint: "limit the time with cpus"},
	{Path: "services.cpu_shares", Verdict: Taken, Note: "`resources.requests.cpu`: 1024 is one CPU"},
	{Path: "services.credential_spec", Verdict: Dropped, Note: noWindows, Whole: true},
	{Path: "services.depends_on", Verdict: Taken, Note: "`waitFor`; in one pod, order of `initContainers` and sidecars"},
	{
		Path: "services.depends_on.condition", Verdict: Taken,
		Note: "`pod:NAME:ready` for `service_healthy` and `service_started`, `pod:NAME:succeeded` for `service_completed_successfully`",
	},
	{Path: "services.depends_on.required", Verdict: Taken, Note: "a missing service that is not required is not waited for"},
	{Path: "services.depends_on.restart", Verdict: Dropped, Note: "a restart of the other pod does not restart this one"},
	{Path: "services.deploy", Verdict: Taken, Note: "see the keys below it"},
	{Path: "services.deploy.endpoint_mode", Verdict: Dropped, Note: noSwarm},
	{Path: "services.deploy.labels", Verdict: Dropped, Note: noSwarm},
	{
		Path: "services.deploy.mode", Verdict: Lost, Note: "jobs of Swarm are not supported", Hint: `set restart: "no"`,
		Default: []string{"replicated", "global"},
	},
	{Path: "services.deploy.placement", Verdict: Dropped, Note: "there is one host", Whole: true},
	{Path: "services.deploy.replicas", Verdict: Taken, Note: "pods `NAME-0`, `NAME-1` and so on; the name of the service is the first"},
	{Path: "services.deploy.resources", Verdict: Taken, Note: "see the keys below it"},
	{Path: "services.deploy.resources.limits", Verdict: Taken, Note: "`resources.limits`"},
	{Path: "services.deploy.resources.limits.cpus", Verdict: Taken, Note: "`resources.limits.cpu`"},
	{Path: "services.deploy.resources.limits.devices", Verdict: Lost, Note: noDevices, Whole: true},
	{Path: "services.deploy.resources.limits.generic_resources", Verdict: Dropped, Note: noSwarm, Whole: true},
	{Path: "services.deploy.resources.limits.memory", Verdict: Taken, Note: "`resources.limits.memory`"},
	{Path: "services.deploy.resources.limits.pids", Verdict: Taken, Note: "as `pids_limit`"},
	{Path: "services.deploy.resources.reservations", Verdict: Taken, Note: "`resources.requests`"},
	{Path: "services.deploy.resources.reservations.cpus", Verdict: Taken, Note: "`resources.requests.cpu`"},
	{
		Path: "services.deploy.resources.reservations.devices", Verdict: Taken, Note: "`devices[].cdi` with `driver: cdi`; others are lost",
		Whole: true,
	},
	{Path: "services.deploy.resources.reservations.generic_resources", Verdict: Dropped, Note: noSwarm, Whole: true},
	{Path: "services.deploy.resources.reservations.memory", Verdict: Taken, Note: "`resources.requests.memory`"},
	{Path: "services.deploy.resources.reservations.pids", Verdict: Dropped, Note: noSwarm},
	{Path: "services.deploy.restart_policy", Verdict: Taken, Note: "see the keys below it"},
	{Path: "services.deploy.restart_policy.condition", Verdict: Taken, Note: "`restartPolicy`"},
	{Path: "services.deploy.restart_policy.delay", Verdict: Dropped, Note: backoffNote},
	{Path: "services.deploy.restart_policy.max_attempts", Verdict: Taken, Note: "`maxRestarts`, unless `restart` is set"},
	{Path: "services.deploy.restart_policy.window", Verdict: Dropped, Note: backoffNote},
	{Path: "services.deploy.rollback_config", Verdict: Dropped, Note: noSwarm, Whole: true},
	{Path: "services.deploy.update_config", Verdict: Dropped, Note: noSwarm, Whole: true},
	{Path: "services.develop", Verdict: Taken, Note: "by `podstead up --watch`; others ignore it"},
	{Path: "services.develop.watch", Verdict: Taken, Note: "see the keys below it"},
	{
		Path: "services.develop.watch.action", Verdict: Taken,
		Note: "`restart`, and `sync+restart` and `sync` of files that are mounted at the target; others are ignored: " +
			"files are not copied, images not built, and commands not run in containers",
	},
	{
		Path: "services.develop.watch.exec", Verdict: Dropped, Note: "commands are not run in containers when files change",
		Hint: "use the action restart", Whole: true,
	},
	{Path: "services.develop.watch.ignore", Verdict: Taken, Note: "patterns as in `.dockerignore`, which is not read"},
	{Path: "services.develop.watch.include", Verdict: Taken, Note: "patterns as in `.dockerignore`"},
	{Path: "services.develop.watch.initial_sync", Verdict: Taken, Note: "no effect, the files are mounted"},
	{Path: "services.develop.watch.path", Verdict: Taken, Note: "a file or a directory"},
	{Path: "services.develop.watch.target", Verdict: Taken, Note: "where the files are mounted"},
	{Path: "services.device_cgroup_rules", Verdict: Lost, Note: noDevices},
	{Path: "services.devices", Verdict: Taken, Note: "`devices`, with a target below `/dev`"},
	{Path: "services.devices.permissions", Verdict: Taken, Note: "`permissions`"},
	{Path: "services.devices.source", Verdict: Taken, Note: "`path`, or `cdi` for a name of the Container Device Interface"},
	{Path: "services.devices.target", Verdict: Taken, Note: "`containerPath`"},
	{Path: "services.dns", Verdict: Taken, Note: "`dnsConfig.nameservers` with `dnsPolicy = \"None\"`"},
	{Path: "services.dns_opt", Verdict: Taken, Note: "`dnsConfig.options`"},
	{Path: "services.dns_search", Verdict: Taken, Note: "`dnsConfig.searches`"},
	{Path: "services.dockerfile", Verdict: Refused, Note: "images are not built", Hint: "build the image with another tool"},
	{Path: "services.domainname", Verdict: Dropped, Note: "write the domain into `hostname`"},
	{Path: "services.entrypoint", Verdict: Taken, Note: "`command`"},
	{Path: "services.env_file", Verdict: Taken, Note: "`env`, read when the project is converted"},
	{Path: "services.env_file.format", Verdict: Taken, Note: "see `env_file`"},
	{Path: "services.env_file.path", Verdict: Taken, Note: "a file below the directory of the project"},
	{Path: "services.env_file.required", Verdict: Taken, Note: "see `env_file`"},
	{Path: "services.environment", Verdict: Taken, Note: "`env`"},
	{Path: "services.expose", Verdict: Taken, Note: "nothing: pods reach all ports of each other"},
	{Path: "services.extends", Verdict: Taken, Note: "files below the directory of the project", Whole: true},
	{Path: "services.external_links", Verdict: Lost, Note: "pods have no aliases for other pods", Hint: "use the names of the pods"},
	{Path: "services.extra_hosts", Verdict: Taken, Note: "`hostAliases`; `host-gateway` is lost"},
	{Path: "services.gpus", Verdict: Taken, Note: "`devices[].cdi` with `driver: cdi`; others are lost", Whole: true},
	{Path: "services.group_add", Verdict: Taken, Note: "`securityContext.supplementalGroups`; names are lost"},
	{
		Path: "services.healthcheck", Verdict: Taken,
		Note: "`readinessProbe`; with `start_period` or `start_interval` also a `startupProbe`. No container is killed, as in Compose",
	},
	{Path: "services.healthcheck.disable", Verdict: Taken, Note: "no probe"},
	{Path: "services.healthcheck.interval", Verdict: Taken, Note: "`periodSeconds`"},
	{Path: "services.healthcheck.retries", Verdict: Taken, Note: "`failureThreshold`"},
	{Path: "services.healthcheck.start_interval", Verdict: Taken, Note: "`periodSeconds` of the startup probe"},
	{Path: "services.healthcheck.start_period", Verdict: Taken, Note: "a startup probe, which lasts until the first success"},
	{Path: "services.healthcheck.test", Verdict: Taken, Note: "`exec.command`; `CMD-SHELL` runs `/bin/sh -c`"},
	{Path: "services.healthcheck.timeout", Verdict: Taken, Note: "`timeoutSeconds`"},
	{Path: "services.hostname", Verdict: Taken, Note: "`hostname`, of a name with a dot `hostnameOverride`"},
	{Path: "services.image", Verdict: Taken, Note: "`image`"},
	{Path: "services.init", Verdict: Taken, Note: "`init`"},
	{
		Path: "services.ipc", Verdict: Taken, Note: "`hostIPC`; services of one pod share IPC, others are lost",
		Default: []string{"private", "shareable"},
	},
	{Path: "services.isolation", Verdict: Dropped, Note: noWindows},
	{Path: "services.label_file", Verdict: Taken, Note: "as `labels`"},
	{Path: "services.labels", Verdict: Taken, Note: "`labels` if the API allows the value, else `annotations`"},
	{Path: "services.links", Verdict: Taken, Note: "as `depends_on`; an alias is one of the other pod, as for `networks.aliases`"},
	{Path: "services.log_driver", Verdict: Dropped, Note: "obsolete", Hint: logsHint},
	{Path: "services.log_opt", Verdict: Dropped, Note: "obsolete", Hint: logsHint},
	{Path: "services.logging", Verdict: Taken, Note: "annotation `podstead.io/log-driver`"},
	{Path: "services.logging.driver", Verdict: Taken, Note: "`json-file` and `local` are `file`; `journald`; others are lost"},
	{Path: "services.logging.options", Verdict: Dropped, Note: "limits of logs are settings of the daemon", Hint: logsHint},
	{Path: "services.mac_address", Verdict: Lost, Note: "the pod network chooses addresses"},
	{Path: "services.mem_limit", Verdict: Taken, Note: "`resources.limits.memory`"},
	{Path: "services.mem_reservation", Verdict: Taken, Note: "`resources.requests.memory`"},
	{Path: "services.mem_swappiness", Verdict: Dropped, Note: "swap cannot be set"},
	{Path: "services.memswap_limit", Verdict: Dropped, Note: "swap cannot be set"},
	{Path: "services.models", Verdict: Lost, Note: "models are not supported", Hint: "run the model as a service", Whole: true},
	{
		Path: "services.net", Verdict: Lost, Note: "obsolete", Hint: "set network_mode",
	},
	{
		Path: "services.network_mode", Verdict: Taken,
		Note: "`host` is `hostNetwork`, `service:NAME` puts the container into the pod of that service; `none` and `container:ID` are lost",
	},
	{Path: "services.networks", Verdict: Taken, Note: "the network that all pods share"},
	{Path: "services.networks.aliases", Verdict: Taken, Note: "annotation `podstead.io/aliases`; names with a dot are lost"},
	{Path: "services.networks.driver_opts", Verdict: Dropped, Note: oneNetwork},
	{Path: "services.networks.gw_priority", Verdict: Dropped, Note: oneNetwork},
	{Path: "services.networks.interface_name", Verdict: Lost, Note: "the interface of a pod is eth0"},
	{Path: "services.networks.ipv4_address", Verdict: Lost, Note: "the pod network chooses addresses", Hint: "use the name of the service"},
	{Path: "services.networks.ipv6_address", Verdict: Lost, Note: "the pod network chooses addresses", Hint: "use the name of the service"},
	{Path: "services.networks.link_local_ips", Verdict: Lost, Note: "the pod network chooses addresses"},
	{Path: "services.networks.mac_address", Verdict: Lost, Note: "the pod network chooses addresses"},
	{Path: "services.networks.priority", Verdict: Dropped, Note: oneNetwork},
	{Path: "services.networks.use_service_name_alias", Verdict: Dropped, Note: "a pod has its name", Default: []string{"true"}},
	{Path: "services.oom_kill_disable", Verdict: Lost, Note: "the OOM killer cannot be disabled", Hint: "set a higher memory limit"},
	{Path: "services.oom_score_adj", Verdict: Dropped, Note: "the memory request sets the score, as in Kubernetes"},
	{Path: "services.pid", Verdict: Taken, Note: "`hostPID`, or `shareProcessNamespace` of services of one pod; others are lost"},
	{Path: "services.pids_limit", Verdict: Taken, Note: "`pidsLimit` of the pod; of several services in one pod it is lost"},
	{Path: "services.platform", Verdict: Taken, Note: "that of the host; others are lost"},
	{Path: "services.ports", Verdict: Taken, Note: "`ports`"},
	{Path: "services.ports.app_protocol", Verdict: Dropped, Note: "no program uses it"},
	{Path: "services.ports.host_ip", Verdict: Taken, Note: "`hostIP`"},
	{Path: "services.ports.mode", Verdict: Taken, Note: "there is one host"},
	{Path: "services.ports.name", Verdict: Taken, Note: "`name`"},
	{Path: "services.ports.protocol", Verdict: Taken, Note: "`protocol`"},
	{Path: "services.ports.published", Verdict: Taken, Note: "`hostPort`, of a range the first; without it the port is not published"},
	{Path: "services.ports.target", Verdict: Taken, Note: "`containerPort`"},
	{Path: "services.post_start", Verdict: Taken, Note: "`lifecycle.postStart`, if there is one"},
	{Path: "services.post_start.command", Verdict: Taken, Note: "`exec.command`"},
	{Path: "services.post_start.environment", Verdict: Lost, Note: hookNote, Hint: hookHint},
	{Path: "services.post_start.privileged", Verdict: Lost, Note: hookNote},
	{Path: "services.post_start.user", Verdict: Lost, Note: hookNote},
	{Path: "services.post_start.working_dir", Verdict: Lost, Note: hookNote, Hint: hookHint},
	{Path: "services.pre_start", Verdict: Taken, Note: "`initContainers`, with the keys of services"},
	{Path: "services.pre_start.per_replica", Verdict: Taken, Note: "init containers run for each pod"},
	{Path: "services.pre_stop", Verdict: Taken, Note: "`lifecycle.preStop`, if there is one"},
	{Path: "services.pre_stop.command", Verdict: Taken, Note: "`exec.command`"},
	{Path: "services.pre_stop.environment", Verdict: Lost, Note: hookNote, Hint: hookHint},
	{Path: "services.pre_stop.privileged", Verdict: Lost, Note: hookNote},
	{Path: "services.pre_stop.user", Verdict: Lost, Note: hookNote},
	{Path: "services.pre_stop.working_dir", Verdict: Lost, Note: hookNote, Hint: hookHint},
	{Path: "services.privileged", Verdict: Taken, Note: "`securityContext.privileged`"},
	{Path: "services.profiles", Verdict: Taken, Note: "services of profiles that are not selected with `--profile` are left out"},
	{
		Path: "services.provider", Verdict: Refused, Note: "programs of the host are not started",
		Hint:  "run the program with a unit of systemd",
		Whole: true,
	},
	{Path: "services.pull_policy", Verdict: Taken, Note: "`imagePullPolicy`; intervals are lost"},
	{Path: "services.pull_refresh_after", Verdict: Dropped, Note: "images are pulled once, or at every start"},
	{Path: "services.read_only", Verdict: Taken, Note: "`securityContext.readOnlyRootFilesystem`"},
	{
		Path: "services.restart", Verdict: Taken,
		Note: "`restartPolicy`: `always` and `unless-stopped` are `Always`, `on-failure` is `OnFailure`, `no` and the default are " +
			"`Never`. `on-failure:3` is also `maxRestarts = 3`",
	},
	{
		Path: "services.runtime", Verdict: Taken,
		Note: "`runtimeClassName`; `runc` is the default of the host. Of several services in one pod it is lost",
	},
	{Path: "services.scale", Verdict: Taken, Note: "as `deploy.replicas`"},
	{Path: "services.secrets", Verdict: Taken, Note: "volumes and `volumeMounts` below `/run/secrets`"},
	{Path: "services.secrets.gid", Verdict: Dropped, Note: "files keep their owner, as without Swarm"},
	{Path: "services.secrets.mode", Verdict: Taken, Note: "`mode` of secrets with `environment`"},
	{Path: "services.secrets.source", Verdict: Taken, Note: "name of the secret"},
	{Path: "services.secrets.target", Verdict: Taken, Note: "`mountPath`"},
	{Path: "services.secrets.uid", Verdict: Dropped, Note: "files keep their owner, as without Swarm"},
	{
		Path: "services.security_opt", Verdict: Taken,
		Note: "`allowPrivilegeEscalation`, `seccompProfile`, `appArmorProfile`; `label` is dropped, others are lost",
	},
	{
		Path: "services.shm_size", Verdict: Taken,
		Note: "`shmSize` of the pod; of several services in one pod an `emptyDir` in memory at `/dev/shm`",
	},
	{Path: "services.stdin_open", Verdict: Taken, Note: "`stdin`"},
	{Path: "services.stop_grace_period", Verdict: Taken, Note: "`terminationGracePeriodSeconds`. Default: 10"},
	{Path: "services.stop_signal", Verdict: Taken, Note: "`lifecycle.stopSignal`"},
	{Path: "services.storage_opt", Verdict: Lost, Note: "the root file system has no size", Hint: "set ephemeral-storage in the pod file"},
	{Path: "services.sysctls", Verdict: Taken, Note: "`securityContext.sysctls` of the pod"},
	{Path: "services.tmpfs", Verdict: Taken, Note: "an `emptyDir` in memory; other options than `size` and `mode` are dropped"},
	{Path: "services.tty", Verdict: Taken, Note: "`tty`"},
	{Path: "services.ulimits", Verdict: Taken, Note: "`ulimits`", Whole: true},
	{Path: "services.umask", Verdict: Lost, Note: "the umask of containers is 0022", Hint: "set it in the command"},
	{Path: "services.use_api_socket", Verdict: Refused, Note: "there is no API of Docker"},
	{Path: "services.user", Verdict: Taken, Note: "`securityContext.runAsUser` and `runAsGroup`; other names than `root` are lost"},
	{
		Path: "services.userns_mode", Verdict: Taken,
		Note: "`keep-id:uid=NUMBER,gid=NUMBER`, as in Podman: `keepID`, and `securityContext.runAsUser` without `user`; " +
			"other modes are lost",
	},
	{Path: "services.uts", Verdict: Lost, Note: "a pod has a host name of its own", Hint: "set network_mode: host"},
	{Path: "services.volume_driver", Verdict: Lost, Note: "volumes are directories of this host", Default: []string{"local"}},
	{Path: "services.volumes", Verdict: Taken, Note: "`volumes` and `volumeMounts`"},
	{Path: "services.volumes.bind", Verdict: Taken, Note: "`hostPath`"},
	{Path: "services.volumes.bind.create_host_path", Verdict: Taken, Note: "`type = \"DirectoryOrCreate\"`, unless the path is a file"},
	{Path: "services.volumes.bind.propagation", Verdict: Taken, Note: "`mountPropagation`"},
	{Path: "services.volumes.bind.recursive", Verdict: Dropped, Note: "mounts below it are included", Default: []string{"enabled"}},
	{Path: "services.volumes.bind.selinux", Verdict: Dropped, Note: "files are not relabelled"},
	{Path: "services.volumes.consistency", Verdict: Dropped, Note: "it is for macOS"},
	{Path: "services.volumes.image", Verdict: Taken, Note: "`image` of the volume"},
	{Path: "services.volumes.image.subpath", Verdict: Taken, Note: "`subPath`"},
	{Path: "services.volumes.read_only", Verdict: Taken, Note: "`readOnly`"},
	{Path: "services.volumes.source", Verdict: Taken, Note: "name or path"},
	{Path: "services.volumes.target", Verdict: Taken, Note: "`mountPath`"},
	{Path: "services.volumes.tmpfs", Verdict: Taken, Note: "`emptyDir` in memory"},
	{Path: "services.volumes.tmpfs.mode", Verdict: Taken, Note: "`mode` of the `emptyDir`"},
	{Path: "services.volumes.tmpfs.size", Verdict: Taken, Note: "`sizeLimit`"},
	{Path: "services.volumes.type", Verdict: Taken, Note: "`bind`, `volume`, `tmpfs` and `image`; others are refused"},
	{Path: "services.volumes.volume", Verdict: Taken, Note: "`persistentVolumeClaim`, or `emptyDir` without a name"},
	{Path: "services.volumes.volume.labels", Verdict: Dropped, Note: "volumes have no labels"},
	{Path: "services.volumes.volume.nocopy", Verdict: Taken, Note: "a named volume starts empty"},
	{Path: "services.volumes.volume.subpath", Verdict: Taken, Note: "`subPath`"},
	{
		Path: "services.volumes_from", Verdict: Lost, Note: "pods do not share mounts",
		Hint: "mount the volumes of the other service by name",
	},
	{Path: "services.working_dir", Verdict: Taken, Note: "`workingDir`"},
	{
		Path: "jobs", Verdict: Lost, Note: "jobs are not started", Whole: true,
		Hint: "start a pod with a timer of systemd that runs podstead run FILE",
	},
	{Path: "networks", Verdict: Taken, Note: "the network that all pods share: pods of different networks reach each other"},
	{Path: "networks.attachable", Verdict: Dropped, Note: noSwarm},
	{
		Path: "networks.driver", Verdict: Lost, Note: "pods have the network of the daemon",
		Default: []string{"bridge", "overlay", "default"},
	},
	{Path: "networks.driver_opts", Verdict: Dropped, Note: oneNetwork},
	{Path: "networks.enable_ipv4", Verdict: Dropped, Note: "addresses are a setting of the daemon"},
	{Path: "networks.enable_ipv6", Verdict: Dropped, Note: "addresses are a setting of the daemon"},
	{Path: "networks.external", Verdict: Dropped, Note: oneNetwork},
	{Path: "networks.internal", Verdict: Lost, Note: "pods reach other hosts", Hint: "limit them with the firewall of the host"},
	{Path: "networks.ipam", Verdict: Dropped, Note: "addresses are a setting of the daemon", Whole: true},
	{Path: "networks.labels", Verdict: Dropped, Note: oneNetwork},
	{Path: "networks.name", Verdict: Taken, Note: oneNetwork},
	{Path: "volumes", Verdict: Taken, Note: "`persistentVolumeClaim`, named `PROJECT-NAME`"},
	{Path: "volumes.driver", Verdict: Lost, Note: "volumes are directories of this host", Default: []string{"local"}},
	{
		Path: "volumes.driver_opts", Verdict: Taken,
		Note: "of the driver `local`: `o: bind` is a `hostPath`, `type: tmpfs` an `emptyDir`; others are lost",
	},
	{Path: "volumes.external", Verdict: Taken, Note: "the name without the project"},
	{Path: "volumes.labels", Verdict: Dropped, Note: "volumes have no labels"},
	{Path: "volumes.name", Verdict: Taken, Note: "name of the `persistentVolumeClaim`"},
	{Path: "secrets", Verdict: Taken, Note: "see the keys below it"},
	{Path: "secrets.content", Verdict: Taken, Note: "`data` of an entry of `secrets`"},
	{Path: "secrets.driver", Verdict: Refused, Note: noSwarm, Hint: "set file or environment"},
	{Path: "secrets.driver_opts", Verdict: Refused, Note: noSwarm},
	{Path: "secrets.environment", Verdict: Taken, Note: "`data` of an entry of `secrets`"},
	{Path: "secrets.external", Verdict: Refused, Note: "there is no Swarm that has it", Hint: "set file or environment"},
	{Path: "secrets.file", Verdict: Taken, Note: "`hostPath` of the file, mounted read-only"},
	{Path: "secrets.labels", Verdict: Dropped, Note: noSwarm},
	{Path: "secrets.name", Verdict: Taken, Note: "no effect"},
	{Path: "secrets.template_driver", Verdict: Refused, Note: noSwarm, Hint: "write the content without a template"},
	{Path: "configs", Verdict: Taken, Note: "see the keys below it"},
	{Path: "configs.content", Verdict: Taken, Note: "`data` of an entry of `configMaps`"},
	{Path: "configs.driver", Verdict: Refused, Note: noSwarm, Hint: "set file, content or environment"},
	{Path: "configs.driver_opts", Verdict: Refused, Note: noSwarm},
	{Path: "configs.environment", Verdict: Taken, Note: "`data` of an entry of `configMaps`"},
	{Path: "configs.external", Verdict: Refused, Note: "there is no Swarm that has it", Hint: "set file, content or environment"},
	{Path: "configs.file", Verdict: Taken, Note: "`hostPath` of the file, mounted read-only"},
	{Path: "configs.labels", Verdict: Dropped, Note: noSwarm},
	{Path: "configs.name", Verdict: Taken, Note: "no effect"},
	{Path: "configs.template_driver", Verdict: Refused, Note: noSwarm, Hint: "write the content without a template"},
	{Path: "models", Verdict: Lost, Note: "models are not supported", Hint: "run the model as a service", Whole: true},
}

const (
	backoffNote = "the back-off of restarts is that of Kubernetes"
	logsHint    = "set containerLog in podstead.toml"
	hookNote    = "hooks run as the container does"
	hookHint    = "set it in the command of the hook"
)
