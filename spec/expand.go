package spec

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// expand rewrites the table forms of env and volumeMounts into the Kubernetes
// arrays, in the order of the file:
//
//	env.NAME = "value"                   env[].name, env[].value
//	env.NAME.secretKeyRef = {...}        env[].name, env[].valueFrom.secretKeyRef
//	volumeMounts.VOLUME = "/path"        volumeMounts[].name, volumeMounts[].mountPath
//	volumeMounts.VOLUME = {...}          volumeMounts[].name and the table's keys
//
// In TOML it rewrites the short forms too:
//
//	ports = ["8080:80"]                  ports[].containerPort, ports[].hostPort
//	devices = ["/dev/ttyUSB0"]           devices[].path
//	ulimits = ["nofile=1024:65536"]      ulimits[].name, ulimits[].soft, ulimits[].hard
//	httpGet = ":8080/healthz"            httpGet.path, httpGet.port
//	tcpSocket = 5432                     tcpSocket.port
//	grpc = 9000                          grpc.port
//	exec = ["true"]                      exec.command
//	volumes.NAME = "./html"              volumes[].name, volumes[].hostPath.path
//	volumes.NAME = {}                    volumes[].name, volumes[].persistentVolumeClaim.claimName
//	volumes.NAME = {...}                 volumes[].name and the table's keys
//	secrets.NAME = "db.env"              secrets[].name, secrets[].envFile
//	secrets.NAME = {...}                 secrets[].name and the table's keys
//
// and in a container:
//
//	secrets.NAME = "db.env"              secrets[].name, secrets[].envFile of the pod, and envFrom[].secretRef.name
//	envFile = "app.env"                  configMaps[].name, configMaps[].envFile of the pod, and envFrom[].configMapRef.name
func expand(root *node, f format) Problems {
	x := &expander{root: root, format: f}
	if f == formatTOML {
		x.volumes(root.child("volumes"))
		x.secrets(root.child("secrets"))
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			x.container(c)
		}
	}
	return x.problems
}

type expander struct {
	root     *node
	format   format
	problems Problems
}

// fail reports a problem of a short form. The decoder skips the value.
func (x *expander) fail(n *node, message, hint string) {
	n.failed, n.broken = true, true
	x.problems = append(x.problems, Problem{Line: n.at.line, Column: n.at.column, Path: n.path(), Message: message, Hint: hint})
}

func (x *expander) container(c *node) {
	x.tables(c)
	if x.format != formatTOML || c.kind != kindTable {
		return
	}
	x.ports(c.child("ports"))
	x.devices(c.child("devices"))
	x.ulimits(c.child("ulimits"))
	for _, h := range handlers(c) {
		x.action(h, c.child("ports"))
	}
	x.sources(c)
}

// tables expands the table forms of env and volumeMounts.
func (x *expander) tables(c *node) {
	if env := c.child("env"); env != nil && env.kind == kindTable {
		for e, value := range toArray(env) {
			expandVariable(e, value)
		}
	}
	if mounts := c.child("volumeMounts"); mounts != nil && mounts.kind == kindTable {
		for e, value := range toArray(mounts) {
			if value.kind == kindTable {
				x.fields(e, value, "volume")
				continue
			}
			value.label = value.key
			e.put("mountPath", value)
		}
	}
}

// toArray turns a table into an array. It yields the new element and the value
// of each key.
func toArray(n *node) iter.Seq2[*node, *node] {
	values := n.items
	n.kind, n.items, n.index = kindArray, nil, nil
	return func(yield func(e, value *node) bool) {
		for _, value := range values {
			e := newTable(n)
			e.at, e.keyAt = value.at, value.keyAt
			n.appendItem(e)
			e.segment = value.segment
			e.put("name", &node{kind: kindString, value: value.key, at: value.keyAt, keyAt: value.keyAt})
			if !yield(e, value) {
				return
			}
		}
	}
}

// put adds a field that is not written in the file. Its path is that of n.
func (n *node) put(key string, c *node) {
	n.add(key, c)
	c.segment = ""
}

