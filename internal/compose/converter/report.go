package converter

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
)

// source is a Compose file that the user named, for positions.
type source struct {
	name     string
	document yaml.Node
}

// position returns where a path is in the files, or the part of it that is there: the last file that has most of it. Lines count from 1.
func (c *converter) position(path []string) (file string, line, column int) {
	file, line, column = c.q.Names[0], 1, 1
	longest := 0
	for i := range c.sources {
		s := &c.sources[i]
		if len(s.document.Content) == 0 {
			continue
		}
		n := s.document.Content[0]
		for depth, key := range path {
			var at *yaml.Node
			if n, at = compose.Lookup(n, key); n == nil {
				break
			}
			if depth+1 >= longest {
				longest, file, line, column = depth+1, s.name, at.Line, at.Column
			}
		}
	}
	return file, line, column
}

// positionOf returns where the first value is that ends with one of the texts, or the beginning of the first file.
func (c *converter) positionOf(texts ...string) (file string, line, column int) {
	var find func(n *yaml.Node, text string) *yaml.Node
	find = func(n *yaml.Node, text string) *yaml.Node {
		if n.Kind == yaml.ScalarNode && strings.HasSuffix(n.Value, text) {
			return n
		}
		for _, child := range n.Content {
			if found := find(child, text); found != nil {
				return found
			}
		}
		return nil
	}
	for _, text := range texts {
		for i := range c.sources {
			if n := find(&c.sources[i].document, text); n != nil {
				return c.sources[i].name, n.Line, n.Column
			}
		}
	}
	return c.q.Names[0], 1, 1
}

func (c *converter) report(path []string, message, hint string, warning bool) {
	const limit = 1000
	if len(c.problems) >= limit {
		return
	}
	p := spec.Problem{Path: compose.OneLine(strings.Join(path, ".")), Message: message, Hint: hint, Warning: warning}
	p.File, p.Line, p.Column = c.position(path)
	if !slices.Contains(c.problems, p) {
		c.problems = append(c.problems, p)
	}
}

// warn reports what the user should know.
func (c *converter) warn(path []string, message string) { c.report(path, message, "", true) }

// drop reports what is left out without an effect on the application.
func (c *converter) drop(path []string, why string) { c.report(path, "ignored: "+why, "", true) }

// lose reports what changes the behaviour of the application.
func (c *converter) lose(path []string, why, hint string) {
	if c.q.AllowLoss {
		c.report(path, "lost: "+why, "", true)
		return
	}
	if hint != "" {
		hint += ", or accept the loss with --allow-loss"
	}
	c.report(path, "lost: "+why, cmp.Or(hint, "accept it with --allow-loss"), false)
}

// refuse reports what makes the project invalid.
func (c *converter) refuse(path []string, why, hint string) { c.report(path, why, hint, false) }

// key reports a key that is not taken, by its row.
func (c *converter) key(k *Key, path []string) {
	switch k.Verdict {
	case Taken:
	case Dropped:
		c.report(path, "ignored: "+k.Note, k.Hint, true)
	case Lost:
		c.lose(path, k.Note, k.Hint)
	case Refused:
		c.refuse(path, "is not supported: "+k.Note, k.Hint)
	}
}

// keys reports the keys of the project that are not taken.
func (c *converter) keys() {
	for _, name := range []string{"services", "jobs", "networks", "volumes", "secrets", "configs", "models"} {
		v := map[string]reflect.Value{
			"services": reflect.ValueOf(c.p.Services), "jobs": reflect.ValueOf(c.p.Jobs), "networks": reflect.ValueOf(c.p.Networks),
			"volumes": reflect.ValueOf(c.p.Volumes), "secrets": reflect.ValueOf(c.p.Secrets), "configs": reflect.ValueOf(c.p.Configs),
			"models": reflect.ValueOf(c.p.Models),
		}[name]
		c.field(v, name, []string{name})
	}
}

// field reports the value of a key.
func (c *converter) field(v reflect.Value, key string, path []string) {
	if v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0 {
		return
	}
	k, found := find(key)
	switch {
	case !found:
		c.refuse(path, "is not known to this version of podstead", "")
	case key == "services.build" && c.p.Services[path[1]].Image != "":
		c.lose(path, "the image is not built", k.Hint)
	case key == "services.depends_on.restart" && c.implied(path[1], path[3]):
	case k.Verdict != Taken:
		if e := indirect(v); !slices.Contains(k.Default, fmt.Sprint(e.Interface())) {
			c.key(k, path)
		}
	case !k.Whole:
		c.below(v, key, path)
	}
}

// implied reports whether the library has added a dependency, for another key that names the service.
func (c *converter) implied(name, other string) bool {
	s := c.p.Services[name]
	shared := types.ServicePrefix + other
	return s.NetworkMode == shared || s.Ipc == shared || s.Pid == shared ||
		slices.ContainsFunc(s.Links, func(link string) bool { return link == other || strings.HasPrefix(link, other+":") })
}

func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// below reports what is in a value of a key that is taken.
func (c *converter) below(v reflect.Value, key string, path []string) {
	v = indirect(v)
	switch v.Kind() {
	case reflect.Map:
		if elementOf(v.Type()).Kind() != reflect.Struct {
			return
		}
		for _, name := range sortedValues(v) {
			c.below(v.MapIndex(name), key, append(slices.Clone(path), name.String()))
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.below(v.Index(i), key, append(slices.Clone(path), strconv.Itoa(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, inline := yamlName(&f)
			switch {
			case inline && f.Type == reflect.TypeFor[types.ContainerSpec]() && key == "services.pre_start":
				c.inherited(v.Field(i), path)
			case inline:
				c.below(v.Field(i), key, path)
			case name != "" && (name != "name" || key != "services"):
				c.field(v.Field(i), key+"."+name, append(slices.Clone(path), name))
			}
		}
	}
}

// inherited reports the keys of a hook that are not those of its service.
func (c *converter) inherited(hook reflect.Value, path []string) {
	s := reflect.ValueOf(c.p.Services[path[1]].ContainerSpec)
	for i := range hook.NumField() {
		f := hook.Type().Field(i)
		if name, _ := yamlName(&f); name != "" && !reflect.DeepEqual(hook.Field(i).Interface(), s.Field(i).Interface()) {
			c.field(hook.Field(i), "services."+name, append(slices.Clone(path), name))
		}
	}
}

// elementOf returns the type of the elements of a map or a slice, without pointers.
func elementOf(t reflect.Type) reflect.Type {
	for t = t.Elem(); t.Kind() == reflect.Pointer; {
		t = t.Elem()
	}
	return t
}

// yamlName returns the key of a field, or whether its keys are those of the struct. Extensions (x-...) have no effect.
func yamlName(f *reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	switch {
	case !f.IsExported() || name == "-" || f.Type == reflect.TypeFor[types.Extensions]():
		return "", false
	case name == "" && strings.Contains(options, "inline"):
		return "", true
	case name == "":
		name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
	}
	return name, false
}

func sortedValues(m reflect.Value) []reflect.Value {
	return order.Sorted(slices.Values(m.MapKeys()), func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
