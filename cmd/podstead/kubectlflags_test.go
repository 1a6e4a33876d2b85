package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestNamespaceFlags checks that the only namespace is accepted everywhere, and that --all-namespaces adds it to the table.
func TestNamespaceFlags(t *testing.T) {
	h := newListed(t)
	for line, want := range map[string]string{
		"get pods -n default -o name":             "pod/db\npod/job\npod/web\n",
		"-n default get -o name web":              "pod/web\n",
		"--namespace=default get pod/web -o=name": "pod/web\n",
		"get pods,po -o name":                     "pod/db\npod/job\npod/web\n",
		"get pods --all-namespaces -o name":       "pod/db\npod/job\npod/web\n",
		"get -A -l tier=front -o name":            "pod/web\n",
		"wait -A -l app=shop --for=create":        "pod/db condition met\npod/web condition met\n",
		"logs -n default job":                     "",
	} {
		h.want(t, line, want)
	}
	h.await(t, "get -A", `^NAMESPACE +NAME +READY .*\ndefault +db +1/1 .*\ndefault +job .*\ndefault +web .*\n$`)
	watched, _, _ := h.background(t, "get -A --watch -l tier=front")
	watched.await(t, "NAMESPACE  NAME ")
	watched.await(t, "default    web ")
	for line, want := range map[string]string{
		"get -n kube-system": `invalid argument "kube-system" for "-n, --namespace" flag: no such namespace: all ` +
			`pods of a host are in the namespace default`,
		"delete web --namespace other":  `no such namespace: all pods of a host are in the namespace default`,
		"get web -A":                    "pod names cannot be combined with --all-namespaces",
		"describe web --all-namespaces": "pod names cannot be combined with --all-namespaces",
		"get pods,services":             `"pods,services": resource type "services" is not supported: must be pod`,
		"get web --field-selector a=b": `--field-selector "a=b": field "a" is not supported: must be one of metadata.name, ` +
			`metadata.namespace, `,
		"get --field-selector status":               `--field-selector "status": invalid selector`,
		"get db --field-selector metadata.name=web": "pod names cannot be combined with --field-selector",
	} {
		h.fails(t, line, statusUsage, want)
	}
	h.fails(t, "get images", statusNotFound, "hint: list images with podstead image ls\n")
	h.fails(t, "get containers", statusNotFound, "hint: list containers with podstead ps\n")
	h.fails(t, "get deployments", statusNotFound, "hint: \"deployments\" is read as the name of a pod: a host has only pods and events\n")
	h.fails(t, "get pvc", statusNotFound, "hint: list persistent volumes with podstead volume ls\n")
}

// TestIgnoreNotFound checks that pods that do not exist are no error with --ignore-not-found, and that the others are selected.
func TestIgnoreNotFound(t *testing.T) {
	h := newListed(t)
	for line, want := range map[string]string{
		"get pod none --ignore-not-found":                  "",
		"get none --ignore-not-found -o json":              "",
		"get none web --ignore-not-found -o name":          "pod/web\n",
		"delete pod none --ignore-not-found":               "",
		"delete job none --ignore-not-found --force":       "pod/job deleted (file /etc/podstead/pods.d/job.toml removed)\n",
		"delete pod/none --ignore-not-found=true --now":    "",
		"get none --ignore-not-found --no-headers -o wide": "",
	} {
		h.want(t, line, want)
	}
	h.fails(t, "get none --ignore-not-found=false", statusNotFound, `no such pod "none"`)
}

// TestFieldSelector checks which pods fields select for get, wait and delete.
func TestFieldSelector(t *testing.T) {
	h := newListed(t)
	for selector, want := range map[string]string{
		"status.phase=Running":                    "db web",
		"status.phase!=Running":                   "job",
		"status.phase==Succeeded":                 "job",
		"metadata.name=web":                       "web",
		"metadata.name!=web,status.phase=Running": "db",
		"metadata.namespace=default":              "db job web",
		"metadata.namespace!=default":             "",
		"spec.restartPolicy=Never":                "job",
		"status.podIP=":                           "db job web",
	} {
		names := ""
		for name := range strings.FieldsSeq(want) {
			names += "pod/" + name + "\n"
		}
		h.want(t, "get -o name --field-selector "+selector, names)
	}
	h.want(t, "get -l app=shop --field-selector=metadata.name!=web -o name", "pod/db\n")
	h.want(t, "wait --field-selector status.phase=Running --for=condition=Ready", "pod/db condition met\npod/web condition met\n")
	h.fails(t, "delete --all --field-selector status.phase=Succeeded", statusUsage, "--all cannot be combined with pod names or --selector")
	h.want(t, "delete pods --field-selector=status.phase=Succeeded", "pod/job deleted (file /etc/podstead/pods.d/job.toml removed)\n")
	h.want(t, "get -o name", "pod/db\npod/web\n")
}

