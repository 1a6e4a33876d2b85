package rollout

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/podstead/podstead/internal/diskcall"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/generation"
)

// Values are the config maps and secrets of the host. The methods return the values by key, and an error that matches [fs.ErrNotExist] if
// there is no such object. Inline objects of the pod take precedence.
type Values interface {
	ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error)
	Secret(pod *spec.Pod, name string) (map[string][]byte, error)
}

// pinned returns a definition with the config that it had, where that differs from the present one.
func (t *Tracker) pinned(ctx context.Context, d *generation.Definition) *generation.Definition {
	return d.Pin(t.config(ctx, d.Pod))
}

// config returns the config maps and secrets of the host that a pod uses. Those that cannot be read are not kept.
func (t *Tracker) config(ctx context.Context, p *spec.Pod) generation.Config {
	if t.o.Values == nil {
		return generation.Config{}
	}
	c, err := diskcall.Do(context.WithoutCancel(ctx), t.reading, func() (generation.Config, error) { return readConfig(t.o.Values, p) })
	if err != nil {
		t.o.Log.LogAttrs(ctx, slog.LevelWarn, "config of a generation cannot be read", slog.String("pod", p.Name), slog.Any("error", err))
	}
	return c
}

// readConfig reads the config maps and secrets of the host that a pod refers to.
func readConfig(values Values, p *spec.Pod) (generation.Config, error) {
	c := generation.Config{ConfigMaps: map[string]map[string][]byte{}, Secrets: map[string]map[string][]byte{}}
	var errs []error
	read := func(into map[string]map[string][]byte, name string, from func(*spec.Pod, string) (map[string][]byte, error)) {
		v, err := from(p, name)
		if err == nil {
			into[name] = v
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for name := range p.ConfigMapNames() {
		if !slices.ContainsFunc(p.ConfigMaps, func(c spec.ConfigMap) bool { return c.Name == name }) {
			read(c.ConfigMaps, name, values.ConfigMap)
		}
	}
	for name := range p.SecretNames() {
		if !slices.ContainsFunc(p.Secrets, func(s spec.Secret) bool { return s.Name == name && s.Credential == "" }) {
			read(c.Secrets, name, values.Secret)
		}
	}
	return c, errors.Join(errs...)
}
