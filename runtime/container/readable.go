package container

import (
	"errors"
	"fmt"
	"slices"

	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
)

// Readable returns why the variables or the seccomp profile of a container of the pod cannot be read at present. It changes nothing. It
// leaves out variables from files in volumes, which other containers of the pod may write first.
func (s *Service) Readable(d *oci.Downward) error {
	values := newSecretSnapshot(s.config.Values, nil, &spec.Container{})
	var failed []error
	for _, list := range [...][]spec.Container{d.Pod.InitContainers, d.Pod.Containers} {
		for i := range list {
			c := &list[i]
			_, err := oci.Resolve(withoutFiles(c), d, values)
			if name := oci.LocalhostSeccomp(d.Pod, c); err == nil && name != "" {
				_, err = seccompProfile(s.config.ConfigDir, name)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("container %q: %w", c.Name, values.Redact(err)))
			}
		}
	}
	return errors.Join(failed...)
}

// withoutFiles returns a container without its variables from files in volumes.
func withoutFiles(c *spec.Container) *spec.Container {
	result := *c
	result.Env = slices.DeleteFunc(slices.Clone(c.Env), func(e spec.EnvVar) bool {
		return e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil
	})
	return &result
}
