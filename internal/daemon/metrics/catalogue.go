package metrics

// Labels that several metrics have.
const (
	cgroupLabels    = "namespace pod container id image name"
	containerLabels = "namespace pod uid container"
	claimLabels     = "namespace persistentvolumeclaim"
	interfaceLabels = "namespace pod id interface"
	deviceLabels    = cgroupLabels + " device"
)

// What is counted as it happens.
var (
	startedPods       = declare(Kubelet, Counter, "kubelet_started_pods_total", "", "Pod sandboxes started since the start of the daemon.")
	startedContainers = declare(Kubelet, Counter, "kubelet_started_containers_total", "container_type",
		"Containers started since the start of the daemon. The type is container, init_container or ephemeral_container.")
	podStartDuration = declare(Kubelet, Histogram, "kubelet_pod_start_duration_seconds", "",
		"Time from the acceptance of a pod until all of its containers have started for the first time.")
	operations = declare(Kubelet, Counter, "kubelet_runtime_operations_total", "operation_type",
		"Operations of the container runtime since the start of the daemon.")
	operationErrors = declare(Kubelet, Counter, "kubelet_runtime_operations_errors_total", "operation_type",
		"Operations of the container runtime that failed, since the start of the daemon.")
	operationDuration = declare(Kubelet, Histogram, "kubelet_runtime_operations_duration_seconds", "operation_type",
		"Duration of operations of the container runtime.")
	probeResults = declare(Kubelet, Counter, "prober_probe_total", "namespace pod pod_uid container probe_type result",
		"Results of probes since the start of the daemon. The result is successful, failed or unknown.")
	probeDuration = declare(Kubelet, Histogram, "prober_probe_duration_seconds", "namespace pod container probe_type",
		"Duration of probes.")
	startStepDuration = declare(Own, Histogram, "podstead_start_step_duration_seconds", "step",
		"Duration of the steps of a start: sandbox, image (pull, import or check), container, postStart.")
	imagePulls = declare(Own, Counter, "podstead_image_pulls_total", "result",
		"Image pulls since the start of the daemon. The result is success, failure or canceled. An image that is present is not a pull.")
	imagePullDuration = declare(Kubelet, Histogram, "kubelet_image_pull_duration_seconds", "image_size_in_bytes",
		"Duration of successful image pulls, by compressed size: 0-10MB, 10MB-100MB and so on up to GT100GB, or N/A.")
	imagePullBytes = declare(Own, Counter, "podstead_image_pull_bytes_total", "",
		"Compressed size of the content of pulled images since the start of the daemon, with content that was present before.")
	restartsByCause = declare(Own, Counter, "podstead_container_restarts_total", containerLabels+" cause",
		"Restarts of containers since the start of the daemon, by cause: "+causes+".")
	events = declare(Own, Counter, "podstead_events_total", "kind type",
		"Events since the start of the daemon, by kind and type (Normal, Warning).")
	eventsMissed = declare(Own, Counter, "podstead_events_missed_total", "",
		"Events that were overwritten before the metrics counted them.")
	scrapesRejected = declare(Own, Counter, "podstead_metrics_rejected_total", "",
		"Requests for metrics that were rejected because too many were in progress.")
	buildInfo = declare(Own, Gauge, "podstead_build_info", "version goversion", "Version of the daemon; the value is 1.")
	addressUp = declare(Own, Gauge, "podstead_metrics_address_up", "",
		"1 if the daemon serves metrics at metrics.address, 0 if it cannot; absent without metrics.address.")
)

