package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
)

// defaultPath is the PATH of a container whose image sets none.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// maxSearch bounds the directories of a PATH that are looked at.
const maxSearch = 64

// SearchPath returns the directories in which a container finds programs, if only its image sets the environment: at most maxSearch.
func SearchPath(image []string) []string {
	list := ""
	for _, variable := range append([]string{defaultPath}, image...) {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			list = value
		}
	}
	directories := slices.DeleteFunc(strings.Split(list, ":"), func(dir string) bool { return !path.IsAbs(dir) })
	return directories[:min(len(directories), maxSearch)]
}

// Values returns values from outside of the definition of a pod. Errors must not contain values.
type Values interface {
	// ConfigMap and Secret return an object by key. The error for a missing one is an [fs.ErrNotExist].
	ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error)
	Secret(pod *spec.Pod, name string) (map[string][]byte, error)
	// FileValue returns the value of a key in a file, or "" if there is no such key. The error for a missing file is an [fs.ErrNotExist].
	FileValue(ref *spec.FileKeyRef) (string, error)
}

// Variables are the environment variables that a container's definition sets, and its arguments, which can refer to them.
type Variables struct {
	names         []string // in the order of their first definition
	values        map[string]string
	command, args []string // expanded
	size          spec.ProcessSize
}

// Map returns the variables by name. It must not be modified.
func (v Variables) Map() map[string]string { return v.values }

// set sets a variable. It returns false if the variables are too large.
func (v *Variables) set(name, value string) bool {
	if before, defined := v.values[name]; defined {
		v.size.Remove(name, before)
	} else {
		v.names = append(v.names, name)
	}
	v.values[name] = value
	v.size.Add(name, value)
	return v.size.Left() >= 0
}

// expand expands the arguments of a field.
func (v *Variables) expand(field string, list []string) ([]string, error) {
	expanded := make([]string, len(list))
	for i, s := range list {
		var ok bool
		expanded[i], ok = spec.Expand(s, v.values, v.size.Left())
		if v.size.Add(expanded[i]); !ok || v.size.Left() < 0 {
			return nil, &spec.TooLargeError{Field: fmt.Sprintf("%s[%d]", field, i)}
		}
	}
	return expanded, nil
}

// Resolve returns the variables of a container in their order: first envFrom, then env. A value can refer to earlier variables,
// with their latest value, but not to those of the image. Values from other sources are not expanded. If a name occurs twice, the
// later one wins. Missing optional variables are left out. The error is a [*spec.TooLargeError] if variables and arguments are too large.
func Resolve(c *spec.Container, d *Downward, values Values) (vars Variables, err error) {
	vars.values = map[string]string{}
	for i := range c.EnvFrom {
		if err := vars.addAll(i, &c.EnvFrom[i], d.Pod, values); err != nil {
			return vars, err
		}
	}
	for i := range c.Env {
		e := &c.Env[i]
		value, fits := spec.Expand(e.Value, vars.values, vars.size.Left())
		found := true
		if e.ValueFrom != nil {
			if value, found, err = valueFrom(c, e.ValueFrom, d, values); err != nil {
				return vars, err
			}
		}
		if found && (!fits || !vars.set(e.Name, value)) {
			return vars, &spec.TooLargeError{Field: fmt.Sprintf("env[%d] (%s)", i, e.Name)}
		}
	}
	if vars.command, err = vars.expand("command", c.Command); err != nil {
		return vars, err
	}
	vars.args, err = vars.expand("args", c.Args)
	return vars, err
}

// addAll sets a variable for each key of a config map or secret, the one of an element of envFrom.
func (v *Variables) addAll(index int, from *spec.EnvFrom, pod *spec.Pod, values Values) error {
	get, ref := values.ConfigMap, from.ConfigMapRef
	if ref == nil {
		get, ref = values.Secret, from.SecretRef
	}
	data, err := get(pod, ref.Name)
	if ref.Optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !v.set(from.Prefix+key, string(data[key])) {
			return &spec.TooLargeError{Field: fmt.Sprintf("envFrom[%d] (%s)", index, ref.Name)}
		}
	}
	return nil
}

// valueFrom returns a value from another source. found is false if the value is missing and optional.
func valueFrom(c *spec.Container, from *spec.EnvVarSource, d *Downward, values Values) (value string, found bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = d.Field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = d.Resource(c.Name, from.ResourceFieldRef)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		return valueOf(from.ConfigMapKeyRef, "ConfigMap", d.Pod, values.ConfigMap)
	case from.FileKeyRef != nil:
		return valueInFile(from.FileKeyRef, values)
	default:
		return valueOf(from.SecretKeyRef, "Secret", d.Pod, values.Secret)
	}
}

func valueOf(
	ref *spec.KeyRef, kind string, pod *spec.Pod, get func(*spec.Pod, string) (map[string][]byte, error),
) (string, bool, error) {
	data, err := get(pod, ref.Name)
	if ref.Optional && errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	value, found := data[ref.Key]
	if !found && !ref.Optional {
		return "", false, fmt.Errorf("couldn't find key %v in %s default/%v", ref.Key, kind, ref.Name)
	}
	return string(value), found, nil
}

// valueInFile returns the value of a key in a file. As in the kubelet, an empty value counts as a missing key. By the description of the
// field in the Pod API, optional is for missing files too. The kubelet fails for them (1.37, makeEnvironmentVariables).
func valueInFile(ref *spec.FileKeyRef, values Values) (value string, found bool, err error) {
	value, err = values.FileValue(ref)
	switch {
	case ref.Optional && errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("couldn't parse env file: file %q of volume %q: %w", ref.Path, ref.VolumeName, err)
	case value == "" && !ref.Optional:
		return "", false, fmt.Errorf("environment variable key %q not found in file %q of volume %q", ref.Key, ref.Path, ref.VolumeName)
	}
	return value, value != "", nil
}

// environment returns the complete environment of a process: the defaults, then the image's, then the container's variables.
// Later ones override earlier ones and keep the position of the first.
func environment(hostname string, image []string, vars Variables, devices []string) []string {
	all := append([]string{defaultPath, "HOSTNAME=" + hostname}, image...)
	for _, name := range vars.names {
		all = append(all, name+"="+vars.values[name])
	}
	all = append(all, devices...)
	place := make(map[string]int, len(all))
	merged := make([]string, 0, len(all))
	for _, v := range all {
		name, _, ok := strings.Cut(v, "=")
		if !ok {
			continue // an image may contain a name without a value, which sets nothing
		}
		if i, defined := place[name]; defined {
			merged[i] = v
			continue
		}
		place[name] = len(merged)
		merged = append(merged, v)
	}
	return merged
}

// arguments returns the program and its arguments. The container's command replaces the image's entrypoint and drops its command.
// The container's args replace the image's command.
func arguments(vars Variables, entrypoint, cmd []string) []string {
	command, args := vars.command, vars.args
	if len(command) == 0 {
		command = entrypoint
		if len(args) == 0 {
			args = cmd
		}
	}
	return append(append([]string(nil), command...), args...)
}
