package spec

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// samples are values of the fields that hints say to set.
var samples = map[string]string{
	"appArmorProfile":          `{ type = "RuntimeDefault" }`,
	"allowPrivilegeEscalation": "false",
	"annotations":              `{ "podstead.io/log-driver" = "journald" }`,
	"capabilities":             `{ drop = ["ALL"] }`,
	"capabilities.add":         `["NET_ADMIN"]`,
	"capabilities.drop":        `["ALL"]`,
	"command":                  `["sh", "-c", "id"]`,
	"configMap":                `{ name = "c" }`,
	"configMapKeyRef":          `{ name = "c", key = "k" }`,
	"configMaps":               `[{ name = "c", data = { k = "v" } }]`,
	"dnsConfig.nameservers":    `["192.0.2.1"]`,
	"dnsConfig.options":        `[{ name = "ndots", value = "2" }]`,
	"dnsConfig.searches":       `["example.com"]`,
	"emptyDir":                 "{}",
	"env":                      `{ A = "1" }`,
	"envFile":                  `[{ name = "c", envFile = "app.env" }]`,
	"envFrom":                  `[{ configMapRef = { name = "c" } }]`,
	"exec":                     `{ command = ["true"] }`,
	"fsGroup":                  "1000",
	"devices":                  `["/dev/ttyS0"]`,
	"hostAliases":              `[{ ip = "192.0.2.1", hostnames = ["db"] }]`,
	"hostIPC":                  "true",
	"hostNetwork":              "true",
	"hostPID":                  "true",
	"hostPath":                 `{ path = "/srv" }`,
	"hostUsers":                "false",
	"hostname":                 `"shop"`,
	"httpGet":                  "{ port = 80 }",
	"image":                    `"busybox:1"`,
	"imageArchives":            `["shop.tar"]`,
	"imagePullPolicy":          `"Always"`,
	"labels":                   `{ a = "b" }`,
	"livenessProbe":            `{ exec = { command = ["true"] } }`,
	"name":                     `"shop"`,
	"persistentVolumeClaim":    `{ claimName = "data" }`,
	"postStart":                `{ exec = { command = ["true"] } }`,
	"preStop":                  `{ exec = { command = ["true"] } }`,
	"readOnly":                 "true",
	"readOnlyRootFilesystem":   "true",
	"readinessProbe":           `{ tcpSocket = { port = 80 } }`,
	"resources":                `{ limits = { memory = "64Mi" } }`,
	"resources.limits":         `{ memory = "64Mi" }`,
	"resources.limits.cpu":     `"500m"`,
	"resources.limits.memory":  `"64Mi"`,
	"restartPolicy":            `"Never"`,
	"runAsGroup":               "1000",
	"keepID":                   "1000",
	"pidsLimit":                "100",
	"runtimeClassName":         `"untrusted"`,
	"runAsUser":                "1000",
	"scheme":                   `"HTTPS"`,
	"seccompProfile":           `{ type = "RuntimeDefault" }`,
	"secret":                   `{ name = "s" }`,
	"secretKeyRef":             `{ name = "s", key = "k" }`,
	"secrets":                  `[{ name = "s", data = { k = "v" } }]`,
	"shareProcessNamespace":    "true",
	"shmSize":                  `"128Mi"`,
	"sleep":                    "{ seconds = 1 }",
	"startupProbe":             "{ httpGet = { port = 80 } }",
	"stdin":                    "true",
	"stopSignal":               `"SIGINT"`,
	"subdomain":                `"shop"`,
	"supplementalGroups":       "[44]",
	"sysctls":                  `[{ name = "net.ipv4.ip_unprivileged_port_start", value = "0" }]`,

	"resources.limits.ephemeral-storage": `"1Gi"`,
	"resources.requests.cpu":             `"500m"`,
	"resources.requests.memory":          `"64Mi"`,
	"terminationGracePeriodSeconds":      "5",
	"ulimits":                            `["nofile=1024:65536"]`,
	"update":                             "{ minReadySeconds = 5 }",
	"update.readyWithinSeconds":          "60",
	"volumeMounts":                       `{ v = "/v" }`,
	"volumes":                            `[{ name = "v", persistentVolumeClaim = { claimName = "data" } }]`,
	"waitFor":                            `["pod:db:ready"]`,
}

// placed is a field that a hint says to set, in the table "pod" or "container", or in that of the wrong field: "".
type placed struct{ path, in string }

var (
	instruction = regexp.MustCompile(`\bset ([^;:]+)`)
	asides      = regexp.MustCompile(`,? (with|such as|for|to|high) [^,]*`)
	entries     = regexp.MustCompile(` in an entry of [a-zA-Z]+ or [a-zA-Z]+`)
	alternative = regexp.MustCompile(`,? (?:and|or) (?:set )?|, `)
	inPod       = regexp.MustCompile(` (of|in) (the pod|pods)\b`)
	inContainer = regexp.MustCompile(` (in|of) (a container|the container|containers)\b`)
)

