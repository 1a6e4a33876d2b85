// Package metrics has the metrics of the daemon in the format of Prometheus. Names and labels are those of the kubelet, cAdvisor and
// kube-state-metrics where these have the metric, so that their dashboards and alerts work; other names begin with podstead_.
//
// What pods use and their states are read when a client requests them. Durations, probe results and restarts are counted as they happen,
// since the start of the daemon, see [Recorder]. A deleted pod has no metrics. The package changes nothing and never blocks the supervisor.
package metrics
