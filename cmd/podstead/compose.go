package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/spec"
)

// projectFlags are the flags for Compose files.
type projectFlags struct {
	name                     string
	profiles, envFiles, dirs []string
	// overrides are the Compose files that belong to the first one of the command line.
	overrides map[string][]string
	// pods are the projects of the pods whose names Compose files define.
	pods map[string]string
	// claims are the projects of the persistent volumes whose names begin with that of their project.
	claims map[string]string
	// reads and triggers are the files of the projects, and those whose changes restart containers, see [compose.Result].
	reads    []string
	triggers []compose.Trigger
}

// of notes the pods of a project.
func (f *projectFlags) of(r *compose.Result) {
	if f.pods == nil {
		f.pods = map[string]string{}
	}
	for _, pod := range r.Pods {
		f.pods[pod] = r.Project
	}
}

// own returns the pods without those that have only the names of a project's pods, and an error for each of these.
func (f *projectFlags) own(pods []api.Pod) (own []api.Pod, err error) {
	var errs []error
	own = slices.DeleteFunc(slices.Clone(pods), func(p api.Pod) bool {
		project := f.pods[p.Metadata.Name]
		if project == "" || p.Metadata.Labels[spec.ProjectLabel] == project {
			return false
		}
		errs = append(errs, fmt.Errorf("pod %q is not of project %q", p.Metadata.Name, project))
		return true
	})
	return own, errors.Join(errs...)
}

// addProjectFlags adds the flags for Compose files to a command that reads pod files.
func (a *app) addProjectFlags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&a.project.profiles, "profile", nil,
		"`profile` of a Compose file whose services are started too (default COMPOSE_PROFILES)")
	a.addProjectFileFlags(cmd)
}

// addProjectFileFlags adds the flags for Compose files to a command that selects their pods, which are those of all profiles.
func (a *app) addProjectFileFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&a.project.envFiles, "env-file", nil, "`file` with variables for a Compose file (default .env beside it)")
	flags.StringVar(&a.project.name, "project-name", "", "`name` of the project of a Compose file (default that of its directory)")
	flags.StringSliceVar(&a.project.dirs, "allow-dir", nil, "other `directory` whose files a Compose file may include")
}

// mayBeCompose reports whether a file has an extension of Compose files. Standard input has none: it has no directory.
func mayBeCompose(path string) bool {
	return path != spec.Stdin && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
}

// isComposeFile reports whether a file is one of Compose.
func isComposeFile(path string, text []byte) bool {
	return mayBeCompose(path) && compose.IsCompose(text)
}

// readsAsCompose is isComposeFile of a file that it reads. Reading the file later reports the error.
func readsAsCompose(path string) bool {
	if !mayBeCompose(path) {
		return false
	}
	text, err := spec.ReadPodFile(path)
	return err == nil && compose.IsCompose(text)
}

// expand is [expand] with all Compose files that the command line names as one project, in the place of the first one. A directory has a
// project of its own.
func (a *app) expand(paths []string) ([]string, error) {
	if _, err := expand(paths); err != nil {
		return nil, err
	}
	a.project.overrides = map[string][]string{}
	var kept []string
	first := ""
	for _, path := range paths {
		files, err := expand([]string{path})
		if err != nil {
			return nil, err
		}
		switch {
		case isDirectory(path):
			if files, err = a.inDirectory(path, files); err != nil {
				return nil, err
			}
			kept = append(kept, files...)
		case first == "" && readsAsCompose(path):
			first = path
			kept = append(kept, path)
		case first != "" && path != first && readsAsCompose(path):
			a.project.overrides[first] = append(a.project.overrides[first], path)
		default:
			kept = append(kept, path)
		}
	}
	return kept, nil
}

// inDirectory returns the files of a directory with its Compose file as a project, with the file that overrides it.
func (a *app) inDirectory(dir string, files []string) ([]string, error) {
	var projects, rest []string
	for _, path := range files {
		if readsAsCompose(path) {
			projects = append(projects, path)
		} else {
			rest = append(rest, path)
		}
	}
	if len(projects) <= 1 {
		return files, nil
	}
	found, err := compose.Find(dir)
	if err != nil || !slices.Contains(projects, found[0]) {
		return nil, &failure{
			status: statusUsage, err: fmt.Errorf("directory %s has several Compose files: %s", dir, strings.Join(projects, ", ")),
			hints: []string{"use the names of the files of one project"},
		}
	}
	for _, path := range projects {
		if !slices.Contains(found, path) {
			a.note("%s is not read: the project of a directory is that of %s", path, found[0])
		}
	}
	a.project.overrides[found[0]] = found[1:]
	return append(rest, found[0]), nil
}