// putTable is put for a table.
func (n *node) putTable(key string) *node {
	c := newTable(n)
	c.at, c.keyAt = n.at, n.keyAt
	n.put(key, c)
	return c
}

// putPairs adds fields that are written as one value, with its position.
func (n *node) putPairs(pairs []pair) {
	for _, p := range pairs {
		c := &node{kind: kindString, value: p.value, at: n.at, keyAt: n.keyAt}
		if number, is := p.value.(int64); is {
			c.kind, c.text = kindInteger, fmt.Sprint(number)
		}
		n.put(p.key, c)
	}
}

// putName adds the name of an object that has been checked elsewhere.
func (n *node) putName(key, name string) {
	n.put(key, &node{kind: kindString, value: name, at: n.at, keyAt: n.keyAt, failed: true})
}

// toTable turns a value into an empty table, and returns the value.
func (n *node) toTable() *node {
	value := &node{kind: n.kind, at: n.at, keyAt: n.keyAt, value: n.value, text: n.text, size: n.size, items: n.items}
	for _, c := range value.items {
		c.parent = value
	}
	n.kind, n.value, n.text, n.items, n.index = kindTable, nil, "", nil, map[string]*node{}
	return value
}

func expandVariable(e, value *node) {
	if value.kind == kindTable {
		e.put("valueFrom", value)
		return
	}
	value.label = value.key
	e.put("value", value)
}

// fields moves the keys of a table to the element that stands for it.
func (x *expander) fields(e, value *node, owner string) {
	e.at, e.header = value.at, value.header
	for _, c := range value.items {
		if c.key == "name" {
			x.problems = append(x.problems,
				problemAt(c, "Forbidden: the key of the table is the name of the "+owner, "delete this line"))
			continue
		}
		e.add(c.key, c)
	}
}

// isElement reports whether a table is meant to be an element of an array, as [volumes] in place of [[volumes]]: it has a name, and all of
// its keys are fields of the element.
func isElement(n *node, t reflect.Type) bool {
	fields := fieldsOf(t)
	unknown := func(c *node) bool { _, known := fields[c.key]; return !known }
	name := n.child("name")
	return name != nil && name.kind == kindString && !slices.ContainsFunc(n.items, unknown)
}

func (x *expander) volumes(list *node) {
	if list == nil || list.kind != kindTable || isElement(list, reflect.TypeFor[Volume]()) {
		return
	}
	for e, value := range toArray(list) {
		text, isString := value.value.(string)
		switch {
		case value.kind == kindTable && len(value.items) == 0:
			e.putTable("persistentVolumeClaim").putName("claimName", value.key)
		case value.kind == kindTable:
			x.fields(e, value, "volume")
		case value.kind == kindString && isString && isShortPath(text):
			e.putTable("hostPath").put("path", value)
		case value.kind == kindString:
			hint := volumeHint(text)
			e.put("hostPath", value)
			x.fail(value, "Invalid value: "+quote(text)+": must be a path that begins with /, ./ or ../", hint)
		default:
			e.put("hostPath", value)
			x.fail(value, "must be a path of the host or a table, found "+value.describe(), "")
		}
	}
}

// volumeHint tells what to write for a volume whose value is no path.
func volumeHint(text string) string {
	const claim = "write {} for a persistent volume"
	if text == "" || len(text) > 64 || strings.HasPrefix(text, "~") || strings.ContainsAny(text, "$:") {
		return claim
	}
	return claim + ", or " + quote("./"+text) + " for a directory beside the pod file"
}

func (x *expander) secrets(list *node) {
	if list == nil || list.kind != kindTable || isElement(list, reflect.TypeFor[Secret]()) {
		return
	}
	for e, value := range toArray(list) {
		if value.kind == kindTable {
			x.fields(e, value, "secret")
			continue
		}
		e.put("envFile", value)
		x.isEnvFile(value)
	}
}