// TestDeleteNow checks the flags of kubectl delete for the grace period.
func TestDeleteNow(t *testing.T) {
	h := newListed(t)
	for line, want := range map[string]string{
		"delete web --now --grace-period 5":   "--now and --grace-period cannot be combined",
		"delete web --now --force":            "--now and --force cannot be combined",
		"delete web --force --grace-period 5": "--force and a --grace-period greater than 0 cannot be combined",
	} {
		h.fails(t, line, statusUsage, want)
	}
	h.want(t, "delete pod web --now", "pod/web deleted (file /etc/podstead/pods.d/web.toml removed)\n")
	h.want(t, "delete pod db --grace-period=0 --force", "pod/db deleted (file /etc/podstead/pods.d/db.toml removed)\n")
}

// TestGetEvents checks that get events and events accept the flags of kubectl.
func TestGetEvents(t *testing.T) {
	h := newListed(t)
	all := h.run(t, "events").stdout
	for _, line := range []string{
		"get events", "get ev --all-namespaces", "get events -n default", "get events --sort-by=.metadata.creationTimestamp",
		"get events --sort-by {.lastTimestamp}", "events -A", "events --types Normal,Warning",
		"get events --field-selector involvedObject.kind=Pod,involvedObject.namespace=default",
	} {
		h.want(t, line, all)
	}
	ofWeb := h.run(t, "events web").stdout
	for _, line := range []string{
		"events --for pod/web", "events --for=web", "get events --field-selector involvedObject.name=web", "get events -l tier=front",
	} {
		h.want(t, line, ofWeb)
	}
	if ofWeb == "" || ofWeb == all {
		t.Errorf("events of web:\n%s", ofWeb)
	}
	h.want(t, "get events --field-selector type=Warning", h.run(t, "events --types=warning").stdout)
	if got := h.run(t, "get events --field-selector reason=Started").stdout; !strings.Contains(got, "Container started") ||
		strings.Contains(got, "accepted") {
		t.Errorf("events with the reason Started:\n%s", got)
	}
	watched, _, _ := h.background(t, "get events -w --field-selector involvedObject.name=web")
	other, _, _ := h.background(t, "events --for web --watch")
	for _, name := range []string{"db", "web"} { // together they are reported as they stop
		h.want(t, "stop "+name+" --grace-period 1", "pod/"+name+" stopped\n")
	}
	for _, output := range []*lines{watched, other} {
		output.await(t, "Stopping")
		if strings.Contains(output.String(), " db ") {
			t.Errorf("events of another pod:\n%s", output.String())
		}
	}
	for line, want := range map[string]string{
		"get events web": `get events accepts no names, got "web": select the events of a pod with --field-selector ` +
			`involvedObject.name=web`,
		"get events -o name": `get events: output format "name" is not supported: must be one of wide, json, yaml`,
		"get events " +
			"--sort-by .reason": `get events --sort-by ".reason": events are sorted by time: must be one of .metadata.creationTimestamp, `,
		"get events --field-selector a=b":  `field "a" of events is not supported: must be type, reason or involvedObject.name`,
		"get events --field-selector type": `--field-selector "type": invalid selector`,
		"events --types Error":             `--types "Error": must be Normal or Warning`,
		"events web --for pod/web":         "--for cannot be combined with a pod",
		"events --for deployment/web":      `resource type "deployment" is not supported: must be pod`,
	} {
		h.fails(t, line, statusUsage, want)
	}
}

// TestLogsSelectorTail checks that logs shows the last 10 lines of pods that a selector selects, and all lines of named pods.
func TestLogsSelectorTail(t *testing.T) {
	h := newListed(t)
	h.write(t, "long.toml",
		script(`labels.app = "long"`,
			"echo 1; echo 2; echo 3; echo 4; echo 5; echo 6; echo 7; echo 8; echo 9; echo 10; echo 11; echo 12; "+runs))
	h.want(t, "apply $DIR/long.toml --wait", "pod/long created\n")
	lines := ""
	for i := range 12 {
		lines += fmt.Sprintln(i + 1)
	}
	h.await(t, "logs long", "12\n$")
	h.want(t, "logs long", lines)
	h.want(t, "logs -l app=long", strings.TrimPrefix(lines, "1\n2\n"))
	h.want(t, "logs -l app=long --tail 2", "11\n12\n")
	h.want(t, "logs -l app=long --tail=-1", lines)
}