// acceptParts is [spec.Options.AcceptParts], also for a Compose file.
func (a *app) acceptParts(ctx context.Context, path string, text []byte, o spec.Options) ([]spec.Part, spec.Problems, error) {
	if !isComposeFile(path, text) {
		parts, problems := o.AcceptParts(path, text)
		return parts, problems, nil
	}
	r, err := a.convertProject(ctx, path, o.AllowLoss, a.project.profiles)
	if r != nil {
		a.project.reads, a.project.triggers = append(a.project.reads, r.Files...), append(a.project.triggers, r.Triggers...)
	}
	if err != nil || r.Manifest == nil {
		return nil, problemsOr(r), err
	}
	for _, claim := range r.Claims {
		if slices.Contains(r.Named, claim) {
			continue
		}
		if a.project.claims == nil {
			a.project.claims = map[string]string{}
		}
		a.project.claims[claim] = r.Project
	}
	parts, problems := o.AcceptParts(path, r.Manifest)
	return parts, slices.Concat(r.Problems, problems.Errors()), nil
}

func problemsOr(r *compose.Result) spec.Problems {
	if r == nil {
		return nil
	}
	return r.Problems
}

// convertProject converts the project of a Compose file, in a process of its own.
func (a *app) convertProject(ctx context.Context, path string, allowLoss bool, profiles []string) (*compose.Result, error) {
	q := compose.Request{
		Version: version, Names: append([]string{path}, a.project.overrides[path]...), Profiles: profiles, Project: a.project.name,
		AllowLoss: allowLoss, Environment: os.Environ(),
	}
	absolute := func(to *[]string, paths []string) error {
		for _, path := range paths {
			path, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			*to = append(*to, path)
		}
		return nil
	}
	if err := errors.Join(
		absolute(&q.Files, q.Names), absolute(&q.EnvFiles, a.project.envFiles), absolute(&q.AllowedDirs, a.project.dirs),
	); err != nil {
		return nil, err
	}
	q.Dir = filepath.Dir(q.Files[0])
	program := a.converter()
	if program == "" {
		return nil, &failure{
			err:   fmt.Errorf("convert %s: the program %s is not installed", path, compose.Program),
			hints: []string{daemon.InstallHint(compose.Program)},
		}
	}
	r, err := compose.Convert(ctx, program, &q)
	if errors.Is(err, compose.ErrVersion) {
		err = &failure{err: err, hints: []string{
			"try again after an upgrade; otherwise " + daemon.InstallHint(compose.Program),
		}}
	}
	return r, err
}

// defaultProject returns the Compose files of the current directory, for commands that docker compose has too.
func defaultProject(cmd *cobra.Command) ([]string, error) {
	files, err := compose.Find(".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage(cmd, "%s requires pod files: the current directory has no compose.yaml", commandName(cmd))
	}
	return files, err
}

// otherProject returns an error if a pod of a Compose file has the name of one that exists and does not belong to the project.
func otherProject(file *applied, before []api.Pod) error {
	if file.project == "" {
		return nil
	}
	i := slices.IndexFunc(before, func(p api.Pod) bool { return p.Metadata.Name == file.pod })
	if i < 0 || before[i].Metadata.Labels[spec.ProjectLabel] == file.project {
		return nil
	}
	owner := "exists, and is not of this project"
	if project := before[i].Metadata.Labels[spec.ProjectLabel]; project != "" {
		owner = fmt.Sprintf("belongs to project %q", project)
	}
	return &failure{
		status: statusFailed, err: fmt.Errorf("apply pod %q: the pod %s", file.pod, owner),
		hints: []string{"rename the service, or delete the other pod with podstead delete " + file.pod},
	}
}

// checkClaims returns an error if a persistent volume of a Compose file has the name of one that belongs to another project: projects a
// and a-b have the volume a-b-c, if that is b-c of one and c of the other. Volumes that the file names may be shared.
func (a *app) checkClaims(ctx context.Context, c *client.Client) error {
	if len(a.project.claims) == 0 {
		return nil
	}
	list, err := c.Volumes(ctx)
	if err != nil {
		return err
	}
	for _, v := range list.Items {
		if project := a.project.claims[v.Name]; project != "" && v.Project != "" && v.Project != project {
			return &failure{
				status: statusFailed, err: fmt.Errorf("volume %q belongs to project %q, not to project %q", v.Name, v.Project, project),
				hints: []string{"change the name of the volume in the Compose file"},
			}
		}
	}
	return nil
}

// projectOf returns the project of a pod of a Compose file.
func projectOf(path string, pod *spec.Pod) string {
	if !readsAsCompose(path) {
		return ""
	}
	return pod.Labels[spec.ProjectLabel]
}
