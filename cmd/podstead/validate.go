package main

import (
	"cmp"
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

func (a *app) validateCommand() *cobra.Command {
	var policy string
	o := spec.Options{Archives: true}
	cmd := &cobra.Command{
		Use:   "validate FILE|DIR|-...",
		Short: "Check pod files",
		Long: `Check pod files in the same way as podstead run. All problems are printed with file, line and column. No pods are
started, and no daemon is needed. Env files and image archives that a file lists must exist. The file - is standard
input, in TOML, YAML or JSON. Of a directory, all pod files are checked, without those in subdirectories. The files are
checked together, and with the pods of this host: pods that wait for each other are invalid.

Config maps, secrets and host paths that the pod would wait for on this host, because they are missing or cannot be
used, are printed, and so are names by which other pods of this host cannot reach the pod, and volumes whose content is
lost by the change of a pod of this host. They do not make the file invalid.

Requests beyond the baseline Pod Security Standard, such as a privileged container, are printed. A file that violates
the level of --policy, or podSecurity of the host's configuration, is invalid.

Exit codes: 0 all files are valid, 2 a file is invalid.`,
		Example: `  # Check a pod file
  podstead validate web.toml

  # Check all pod files of a directory
  podstead validate pods/

  # Check that a pod meets the restricted Pod Security Standard
  podstead validate web.toml --policy restricted

  # Check the output of another program
  kubectl get pod web -o yaml | podstead validate -`,
		Args:              fileArguments,
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			strict, err := a.level(cmd, cmp.Or(policy, c.Policy.PodSecurity))
			if err != nil {
				return err
			}
			o.MaxReplicas = int(c.Pods.MaxReplicas)
			files, err := a.expand(args)
			if err != nil {
				return err
			}
			o.Others = others(files)
			var errs []error
			var pods []readPod
			for _, path := range files {
				parts, err := a.readParts(cmd.Context(), path, o, strict)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				if len(parts) == 0 {
					fmt.Fprintf(a.out, "%s: ok (no pods)\n", plain.Text(path))
				}
				for i := range parts {
					pods = append(pods, readPod{path, parts[i].Pod})
				}
			}
			a.warnHidden(cmd, pods)
			a.warnLost(cmd, pods)
			cycles := a.waitCycles(cmd, pods)
			for i, r := range pods {
				if slices.Contains(cycles, r.pod.Name) {
					errs = append(errs, errInvalidFile)
					continue
				}
				a.warnUnusable(cmd.Context(), c, r.path, r.pod)
				inFile := func(other readPod) bool { return other.path == r.path && slices.Contains(cycles, other.pod.Name) }
				if (i == 0 || pods[i-1].path != r.path) && !slices.ContainsFunc(pods, inFile) {
					fmt.Fprintf(a.out, "%s: ok%s\n", plain.Text(r.path), severalPods(pods[i:]))
				}
			}
			if len(errs) > 0 {
				return invalidFiles(errs)
			}
			return nil
		},
	}
	lossFlags(cmd, &o, "v")
	a.addProjectFlags(cmd)
	levelFlag(cmd, &policy)
	return cmd
}

// severalPods names the pods of the file of the first one, if there are several.
func severalPods(list []readPod) string {
	var names []string
	for _, r := range list {
		if r.path == list[0].path {
			names = append(names, r.pod.Name)
		}
	}
	if len(names) < 2 {
		return ""
	}
	return " (pods " + strings.Join(names, ", ") + ")"
}

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
