//go:build soak

package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// axis is a field with several values, in JSON. That it is not set is another one.
type axis struct {
	path   string
	values []string
}

// group has fields that depend on each other. All combinations of their values are tried, in pods with these containers.
type group struct {
	name string
	axes []axis
}

const (
	first   = "spec.containers.0."
	initial = "spec.initContainers.0."
	handler = `{"exec":{"command":["x"]}}`
)

func groups() []group {
	all := []group{
		{"init containers and sidecars", []axis{
			{initial + "restartPolicy", []string{`"Always"`, `"OnFailure"`, `"Never"`, `"Other"`}},
			{initial + "livenessProbe", []string{handler}},
			{initial + "readinessProbe", []string{handler}},
			{initial + "startupProbe", []string{handler}},
			{initial + "lifecycle", []string{
				`{"postStart":` + handler + `}`, `{"preStop":{"sleep":{"seconds":1}}}`, `{"stopSignal":"SIGTERM"}`, `{}`,
			}},
			{initial + "restartPolicyRules", []string{
				`[]`, `[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}]`,
				`[{"action":"RestartAllContainers","exitCodes":{"operator":"NotIn","values":[0]}}]`,
			}},
			{"spec.restartPolicy", []string{`"Never"`}},
		}},
		{"volumes and mounts", []axis{
			{"spec.volumes", []string{
				`[{"name":"v"}]`, `[{"name":"v","emptyDir":{}}]`, `[{"name":"v","hostPath":{"path":"/m"}}]`,
				`[{"name":"v","hostPath":{"path":"m"}}]`,
				`[{"name":"v","configMap":{"name":"c"}}]`, `[{"name":"v","secret":{"secretName":"c"}}]`,
				`[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]`, `[{"name":"v","projected":{}}]`,
				`[{"name":"v","downwardAPI":{"items":[{"path":"n","fieldRef":{"fieldPath":"metadata.name"}}]}}]`,
				`[{"name":"v","image":{"reference":"busybox:1"}}]`, `[{"name":"v","emptyDir":{},"secret":{"secretName":"c"}}]`,
				`[{"name":"v","emptyDir":{}},{"name":"v","emptyDir":{}}]`,
			}},
			{first + "volumeMounts", []string{
				`[{"name":"v","mountPath":"/m"}]`, `[{"name":"w","mountPath":"/m"}]`,
				`[{"name":"v","mountPath":"/m"},{"name":"v","mountPath":"/m"}]`,
				`[{"name":"v","mountPath":"/m"},{"name":"v","mountPath":"/m/"}]`, `[{"name":"v","mountPath":"m"}]`,
				`[{"name":"v","mountPath":"/m:n"}]`,
				`[{"name":"v","mountPath":"/"}]`, `[{"name":"v","mountPath":"/proc"}]`, `[{"name":"v","mountPath":"/dev"}]`,
				`[{"mountPath":"/m"}]`,
				`[{"name":"v"}]`,
			}},
			{first + "securityContext.privileged", []string{`true`}},
		}},
		{"fields of mounts", []axis{
			{"spec.volumes", []string{`[{"name":"x1","emptyDir":{}}]`}},
			{first + "volumeMounts.0.subPath", []string{`"s"`, `"/s"`, `"../s"`}},
			{first + "volumeMounts.0.subPathExpr", []string{`"$(A)"`, `"/$(A)"`}},
			{first + "volumeMounts.0.readOnly", []string{`true`}},
			{first + "volumeMounts.0.recursiveReadOnly", []string{`"Disabled"`, `"IfPossible"`, `"Enabled"`}},
			{first + "volumeMounts.0.mountPropagation", []string{`"None"`, `"HostToContainer"`, `"Bidirectional"`}},
			{first + "securityContext.privileged", []string{`true`}},
			{"spec.hostUsers", []string{`false`}},
		}},
		{"resources", []axis{
			{first + "resources.requests", []string{
				`{"cpu":"1"}`, `{"cpu":"2","memory":"64Mi"}`, `{"hugepages-2Mi":"2Mi"}`, `{"ephemeral-storage":"1Gi"}`,
				`{"example.com/x":"1"}`,
			}},
			{first + "resources.limits", []string{
				`{"cpu":"1"}`, `{"cpu":"500m"}`, `{"memory":"64Mi"}`, `{"hugepages-2Mi":"2Mi","cpu":"1"}`, `{"example.com/x":"1"}`,
				`{"cpu":"0"}`,
			}},
			{"spec.resources.requests", []string{`{"cpu":"1"}`, `{"memory":"1Gi"}`, `{"ephemeral-storage":"1Gi"}`, `{"cpu":"3"}`}},
			{"spec.resources.limits", []string{`{"cpu":"1"}`, `{"memory":"32Mi"}`, `{"cpu":"4","memory":"1Gi"}`}},
			{initial + "resources.limits", []string{`{"cpu":"2"}`}},
		}},
		{"security contexts", []axis{
			{first + "securityContext.privileged", []string{`true`, `false`}},
			{first + "securityContext.allowPrivilegeEscalation", []string{`true`, `false`}},
			{first + "securityContext.capabilities", []string{
				`{"add":["SYS_ADMIN"]}`, `{"add":["CAP_SYS_ADMIN"]}`, `{"add":["ALL"]}`, `{"drop":["ALL"]}`,
			}},
			{first + "securityContext.procMount", []string{`"Default"`, `"Unmasked"`}},
			{"spec.hostUsers", []string{`true`, `false`}},
			{"spec.securityContext", []string{`{"runAsNonRoot":true,"runAsUser":0}`}},
		}},
		{"host namespaces", []axis{
			{"spec.hostNetwork", []string{`true`}},
			{"spec.hostPID", []string{`true`}},
			{"spec.hostIPC", []string{`true`}},
			{"spec.shareProcessNamespace", []string{`true`}},
			{"spec.hostUsers", []string{`true`, `false`}},
			{first + "ports", []string{
				`[{"containerPort":80}]`, `[{"containerPort":80,"hostPort":80}]`, `[{"containerPort":80,"hostPort":81}]`,
			}},
			{"spec.securityContext.sysctls", []string{
				`[{"name":"net.ipv4.tcp_syncookies","value":"1"}]`, `[{"name":"kernel.shm_rmid_forced","value":"1"}]`,
				`[{"name":"vm.swappiness","value":"1"}]`,
			}},
		}},
		{"host ports", []axis{
			{first + "ports", hostPorts},
			{initial + "ports", hostPorts},
			{initial + "restartPolicy", []string{`"Always"`}},
			{"spec.hostNetwork", []string{`true`}},
		}},
		{"names of the host", []axis{
			{"spec.dnsPolicy", []string{`"Default"`, `"ClusterFirst"`, `"ClusterFirstWithHostNet"`, `"None"`, `"Other"`, `""`}},
			{"spec.dnsConfig", []string{
				`{}`, `{"nameservers":[]}`, `{"nameservers":["10.0.0.1"]}`, `{"searches":["a.b"]}`,
				`{"options":[{"name":"ndots","value":"2"}]}`,
			}},
			{"spec.hostNetwork", []string{`true`}},
			{"spec.hostname", []string{`"h"`}},
			{"spec.subdomain", []string{`"s"`, `"s.t"`}},
		}},
		{"environment", []axis{
			{first + "env", []string{`[{"name":"A","value":"x"}]`, `[{"name":"A"}]`, `[{"name":"A"},{"name":"A"}]`}},
			{first + "env.0.valueFrom", []string{
				`{}`, `{"fieldRef":{"fieldPath":"metadata.name"}}`, `{"resourceFieldRef":{"resource":"limits.cpu"}}`,
				`{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1Mi"}}`,
				`{"resourceFieldRef":{"resource":"limits.memory","divisor":"1m"}}`,
				`{"configMapKeyRef":{"name":"c","key":"k"}}`,
				`{"secretKeyRef":{"name":"c","key":"k"},"fieldRef":{"fieldPath":"metadata.name"}}`,
				`{"fileKeyRef":{"volumeName":"v","path":"/a","key":"k"}}`, `{"fileKeyRef":{"volumeName":"n","path":"../a","key":"k"}}`,
			}},
			{first + "envFrom", []string{
				`[{"configMapRef":{"name":"c"},"secretRef":{"name":"c"}}]`, `[{"prefix":"p"}]`,
				`[{"prefix":"p","secretRef":{"name":"c"}}]`,
			}},
		}},
		{"stops", []axis{
			{"spec.terminationGracePeriodSeconds", []string{`0`, `1`, `-1`}},
			{first + "lifecycle.preStop", []string{
				`{"sleep":{"seconds":0}}`, `{"sleep":{"seconds":1}}`, `{"sleep":{"seconds":31}}`, `{"sleep":{}}`, `{}`,
				`{"sleep":{"seconds":1},"exec":{"command":["x"]}}`,
				`{"httpGet":{"port":"none"}}`, `{"tcpSocket":{"port":80}}`,
			}},
			{first + "lifecycle.stopSignal", []string{`"SIGINT"`, `"INT"`}},
			{"spec.os.name", []string{`"linux"`, `"windows"`}},
		}},
		{"operating systems", []axis{
			{"spec.os.name", []string{`"linux"`}},
			{"spec.securityContext.windowsOptions", []string{`{}`}},
			{"spec.securityContext.seLinuxOptions", []string{`{}`}},
			{first + "securityContext.windowsOptions", []string{`{}`}},
			{first + "securityContext.seLinuxOptions", []string{`{}`}},
		}},
		{"restarts", []axis{
			{"spec.restartPolicy", []string{`"Always"`, `"OnFailure"`, `"Never"`}},
			{"spec.activeDeadlineSeconds", []string{`0`, `1`}},
			{first + "restartPolicy", []string{`"Always"`, `"OnFailure"`, `"Never"`}},
			{first + "restartPolicyRules", []string{
				`[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}]`, `[{"action":"Restart"}]`,
				`[{"action":"Restart","exitCodes":{"operator":"In","values":[]}}]`, `[{"exitCodes":{"operator":"In","values":[1,1]}}]`,
			}},
		}},
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		all = append(all, group{"probes and ports", []axis{
			{first + "ports", []string{`[{"containerPort":80,"name":"http"}]`}},
			{first + probe, []string{
				handler, `{"exec":{}}`, `{"httpGet":{"port":80}}`, `{"httpGet":{"port":"http"}}`, `{"httpGet":{"port":"none"}}`,
				`{"httpGet":{"port":"80"}}`,
				`{"httpGet":{"port":0}}`, `{"httpGet":{"port":""}}`, `{"tcpSocket":{"port":"http"}}`, `{"tcpSocket":{"port":"HTTP"}}`,
				`{"grpc":{"port":80}}`,
				`{"grpc":{"port":0}}`, `{"exec":{"command":["x"]},"tcpSocket":{"port":80}}`, `{}`,
			}},
			{first + probe + ".successThreshold", []string{`0`, `2`}},
			{first + probe + ".terminationGracePeriodSeconds", []string{`0`, `1`}},
		}})
	}
	for _, profile := range []string{"seccompProfile", "appArmorProfile"} {
		values := []string{
			`{"type":"RuntimeDefault"}`, `{"type":"Localhost"}`, `{"type":"Localhost","localhostProfile":"a"}`,
			`{"type":"Localhost","localhostProfile":"../a"}`,
			`{"type":"Unconfined","localhostProfile":"a"}`, `{}`,
		}
		all = append(all, group{"profiles", []axis{
			{"spec.securityContext." + profile, values},
			{first + "securityContext." + profile, values},
			{first + "securityContext.privileged", []string{`true`}},
			{"metadata.annotations", []string{
				`{"container.apparmor.security.beta.kubernetes.io/a":"runtime/default"}`,
				`{"container.apparmor.security.beta.kubernetes.io/a":"localhost/a"}`,
				`{"container.apparmor.security.beta.kubernetes.io/b":"unconfined"}`,
				`{"container.apparmor.security.beta.kubernetes.io/a":"other"}`,
				`{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}`,
				`{"container.seccomp.security.alpha.kubernetes.io/a":"localhost/a"}`,
			}},
		}})
	}
	return all
}

