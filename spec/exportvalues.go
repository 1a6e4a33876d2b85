package spec

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
)

// values adds the config maps and secrets of a pod, and reports those that are not in its file.
func (x *exporter) values(p *exportedPod) {
	defined := map[string]bool{}
	for i, n := range items(p.root.child("configMaps")) {
		c := &p.pod.ConfigMaps[i]
		defined["ConfigMap "+c.Name] = true
		x.value(p, n, "ConfigMap", c.Name, c.Data)
	}
	for i, n := range items(p.root.child("secrets")) {
		s := &p.pod.Secrets[i]
		defined["Secret "+s.Name] = true
		data := make(map[string]string, len(s.Data))
		for key, value := range s.Data {
			data[key] = string(value)
		}
		switch {
		case s.CredentialName() != "":
			w := warnAt(n, "the Secret is not written: the host has its value in a credential")
			w.Hint = "create it with kubectl create secret generic " + s.Name + " --from-file=" + s.CredentialName() + "=FILE"
			x.problems = append(x.problems, w)
		case !x.secrets:
			w := warnAt(n, "the Secret is not written, because it has values")
			w.Hint = "add --secrets, or create it with kubectl create secret generic " + s.Name
			if s.EnvFile != "" && n.child("data") == nil {
				file := printable(textOf(n.child("envFile")))
				w.Hint = "add --secrets, or create it with kubectl create secret generic " + s.Name + " --from-env-file=" + file
			}
			x.problems = append(x.problems, w)
		default:
			x.value(p, n, "Secret", s.Name, data)
		}
	}
	p.root.remove("configMaps")
	p.root.remove("secrets")
	for _, list := range []string{"initContainers", "containers", "volumes", "imagePullSecrets"} {
		for config, n := range references(p.root.child(list)) {
			kind, name := "Secret", textOf(n)
			if config {
				kind = "ConfigMap"
			}
			if defined[kind+" "+name] || name == "" {
				continue
			}
			defined[kind+" "+name] = true
			w := warnAt(n, "the "+kind+" is not written: it is not in the file")
			w.Hint = "create it with kubectl create secret generic " + name + " --from-file=/etc/podstead/secrets/" + name
			if config {
				w.Hint = "create it with kubectl create configmap " + name + " --from-file=/etc/podstead/configmaps/" + name
			}
			x.problems = append(x.problems, w)
		}
	}
}

// value adds a ConfigMap or a Secret. The keys have the order of the file, those of an env file come last.
func (x *exporter) value(p *exportedPod, n *node, kind, name string, data map[string]string) {
	table := keyedTable("data")
	var keys []string
	comments := map[string]*node{}
	for _, c := range items(n.child("data")) {
		keys = append(keys, c.key)
		comments[c.key] = c
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if comments[key] == nil {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		text := data[key]
		if kind == "Secret" { // not stringData: server-side apply does not remove its keys
			text = base64.StdEncoding.EncodeToString([]byte(text))
		}
		c := keyedText(key, text)
		if written := comments[key]; written != nil {
			c.above, c.beside = written.above, written.beside
		}
		table.items = append(table.items, c)
	}
	fields := []*node{table}
	if kind == "Secret" {
		for key, kind := range secretTypes {
			if _, has := data[key]; has {
				fields = []*node{keyedText("type", kind), table}
			}
		}
	}
	if !x.add(kind, name, p, data, fields...) {
		if first := x.owners[kind+"/"+name]; !maps.Equal(first.data, data) {
			message := fmt.Sprintf("Duplicate value: pod %s has a %s %s with other values, and the pods of a cluster share it",
				quote(first.pod), kind, quote(name))
			x.problems = append(x.problems, problemAt(n, message, "rename one of them"))
		}
		return
	}
	x.objects[len(x.objects)-1].above = n.above
}

// secretTypes are the types that imagePullSecrets need, by key.
var secretTypes = map[string]string{
	".dockerconfigjson": "kubernetes.io/dockerconfigjson",
	".dockercfg":        "kubernetes.io/dockercfg",
}
