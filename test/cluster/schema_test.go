//go:build soak

package cluster

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// object is a JSON object.
type object = map[string]any

// schema is a schema of the API server's OpenAPI document, as far as it is used here.
type schema struct {
	Ref                  string `json:"$ref"`
	AllOf                []*schema
	OneOf                []*schema
	Type                 string
	Enum                 []string
	Properties           map[string]*schema
	Required             []string
	Items                *schema
	AdditionalProperties *schema
	name                 string // of the type, such as Probe
}

// schemas are those of the core API, by the end of their names.
type schemas map[string]*schema

// fetchSchemas reads the schemas of the core API from the server.
func fetchSchemas(t *testing.T, s *server) schemas {
	t.Helper()
	code, text, err := s.request(t.Context(), http.MethodGet, "/openapi/v3/api/v1", nil)
	if err != nil || code != http.StatusOK {
		t.Fatalf("get the schema: %d %v", code, err)
	}
	var document struct {
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	all := schemas{}
	for name, s := range document.Components.Schemas {
		s.name = name[strings.LastIndexByte(name, '.')+1:]
		all[name] = s
	}
	return all
}

func (all schemas) resolve(s *schema) *schema {
	switch {
	case s.Ref != "":
		return all.resolve(all[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]])
	case len(s.AllOf) == 1:
		return all.resolve(s.AllOf[0])
	}
	return s
}

// podType is the name of the schema of pods.
const podType = "io.k8s.api.core.v1.Pod"

// leaf is a value of one field of a pod. The path has the keys of tables, and 0 for the first element of a list.
type leaf struct {
	path  []string
	value any
}

// leaves returns several values of each field of a type and of the types in it, in the order of their names.
func (all schemas) leaves(of *schema, path []string) []leaf {
	of = all.resolve(of)
	var found []leaf
	for _, key := range slices.Sorted(maps.Keys(of.Properties)) {
		if len(path) == 0 && (key == "apiVersion" || key == "kind") {
			continue // they select the API
		}
		field := all.resolve(of.Properties[key])
		at := append(slices.Clone(path), key)
		for _, value := range all.values(field, key) {
			found = append(found, leaf{at, value})
		}
		switch {
		case key == "ephemeralContainers", len(path) == 0 && key == "status": // cannot be set in a new pod
		case field.Type == "array" && len(all.resolve(field.Items).Properties) > 0:
			found = append(found, all.leaves(field.Items, append(at, "0"))...)
		case len(field.Properties) > 0:
			found = append(found, all.leaves(field, at)...)
		}
	}
	return found
}

// values returns the values of a field that are tried, right ones and wrong ones.
func (all schemas) values(field *schema, name string) []any {
	var tried []any
	for _, value := range namedValues[name] {
		if field.holds(value) {
			tried = append(tried, value)
		}
	}
	switch {
	case len(field.Enum) > 0:
		for _, value := range field.Enum {
			tried = append(tried, value)
		}
		tried = append(tried, "Other", "")
	case len(field.OneOf) > 0 || field.name == "Quantity" || field.name == "IntOrString":
		tried = append(tried, int64(0), int64(1), int64(-1), int64(70000), "http", "", "10Mi", "128m", "-5", "0.5")
	case field.Type == "string":
		tried = append(tried, "", "x", "X_y", "/abs", "../up", "a b", strings.Repeat("a", 70), "-1", "10Mi", "1e3", "é")
	case field.Type == "integer":
		tried = append(tried, int64(-1), int64(0), int64(1), int64(2), int64(65535), int64(65536), int64(1)<<31-1, int64(1)<<40)
	case field.Type == "boolean":
		tried = append(tried, true, false)
	case field.Type == "array":
		one := all.minimal(field.Items, name)
		tried = append(tried, []any{}, []any{one}, []any{one, one}, nil)
	case field.Type == "object" && field.AdditionalProperties != nil:
		one := all.minimal(field.AdditionalProperties, name)
		tried = append(tried, object{}, object{"k": one}, object{"a/b/c": one}, object{"": one})
	default:
		tried = append(tried, object{}, all.minimal(field, name))
	}
	return tried
}

// holds reports whether a value is of the type of a field.
func (s *schema) holds(value any) bool {
	switch v := value.(type) {
	case []any:
		if len(v) == 0 || s.Type != "array" {
			return false
		}
		switch v[0].(type) {
		case object:
			return s.Items.Ref != "" || len(s.Items.AllOf) > 0
		case int64:
			return s.Items.Type == "integer"
		}
		return s.Items.Type == "string"
	case object:
		return s.Type == "object" || len(s.Properties) > 0
	case int64:
		return s.Type == "integer"
	}
	return s.Type == "string"
}

