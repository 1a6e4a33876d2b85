package spec

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// ShortForm is a short form of a pod file with its long form. Both are lines of TOML.
type ShortForm struct {
	// Field is the path of the field, such as containers.ports. A field of a probe is that of livenessProbe.
	Field string
	// Description is a sentence.
	Description string
	Short, Long string
}

// ShortForms are all short forms. Where the long form has a line of the pod and one of the container, that of the pod is first.
var ShortForms = []ShortForm{
	{
		"volumes", "A path that begins with `/`, `./` or `../` is that of the host, and an empty table the persistent volume of this name.",
		"volumes.html = \"./html\"\nvolumes.data = {}",
		"volumes = [\n  { name = \"html\", hostPath = { path = \"./html\" } },\n" +
			"  { name = \"data\", persistentVolumeClaim = { claimName = \"data\" } },\n]",
	},
	{
		"volumes", "A table has the fields of the volume but its name.",
		`volumes.cache.emptyDir = { medium = "Memory" }`, `volumes = [{ name = "cache", emptyDir = { medium = "Memory" } }]`,
	},
	{
		"secrets", "A file with lines KEY=value. A table has the fields of the secret but its name.",
		`secrets.db = "db.env"`, `secrets = [{ name = "db", envFile = "db.env" }]`,
	},
	{
		"containers.ports", "The port of the host and that of the container, or the latter alone. IPv6 addresses are in brackets.",
		`ports = ["8080:80", "127.0.0.1:53:53/udp", "81"]`,
		"ports = [\n  { containerPort = 80, hostPort = 8080 },\n" +
			"  { containerPort = 53, hostPort = 53, hostIP = \"127.0.0.1\", protocol = \"UDP\" },\n  { containerPort = 81 },\n]",
	},
	{
		"containers.env", "The name of the variable is the key.",
		"env.TZ = \"UTC\"\nenv.PASSWORD.secretKeyRef = { name = \"db\", key = \"password\" }",
		"env = [\n  { name = \"TZ\", value = \"UTC\" },\n" +
			"  { name = \"PASSWORD\", valueFrom = { secretKeyRef = { name = \"db\", key = \"password\" } } },\n]",
	},
	{
		"containers.envFile", "A file with lines KEY=value for variables. The pod has a config map with the name of the file.",
		`envFile = "app.env"`,
		"configMaps = [{ name = \"app.env\", envFile = \"app.env\" }]\nenvFrom = [{ configMapRef = { name = \"app.env\" } }]",
	},
	{
		"containers.secrets", "As `envFile`, with a secret of the pod that has the name of the key.",
		`secrets.db = "db.env"`,
		"secrets = [{ name = \"db\", envFile = \"db.env\" }]\nenvFrom = [{ secretRef = { name = \"db\" } }]",
	},
	{
		"containers.volumeMounts", "The name of the volume is the key.",
		"volumeMounts.data = \"/data\"\nvolumeMounts.html = { mountPath = \"/html\", readOnly = true }",
		"volumeMounts = [\n  { name = \"data\", mountPath = \"/data\" },\n" +
			"  { name = \"html\", mountPath = \"/html\", readOnly = true },\n]",
	},
	{
		"containers.livenessProbe.httpGet", "A colon, the number or name of the port, and the path. `https://` before them sets the scheme.",
		`livenessProbe.httpGet = ":8080/healthz"`, `livenessProbe.httpGet = { path = "/healthz", port = 8080 }`,
	},
	{
		"containers.livenessProbe.httpGet", "",
		`livenessProbe.httpGet = "https://:web"`, `livenessProbe.httpGet = { port = "web", scheme = "HTTPS" }`,
	},
	{
		"containers.livenessProbe.tcpSocket", "The number or name of the port.",
		`livenessProbe.tcpSocket = 5432`, `livenessProbe.tcpSocket.port = 5432`,
	},
	{
		"containers.livenessProbe.grpc", "The number of the port.",
		`livenessProbe.grpc = 9000`, `livenessProbe.grpc.port = 9000`,
	},
	{
		"containers.livenessProbe.exec", "The command.",
		`livenessProbe.exec = ["pg_isready"]`, `livenessProbe.exec.command = ["pg_isready"]`,
	},
	{
		"containers.lifecycle.preStop.httpGet", "As in probes.",
		`lifecycle.preStop.httpGet = ":8080/stop"`, `lifecycle.preStop.httpGet = { path = "/stop", port = 8080 }`,
	},
	{
		"containers.lifecycle.preStop.exec", "The command.",
		`lifecycle.preStop.exec = ["nginx", "-s", "quit"]`, `lifecycle.preStop.exec.command = ["nginx", "-s", "quit"]`,
	},
}

// fieldsText has a line for each type and each field: the type, the field, the values that it takes, and its description, with tabs between
// them. The first two are those of the reference page of pod files, which is generated together with it.
//
//go:embed fields.txt
var fieldsText string