var hostPorts = []string{
	`[{"containerPort":80,"hostPort":80}]`, `[{"containerPort":80,"hostPort":80,"protocol":"UDP"}]`,
	`[{"containerPort":80,"hostPort":80,"hostIP":"127.0.0.1"}]`,
	`[{"containerPort":80,"hostPort":80,"hostIP":"0.0.0.0"}]`, `[{"containerPort":80},{"containerPort":80}]`,
	`[{"containerPort":80,"name":"a"},{"containerPort":81,"name":"a"}]`, `[{"containerPort":80,"hostPort":0}]`,
	`[{"containerPort":80}]`, `[{"containerPort":80,"hostPort":81}]`,
}

// combinations returns a pod for each combination of the values of a group.
func (all schemas) combinations(t *testing.T, g group) []object {
	t.Helper()
	pods := []object{base()}
	for _, a := range g.axes {
		path := strings.Split(a.path, ".")
		for _, pod := range slices.Clone(pods) {
			for _, text := range a.values {
				with := runtime.DeepCopyJSON(pod)
				all.set(with, path, decoded(t, text))
				pods = append(pods, with)
			}
		}
	}
	return pods
}

// decoded returns the value of a JSON text, with integers as the API server has them.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var wrapped map[string]any
	decoder := json.NewDecoder(strings.NewReader(`{"value":` + text + `}`))
	decoder.UseNumber()
	if err := decoder.Decode(&wrapped); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return withIntegers(wrapped["value"])
}

func withIntegers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = withIntegers(v[i])
		}
	case object:
		for key := range v {
			v[key] = withIntegers(v[key])
		}
	}
	return value
}

// base is the pod in which values are tried.
func base() object {
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p"},
		"spec": object{"containers": []any{object{"name": "a", "image": "busybox:1"}}},
	}
}