// minimal returns a value of a type that the API accepts where that is possible.
func (all schemas) minimal(of *schema, name string) any {
	of = all.resolve(of)
	if value, known := minimal[of.name]; known {
		return runtime.DeepCopyJSON(value)
	}
	switch {
	case len(of.Enum) > 0:
		return of.Enum[0]
	case of.Type == "array":
		return []any{all.minimal(of.Items, name)}
	case of.Type == "integer" || len(of.OneOf) > 0 || of.name == "Quantity":
		return int64(1)
	case of.Type == "boolean":
		return true
	case of.Type == "object":
		value := object{}
		for _, key := range of.Required {
			value[key] = all.minimal(of.Properties[key], key)
		}
		return value
	}
	if values := namedValues[name]; len(values) > 0 {
		return values[0]
	}
	return "x"
}

// set sets a field of a pod. Tables and lists on the way that the pod does not have get their minimal content.
func (all schemas) set(pod object, path []string, value any) {
	of, at := all.resolve(all[podType]), pod
	for len(path) > 1 {
		field := all.resolve(of.Properties[path[0]])
		if field.Type == "array" {
			of = all.resolve(field.Items)
			list, _ := at[path[0]].([]any)
			if len(list) == 0 {
				list = []any{all.minimal(of, path[0])}
			}
			first, is := list[0].(object)
			if !is {
				first, _ = all.minimal(of, path[0]).(object)
				list[0] = first
			}
			at[path[0]], at, path = list, first, path[2:]
		} else {
			of = field
			next, is := at[path[0]].(object)
			if !is {
				next, _ = all.minimal(of, path[0]).(object)
				at[path[0]] = next
			}
			at, path = next, path[1:]
		}
		if unions[of.name] != nil && slices.Contains(unions[of.name], path[0]) {
			for _, key := range unions[of.name] {
				if key != path[0] {
					delete(at, key)
				}
			}
		}
	}
	at[path[0]] = runtime.DeepCopyJSONValue(value)
}