// States of pods and containers.
var (
	nodeName          = declare(Kubelet, Gauge, "kubelet_node_name", "node", "Host name of the host; the value is 1.")
	runningPods       = declare(Kubelet, Gauge, "kubelet_running_pods", "", "Pods with a running sandbox.")
	runningContainers = declare(Kubelet, Gauge, "kubelet_running_containers", "container_state",
		"Containers by state: running, exited, or created for those that wait.")
	pods         = declare(Own, Gauge, "podstead_pods", "phase", "Pods by phase.")
	containers   = declare(Own, Gauge, "podstead_containers", "state", "Containers by state: waiting, running, terminated.")
	podCondition = declare(Own, Gauge, "podstead_pod_status_condition", "namespace pod uid condition",
		"1 if a condition of a pod is True, otherwise 0.")

	podInfo  = declare(KubeState, Gauge, "kube_pod_info", "namespace pod uid node pod_ip host_network", "Pod; the value is 1.")
	podPhase = declare(KubeState, Gauge, "kube_pod_status_phase", "namespace pod uid phase",
		"1 for the phase of a pod, 0 for other phases.")
	podReady = declare(KubeState, Gauge, "kube_pod_status_ready", "namespace pod uid condition",
		"1 for the status of the condition Ready: true, false, unknown.")
	podReason = declare(KubeState, Gauge, "kube_pod_status_reason", "namespace pod uid reason",
		"1 for the reason of the status of a pod, such as Evicted.")
	podStartTime = declare(KubeState, Gauge, "kube_pod_start_time", "namespace pod uid",
		"Time at which a pod was accepted, in seconds since 1970.")
	containerInfo = declare(KubeState, Gauge, "kube_pod_container_info", containerLabels+" image image_id container_id",
		"Container of a pod; the value is 1.")
	containerReady   = declare(KubeState, Gauge, "kube_pod_container_status_ready", containerLabels, "1 if a container is ready.")
	containerWaiting = declare(KubeState, Gauge, "kube_pod_container_status_waiting", containerLabels, "1 if a container is waiting.")
	containerRuns    = declare(KubeState, Gauge, "kube_pod_container_status_running", containerLabels, "1 if a container is running.")
	containerEnded   = declare(KubeState, Gauge, "kube_pod_container_status_terminated", containerLabels,
		"1 if a container has terminated.")
	waitingReason = declare(KubeState, Gauge, "kube_pod_container_status_waiting_reason", containerLabels+" reason",
		"1 for the reason why a container is waiting, such as CrashLoopBackOff.")
	endedReason = declare(KubeState, Gauge, "kube_pod_container_status_terminated_reason", containerLabels+" reason",
		"1 for the reason why a container has terminated, such as Completed.")
	lastReason = declare(KubeState, Gauge, "kube_pod_container_status_last_terminated_reason", containerLabels+" reason",
		"1 for the reason why the last run of a container terminated, such as OOMKilled.")
	lastExitCode = declare(KubeState, Gauge, "kube_pod_container_status_last_terminated_exitcode", containerLabels,
		"Exit code of the last run of a container.")
	restarts = declare(KubeState, Counter, "kube_pod_container_status_restarts_total", containerLabels,
		"Restarts of a container: restartCount of its status. It survives restarts of the daemon.")
	initReady = declare(KubeState, Gauge, "kube_pod_init_container_status_ready", containerLabels,
		"1 if an init container is ready.")
	initWaiting = declare(KubeState, Gauge, "kube_pod_init_container_status_waiting_reason", containerLabels+" reason",
		"1 for the reason why an init container is waiting.")
	initRestarts = declare(KubeState, Counter, "kube_pod_init_container_status_restarts_total", containerLabels,
		"Restarts of an init container: restartCount of its status.")
	requested = declare(KubeState, Gauge, "kube_pod_container_resource_requests", containerLabels+" resource unit",
		"Requests of a container, in cores or bytes.")
	limited = declare(KubeState, Gauge, "kube_pod_container_resource_limits", containerLabels+" resource unit",
		"Limits of a container, in cores or bytes.")
)