// fieldTexts are the lines of fieldsText by "Type" and "Type.field".
var fieldTexts = sync.OnceValue(func() map[string][2]string {
	texts := map[string][2]string{}
	for line := range strings.Lines(fieldsText) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		key := parts[0]
		if parts[1] != "" {
			key += "." + parts[1]
		}
		texts[key] = [2]string{parts[2], parts[3]}
	}
	return texts
})

// Explanation describes a field of a pod file.
type Explanation struct {
	// Path is that of the field, such as containers.ports; empty: it is the pod.
	Path string
	// Type are the values that the field takes.
	Type        string
	Description string
	Forms       []ShortForm
	// Fields are the fields of a table or of the tables of a list.
	Fields []FieldText
}

// FieldText is a field in a list.
type FieldText struct{ Name, Type, Description string }

// shortOnly are the fields that only exist as short forms, by their path.
var shortOnly = map[string][2]string{
	"containers.envFile": {"string", "Env file whose keys become environment variables."},
	"containers.secrets": {"table of strings", "Env files whose keys become environment variables, as secrets."},
}

// Explain describes a field by its path, such as containers.livenessProbe. As in kubectl, the path can begin with pod, and have the keys
// metadata and spec. An empty path is the pod. The error names the field that does not exist.
func Explain(path string) (*Explanation, error) {
	steps := strings.FieldsFunc(strings.ToLower(path), func(r rune) bool { return r == '.' })
	for len(steps) > 0 && slices.Contains([]string{"pod", "pods", "po", "spec", "metadata"}, steps[0]) {
		steps = steps[1:]
	}
	t, e := reflect.TypeFor[Pod](), &Explanation{}
	texts := fieldTexts()
	e.Description = texts["Pod"][1]
	for _, step := range steps {
		step, _, _ = strings.Cut(step, "[")
		names := fieldNames(t, e.Path)
		i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, step) })
		if i < 0 {
			return nil, &FieldError{Path: strings.TrimPrefix(e.Path+"."+step, "."), Hint: didYouMean(step, names)}
		}
		at := strings.TrimPrefix(e.Path+"."+names[i], ".")
		if text, only := shortOnly[containerPath(at)]; only {
			e.Path, e.Type, e.Description, t = at, text[0], text[1], nil
			continue
		}
		text := texts[t.Name()+"."+names[i]]
		e.Path, e.Type, e.Description = at, text[0], text[1]
		t = structOf(t.Field(fieldsOf(t)[names[i]]).Type)
	}
	for _, form := range ShortForms {
		if form.Field != handlerPath(containerPath(e.Path)) {
			continue
		}
		form.Description = strings.ReplaceAll(form.Description, "`", "")
		for _, handler := range []string{"readinessProbe", "startupProbe", "postStart"} {
			if strings.Contains(e.Path, handler) {
				own := strings.NewReplacer("livenessProbe", handler, "preStop", handler)
				form.Short, form.Long = own.Replace(form.Short), own.Replace(form.Long)
			}
		}
		e.Forms = append(e.Forms, form)
	}
	for _, name := range fieldNames(t, e.Path) {
		if text, only := shortOnly[strings.TrimPrefix(containerPath(e.Path)+"."+name, ".")]; only {
			e.Fields = append(e.Fields, FieldText{name, text[0], text[1]})
			continue
		}
		text := texts[t.Name()+"."+name]
		e.Fields = append(e.Fields, FieldText{name, text[0], text[1]})
	}
	return e, nil
}

// FieldError reports a field that does not exist.
type FieldError struct {
	Path string
	Hint string // may be empty
}

func (e *FieldError) Error() string { return fmt.Sprintf("explain %s: no such field", quote(e.Path)) }

// structOf returns the type of the tables of a field, or nil.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[Quantity]() || t == reflect.TypeFor[Port]() {
		return nil
	}
	return t
}

// fieldNames returns the fields of a table in the order of the reference.
func fieldNames(t reflect.Type, path string) []string {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := fieldsOf(t)
	names := fields.names()
	slices.SortFunc(names, func(a, b string) int { return fields[a] - fields[b] })
	for only := range shortOnly {
		if owner, name, _ := strings.Cut(only, "."); owner == containerPath(path) {
			names = append(names, name)
		}
	}
	if n := len(names); t == reflect.TypeFor[Container]() {
		slices.Sort(names[n-len(shortOnly):])
	}
	return names
}

// containerPath returns the path of a field of an init container as that of a container.
func containerPath(path string) string {
	if rest, is := strings.CutPrefix(path, "initContainers"); is {
		return "containers" + rest
	}
	return path
}

// handlerPath returns the path of a field of a probe or a hook as that of the one that ShortForms has.
func handlerPath(path string) string {
	return strings.NewReplacer("readinessProbe", "livenessProbe", "startupProbe", "livenessProbe", "postStart", "preStop").Replace(path)
}