// unions are the types of which one field of several is set.
var unions = map[string][]string{
	"Probe":                 {"exec", "httpGet", "tcpSocket", "grpc"},
	"EnvFromSource":         {"configMapRef", "secretRef"},
	"VolumeProjection":      {"configMap", "secret", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"},
	"DownwardAPIVolumeFile": {"fieldRef", "resourceFieldRef"},
}

// minimal has the values of types whose required fields the schema does not tell.
var minimal = map[string]object{
	"ConfigMapEnvSource":    {"name": "x"},
	"ConfigMapKeySelector":  {"name": "x", "key": "k"},
	"ConfigMapProjection":   {"name": "x"},
	"ConfigMapVolumeSource": {"name": "x"},
	"Container":             {"name": "x1", "image": "busybox:1"},
	"ContainerPort":         {"containerPort": int64(80)},
	"ContainerRestartRule":  {"action": "Restart", "exitCodes": object{"operator": "In", "values": []any{int64(1)}}},
	"DownwardAPIVolumeFile": {"path": "x", "fieldRef": object{"fieldPath": "metadata.name"}},
	"EnvFromSource":         {"configMapRef": object{"name": "x"}},
	"ExecAction":            {"command": []any{"x"}},
	"HostAlias":             {"ip": "10.0.0.1", "hostnames": []any{"x"}},
	"ImageVolumeSource":     {"reference": "busybox:1"},
	"LocalObjectReference":  {"name": "x"},
	"ObjectFieldSelector":   {"fieldPath": "metadata.name"},
	"Probe":                 {"exec": object{"command": []any{"x"}}},
	"ResourceFieldSelector": {"resource": "limits.cpu", "containerName": "a"},
	"SecretEnvSource":       {"name": "x"},
	"SecretKeySelector":     {"name": "x", "key": "k"},
	"SecretProjection":      {"name": "x"},
	"SecretVolumeSource":    {"secretName": "x"},
	"Sysctl":                {"name": "kernel.shm_rmid_forced", "value": "0"},
	"VolumeProjection":      {"configMap": object{"name": "x"}},
}

// namedValues are values of fields of a name, in any type. The first is accepted where that is possible.
var namedValues = map[string][]any{
	"add": {
		[]any{"NET_ADMIN"}, []any{"CAP_NET_ADMIN"}, []any{"net_admin"}, []any{"ALL"}, []any{""},
	}, "drop": {
		[]any{"ALL"},
		[]any{"all"},
	},
	"apiVersion":    {"v1", "v2"},
	"claimName":     {"c", "C", "a.b"},
	"conditionType": {"example.com/ready", "a/b/c"},
	"containerName": {"a", "b"},
	"containerPath": {"/c"}, "devicePath": {"/d"},
	"defaultMode": {int64(0o777), int64(0o1000)}, "mode": {int64(0o777), int64(0o1000)},
	"divisor": {"1", "1m", "1Mi", "1k", "3", "0"},
	"fieldPath": {
		"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations", "metadata.labels['a']",
		"metadata.annotations['A/b']", "metadata.labels['a b']", "metadata.labels['']", "metadata.labels['a'", "spec.nodeName",
		"spec.serviceAccountName", "spec.restartPolicy", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "status.phase",
	},
	"host":      {"localhost", "10.0.0.1", "::1"},
	"hostIP":    {"10.0.0.1", "127.0.0.1", "::1", "::", "0.0.0.0", "010.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0"},
	"hostname":  {"h", "h.x", "H", "-h"},
	"hostnames": {[]any{"x", "y.z"}, []any{""}, []any{"X"}, []any{"a_b"}},
	"image": {
		"busybox:1", "busybox", "Busybox", "example.com/a/b@sha256:" + strings.Repeat("0", 64), " busybox", "busybox ", "a:b:c",
		"http://x",
	},
	"ip":     {"10.0.0.1", "::1", "010.0.0.1", "10.0.0.1/8", "::ffff:10.0.0.1", "fe80::1%eth0"},
	"key":    {"k", "a.b", "..", ".", "../k", "a/b"},
	"limits": quantities, "requests": quantities,
	"localhostProfile": {"a", "a/b", "/a", "../a", " a", ""},
	"mountPath":        {"/m", "m", "/m:n", "/", "..", "/../m", "/m/../n", "/proc", "/dev/shm", "/sys/fs"},
	"name":             {"x1", "A", "A.B", "a.b", "1", "a=b", "CPU", "metadata.name"},
	"nameservers": {
		[]any{"10.0.0.1"},
		[]any{"10.0.0.1", "10.0.0.2", "10.0.0.3"},
		[]any{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"},
		[]any{"fe80::1%eth0"},
		[]any{"::ffff:10.0.0.1"},
	},
	"path":       {"x", "/", "a/../b", "..x", "..x/y", "x..", "x?y=z", "/a:b"},
	"prefix":     {"P_", "1", "a=b", "a.b"},
	"pullPolicy": {"Always"},
	"reference":  {"busybox:1", "Busybox", "a:b:c"},
	"resource":   {"limits.cpu", "requests.memory", "limits.ephemeral-storage", "requests.hugepages-2Mi", "limits.x", "cpu"},
	"scheme":     {"HTTP", "http"},
	"searches":   {[]any{"a.b"}, []any{"a_b"}, []any{"."}, []any{"a.b."}, []any{".."}, []any{strings.Repeat("a", 64)}},
	"secretName": {"x", "X", "a.b"},
	"seconds":    {int64(1), int64(30), int64(31)},
	"sizeLimit":  {"1Mi", "0"},
	"stopSignal": {"SIGTERM", "TERM", "15"},
	"sysctls": {
		[]any{object{"name": "net/ipv4/tcp_syncookies", "value": "1"}, object{"name": "net.ipv4.tcp_syncookies", "value": "1"}},
	},
	"subPath": {"s", "s/..", "..s", "./s"}, "subPathExpr": {"$(A)", "$(A)/../x"},
	"terminationMessagePath": {"/dev/termination-log", "/t"},
	"topologyKey":            {"k"},
	"type":                   {"Directory"},
	"valueFrom":              {object{"fieldRef": object{"fieldPath": "metadata.name"}}},
	"values":                 {[]any{int64(0)}, []any{int64(1), int64(1)}, []any{int64(-1)}, []any{int64(256)}},
	"workingDir":             {"/w", "w", "/a:b"},
}

// quantities are values of requests and limits.
var quantities = []any{
	object{"cpu": "1"},
	object{"cpu": int64(1)},
	object{"cpu": 0.5},
	object{"cpu": "-1"},
	object{"cpu": "0"},
	object{"cpu": "1n"},
	object{"cpu": "0.0001"},
	object{"cpu": "x"},
	object{"cpu": ""},
	object{"memory": "64Mi"},
	object{"memory": "64m"},
	object{"memory": "1.5"},
	object{"memory": "1e3"},
	object{"memory": "64MiB"},
	object{"memory": "1E19"},
	object{"memory": "9223372036854775808"},
	object{"ephemeral-storage": "1Gi"},
	object{"hugepages-2Mi": "2Mi"},
	object{"hugepages-2Mi": "3Mi", "cpu": "1"},
	object{"hugepages-2Mi": "2Mi", "cpu": "1"},
	object{"example.com/x": "1"},
	object{"example.com/x": "1.5"},
	object{"storage": "1"},
	object{"Memory": "1"},
}
