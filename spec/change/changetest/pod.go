package changetest

import (
	"fmt"
	"strings"

	"github.com/podstead/podstead/spec/change"
)

// The effects.
const (
	inPlace   = change.InPlace
	nextRound = change.NextRound
	restart   = change.RestartContainer
	again     = change.RestartPod
	replace   = change.ReplacePod
)

// backoffs are the fields of a restart back-off, with two values each.
var backoffs = [][3]string{
	{"initialSeconds", "10", "20"}, {"maxSeconds", "300", "400"}, {"factor", "2", "3"}, {"resetAfterSeconds", "600", "700"},
}

// extra is a container with additional lines.
func extra(list, name, lines string) string {
	return fmt.Sprintf("[[%s]]\nname = %q\nimage = %q\n%s\n", list, name, Image, lines)
}

const sleeps = `command = ["sleep", "3600"]`

func podTemplates() []template {
	list := []template{
		{field: "name", pod: "name = %s", before: `"pair"`, after: `"pair-b"`, effect: replace},
		{field: "labels", pod: "labels.a = %s", before: `"1"`, after: `"2"`, effect: inPlace},
		{field: "labels", pod: "%s", before: "", after: `labels.a = "2"`, effect: inPlace},
		{
			field: "labels", pod: "labels.a = %s", app: `env.A.fieldRef.fieldPath = "metadata.labels['a']"`,
			before: `"1"`, after: `"2"`, effect: inPlace,
		},
		{field: "annotations", pod: "annotations.a = %s", before: `"1"`, after: `"2"`, effect: inPlace},
		{field: "annotations", pod: `annotations."podstead.io/aliases" = %s`, before: `"a_b"`, after: `"a_c"`, effect: again},
		{
			field: "annotations", pod: "restartPolicy = \"Never\"\nannotations.a = %s",
			app: `env.A.fieldRef.fieldPath = "metadata.annotations['a']"`, before: `"1"`, after: `"2"`, effect: inPlace,
		},
		{
			field: "annotations", pod: "annotations.a = %s", app: `volumeMounts.v = { mountPath = "/a", subPath = "a" }`, before: `"1"`,
			after: `"2"`, effect: inPlace,
			tables: "[[volumes]]\nname = \"v\"\ndownwardAPI.items = [{ path = \"a\", fieldRef = { fieldPath = " +
				"\"metadata.annotations\" } }]\n",
		},
		{field: "restartPolicy", pod: "restartPolicy = %s", before: `"Always"`, after: `"OnFailure"`, effect: inPlace},
		{field: "terminationGracePeriodSeconds", pod: "terminationGracePeriodSeconds = %s", before: "1", after: "2", effect: inPlace},
		{field: "activeDeadlineSeconds", pod: "activeDeadlineSeconds = %s", before: "3600", after: "7200", effect: inPlace},
		{field: "backoffLimit", pod: "restartPolicy = \"OnFailure\"\nbackoffLimit = %s", before: "1", after: "2", effect: inPlace},
		{field: "backoffLimit", pod: "restartPolicy = \"Never\"\nbackoffLimit = %s", before: "1", after: "2", effect: inPlace},
		{field: "backoffLimit", pod: "restartPolicy = \"Never\"\nbackoffLimit = %s", before: "0", after: "2", effect: inPlace},
		{
			field: "ttlSecondsAfterFinished", pod: "restartPolicy = \"OnFailure\"\nttlSecondsAfterFinished = %s", before: "1", after: "2",
			effect: inPlace,
		},
		{field: "imageArchives", pod: "imageArchives = [%s]", before: `"a.tar"`, after: `"b.tar"`, effect: inPlace, fails: true},
		{field: "waitFor", pod: "waitFor = [%s]", before: `"path:/etc"`, after: `"path:/usr"`, effect: nextRound},
		{field: "onUnhealthy", pod: "onUnhealthy = %s", before: `"restart"`, after: `"replace"`, effect: inPlace},
		{
			field: "unhealthyAfterSeconds", pod: "onUnhealthy = \"restart\"\nunhealthyAfterSeconds = %s", before: "60", after: "120",
			effect: inPlace,
		},
		{field: "update.readyWithinSeconds", pod: "update.readyWithinSeconds = %s", before: "120", after: "60", effect: inPlace},
		{field: "update.minReadySeconds", pod: "update.minReadySeconds = %s", before: "10", after: "1", effect: inPlace},
		{field: "update.onFailure", pod: "update.onFailure = %s", before: `"rollback"`, after: `"keep"`, effect: inPlace},
		{field: "hostNetwork", pod: "hostNetwork = %s", before: "false", after: "true", effect: again},
		{field: "hostPID", pod: "hostPID = %s", before: "false", after: "true", effect: again},
		{field: "hostIPC", pod: "hostIPC = %s", before: "false", after: "true", effect: again},
		{field: "shareProcessNamespace", pod: "shareProcessNamespace = %s", before: "false", after: "true", effect: again},
		{field: "hostUsers", pod: "hostUsers = %s", before: "true", after: "false", effect: again, fails: true},
		{field: "keepID", pod: "keepID = %s", before: "1000", after: "1001", effect: again, fails: true},
		{field: "hostname", pod: "hostname = %s", before: `"a"`, after: `"b"`, effect: again},
		{field: "subdomain", pod: "subdomain = %s", before: `"a"`, after: `"b"`, effect: again},
		{field: "hostnameOverride", pod: "hostnameOverride = %s", before: `"a.example"`, after: `"b.example"`, effect: again},
		{
			field: "setHostnameAsFQDN", pod: "subdomain = \"a\"\nsetHostnameAsFQDN = %s", before: "false", after: "true", effect: again,
		},
		{
			field: "hostAliases[].ip", pod: `hostAliases = [{ ip = %s, hostnames = ["a"] }]`, before: `"192.0.2.1"`, after: `"192.0.2.2"`,
			effect: inPlace,
		},
		{
			field: "hostAliases[].hostnames", pod: `hostAliases = [{ ip = "192.0.2.1", hostnames = [%s] }]`, before: `"a"`, after: `"b"`,
			effect: inPlace,
		},
		{
			field: "dnsPolicy", pod: "dnsPolicy = %s\ndnsConfig.nameservers = [\"192.0.2.1\"]", before: `"Default"`, after: `"None"`,
			effect: again,
		},
		{field: "dnsConfig.nameservers", pod: "dnsConfig.nameservers = [%s]", before: `"192.0.2.1"`, after: `"192.0.2.2"`, effect: again},
		{field: "dnsConfig.searches", pod: "dnsConfig.searches = [%s]", before: `"a.example"`, after: `"b.example"`, effect: again},
		{
			field: "dnsConfig.options[].name", pod: "dnsConfig.options = [{ name = %s }]", before: `"rotate"`, after: `"edns0"`,
			effect: again,
		},
		{
			field: "dnsConfig.options[].value", pod: "dnsConfig.options = [{ name = \"ndots\", value = %s }]", before: `"1"`, after: `"2"`,
			effect: again,
		},
		{
			field: "readinessGates[].conditionType", pod: "readinessGates = [{ conditionType = %s }]", before: `"example.com/a"`,
			after: `"example.com/b"`, effect: inPlace,
		},
		{field: "imagePullSecrets[].name", pod: "imagePullSecrets = [{ name = %s }]", before: `"a"`, after: `"b"`, effect: inPlace},
		{field: "serviceAccountName", pod: "serviceAccountName = %s", before: `"a"`, after: `"b"`, effect: inPlace},
		{field: "os.name", pod: "%s", before: "", after: `os.name = "linux"`, effect: inPlace},
		{field: "runtimeClassName", pod: "runtimeClassName = %s", before: `"a"`, after: `"b"`, effect: again, fails: true},
		{field: "pidsLimit", pod: "pidsLimit = %s", before: "100", after: "200", effect: again},
		{field: "shmSize", pod: "shmSize = %s", before: `"16Mi"`, after: `"32Mi"`, effect: again},
		{field: "resources.requests", pod: "resources.requests.cpu = %s", before: `"10m"`, after: `"20m"`, effect: again},
		{field: "resources.limits", pod: "resources.limits.memory = %s", before: `"64Mi"`, after: `"65Mi"`, effect: again},
	}
	for _, name := range []string{"after", "before", "wants", "requires", "bindsTo", "partOf", "wantedBy", "requiredBy"} {
		// its unit starts the pod
		list = append(list,
			template{
				field: "systemd." + name, pod: "systemd." + name + " = [%s]", before: `"a.service"`, after: `"b.service"`, effect: inPlace,
				fails: true,
			})
	}
	list = append(list, scheduleTemplates()...)
	list = append(list, jobTemplates()...)
	for _, b := range backoffs {
		list = append(list,
			template{field: "restartBackoff." + b[0], pod: "restartBackoff." + b[0] + " = %s", before: b[1], after: b[2], effect: inPlace})
	}
	return append(list, listTemplates()...)
}

