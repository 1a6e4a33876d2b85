package doctor

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// Unusable returns what the pod would wait for on this host: config maps and secrets that are missing or that cannot be used, and volumes
// that cannot be set up. A pod does not wait for volumes that no container mounts.
func Unusable(ctx context.Context, c *config.Config, pod *spec.Pod) []error {
	pod = pod.Mounted()
	source := configsource.Source{Dir: c.ConfigDir}
	var failed []error
	for _, k := range []struct {
		names map[string]bool
		read  func(*spec.Pod, string) (map[string][]byte, error)
	}{{pod.ConfigMapNames(), source.ConfigMap}, {pod.SecretNames(), source.Secret}} {
		for _, name := range slices.Sorted(maps.Keys(k.names)) {
			_, err := k.read(pod, name)
			optional := errors.Is(err, fs.ErrNotExist) && !k.names[name]
			if err != nil && !optional && !isUnknown(err) {
				failed = append(failed, err)
			}
		}
	}
	if len(failed) == 0 { // else the volumes have the same errors
		p := volume.Pod{
			Spec: pod, Field: func(string) (string, error) { return "", nil },
			Resource: func(string, string, *spec.Quantity) (string, error) { return "", nil },
		}
		if err := volume.Check(ctx, source, c.Policy.HostPaths, p); err != nil && !isUnknown(err) {
			failed = append(failed, err)
		}
	}
	return failed
}

// isUnknown reports whether the daemon may succeed where this process fails: only the daemon has systemd credentials, and it is root.
func isUnknown(err error) bool {
	return errors.Is(err, configsource.ErrNoCredentials) || errors.Is(err, fs.ErrPermission)
}