// fieldsIn returns the fields that a hint says to set. One without a place is in that of the one before it, or of the one after it.
func fieldsIn(hint string) (fields []placed) {
	m := instruction.FindStringSubmatch(strings.Replace(hint, "set the annotation podstead.io/log-driver", "set annotations", 1))
	if m != nil && strings.Contains(m[1], " in securityContext") {
		m[1] = regexp.MustCompile(`([a-z]\w+[A-Z]\w+)(,| and| or| in)`).ReplaceAllString(m[1], "securityContext.$1$2")
	}
	if m == nil || strings.HasPrefix(m[1], "the ") {
		return nil
	}
	text, in := entries.ReplaceAllString(asides.ReplaceAllString(m[1], ""), ""), ""
	for _, part := range alternative.Split(text, -1) {
		path, _, _ := strings.Cut(part, " ")
		switch {
		case strings.Contains(part, "podstead.toml"), !allKeys(reflect.TypeFor[Pod](), map[string]bool{})[strings.Split(path, ".")[0]]:
			continue // a setting, or a word
		case inPod.MatchString(part):
			in = "pod"
		case inContainer.MatchString(part):
			in = "container"
		}
		fields = append(fields, placed{path, in})
	}
	for i := range fields {
		next := slices.IndexFunc(fields, func(f placed) bool { return f.in != "" })
		if fields[i].in == "" && next >= 0 {
			fields[i].in = fields[next].in
		}
	}
	return fields
}

// sample returns a line that sets a field.
func sample(path string) (line string, ok bool) {
	value, ok := samples[path]
	if prefix, last, found := strings.Cut(path, "."); !ok && found && (prefix == "securityContext" || prefix == "lifecycle") {
		value, ok = samples[last]
	}
	if path == "envFile" {
		path = "configMaps"
	}
	return path + " = " + value, ok
}

// corrected returns a pod file in which a line is in the pod or in the container, in place of the one that sets the same field.
func corrected(in, path, line string) string {
	lines := map[string]map[string]string{
		"pod":       {"name": "name = \"web\"\n", "volumes": "volumes = [{ name = \"v\", emptyDir = {} }]\n"},
		"container": {"name": "name = \"app\"\n", "image": "image = \"busybox\"\n"},
	}
	lines[in][path] = line + "\n"
	text := func(in string) string { return strings.Join(slices.Sorted(maps.Values(lines[in])), "") }
	return text("pod") + "[[containers]]\n" + text("container")
}

// tables are places for a field of each table that has refused fields, in the pod or in the container.
var tables = map[reflect.Type][2]string{
	reflect.TypeFor[Pod]():                {"pod", `%s`},
	reflect.TypeFor[Container]():          {"container", `%s`},
	reflect.TypeFor[EnvVarSource]():       {"container", `env.A = { %s }`},
	reflect.TypeFor[LifecycleHandler]():   {"container", `lifecycle.preStop = { %s }`},
	reflect.TypeFor[Resources]():          {"container", `resources = { %s }`},
	reflect.TypeFor[PodSecurityContext](): {"pod", `securityContext = { %s }`},
	reflect.TypeFor[SecurityContext]():    {"container", `securityContext = { %s }`},
	reflect.TypeFor[HTTPGetAction]():      {"container", `livenessProbe.httpGet = { port = 80, %s }`},
	reflect.TypeFor[GRPCAction]():         {"container", `livenessProbe.grpc = { port = 80, %s }`},
	reflect.TypeFor[VolumeMount]():        {"container", `volumeMounts = [{ name = "v", mountPath = "/v", %s }]`},
	reflect.TypeFor[Volume]():             {"pod", `volumes = [{ name = "v", %s }]`},
	reflect.TypeFor[EmptyDirVolume]():     {"pod", `volumes = [{ name = "v", emptyDir = { %s } }]`},
	reflect.TypeFor[ConfigMapVolume]():    {"pod", `volumes = [{ name = "v", configMap = { name = "c", %s } }]`},
	reflect.TypeFor[SecretVolume]():       {"pod", `volumes = [{ name = "v", secret = { secretName = "s", %s } }]`},
	reflect.TypeFor[KeyToPath]():          {"pod", `volumes = [{ name = "v", configMap = { items = [{ key = "k", path = "k", %s }] } }]`},
	reflect.TypeFor[ProjectedVolume]():    {"pod", `volumes = [{ name = "v", projected = { sources = [{ secret.name = "s" }], %s } }]`},
	reflect.TypeFor[Projection]():         {"pod", `volumes = [{ name = "v", projected = { sources = [{ %s }] } }]`},
	reflect.TypeFor[DownwardAPIVolume]():  {"pod", `volumes = [{ name = "v", downwardAPI = { %s } }]`},
	reflect.TypeFor[DownwardFile](): {
		"pod", `volumes = [{ name = "v", downwardAPI = { items = [{ path = "p", fieldRef.fieldPath = "metadata.name", %s }] } }]`,
	},
}

