package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// supported returns a setting of the daemon.
func supported[T any](key, value, help string, check func(T) error) Setting {
	return Setting{Key: key, Default: value, Help: help, check: checkOf(check), supported: true}
}

// checkOf returns a check of a pointer to a value.
func checkOf[T any](check func(T) error) func(any) error {
	return func(field any) error {
		p, ok := field.(*T)
		if !ok {
			return fmt.Errorf("must be a %T", p)
		}
		return check(*p)
	}
}

// anyValue accepts every value.
func anyValue[T any](T) error { return nil }

// global returns a setting of all commands.
func global[T any](key, value, help string, check func(T) error) Setting {
	s := supported(key, value, help, check)
	s.Global = true
	return s
}

// reloads returns a setting that a running daemon reloads.
func reloads(s Setting) Setting {
	s.Reloads = true
	return s
}

func notSupported(string) error { return errors.New("not supported yet") }

// pathSettings returns the settings at the top level of the file.
func pathSettings() []Setting {
	socket := global("socket", "", "path of the API socket", emptyOr(absolute))
	socket.DefaultHelp = socketName + " in the runtime directory"
	readOnly := global("readOnlySocket", "", "path of the API socket for group podstead-ro, which may only read; none for no such socket",
		socketOrNone)
	readOnly.DefaultHelp = "the path of the API socket with -ro before .sock"
	return []Setting{
		socket,
		readOnly,
		global("stateDir", "/var/lib/podstead", "directory for persistent state: images, volumes, pods", absolute),
		global("runDir", "/run/podstead", "directory for runtime state, cleared at boot", absolute),
		global("logDir", "/var/log/podstead", "directory for container logs", absolute),
		global("configDir", defaultDir, "directory that contains podstead.toml, configmaps/, secrets/ and pods.d/", absolute),
	}
}

// engineSettings returns the settings of the container engine, the network and images.
func engineSettings() []Setting {
	auth := supported("images.authFile", "", "file with credentials for registries, in the format of Docker's config.json, mode 0600",
		absolute)
	auth.DefaultHelp = authName + " in the configuration directory"
	imagesDir := supported("images.dir", "",
		"image directory: archives in it are imported, and their images are kept while it contains the archives", absolute)
	imagesDir.DefaultHelp = imagesName + " in the state directory"
	return []Setting{
		reloads(supported("engine.idleTimeout", "60s", "time after which an on-demand daemon without clients and pods exits", duration)),
		supported("engine.runtime", RuntimeAuto,
			"OCI runtime of new containers: runc, crun, auto (crun if it works on this host, else runc), or an absolute path", program),
		supported("engine.cgroupDriver", "auto", "cgroup driver: auto, cgroupfs, systemd", oneOf("auto", "cgroupfs", "systemd")),
		supported("engine.memoryLimit", "1Gi",
			"memory limit of the daemon, at least 128Mi. Half of it is the soft heap limit (GOMEMLIMIT). The cgroup of a daemon that was "+
				"started on demand has this limit", atLeast(128<<20)),
		{Key: "engine.address", check: checkOf(emptyOr(notSupported))},

		supported("network.mode", "bridge", "pod network: bridge, or none (loopback only)", oneOf("bridge", "none")),
		supported("network.subnets", "auto", "pod subnets: auto, or an IPv4 and an IPv6 subnet, comma-separated", subnets),

		supported("images.maxParallelPulls", "2", "maximum number of parallel image pulls", between(1, 64)),
		supported("images.maxUnpackedSize", "0", "maximum size of an unpacked image, at least 1Mi; 0 for half of the free disk space",
			zeroOr(atLeast(1<<20))),
		supported("images.certsDir", "/etc/podstead/certs.d", "directory of registry configurations (hosts.toml)", absolute),
		reloads(supported("images.verifyDefault", "accept", "images that no rule of images.verify is for: accept, reject",
			oneOf(verifyTypes()...))),
		auth,
		reloads(supported("images.maxBandwidth", "0",
			"bytes per second that all pulls together may receive, at least 32Ki; 0 for unlimited", zeroOr(atLeast(32<<10)))),
		imagesDir,
		supported("images.systemDir", "/usr/share/podstead/images", "second image directory, for packages; images.dir takes precedence",
			absolute),
		reloads(supported("images.gcHighPercent", "85",
			"usage of space or of inodes of the state directory's file system, in percent, at which unused images are removed; 100 "+
				"for never", between(0, 100))),
		reloads(supported("images.gcLowPercent", "80",
			"usage in percent at which the removal of unused images ends, at most that of images.gcHighPercent", between(0, 100))),
		reloads(supported("images.maxAge", "0s", "time without use after which an image is removed; 0s for never", durationOrZero)),
		reloads(supported("images.minAge", "2m", "minimum age of an image before it is removed without a command", durationOrZero)),
	}
}

