package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// podFileExtensions are the extensions of pod files in a directory.
var podFileExtensions = []string{".toml", ".yaml", ".yml", ".json"}

// fileFlag adds the flag -f, which kubectl users expect. Its values and the arguments are the same, so that the help has it only in the
// usage.
func fileFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringSliceVarP(files, "filename", "f", nil, "pod `file` or directory, as the arguments")
	_ = cmd.RegisterFlagCompletionFunc("filename", completeFiles)
	hide(cmd, "filename")
}

// imageHint is the hint to arguments that look like images.
const imageHint = "podstead runs pod files, not images: set the image in a pod file, such as examples/hello.toml"

// podFileArguments requires pod files, and rejects images.
func podFileArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && !cmd.Flags().Changed("filename") && isImage(args[0]) {
		return &failure{
			status: statusUsage, err: fmt.Errorf("%s %s: no such file", commandName(cmd), args[0]),
			hints: []string{imageHint},
		}
	}
	return fileArguments(cmd, args)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// expand replaces directories by the pod files in them, without those in subdirectories.
func expand(paths []string) ([]string, error) {
	var files []string
	var errs []error
	for _, path := range paths {
		if !isDirectory(path) { // reading the file reports the error
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found := len(files)
		for _, e := range entries {
			if name := e.Name(); !e.IsDir() && name[0] != '.' && slices.Contains(podFileExtensions, filepath.Ext(name)) {
				files = append(files, filepath.Join(path, name))
			}
		}
		if len(files) == found {
			errs = append(errs, fmt.Errorf("directory %s contains no pod files (%s)", path, strings.Join(podFileExtensions, ", ")))
		}
	}
	if len(errs) > 0 {
		return nil, &failure{status: statusUsage, err: errors.Join(errs...)}
	}
	return files, nil
}

// readEach reads and checks pod files. The function read returns the pod of a file. All files are read, even if one is invalid.
func readEach(paths []string, read func(path, absolute string) (*spec.Pod, error)) error {
	var errs []error
	names := map[string]string{} // the file of each pod
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		pod, err := read(path, absolute)
		switch {
		case err != nil:
			errs = append(errs, err)
		case names[pod.Name] != "":
			errs = append(errs, fmt.Errorf("%s: pod %q is already defined in %s", path, pod.Name, names[pod.Name]))
		default:
			names[pod.Name] = path
		}
	}
	if len(errs) > 0 {
		return invalidFiles(errs)
	}
	return nil
}

// readFiles reads and checks pod files and directories for run. Nothing is started if one of them is invalid.
func (a *app) readFiles(cmd *cobra.Command, paths []string, level admission.Level) (requests []api.CreateRequest, err error) {
	if paths, err = expand(paths); err != nil {
		return nil, err
	}
	var pods []readPod
	err = readEach(paths, func(path, absolute string) (*spec.Pod, error) {
		suffix := spec.NameSuffix()
		pod, text, err := a.readFile(path, spec.Options{Suffix: suffix}, level)
		requests = append(requests, api.CreateRequest{File: absolute, Text: text, Suffix: suffix})
		pods = append(pods, readPod{path, pod})
		return pod, err
	})
	if err == nil && len(a.waitCycles(cmd, pods)) > 0 {
		err = invalidFiles(nil)
	}
	return requests, err
}

// applied is a pod file that is applied.
type applied struct {
	pod     string
	request api.ApplyRequest
}

// readApplied reads and checks pod files and directories for apply and plan, with the value of --policy. Nothing is applied if one of them
// is invalid.
func (a *app) readApplied(cmd *cobra.Command, paths []string, policy string) (list []applied, err error) {
	level, err := a.level(cmd, policy)
	if err != nil {
		return nil, err
	}
	if paths, err = expand(paths); err != nil {
		return nil, err
	}
	var pods []readPod
	err = readEach(paths, func(path, absolute string) (*spec.Pod, error) {
		_, text, err := a.readFile(path, spec.Options{Archives: true}, level)
		if err != nil {
			return nil, err
		}
		// Paths and a generated name are fixed here, so that a request that is repeated defines the same pod.
		file, problems, err := spec.AcceptRelocated(absolute, []byte(text))
		pod := file.Pod
		if unmovable, is := errors.AsType[spec.Problems](err); is {
			pod, problems = nil, unmovable
		}
		if pod == nil {
			for _, p := range problems.Errors() {
				a.problem(api.Problem(p))
			}
			return nil, fmt.Errorf("%s: %w", path, errInvalidFile)
		}
		list = append(list, applied{pod.Name, api.ApplyRequest{File: absolute, Text: string(file.Text)}})
		pods = append(pods, readPod{path, pod})
		return pod, nil
	})
	if err == nil && len(a.waitCycles(cmd, pods)) > 0 {
		err = invalidFiles(nil)
	}
	return list, err
}