// scheduleTemplates are schedules, whose pod does not run.
func scheduleTemplates() []template {
	const head = "restartPolicy = \"Never\"\n"
	list := []template{
		{field: "schedule.cron", pod: head + "schedule.cron = %s", before: `"0 3 * * *"`, after: `"@daily"`, effect: inPlace, fails: true},
		{field: "schedule.cron", pod: head + "%s", before: "", after: `schedule.cron = "@daily"`, effect: replace, fails: true},
		{field: "schedule.cron", pod: head + "%s", before: `schedule.cron = "@daily"`, after: "", effect: replace, fails: true},
	}
	for _, f := range [][3]string{
		{"timeZone", `"UTC"`, `"Etc/UTC"`},
		{"concurrencyPolicy", `"Allow"`, `"Forbid"`},
		{"startingDeadlineSeconds", "10", "20"},
		{"suspend", "false", "true"},
		{"jitterSeconds", "10", "20"},
		{"successfulJobsHistoryLimit", "1", "2"},
		{"failedJobsHistoryLimit", "1", "2"},
	} {
		pod := head + "schedule.cron = \"@daily\"\nschedule." + f[0] + " = %s"
		list = append(list, template{field: "schedule." + f[0], pod: pod, before: f[1], after: f[2], effect: inPlace, fails: true})
	}
	return list
}

