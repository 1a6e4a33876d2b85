package changetest

import (
	"slices"
	"strings"
)

// keys are the fields of items of config maps and secrets, by the lines of an item.
var keys = []handler{
	{"items[].key", `items = [{ key = %s, path = "x" }]`, `"k"`, `"l"`},
	{"items[].path", `items = [{ key = "k", path = %s }]`, `"x"`, `"y"`},
	{"items[].mode", `items = [{ key = "k", path = "x", mode = %s }]`, "0o600", "0o400"},
}

// files are the fields of files of the downward API.
var files = []handler{
	{"items[].path", `items = [{ path = %s, fieldRef.fieldPath = "metadata.name" }]`, `"x"`, `"y"`},
	{"items[].mode", `items = [{ path = "x", mode = %s, fieldRef.fieldPath = "metadata.name" }]`, "0o600", "0o400"},
	{"items[].fieldRef.fieldPath", `items = [{ path = "x", fieldRef.fieldPath = %s }]`, `"metadata.name"`, `"metadata.uid"`},
	{
		"items[].resourceFieldRef.containerName",
		`items = [{ path = "x", resourceFieldRef = { containerName = %s, resource = "limits.cpu" } }]`,
		`"app"`, `"other"`,
	},
	{
		"items[].resourceFieldRef.resource", `items = [{ path = "x", resourceFieldRef = { containerName = "app", resource = %s } }]`,
		`"limits.cpu"`, `"limits.memory"`,
	},
	{
		"items[].resourceFieldRef.divisor",
		`items = [{ path = "x", resourceFieldRef = { containerName = "app", resource = "limits.memory", divisor = %s } }]`,
		`"1Ki"`, `"1Mi"`,
	},
}

// written are the kinds of volumes whose files are written by the daemon.
var written = []string{"configMap", "secret", "projected", "downwardAPI"}

func volumeTemplates() []template {
	var list []template
	add := func(field, lines, before, after string) *template {
		effect := again
		if kind, _, _ := strings.Cut(field, "."); slices.Contains(written, strings.TrimSuffix(kind, "[]")) {
			effect = inPlace
		}
		list = append(list, template{
			field: "volumes[]." + field, tables: "[[volumes]]\nname = \"v\"\n" + lines + "\n\n" + inlineObjects, before: before,
			after: after, effect: effect,
		})
		return &list[len(list)-1]
	}
	for _, v := range [][2]string{
		{"configMap.defaultMode", `configMap = { name = "a", defaultMode = %s }`},
		{"secret.defaultMode", `secret = { secretName = "a", defaultMode = %s }`},
		{"projected.defaultMode", `projected = { defaultMode = %s, sources = [{ configMap.name = "a" }] }`},
		{"downwardAPI.defaultMode", `downwardAPI = { defaultMode = %s, items = [{ path = "k", fieldRef.fieldPath = "metadata.name" }] }`},
	} {
		t := add(v[0], v[1], "0o600", "0o400")
		t.app, t.effect = `volumeMounts.v = { mountPath = "/v", subPath = "k" }`, restart
	}
	add("name", "", `"a"`, `"b"`).tables = "[[volumes]]\nname = %s\n"
	add("emptyDir.medium", "emptyDir.medium = %s", `""`, `"Memory"`)
	add("emptyDir.mode", "emptyDir.mode = %s", "0o755", "0o700")
	add("emptyDir.sizeLimit", "emptyDir.sizeLimit = %s", `"1Mi"`, `"2Mi"`)
	add("hostPath.path", "hostPath.path = %s", `"/etc"`, `"/usr"`)
	add("hostPath.type", `hostPath = { path = "/usr", type = %s }`, `""`, `"Directory"`)
	add("persistentVolumeClaim.claimName", "persistentVolumeClaim.claimName = %s", `"a"`, `"b"`).fails = true // leaves volumes on the host
	add("persistentVolumeClaim.readOnly", `persistentVolumeClaim = { claimName = "a", readOnly = %s }`, "false", "true").fails = true
	add("image.reference", "image.reference = %s", `"`+Image+`"`, `"localhost/podstead/busybox:2"`).fails = true
	pullPolicy := add("image.pullPolicy", `image = { reference = "`+Image+`", pullPolicy = %s }`, `"IfNotPresent"`, `"Never"`)
	pullPolicy.effect = inPlace
	for _, object := range [][2]string{{"configMap", "name"}, {"secret", "secretName"}} {
		kind, name := object[0], object[1]
		add(kind+"."+name, kind+"."+name+" = %s", `"a"`, `"b"`)
		add(kind+".defaultMode", kind+" = { "+name+` = "a", defaultMode = %s }`, "0o600", "0o400")
		add(kind+".optional", kind+" = { "+name+` = "a", optional = %s }`, "false", "true")
		add("projected.sources[]."+kind+".name", "projected.sources = [{ "+kind+".name = %s }]", `"a"`, `"b"`)
		add("projected.sources[]."+kind+".optional", "projected.sources = [{ "+kind+` = { name = "a", optional = %s } }]`, "false", "true")
		for _, k := range keys {
			add(kind+"."+k.field, kind+" = { "+name+` = "a", `+k.table+" }", k.before, k.after)
			add("projected.sources[]."+kind+"."+k.field, "projected.sources = [{ "+kind+` = { name = "a", `+k.table+" } }]", k.before,
				k.after)
		}
	}
	add("projected.defaultMode", `projected = { defaultMode = %s, sources = [{ configMap.name = "a" }] }`, "0o600", "0o400")
	add("downwardAPI.defaultMode", "downwardAPI = { defaultMode = %s, "+strings.ReplaceAll(files[0].table, "%s", `"x"`)+" }", "0o600",
		"0o400")
	for _, f := range files {
		add("downwardAPI."+f.field, "downwardAPI = { "+f.table+" }", f.before, f.after)
		add("projected.sources[].downwardAPI."+f.field, "projected.sources = [{ downwardAPI = { "+f.table+" } }]", f.before, f.after)
	}
	return append(list, template{field: "volumes", tables: "%s", after: twoVolumes, effect: again})
}

