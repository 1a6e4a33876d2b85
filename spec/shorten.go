package spec

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
)

// shorten replaces the long forms of an expanded tree by the short ones where there is one. expand gives the same tree back, but for the
// order of the keys of tables.
func shorten(root *node) {
	shortenSources(root)
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			if c.kind != kindTable {
				continue
			}
			toKeys(c.child("env"), nil, shortVariable)
			toKeys(c.child("volumeMounts"), nil, shortMount)
			for _, p := range items(c.child("ports")) {
				if text, ok := portText(p); ok {
					p.setValue(kindString, text)
				}
			}
			for _, u := range items(c.child("ulimits")) {
				if text, ok := ulimitText(u); ok {
					u.setValue(kindString, text)
				}
			}
			for _, d := range items(c.child("devices")) {
				for _, key := range []string{"path", "cdi"} {
					if values, ok := d.only(key); ok && values[0] != nil && values[0].kind == kindString {
						d.setValue(kindString, str(values[0]))
						break
					}
				}
			}
			for _, h := range handlers(c) {
				shortenAction(h)
			}
		}
	}
	toKeys(root.child("volumes"), reflect.TypeFor[Volume](), shortVolume)
	toKeys(root.child("secrets"), reflect.TypeFor[Secret](), shortSecret)
}

// setValue makes a node a scalar.
func (n *node) setValue(k kind, value any) {
	n.kind, n.value, n.text, n.items, n.index, n.canonical = k, value, fmt.Sprint(value), nil, nil, ""
}

// only returns the values of the keys of a table, in their order, and whether it has no other keys. A missing key is nil.
func (n *node) only(keys ...string) (values []*node, ok bool) {
	if n == nil || n.kind != kindTable {
		return nil, false
	}
	found := 0
	for _, key := range keys {
		c := n.child(key)
		if c != nil {
			found++
		}
		values = append(values, c)
	}
	return values, found == len(n.items)
}

// toKeys turns an array of tables into a table by their names, if all of them have a short form and a name of their own. short returns the
// value of an element without its name, or nil.
func toKeys(list *node, t reflect.Type, short func(e *node) *node) {
	if list == nil || list.kind != kindArray || len(list.items) == 0 {
		return
	}
	table := newTable(nil)
	for _, e := range list.items {
		name := e.child("name")
		if name == nil || name.kind != kindString || table.child(str(name)) != nil {
			return
		}
		value := short(e)
		if value == nil {
			return
		}
		value.above, value.beside, value.keyAt = e.above, e.beside, e.keyAt
		value.segment = ""
		table.add(str(name), value)
	}
	if t != nil && isElement(table, t) {
		return
	}
	list.kind, list.items, list.index = kindTable, nil, map[string]*node{}
	for _, c := range table.items {
		c.segment = ""
		list.add(c.key, c)
	}
}

// withoutName returns a table without its name.
func withoutName(e *node) *node {
	c := newTable(nil)
	c.at, c.keyAt = e.at, e.keyAt
	for _, field := range e.items {
		if field.key != "name" {
			c.items, c.index[field.key] = append(c.items, field), field
		}
	}
	return c
}

func shortVariable(e *node) *node {
	values, ok := e.only("name", "value", "valueFrom")
	switch {
	case !ok || len(e.items) != 2:
		return nil
	case values[1] != nil && values[1].kind == kindString:
		return copyOf(values[1])
	case values[2] != nil && values[2].kind == kindTable && len(values[2].items) > 0:
		return copyOf(values[2])
	}
	return nil
}

func copyOf(n *node) *node {
	c := *n
	return &c
}

func shortMount(e *node) *node {
	if values, ok := e.only("name", "mountPath"); ok && values[1] != nil && values[1].kind == kindString {
		return copyOf(values[1])
	}
	return withoutName(e)
}

func shortVolume(e *node) *node {
	if len(e.items) == 1 { // an emptyDir, which has no short form
		return nil
	}
	if values, ok := e.only("name", "hostPath"); ok {
		if path, ok := values[1].only("path"); ok && path[0] != nil && path[0].kind == kindString && isShortPath(str(path[0])) {
			return copyOf(path[0])
		}
	}
	if values, ok := e.only("name", "persistentVolumeClaim"); ok {
		claim, ok := values[1].only("claimName")
		if ok && claim[0] != nil && claim[0].kind == kindString && str(claim[0]) == str(e.child("name")) {
			return newTable(nil)
		}
	}
	return withoutName(e)
}

func shortSecret(e *node) *node {
	if values, ok := e.only("name", "envFile"); ok && values[1] != nil && values[1].kind == kindString && str(values[1]) != "" {
		return copyOf(values[1])
	}
	return withoutName(e)
}

// portText returns the short form of an entry of ports.
func portText(p *node) (string, bool) {
	values, ok := p.only("containerPort", "hostPort", "hostIP", "protocol")
	if !ok || values[0] == nil {
		return "", false
	}
	text := fmt.Sprint(values[0].value)
	if values[1] != nil {
		text = fmt.Sprintf("%v:%s", values[1].value, text)
	}
	if values[2] != nil {
		address := str(values[2])
		if a, err := netip.ParseAddr(address); err == nil && a.Is6() {
			address = "[" + address + "]"
		}
		text = address + ":" + text
	}
	if values[3] != nil {
		text += "/" + strings.ToLower(str(values[3]))
	}
	pairs, message, _ := parsePort(text)
	return text, message == "" && p.has(pairs)
}