const (
	inMemory = `volumes = [{ name = "v", emptyDir = { medium = "Memory", sizeLimit = "64Mi" } }]`
	fromHost = `volumes = [{ name = "v", hostPath = { path = "/srv" } }]`
	hook     = `lifecycle.preStop.exec.command = ["true"]`
	prepares = `initContainers = [{ name = "a", image = "busybox", volumeMounts = [{ name = "v", mountPath = "/v" }] }]`
)

// otherWays are what hints say that name no field to set: lines in the pod or in the container. Those of [nothingToWrite] say no more.
var otherWays = map[string][2]string{
	"change the mode in an entry of initContainers":                       {"pod", prepares},
	"clone the repository in an entry of initContainers into an emptyDir": {"pod", prepares},
	composeWords["develop"]:                                               {"pod", fromHost},
	composeWords["driveropts"]:                                            {"pod", fromHost},
	composeWords["tmpfs"]:                                                 {"pod", inMemory},
	composeWords["useapisocket"]:                                          {"pod", fromHost},
	composeWords["volumesfrom"]:                                           {"container", `volumeMounts = { v = "/v" }`},
	envFileShortHint:                                                      {"container", `envFile = "FILE"`},
	linksHint:                                                             {"pod", "hostAliases = " + samples["hostAliases"]},
	"probe with exec, or on a port without TLS":                           {"container", `livenessProbe.exec.command = ["true"]`},
	"set the fields for Linux, such as runAsUser":                         {"pod", "securityContext.runAsUser = 1000"},
	"write a preStop hook":                                                {"container", hook},
}

// nothingToWrite matches hints that name no field of a pod file, and the places that TestMisplacedHints follows. Those to settings are
// followed by TestHintsOfSettings of the program.
var nothingToWrite = regexp.MustCompile(
	`^(omit it|apply the file|not supported: (it is|the pod|limits are|run)|write (a pod|all|each|the)|run the|start the|` +
		`set it in|set [\w.]+ in podstead.toml)`)

// followed checks that a pod file without problems does what a hint says. Fields without a place are in the table of the wrong key.
func followed(t *testing.T, hint string, table reflect.Type) {
	t.Helper()
	check := func(in, path, line string) {
		if pod, problems := Parse("web.toml", []byte(corrected(in, path, line))); pod == nil || len(problems) > 0 {
			t.Errorf("hint %q: %s in the %s:\n%v", hint, line, in, problems)
		}
	}
	fields := fieldsIn(hint)
	for _, f := range fields {
		line, ok := sample(f.path)
		if !ok {
			t.Errorf("hint %q: no sample of %s", hint, f.path)
			continue
		}
		if f.in == "" {
			f.in, line = tables[table][0], fmt.Sprintf(tables[table][1], line)
		}
		path, _, _ := strings.Cut(line, " = ")
		check(f.in, path, line)
	}
	way, known := otherWays[hint]
	if path, _, _ := strings.Cut(way[1], " = "); known {
		check(way[0], path, way[1])
	}
	if len(fields) == 0 && !known && !nothingToWrite.MatchString(hint) && hint != "" {
		t.Errorf("hint %q is not followed: add what it says to otherWays", hint)
	}
}

// TestHintsOfWordsAreFollowed writes each word of Compose into the pod and into a container, and follows its hints.
func TestHintsOfWordsAreFollowed(t *testing.T) {
	for word := range composeWords {
		for name, table := range map[string]reflect.Type{"": reflect.TypeFor[Pod](), "app": reflect.TypeFor[Container]()} {
			t.Run(word+" "+name, func(t *testing.T) {
				followed(t, hintOf(name, word), table)
				followed(t, composeWords[word], table) // lists of Compose have it too
			})
		}
	}
}

// TestHintsOfRefusalsAreFollowed writes each field that is refused at its place, and follows its hint.
func TestHintsOfRefusalsAreFollowed(t *testing.T) {
	for table, fields := range omitted {
		for key, refused := range fields {
			t.Run(table.Name()+" "+key, func(t *testing.T) {
				line := fmt.Sprintf(tables[table][1], key+" = \"x\"")
				path, _, _ := strings.Cut(line, " = ")
				_, problems := Parse("web.toml", []byte(corrected(tables[table][0], path, line)))
				isRefused := func(p Problem) bool { return strings.HasSuffix(p.Path, key) && p.Hint == refused.hint }
				if !slices.ContainsFunc(problems, isRefused) {
					t.Fatalf("%s is not refused with the hint %q:\n%v", line, refused.hint, problems)
				}
				followed(t, refused.hint, table)
			})
		}
	}
}