// ports expands the elements of ports that are strings.
func (x *expander) ports(list *node) {
	if list == nil {
		return
	}
	if list.kind == kindString || list.kind == kindInteger {
		text := list.text
		if s, isString := list.value.(string); isString {
			text = s
		}
		hint := ""
		if _, message, _ := parsePort(text); message == "" {
			hint = "write ports = [" + quote(text) + "]"
		}
		x.fail(list, "must be an array, found "+list.describe(), hint)
		return
	}
	if list.kind != kindArray {
		return
	}
	for _, n := range list.items {
		switch n.kind { //nolint:exhaustive // the decoder reports other kinds
		case kindString:
			text, _ := n.value.(string)
			pairs, message, hint := parsePort(text)
			if message != "" {
				x.fail(n, message, hint)
				continue
			}
			n.toTable()
			n.putPairs(pairs)
		case kindInteger:
			hint := ""
			if _, message, _ := parsePort(n.text); message == "" {
				hint = "write " + quote(n.text)
			}
			x.fail(n, "must be a table or a string, found "+n.describe(), hint)
		}
	}
}

// action expands the actions of a probe or a hook.
func (x *expander) action(h, ports *node) {
	if n := h.child("exec"); n != nil {
		switch text, isString := n.value.(string); {
		case n.kind == kindArray:
			n.put("command", n.toTable())
		case isString:
			hint := ""
			if len(text) <= 64 {
				hint = "write exec = [" + strings.Join(words(text), ", ") + "]"
			}
			x.fail(n, "must be an array of strings or a table, found "+n.describe(), hint)
		}
	}
	if n := h.child("httpGet"); n != nil {
		switch n.kind { //nolint:exhaustive // the decoder reports other kinds
		case kindString:
			text, _ := n.value.(string)
			pairs, message, hint := parseRequest(text, ports)
			if message != "" {
				x.fail(n, message, hint)
				break
			}
			n.toTable()
			n.putPairs(pairs)
		case kindInteger:
			x.fail(n, "must be a string or a table, found "+n.describe(), "write httpGet = "+quote(":"+n.text+"/"))
		}
	}
	if n := h.child("tcpSocket"); n != nil && (n.kind == kindInteger || n.kind == kindString) && hasField(h, "tcpSocket") {
		if text, isString := n.value.(string); isString {
			if port, message := parsePortOrName(strings.TrimPrefix(text, ":")); message == "" && (text[0] == ':' || port != any(text)) {
				hint := fmt.Sprintf("write tcpSocket = %v", port)
				if name, isName := port.(string); isName {
					hint = "write tcpSocket = " + quote(name)
				}
				x.fail(n, "Invalid value: "+quote(text)+": must be a port number or name", hint)
				return
			}
		}
		n.put("port", n.toTable())
	}
	if n := h.child("grpc"); n != nil {
		switch text, isString := n.value.(string); {
		case n.kind == kindInteger:
			n.put("port", n.toTable())
		case isString:
			hint := ""
			if isNumber(strings.TrimPrefix(text, ":")) {
				hint = "write grpc = " + strings.TrimPrefix(text, ":")
			}
			x.fail(n, "must be a port number or a table, found "+n.describe(), hint)
		}
	}
}

// hasField reports whether a probe has an action. Hooks have fewer.
func hasField(h *node, key string) bool {
	t := reflect.TypeFor[Probe]()
	if h.key == "postStart" || h.key == "preStop" {
		t = reflect.TypeFor[LifecycleHandler]()
	}
	_, ok := fieldsOf(t)[key]
	return ok
}

