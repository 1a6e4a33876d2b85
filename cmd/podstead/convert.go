package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
)

type convertFlags struct {
	output, directory string
	short, secrets    bool
	spec              spec.Options
}

func (a *app) convertCommand() *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert FILE...|UNIT...|DIR|-",
		Short: "Convert manifests, Compose files and units of Quadlet to pod files in TOML",
		Long: `Print the definition of a pod file, a Kubernetes manifest or a Compose file as a pod file in TOML. The file - is
standard input. Every field has its long form, the notation of the Pod API; with --short, the short one, where there is
one: podstead explain shows both. The definition, relative paths and the comments of a pod file stay the same. No daemon
is needed.

With -o k8s, the pods of the files are printed as Kubernetes objects in YAML, for kubectl apply: a Pod for each of them, with
the ConfigMaps, PersistentVolumeClaims and Services that they need. Secrets are printed only with --secrets. Fields that a
cluster has no equivalent for, such as waitFor, are errors, unless --allow-loss is given. See
docs/howto/outgrowing-one-host.md.

Several Compose files are one project, as with docker compose -f. The services become pods with the label project.
docs/reference/compose.md lists what becomes of each key.

Units of Quadlet, with their drop-ins, and directories of units become pods too: pass all units of an application, and
--output-dir for a file for each pod. What their keys become is listed in docs/reference/quadlet.md.

Fields that only a cluster needs are left out with a warning. What does not behave here as it did is an error, unless
--allow-loss is given.

Exit codes: 0 done, 2 the file is invalid.`,
		Example: `  # Convert a manifest to a pod file
  podstead convert manifest.yaml --short >converted.toml

  # Convert a Compose file, with its services of one profile
  podstead convert compose.yaml --profile debug --short >site.toml

  # Show what the short forms of a pod file stand for
  podstead convert web.toml

  # Convert the output of another program
  kubectl get pod web -o yaml | podstead convert -

  # Print pods as manifests for a cluster
  podstead convert -o k8s --secrets --allow-loss shop.toml | kubectl apply --server-side -f -

  # Convert units of Quadlet to a pod file for each pod
  podstead convert units/ --output-dir converted`,
		Args:              fileArguments,
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.convertTo(cmd, args, &f) },
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", formatTOML,
		"`format`: "+strings.Join(conversions, ", ")+" (Kubernetes objects in YAML)")
	cmd.Flags().BoolVar(&f.secrets, "secrets", false, "print Secrets, with their values, with -o k8s")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(conversions, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&f.directory, "output-dir", "", "`directory` for the pod files of units, one for each pod")
	cmd.Flags().BoolVar(&f.short, "short", false, "write short forms, such as ports = [\"8080:80\"]")
	lossFlags(cmd, &f.spec, "v")
	a.addProjectFlags(cmd)
	return cmd
}

// convertTo converts files to the format of the flags.
func (a *app) convertTo(cmd *cobra.Command, args []string, f *convertFlags) error {
	switch {
	case f.output == formatKubernetes:
		return a.convertForCluster(cmd, args, f.spec, f.secrets)
	case f.output != formatTOML:
		return usage(cmd, "-o %s: must be one of %s", f.output, strings.Join(conversions, ", "))
	case f.secrets:
		return usage(cmd, "--secrets requires -o %s", formatKubernetes)
	case areUnits(args):
		return a.convertUnits(args, f.spec, f.short, f.directory)
	case f.directory != "":
		return usage(cmd, "--output-dir is for units of Quadlet")
	}
	return a.convert(cmd, args, f.spec, f.short)
}

func (a *app) convert(cmd *cobra.Command, paths []string, o spec.Options, short bool) error {
	if len(paths) > 1 {
		expanded, err := a.expand(paths)
		if err != nil {
			return err
		}
		if paths = expanded; len(paths) > 1 {
			return usage(cmd, "%s takes one pod file, or several Compose files", commandName(cmd))
		}
	}
	path := paths[0]
	given, err := a.readText(path)
	if err != nil {
		return err
	}
	var problems spec.Problems
	if isComposeFile(path, given) {
		r, err := a.convertProject(cmd.Context(), path, o.AllowLoss, a.project.profiles)
		if err != nil {
			return err
		}
		problems, given = r.Problems, r.Manifest
	}
	var text []byte
	if len(problems.Errors()) == 0 {
		converted, found := o.Convert(path, given, short)
		if text = converted; problems == nil {
			problems = found
		} else {
			problems = append(problems, found.Errors()...)
		}
	}
	a.problems(problems)
	if text == nil {
		return invalidFiles(nil)
	}
	return a.printLines(string(text))
}

// The formats of the flag --output.
const (
	formatTOML       = "toml"
	formatKubernetes = "k8s"
)

var conversions = []string{formatTOML, formatKubernetes}

// convertForCluster prints the pods of files as Kubernetes objects.
func (a *app) convertForCluster(cmd *cobra.Command, paths []string, o spec.Options, secrets bool) error {
	for _, flag := range []string{"short", "output-dir"} {
		if cmd.Flags().Changed(flag) {
			return usage(cmd, "--%s is for pod files, not for -o %s", flag, formatKubernetes)
		}
	}
	if areUnits(paths) {
		return &failure{
			status: statusUsage, err: fmt.Errorf("-o %s takes pod files, not units of Quadlet", formatKubernetes),
			hints: []string{"write pod files first with podstead convert UNIT --output-dir DIR"},
		}
	}
	paths, err := expand(paths)
	if err != nil {
		return err
	}
	var files []spec.InputFile
	for _, path := range paths {
		text, err := a.readText(path)
		switch {
		case err != nil:
			return err
		case isComposeFile(path, text):
			return &failure{
				status: statusUsage, err: fmt.Errorf("-o %s takes pod files, not Compose files", formatKubernetes),
				hints: []string{"write a pod file first with podstead convert FILE"},
			}
		}
		files = append(files, spec.InputFile{Name: path, Text: text})
	}
	text, problems := o.Manifests(files, secrets)
	a.problems(problems)
	if text == nil {
		return invalidFiles(nil)
	}
	return a.printLines(string(text))
}

// printLines prints a pod file. Its strings have no hidden characters, but comments may have.
func (a *app) printLines(text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(a.out, plain.Text(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}