// podSettings returns the settings of logs, pods, admission and metrics.
func podSettings() []Setting {
	levels := admission.Levels()
	dir := supported("pods.dir", "", "pods directory: the daemon runs the pod files in it", absolute)
	dir.DefaultHelp = podsName + " in the configuration directory"
	return []Setting{
		supported("containerLog.maxSize", "10Mi", "size at which a container log is rotated, at least 4Ki", atLeast(4<<10)),
		supported("containerLog.maxFiles", "5", "maximum number of log files for each container, 2 to 1000", between(2, 1000)),
		supported("containerLog.totalMaxSize", "0",
			"maximum size of the logs of all containers, at least 1Mi; 0 for 10 % of the file system, at most 4Gi. The oldest rotated "+
				"files are removed first", zeroOr(atLeast(1<<20))),
		supported("containerLog.driver", "file",
			"where container logs are written to: file, memory (in the runtime directory, which must be in memory), or journald (as "+
				"memory, with a copy in the journal); pods of systemd units use journald in place of file", oneOf(spec.LogDrivers()...)),
		supported("containerLog.memoryMaxSize", "1Mi",
			"maximum size of the log of each container with driver memory or journald, at least 64Ki", atLeast(64<<10)),
		supported("containerLog.compress", "false", "compress rotated logs with gzip: true, false", anyValue[bool]),
		supported("containerLog.rateLimit", "off",
			"maximum rate of the log of each container, such as 100 lines/s or 64Ki bytes/s; lines above it are dropped and counted",
			logRate),

		supported("events.journald", JournaldAuto,
			"whether events are sent to journald with fields and message IDs: auto (if it receives the log of the daemon), always, never",
			oneOf(JournaldAuto, JournaldAlways, JournaldNever)),

		supported("pods.maxParallelStarts", "0", "maximum number of parallel container starts; 0 for the number of CPUs", between(0, 1024)),
		supported("pods.pidsLimit", "2048", "maximum number of processes and threads of a pod; 0 for unlimited", between(0, 1<<22)),
		dir,
		reloads(supported("pods.finishedPodTTL", "24h", "time after which containers, volumes and old logs of a finished pod are removed",
			duration)),
		reloads(supported("pods.maxFinishedPods", "100",
			"maximum number of finished pods that keep their containers, volumes and logs, 1 to 10000", between(1, 10000))),
		supported("pods.maxReplicas", "16",
			"maximum number of pods of a Deployment, StatefulSet, ReplicaSet or Job in a manifest, 1 to 128", between(1, 128)),
		reloads(supported("pods.shutdownGracePeriod", "60s",
			"time in which all pods stop when systemd shuts the host down; 0 to leave containers to systemd", durationOrZero)),

		reloads(supported("policy.podSecurity", "privileged", "Pod Security Standard that pods must meet: "+strings.Join(levels, ", "),
			oneOf(levels...))),
		supported("policy.hostPaths", "/", "directories allowed for hostPath volumes, comma-separated; empty for none", each(absolutePath)),
		reloads(supported("policy.devices", "/dev",
			"device nodes, directories of them, and CDI devices such as nvidia.com/gpu or nvidia.com/gpu=0, allowed for devices of "+
				"containers, comma-separated; empty for none", each(allowedDevice))),
		supported("policy.cdiSpecDirs", "/etc/cdi,/var/run/cdi",
			"directories with specifications of the Container Device Interface, comma-separated; the later ones take precedence",
			each(absolutePath)),
		reloads(supported("policy.allowedUnsafeSysctls", "",
			"unsafe sysctls or sysctl patterns that pods may set, comma-separated, such as net.core.*",
			each(admission.CheckSysctlPattern))),
		reloads(supported("policy.requests", enforceRequests,
			"requests that exceed what the host has free: enforce (reject the pod), ignore", oneOf(enforceRequests, ignoreRequests))),
		supported("policy.systemReserved", "", "resources that pods cannot request, comma-separated, such as cpu=500m,memory=1Gi",
			systemReserved),
		supported("metrics.address", "",
			"address of the Prometheus endpoint /metrics, such as 127.0.0.1:9469; empty for the API socket only. An address other than "+
				"loopback requires TLS", emptyOr(metricsAddress)),
		supported("metrics.certFile", "",
			"file with the TLS certificate of the Prometheus endpoint and its chain, in PEM; loaded again when it changes",
			emptyOr(absolute)),
		supported("metrics.keyFile", "", "file with the key of the certificate, in PEM", emptyOr(absolute)),
		reloads(supported("reboot.maxPerDay", "0",
			"maximum number of reboots of the host in 24 hours of uptime for pods with onUnhealthy = \"reboot\", 0 to 24; 0 for never",
			between(0, 24))),
		reloads(supported("reboot.command", "systemctl,reboot",
			"command that requests a reboot of the host, and its arguments, comma-separated", anyValue[[]string])),
	}
}