// configTemplates are changes of inline config maps and secrets.
func configTemplates() []template {
	var list []template
	for _, kind := range []string{"configMap", "secret"} {
		object := "[[" + kind + "s]]\nname = \"a\"\n"
		variable := "env.A." + kind + `KeyRef = { name = "a", key = "k" }`
		volume := "\n[[volumes]]\nname = \"v\"\n" + kind + "." + map[string]string{"configMap": "name", "secret": "secretName"}[kind] +
			` = "a"` + "\n"
		for _, t := range []template{
			{field: "name", tables: "[[" + kind + "s]]\nname = %s\ndata.k = \"1\"\n", before: `"a"`, after: `"b"`, effect: inPlace},
			{field: "data", tables: object + "data.k = %s\n", before: `"1"`, after: `"2"`, effect: inPlace},
			{
				field: "data", app: `volumeMounts.v = "/v"`, tables: object + "data.k = %s\n" + volume, before: `"1"`, after: `"2"`,
				effect: inPlace,
			},
			{
				field: "data", app: `volumeMounts.v = { mountPath = "/v", subPath = "k" }`, tables: object + "data.k = %s\n" + volume,
				before: `"1"`, after: `"2"`, effect: restart,
			},
			{field: "data", app: variable, tables: object + "data.k = %s\n", before: `"1"`, after: `"2"`, effect: restart},
			{field: "data", app: variable, tables: object + "data = { k = \"1\", l = %s }\n", before: `"1"`, after: `"2"`, effect: inPlace},
			{
				field: "data", app: "envFrom = [{ " + kind + `Ref.name = "a" }]`, tables: object + "data = { k = \"1\", l = %s }\n",
				before: `"1"`, after: `"2"`, effect: restart,
			},
			{field: "envFile", tables: object + "envFile = %s\n", before: `"a.env"`, after: `"b.env"`, effect: inPlace},
			{field: "envFile", app: variable, tables: object + "envFile = %s\n", before: `"a.env"`, after: `"b.env"`, effect: restart},
			{field: "credential", tables: object + "credential = %s\n", before: `"a"`, after: `"b"`, effect: inPlace},
			{
				field: "credentialFile", tables: object + "credential = \"a\"\ncredentialFile = %s\n",
				before: `"a.cred"`, after: `"b.cred"`, effect: inPlace, fails: true,
			},
			{
				field: "credential", app: "envFrom = [{ secretRef.name = \"a\" }]", tables: object + "credential = %s\n", before: `"a"`,
				after: `"b"`, effect: restart, fails: true,
			},
		} {
			if strings.HasPrefix(t.field, "credential") && kind == "configMap" {
				continue
			}
			if t.field == "credentialFile" {
				t.files = map[string]string{"a.cred": "", "b.cred": ""}
			}
			if t.field == "envFile" {
				t.files = map[string]string{"a.env": "k=1\n", "b.env": "k=2\n"}
			}
			t.field = kind + "s[]." + t.field
			list = append(list, t)
		}
	}
	return list
}
