package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/doctor"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/admission"
)

// validateFlags are the flags of validate.
type validateFlags struct {
	policy, format string
	strict         bool
	spec           spec.Options
}

// validated is a file as validate -o json prints it.
type validated struct {
	File     string        `json:"file"`
	Valid    bool          `json:"valid"`
	Pods     []string      `json:"pods,omitempty"`
	Problems []api.Problem `json:"problems,omitempty"`

	parts  []spec.Part
	strict bool // a warning is an error
}

func (a *app) validateCommand() *cobra.Command {
	f := validateFlags{spec: spec.Options{Archives: true}}
	cmd := &cobra.Command{
		Use:   "validate FILE|DIR|-...",
		Short: "Check pod files",
		Long: `Check pod files in the same way as podstead run. All problems are printed with file, line and column. No pods are
started, and no daemon is needed. Env files and image archives that a file lists must exist. The file - is standard
input, in TOML, YAML or JSON. Of a directory, all pod files are checked, without those in subdirectories. The files are
checked together, and with the pods of this host: pods that wait for each other are invalid.

Warnings with a code are about what is valid and cannot work well, such as a liveness probe that stops a container before
it can have started. docs/reference/warnings.md has a section for each. A comment in the file silences one, beside the
value or above it: # podstead: allow CODE. With --strict they are errors, and a container without a memory limit is one
too. Compose files have none of these warnings.

Config maps, secrets and host paths that the pod would wait for on this host, because they are missing or cannot be
used, are printed, and so are names by which other pods of this host cannot reach the pod, and volumes whose content is
lost by the change of a pod of this host. They do not make the file invalid.

Requests beyond the baseline Pod Security Standard, such as a privileged container, are printed. A file that violates
the level of --policy, or podSecurity of the host's configuration, is invalid.

Exit codes: 0 all files are valid, 1 there are warnings (only with --strict), 2 a file is invalid.`,
		Example: `  # Check a pod file
  podstead validate web.toml

  # Check all pod files of a directory
  podstead validate pods/

  # Check pod files in CI
  podstead validate pods/ --strict

  # Check that a pod meets the restricted Pod Security Standard
  podstead validate web.toml --policy restricted

  # Check the output of another program
  kubectl get pod web -o yaml | podstead validate -`,
		Args:              fileArguments,
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.validate(cmd, args, &f) },
	}
	lossFlags(cmd, &f.spec, "v")
	a.addProjectFlags(cmd)
	levelFlag(cmd, &f.policy)
	cmd.Flags().BoolVar(&f.strict, "strict", false, "make warnings with a code errors, and warn also of containers without a memory limit")
	formats(cmd, &f.format, "json")
	return cmd
}

func (a *app) validate(cmd *cobra.Command, paths []string, f *validateFlags) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	level, err := a.level(cmd, cmp.Or(f.policy, c.Policy.PodSecurity))
	if err != nil {
		return err
	}
	o := f.spec
	o.MaxReplicas, o.Lint = int(c.Pods.MaxReplicas), a.lint(cmd, c)
	o.Lint.Strict = f.strict
	if paths, err = a.expand(paths); err != nil {
		return err
	}
	o.Others = others(paths)
	var errs []error
	var pods []readPod
	files := make([]*validated, len(paths))
	for i, path := range paths {
		files[i] = &validated{File: path}
		parts, problems, err := a.checkParts(cmd.Context(), path, o)
		a.found(files[i], problems, f)
		switch {
		case err != nil:
			errs = append(errs, err)
			message := plain.Text(strings.ReplaceAll(err.Error(), "\n", "; "))
			files[i].add(spec.Problem{
				File: plain.Text(path), Line: 1, Column: 1, Message: message, Hint: strings.Join(explain(err).hints, "; "),
			})
			continue
		case len(problems.Errors()) > 0 || !a.meetsLevel(files[i], parts, level, f):
			errs = append(errs, errInvalidFile)
			continue
		}
		files[i].parts, files[i].Valid = parts, true
		for j := range parts {
			pods = append(pods, readPod{path, parts[j].Pod})
			files[i].Pods = append(files[i].Pods, parts[j].Pod.Name)
		}
	}
	a.warnHidden(cmd, pods)
	a.warnLost(cmd, pods)
	if len(errs) == 0 { // otherwise not all pods of the files are known
		a.warnWaits(cmd, files, pods, f)
	}
	var cycles [][]string
	if waitForPods(pods) {
		cycles = a.cycles(pods, a.present(cmd), f)
	}
	for _, file := range files {
		if !file.Valid {
			continue
		}
		for i := range file.parts {
			p := &file.parts[i]
			cycle := slices.IndexFunc(cycles, func(cycle []string) bool { return slices.Contains(cycle, p.Pod.Name) })
			if cycle < 0 {
				a.warnUnusable(cmd.Context(), c, file.File, p.Pod)
				continue
			}
			file.Valid = false
			file.add(file.problem(p, "waitFor", cycleMessage(cycles[cycle]), cycleHint))
		}
		if !file.Valid {
			errs = append(errs, errInvalidFile)
		}
		if file.Valid = file.Valid && !file.strict; file.Valid && f.format == "" {
			fmt.Fprintf(a.out, "%s: ok%s\n", plain.Text(file.File), severalPods(file.Pods))
		}
	}
	if f.format != "" {
		err = a.encode(f.format, struct {
			Items []*validated `json:"items"`
		}{files})
	}
	switch {
	case err != nil:
		return err
	case len(errs) > 0:
		return invalidFiles(errs)
	case slices.ContainsFunc(files, func(file *validated) bool { return file.strict }):
		return &failure{status: statusFailed, err: errWarnings}
	}
	return nil
}