// has reports whether a table has exactly these fields.
func (n *node) has(pairs []pair) bool {
	return len(n.items) == len(pairs) && !slices.ContainsFunc(pairs, func(p pair) bool {
		c := n.child(p.key)
		return c == nil || c.value != p.value
	})
}

func shortenAction(h *node) {
	if n := h.child("exec"); n != nil {
		if values, ok := n.only("command"); ok && values[0] != nil && values[0].kind == kindArray {
			n.kind, n.items, n.index = kindArray, nil, nil
			for _, c := range values[0].items {
				n.appendItem(c)
			}
		}
	}
	if n := h.child("httpGet"); n != nil {
		if text, ok := requestText(n); ok {
			n.setValue(kindString, text)
		}
	}
	for _, key := range []string{"tcpSocket", "grpc"} {
		n := h.child(key)
		values, ok := n.only("port")
		if !ok || values[0] == nil || !hasField(h, key) {
			continue
		}
		if name, isName := values[0].value.(string); isName {
			if port, message := parsePortOrName(name); key == "grpc" || message != "" || port != any(name) {
				continue
			}
		} else if values[0].kind != kindInteger {
			continue
		}
		n.setValue(values[0].kind, values[0].value)
	}
}

// requestText returns the short form of httpGet.
func requestText(n *node) (string, bool) {
	values, ok := n.only("port", "path", "scheme")
	if !ok || values[0] == nil {
		return "", false
	}
	text := fmt.Sprintf(":%v", values[0].value)
	if values[1] != nil {
		text += str(values[1])
	}
	if values[2] != nil {
		text = strings.ToLower(str(values[2])) + "://" + text
	}
	pairs, message, _ := parseRequest(text, nil)
	return text, message == "" && n.has(pairs)
}

// envSource is an entry of envFrom that the short form envFile or secrets of a container can stand for.
type envSource struct {
	list, name string
	file       *node
	entry      *node
}

// shortenSources turns envFrom into envFile and secrets of the containers, and removes what these declare from the pod, if expand declares
// it in the same order.
func shortenSources(root *node) {
	declared := map[string][]string{} // by list, in the order of the containers
	var containers []*node
	var found [][]envSource
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			sources, ok := sourcesOf(root, c)
			if !ok {
				continue
			}
			containers, found = append(containers, c), append(found, sources)
			for _, s := range sources {
				if !slices.Contains(declared[s.list], s.name) {
					declared[s.list] = append(declared[s.list], s.name)
				}
			}
		}
	}
	for list, names := range declared {
		all := items(root.child(list))
		last := all[max(len(all)-len(names), 0):]
		if !slices.EqualFunc(last, names, func(e *node, name string) bool { return str(e.child("name")) == name }) {
			return
		}
	}
	for list, names := range declared {
		all := root.child(list)
		if all.items = all.items[:len(all.items)-len(names)]; len(all.items) == 0 {
			root.remove(list)
		}
	}
	for i, c := range containers {
		toSources(c, found[i])
	}
}

// sourcesOf returns the sources of the variables of a container, if all of them have a short form: env files that the pod declares, at most
// one of which is that of a config map, and the secrets one after the other.
func sourcesOf(root, c *node) ([]envSource, bool) {
	from := c.child("envFrom")
	if from == nil || from.kind != kindArray || len(from.items) == 0 || c.child("envFile") != nil || c.child("secrets") != nil {
		return nil, false
	}
	var sources []envSource
	var groups []string
	names := map[string]bool{}
	for _, e := range from.items {
		s := envSource{list: "secrets", entry: e}
		values, ok := e.only("secretRef")
		if !ok || values[0] == nil {
			s.list = "configMaps"
			values, ok = e.only("configMapRef")
		}
		if !ok || values[0] == nil {
			return nil, false
		}
		name, ok := values[0].only("name")
		if !ok || name[0] == nil {
			return nil, false
		}
		s.name = str(name[0])
		s.file = envFileOf(root.child(s.list), s.name)
		if s.file == nil || names[s.list+s.name] || s.list == "configMaps" && envFileName(str(s.file)) != s.name {
			return nil, false
		}
		names[s.list+s.name] = true
		if len(groups) == 0 || groups[len(groups)-1] != s.list || s.list == "configMaps" {
			groups = append(groups, s.list)
		}
		sources = append(sources, s)
	}
	slices.Sort(groups)
	return sources, len(groups) == len(slices.Compact(groups))
}

// envFileOf returns the path of the env file of the config map or secret with a name, if it has nothing else.
func envFileOf(list *node, name string) *node {
	var file *node
	for _, e := range items(list) {
		values, ok := e.only("name", "envFile")
		switch {
		case values == nil || values[0] == nil || str(values[0]) != name:
		case !ok || file != nil || values[1] == nil || values[1].kind != kindString || str(values[1]) == "":
			return nil
		default:
			file = values[1]
		}
	}
	return file
}

// toSources replaces envFrom of a container, in its place.
func toSources(c *node, sources []envSource) {
	all := c.items
	c.items = nil
	for _, item := range all {
		if item.key != "envFrom" {
			c.items = append(c.items, item)
			continue
		}
		delete(c.index, "envFrom")
		for _, s := range sources {
			file := copyOf(s.file)
			file.keyAt, file.segment, file.movedFrom = s.entry.keyAt, "", ""
			if s.list == "configMaps" {
				c.add("envFile", file)
				continue
			}
			secrets := c.child("secrets")
			if secrets == nil {
				secrets = newTable(nil)
				secrets.keyAt = s.entry.keyAt
				c.add("secrets", secrets)
			}
			secrets.add(s.name, file)
		}
	}
}
