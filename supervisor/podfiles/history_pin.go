package podfiles

import (
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/podstead/podstead/spec"
)

// Pin returns a definition that has the config of the kept one, whatever the present config is: config maps and secrets whose values differ
// become inline ones. Values that are not UTF-8 text cannot be inline; the pod reads such a config map or secret from the host. Images are
// not pulled.
func (d *Definition) Pin(present PinnedConfig) *Definition {
	pod := *d.Pod
	pod.ConfigMaps, pod.Secrets = slices.Clone(pod.ConfigMaps), slices.Clone(pod.Secrets)
	for _, name := range slices.Sorted(maps.Keys(d.Config.ConfigMaps)) {
		values := d.Config.ConfigMaps[name]
		if reflect.DeepEqual(values, present.ConfigMaps[name]) || !isText(values) {
			continue
		}
		c := spec.ConfigMap{Name: name, Data: map[string]string{}}
		for key, value := range values {
			c.Data[key] = string(value)
		}
		pod.ConfigMaps = append(pod.ConfigMaps, c)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Config.Secrets)) {
		values := d.Config.Secrets[name]
		if reflect.DeepEqual(values, present.Secrets[name]) || !isText(values) {
			continue
		}
		s := spec.Secret{Name: name, Data: spec.SecretData{}}
		for key, value := range values {
			s.Data[key] = spec.Sensitive(value)
		}
		pod.Secrets = append(pod.Secrets, s)
	}
	pod.InitContainers, pod.Containers = d.present(pod.InitContainers), d.present(pod.Containers)
	pinned := *d
	pinned.Pod = &pod
	return &pinned
}

// present returns containers that do not pull an image that is kept: its name may refer to another one by now, and a registry may be
// missing.
func (d *Definition) present(containers []spec.Container) []spec.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		if c := &containers[i]; c.ImagePullPolicy != spec.PullNever && d.Images[c.Name].ID != "" {
			c.ImagePullPolicy = spec.PullIfNotPresent
		}
	}
	return containers
}

func isText(values map[string][]byte) bool {
	for _, value := range values {
		if !utf8.Valid(value) {
			return false
		}
	}
	return true
}

// forgetCredentials removes values of credentials, which earlier versions kept. It reports whether there were some.
func (h *History) forgetCredentials() (found bool) {
	for i := range h.Generations {
		d := h.Generations[i].Definition
		if d == nil || d.Pod == nil {
			continue
		}
		for _, s := range d.Pod.Secrets {
			if _, kept := d.Config.Secrets[s.Name]; kept {
				delete(d.Config.Secrets, s.Name)
				found = true
			}
		}
	}
	return found
}
