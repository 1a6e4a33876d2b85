package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// unusable returns what the pod would wait for on this host: config maps and secrets that are missing or that cannot be used, and volumes
// that cannot be set up.
func unusable(ctx context.Context, c *config.Config, pod *spec.Pod) []error {
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

// warnUnusable prints what the pod would wait for on this host.
func (a *app) warnUnusable(ctx context.Context, c *config.Config, path string, pod *spec.Pod) {
	for _, err := range unusable(ctx, c, pod) {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(a.err, "%s: the pod would wait on this host: %s\n", plain.Text(path), plain.Text(text))
	}
}

// warnHidden prints by which names other pods of this host cannot reach the pods. The files have warnings of names that are hidden on all
// hosts.
func (a *app) warnHidden(cmd *cobra.Command, list []readPod) {
	host, err := os.Hostname()
	if err != nil {
		return
	}
	var pods []*spec.Pod
	files := map[string]string{}
	for _, r := range list {
		pods, files[r.pod.Name] = append(pods, r.pod), r.path
	}
	if slices.ContainsFunc(pods, func(p *spec.Pod) bool { return p.Hostname != "" }) {
		for _, p := range a.present(cmd) {
			if files[p.Name] == "" {
				pods = append(pods, p)
			}
		}
	}
	for _, h := range spec.HiddenNames(pods, host) {
		if path := files[h.Pod]; path != "" && spec.Unpublished(h.Name, "") == "" {
			fmt.Fprintf(a.err, "%s: on this host %s\n", plain.Text(path), plain.Text(h.String()))
		}
	}
}