// jobTemplates are pods of a Job.
func jobTemplates() []template {
	const head = "restartPolicy = \"Never\"\njob.name = \"sum\"\njob.completions = 3\n"
	const codes = "job.podFailurePolicy.rules = [{ action = \"FailJob\", onExitCodes = { operator = \"In\", values = [1] } }]"
	list := []template{
		{
			field: "job.name", pod: "restartPolicy = \"Never\"\njob.parallelism = 1\njob.name = %s",
			before: `"sum"`, after: `"max"`, effect: inPlace,
		},
		{
			field: "job.completions", pod: "restartPolicy = \"Never\"\njob = { name = \"sum\", completions = %s }",
			before: "2", after: "3", effect: inPlace,
		},
		{
			field: "job.successPolicy.rules[].succeededIndexes", pod: head + "job.successPolicy.rules = [{ succeededIndexes = %s }]",
			before: `"1"`, after: `"2"`, effect: inPlace,
		},
		{
			field: "job.successPolicy.rules[].succeededCount", pod: head + "job.successPolicy.rules = [{ succeededCount = %s }]",
			before: "2", after: "3", effect: inPlace,
		},
		{
			field: "job.podFailurePolicy.rules[].action", pod: head + strings.Replace(codes, `"FailJob"`, "%s", 1),
			before: `"FailJob"`, after: `"Count"`, effect: inPlace,
		},
		{
			field:  "job.podFailurePolicy.rules[].onExitCodes.containerName",
			pod:    head + strings.Replace(codes, "operator", "%s operator", 1),
			before: "", after: `containerName = "app",`, effect: inPlace,
		},
		{
			field: "job.podFailurePolicy.rules[].onExitCodes.operator", pod: head + strings.Replace(codes, `"In"`, "%s", 1),
			before: `"In"`, after: `"NotIn"`, effect: inPlace,
		},
		{
			field: "job.podFailurePolicy.rules[].onExitCodes.values", pod: head + strings.Replace(codes, "[1]", "[%s]", 1),
			before: "1", after: "2", effect: inPlace,
		},
	}
	for _, f := range [][3]string{
		{"index", "1", "2"}, {"parallelism", "1", "2"}, {"backoffLimit", "1", "2"}, {"backoffLimitPerIndex", "1", "2"},
	} {
		list = append(list, template{field: "job." + f[0], pod: head + "job." + f[0] + " = %s", before: f[1], after: f[2], effect: inPlace})
	}
	return append(list, template{
		field: "job.maxFailedIndexes", pod: head + "job.backoffLimitPerIndex = 1\njob.maxFailedIndexes = %s", before: "1", after: "2",
		effect: inPlace,
	})
}

// listTemplates are containers that are added, removed and moved.
func listTemplates() []template {
	sidecar := "restartPolicy = \"Always\"\n" + sleeps
	return []template{
		{field: "containers", tables: "%s", after: extra("containers", "more", sleeps), effect: restart},
		{field: "containers", tables: "%s", before: extra("containers", "more", sleeps), effect: restart},
		{
			field: "containers", tables: "%s",
			after: extra("containers", "more", sleeps+"\nports = [{ containerPort = 80, hostPort = 31820 }]"), effect: again,
		},
		{
			field: "containers", tables: "%s", after: extra("containers", "more", sleeps+"\nresources.limits.memory = \"64Mi\""),
			effect: again,
		},
		{
			field: "containers", tables: "%s", effect: again, fails: true,
			after: extra("containers", "more", sleeps+"\nresources = { requests.memory = 0, limits.hugepages-2Mi = \"2Mi\" }"),
		},
		{
			field: "containers", tables: "%s", effect: nextRound,
			before: extra("containers", "a", sleeps) + extra("containers", "b", sleeps),
			after:  extra("containers", "b", sleeps) + extra("containers", "a", sleeps),
		},
		{field: "initContainers", tables: "%s", after: extra("initContainers", "init", `command = ["true"]`), effect: nextRound},
		{field: "initContainers", tables: "%s", before: extra("initContainers", "init", `command = ["true"]`), effect: nextRound},
		{
			field: "initContainers", tables: extra("initContainers", "init", "command = %s"), before: `["true"]`, after: `["true", "x"]`,
			effect: nextRound,
		},
		{field: "initContainers", tables: "%s", after: extra("initContainers", "side", sidecar), effect: restart},
		{field: "initContainers", tables: "%s", before: extra("initContainers", "side", sidecar), effect: restart},
		{
			field: "initContainers", tables: extra("initContainers", "side", sidecar+"\nenv.A = %s"), before: `"1"`, after: `"2"`,
			effect: restart,
		},
		{
			field: "initContainers", tables: "%s", before: extra("initContainers", "side", sidecar),
			after: extra("containers", "side", sidecar), effect: again,
		},
		{
			field: "containers[].restartPolicy", tables: extra("initContainers", "init", "command = [\"true\"]\n%s"),
			after: `restartPolicy = "Always"`, effect: again, fails: true, // the sidecar would restart
		},
	}
}