// sources expands envFile and secrets of a container: the files become config maps and secrets of the pod, and their keys variables of the
// container, in the order of the file with envFrom.
func (x *expander) sources(c *node) {
	envFile, secrets := c.child("envFile"), c.child("secrets")
	if secrets != nil && secrets.kind != kindTable {
		secrets = nil // the decoder reports it
	}
	if envFile != nil && envFile.kind != kindString {
		envFile.fields = nil
		c.remove("envFile")
		envFile.parent = c
		hint := ""
		if isComposeList(envFile) {
			hint = "write envFile for one file, and envFrom with entries of configMaps for more"
		}
		x.fail(envFile, "must be a string, found "+envFile.describe(), hint)
		envFile = nil
	}
	if envFile == nil && secrets == nil {
		return
	}
	from := c.child("envFrom")
	if from != nil && from.kind != kindArray {
		return // the decoder reports it
	}
	var list []*node
	order := slices.Clone(c.items)
	c.remove("envFile")
	c.remove("secrets")
	for _, item := range order {
		switch {
		case item == from && from != nil:
			list = append(list, from.items...)
		case item == envFile && envFile != nil:
			if name := envFileName(str(envFile)); name == "" {
				x.fail(envFile, "the name of the file is no name of a config map: "+quote(str(envFile)),
					"write configMaps in the pod, and envFrom in the container")
			} else if x.declare("configMaps", name, envFile) {
				list = append(list, referTo("configMapRef", name, envFile))
			}
		case item == secrets && secrets != nil:
			for _, value := range slices.Clone(secrets.items) {
				if name := value.key; x.isEnvFile(value) && x.declare("secrets", name, value) {
					list = append(list, referTo("secretRef", name, value))
				}
			}
		}
	}
	c.remove("envFrom")
	if from == nil {
		from = &node{kind: kindArray, at: c.at, keyAt: cmp.Or(envFile, secrets).keyAt}
		from.segment = ".envFrom"
	}
	c.add("envFrom", from)
	first := slices.IndexFunc(order, func(item *node) bool { return item == envFile || item == secrets || item == from })
	last := len(c.items) - 1
	c.items = slices.Insert(c.items[:last], min(first, last), from)
	from.items = nil
	for _, e := range list {
		segment := e.segment
		from.appendItem(e)
		if segment != "" {
			e.segment = segment
		}
	}
}

// isEnvFile reports whether the value of a secret is the path of a file. No message has another value: it may be the secret.
func (x *expander) isEnvFile(value *node) bool {
	if value.kind == kindString && str(value) != "" {
		return true
	}
	hint := "write the values into a file, and its path here"
	if value.kind == kindTable {
		hint = "write the table in secrets of the pod, and envFrom in the container"
	}
	x.fail(value, "must be the path of a file with lines KEY=value, found "+value.kind.String(), hint)
	return false
}

func str(n *node) string {
	s, _ := n.value.(string)
	return s
}

// referTo returns an element of envFrom for a value of a short form.
func referTo(kind, name string, value *node) *node {
	e := newTable(nil)
	e.at, e.keyAt, e.movedFrom = value.at, value.keyAt, value.path()
	e.putTable(kind).putName("name", name)
	return e
}

// declare adds a config map or a secret with an env file to the pod, unless it is there with the same file.
func (x *expander) declare(list, name string, value *node) bool {
	all := x.root.child(list)
	if all == nil {
		all = &node{kind: kindArray, at: value.at, keyAt: value.keyAt}
		x.root.add(list, all)
	}
	if all.kind != kindArray {
		return false // the decoder reports it
	}
	for _, e := range all.items {
		if e.kind != kindTable || e.child("name") == nil || str(e.child("name")) != name {
			continue
		}
		file := e.child("envFile")
		if file == nil || len(e.items) != 2 || filepath.Clean(str(file)) != filepath.Clean(str(value)) {
			x.fail(value, fmt.Sprintf("Duplicate value: %s: line %d declares it with another content", quote(name), e.keyAt.line),
				redeclared(list, name))
			return false
		}
		file.twins = append(file.twins, value)
		return true
	}
	value.movedFrom = value.path()
	e := newTable(nil)
	e.at, e.keyAt, e.movedFrom = value.at, value.keyAt, value.movedFrom
	e.put("name", &node{kind: kindString, value: name, at: value.keyAt, keyAt: value.keyAt})
	e.put("envFile", value)
	all.appendItem(e)
	return true
}

func redeclared(list, name string) string {
	ref := map[string]string{"configMaps": "configMapRef", "secrets": "secretRef"}[list]
	return fmt.Sprintf("use another name, or write envFrom = [{ %s = { name = %s } }] for that one", ref, quote(name))
}
