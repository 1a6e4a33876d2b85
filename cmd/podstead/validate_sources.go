package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/doctor"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
)

// warnUnusable prints what the pod would wait for on this host.
func (a *app) warnUnusable(ctx context.Context, c *config.Config, path string, pod *spec.Pod) {
	for _, err := range doctor.Unusable(ctx, c, pod) {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(a.err, "%s: the pod would wait on this host: %s\n", plain.Text(path), plain.Text(text))
	}
}

// warnLost prints the changes of pods of this host by which the content of a volume is lost.
func (a *app) warnLost(cmd *cobra.Command, list []readPod) {
	hasVolumes := func(r readPod) bool { return len(r.pod.Volumes) > 0 }
	if !slices.ContainsFunc(list, hasVolumes) {
		return
	}
	for _, present := range a.present(cmd) {
		for _, r := range list {
			if r.pod.Name != present.Name {
				continue
			}
			for _, c := range change.Between(present, r.pod) {
				if c.LosesContent() {
					fmt.Fprintf(a.err, "%s: on this host %s\n", plain.Text(r.path), plain.Text(c.String()))
				}
			}
		}
	}
}

// warnHidden prints by which names other pods of this host cannot reach the pods. The files have warnings of names that are hidden on all
// hosts.
func (a *app) warnHidden(cmd *cobra.Command, list []readPod) {
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
	hidden, err := doctor.HiddenNames(pods)
	if err != nil {
		a.note("cannot read all names of this host: %v", err)
	}
	for _, h := range hidden {
		if path := files[h.Pod]; path != "" && spec.Unpublished(h.Name, nil) == "" {
			fmt.Fprintf(a.err, "%s: on this host %s\n", plain.Text(path), plain.Text(h.String()))
		}
	}
}