// What pods and containers use. A pod without a container label is the sum of its containers and its sandbox.
var (
	lastSeen = declare(CAdvisor, Gauge, "container_last_seen", cgroupLabels,
		"Time at which the figures of a container were read, in seconds since 1970.")
	containerStart = declare(CAdvisor, Gauge, "container_start_time_seconds", cgroupLabels,
		"Start of a container, in seconds since 1970.")
	cpuUsage   = declare(CAdvisor, Counter, "container_cpu_usage_seconds_total", cgroupLabels+" cpu", "CPU time.")
	cfsPeriods = declare(CAdvisor, Counter, "container_cpu_cfs_periods_total", cgroupLabels,
		"Periods of the CPU limit in which processes ran.")
	cfsThrottled = declare(CAdvisor, Counter, "container_cpu_cfs_throttled_periods_total", cgroupLabels,
		"Periods in which the CPU limit stopped processes.")
	cfsThrottledTime = declare(CAdvisor, Counter, "container_cpu_cfs_throttled_seconds_total", cgroupLabels,
		"Time for which the CPU limit stopped processes.")
	memoryUsage      = declare(CAdvisor, Gauge, "container_memory_usage_bytes", cgroupLabels, "Memory, with the page cache.")
	memoryWorkingSet = declare(CAdvisor, Gauge, "container_memory_working_set_bytes", cgroupLabels,
		"Memory without files that were not used recently.")
	memoryRSS   = declare(CAdvisor, Gauge, "container_memory_rss", cgroupLabels, "Anonymous memory.")
	memoryCache = declare(CAdvisor, Gauge, "container_memory_cache", cgroupLabels, "Page cache, with tmpfs and shared memory.")
	memorySwap  = declare(CAdvisor, Gauge, "container_memory_swap", cgroupLabels,
		"Memory in the swap space; absent if the kernel does not count it.")
	memoryFailures = declare(CAdvisor, Counter, "container_memory_failures_total", cgroupLabels+" failure_type scope",
		"Page faults: pgfault, pgmajfault.")
	oomEvents = declare(CAdvisor, Counter, "container_oom_events_total", cgroupLabels,
		"OOM-killed processes since the start of a container. After a container was OOM-killed, see podstead_container_restarts_total.")
	processes       = declare(CAdvisor, Gauge, "container_threads", cgroupLabels, "Processes and threads (the cgroup controller pids).")
	specMemoryLimit = declare(CAdvisor, Gauge, "container_spec_memory_limit_bytes", cgroupLabels, "Memory limit; 0 for none.")
	specCPUQuota    = declare(CAdvisor, Gauge, "container_spec_cpu_quota", cgroupLabels,
		"CPU limit in microseconds for each container_spec_cpu_period; absent for none.")
	specCPUPeriod = declare(CAdvisor, Gauge, "container_spec_cpu_period", cgroupLabels, "Period of the CPU limit in microseconds.")
	fsUsage       = declare(CAdvisor, Gauge, "container_fs_usage_bytes", cgroupLabels,
		"Size of the files that a running container has changed in its image.")
	fsReadBytes  = declare(CAdvisor, Counter, "container_fs_reads_bytes_total", deviceLabels, "Bytes read from a block device.")
	fsReads      = declare(CAdvisor, Counter, "container_fs_reads_total", deviceLabels, "Read operations of a block device.")
	fsWriteBytes = declare(CAdvisor, Counter, "container_fs_writes_bytes_total", deviceLabels, "Bytes written to a block device.")
	fsWrites     = declare(CAdvisor, Counter, "container_fs_writes_total", deviceLabels, "Write operations of a block device.")
	rxBytes      = declare(CAdvisor, Counter, "container_network_receive_bytes_total", interfaceLabels, "Bytes received.")
	rxErrors     = declare(CAdvisor, Counter, "container_network_receive_errors_total", interfaceLabels, "Errors while receiving.")
	rxPackets    = declare(CAdvisor, Counter, "container_network_receive_packets_total", interfaceLabels, "Packets received.")
	rxDropped    = declare(CAdvisor, Counter, "container_network_receive_packets_dropped_total", interfaceLabels,
		"Packets dropped while receiving.")
	txBytes   = declare(CAdvisor, Counter, "container_network_transmit_bytes_total", interfaceLabels, "Bytes sent.")
	txErrors  = declare(CAdvisor, Counter, "container_network_transmit_errors_total", interfaceLabels, "Errors while sending.")
	txPackets = declare(CAdvisor, Counter, "container_network_transmit_packets_total", interfaceLabels, "Packets sent.")
	txDropped = declare(CAdvisor, Counter, "container_network_transmit_packets_dropped_total", interfaceLabels,
		"Packets dropped while sending.")
	volumeCapacity = declare(Kubelet, Gauge, "kubelet_volume_stats_capacity_bytes", claimLabels,
		"Size of the disk of a persistent volume.")
	volumeAvailable  = declare(Kubelet, Gauge, "kubelet_volume_stats_available_bytes", claimLabels, "Free space of that disk.")
	volumeUsed       = declare(Kubelet, Gauge, "kubelet_volume_stats_used_bytes", claimLabels, "Used space of that disk.")
	volumeInodes     = declare(Kubelet, Gauge, "kubelet_volume_stats_inodes", claimLabels, "Inodes of that disk; 0 without a fixed number.")
	volumeInodesFree = declare(Kubelet, Gauge, "kubelet_volume_stats_inodes_free", claimLabels, "Free inodes of that disk.")
	volumeInodesUsed = declare(Kubelet, Gauge, "kubelet_volume_stats_inodes_used", claimLabels, "Used inodes of that disk.")
	logUsage         = declare(Kubelet, Gauge, "kubelet_container_log_filesystem_used_bytes", containerLabels,
		"Size of the logs of all runs of a container.")
)

// The host and the daemon.
var (
	machineMemory = declare(CAdvisor, Gauge, "machine_memory_bytes", "", "Memory of the host.")
	machineCores  = declare(CAdvisor, Gauge, "machine_cpu_cores", "", "CPUs of the host.")
	diskSize      = declare(Own, Gauge, "podstead_disk_size_bytes", "directory",
		"Size of the file system of a directory of the daemon (state, logs, run), without what is reserved for root.")
	diskUsed        = declare(Own, Gauge, "podstead_disk_used_bytes", "directory", "Used space of the file system.")
	diskInodes      = declare(Own, Gauge, "podstead_disk_inodes", "directory", "Inodes of the file system; 0 without a fixed number.")
	diskInodesUsed  = declare(Own, Gauge, "podstead_disk_inodes_used", "directory", "Used inodes of the file system.")
	diskUp          = declare(Own, Gauge, "podstead_disk_up", "directory", "1 if the file system responds, otherwise 0.")
	engineUp        = declare(Own, Gauge, "podstead_engine_up", "", "1 if the container engine responds, otherwise 0.")
	engineResponse  = declare(Own, Gauge, "podstead_engine_response_seconds", "", "Response time of the container engine.")
	loopLag         = declare(Own, Gauge, "podstead_loop_lag_seconds", "", "Time until the supervisors of all pods have handled a message.")
	loopsResponding = declare(Own, Gauge, "podstead_loops_up", "",
		"1 if the supervisors of all pods have handled a message in time, otherwise 0.")
)