// errWarnings is the result of validate --strict if there are warnings.
var errWarnings = errors.New("warnings are errors with --strict")

// found adds problems to a file, and prints them unless the command prints them as JSON.
func (a *app) found(file *validated, problems spec.Problems, f *validateFlags) {
	for _, p := range problems {
		if f.strict && p.Code != "" {
			p.Warning, file.strict = false, true
		}
		file.Problems = append(file.Problems, api.Problem(p))
		if f.format == "" {
			a.problem(api.Problem(p))
		}
	}
}

// add adds a problem that is printed in another form.
func (v *validated) add(p spec.Problem) { v.Problems = append(v.Problems, api.Problem(p)) }

// problem returns an error about a field of a pod. The values of a Compose file have other positions than those of its pods.
func (v *validated) problem(p *spec.Part, field, message, hint string) spec.Problem {
	if readsAsCompose(v.File) {
		message = "pod " + p.Name + ": " + field + ": " + message
		return spec.Problem{File: plain.Text(v.File), Line: 1, Column: 1, Message: message, Hint: hint}
	}
	return p.Problem(field, message, hint)
}

// meetsLevel is [app.meetLevel] with the violations as problems of the file.
func (a *app) meetsLevel(file *validated, parts []spec.Part, level admission.Level, f *validateFlags) bool {
	if f.format == "" {
		return a.meetLevel(file.File, parts, level)
	}
	before := len(file.Problems)
	for i := range parts {
		noteBeyondBaseline(a.err, file.File, parts[i].Pod)
		for _, r := range admission.CheckLevel(parts[i].Pod, level) {
			file.add(file.problem(&parts[i], r.Field, r.Message, "")) // r.Hint is about the host
		}
	}
	return len(file.Problems) == before
}

// cycles returns which of the pods wait for each other, also through pods of this host, and prints them unless they become problems.
func (a *app) cycles(list []readPod, present []*spec.Pod, f *validateFlags) [][]string {
	if f.format == "" {
		return a.cyclesAmong(list, present)
	}
	return cyclesOf(list, present)
}

// warnWaits prints for which pods the pods of files wait in vain.
func (a *app) warnWaits(cmd *cobra.Command, files []*validated, list []readPod, f *validateFlags) {
	if !waitForPods(list) {
		return
	}
	host := a.onHost(cmd)
	pods := slices.Concat(host.active, host.completed)
	for _, r := range list {
		pods = append(pods, r.pod)
	}
	for _, file := range files {
		a.found(file, spec.LintWaits(file.parts, pods, len(list) > 1 && host.all), f)
	}
}

// severalPods names the pods of a file, unless there is one.
func severalPods(names []string) string {
	switch len(names) {
	case 0:
		return " (no pods)"
	case 1:
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
