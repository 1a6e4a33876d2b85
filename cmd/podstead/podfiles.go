package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

// podFileExtensions are the extensions of pod files in a directory.
var podFileExtensions = []string{".toml", ".yaml", ".yml", ".json"}

// errInvalidFile is the error of a pod file whose problems are printed already.
var errInvalidFile = errors.New("the pod file is invalid")

// invalidFiles joins the errors of pod files, without those whose problems were printed before.
func invalidFiles(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, errInvalidFile) })
	return &failure{status: statusUsage, err: cmp.Or(errors.Join(errs...), errInvalidFile)}
}

// fileFlag adds the flag -f, which kubectl users expect. Its values and the arguments are the same, so that the help has it only in the
// usage.
func fileFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringSliceVarP(files, "filename", "f", nil, "pod `file` or directory, as the arguments")
	_ = cmd.RegisterFlagCompletionFunc("filename", completeFiles)
	hide(cmd, "filename")
}

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

// fileArguments requires pod files, and standard input at most once.
func fileArguments(cmd *cobra.Command, args []string) error {
	if err := stdinOnce(cmd, args); err != nil {
		return err
	}
	return minOneArgument("a pod file")(cmd, args)
}

// stdinOnce rejects files that name standard input more than once.
func stdinOnce(cmd *cobra.Command, args []string) error {
	if first := slices.Index(args, spec.Stdin); first >= 0 && slices.Contains(args[first+1:], spec.Stdin) {
		return usage(cmd, "%s: standard input can be read only once", commandName(cmd))
	}
	return nil
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

// readFile reads a file that must define one pod, and prints its problems and warnings. The error of an invalid file wraps
// [errInvalidFile].
func (a *app) readFile(path string, o spec.Options, strict admission.Level) (*spec.Pod, string, error) {
	text, err := a.readText(path)
	if err != nil {
		return nil, "", err
	}
	pod, err := a.acceptFile(path, text, o, strict)
	return pod, string(text), err
}

// readParts reads a file that may define several pods, and prints its problems and warnings. All of them must be valid. The error of an
// invalid file wraps [errInvalidFile].
func (a *app) readParts(ctx context.Context, path string, o spec.Options, strict admission.Level) ([]spec.Part, error) {
	parts, problems, err := a.checkParts(ctx, path, o)
	if err != nil {
		return nil, err
	}
	a.problems(problems)
	if len(problems.Errors()) > 0 || !a.meetLevel(path, parts, strict) {
		return nil, fmt.Errorf("%s: %w", path, errInvalidFile)
	}
	return parts, nil
}

// checkParts reads a file that may define several pods. If one of the problems is an error, there are no parts.
func (a *app) checkParts(ctx context.Context, path string, o spec.Options) ([]spec.Part, spec.Problems, error) {
	text, err := a.readText(path)
	if err != nil {
		return nil, nil, err
	}
	return a.acceptParts(ctx, path, text, besides(o, path))
}

// meetLevel is [checkLevel] for the pods of a file.
func (a *app) meetLevel(path string, parts []spec.Part, level admission.Level) bool {
	valid := true
	for i := range parts {
		valid = valid && checkLevel(a.err, path, parts[i].Pod, level)
	}
	return valid
}

// textOf returns the text of a pod of a file as a file of its own, and prints its problems.
func (a *app) textOf(path string, p *spec.Part) (string, error) {
	text, err := p.Text()
	if problems, is := errors.AsType[spec.Problems](err); is {
		a.problems(problems)
		return "", fmt.Errorf("%s: %w", path, errInvalidFile)
	}
	return string(text), err
}

// acceptFile is readFile for a file that was read.
func (a *app) acceptFile(path string, text []byte, o spec.Options, strict admission.Level) (*spec.Pod, error) {
	pod, problems := o.Accept(path, text)
	a.problems(problems)
	if pod == nil || !checkLevel(a.err, path, pod, strict) {
		return nil, fmt.Errorf("%s: %w", path, errInvalidFile)
	}
	return pod, nil
}

// readText returns the content of a file or of standard input.
func (a *app) readText(path string) ([]byte, error) {
	if path == spec.Stdin {
		text, err := io.ReadAll(io.LimitReader(a.in, maxStdin))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		if compose.IsCompose(text) {
			return nil, &failure{
				status: statusUsage, err: errors.New("read standard input: a Compose file needs its directory"),
				hints: []string{"pass the file by its name, such as podstead apply FILE"},
			}
		}
		return text, nil
	}
	return spec.ReadPodFile(path)
}

// maxStdin bounds what is read of standard input, in bytes. It is larger than the maximum size of a pod file.
const maxStdin = 2 << 20

// readPod is a pod of a file that was read.
type readPod struct {
	path string
	pod  *spec.Pod
}

// readEach reads and checks pod files. The function read returns the names of the pods of a file. All files are read, even if one is
// invalid.
func readEach(paths []string, read func(path, absolute string) ([]string, error)) error {
	var errs []error
	names := map[string]string{} // the file of each pod
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		pods, err := read(path, absolute)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, pod := range pods {
			if names[pod] != "" {
				errs = append(errs, fmt.Errorf("%s: pod %q is already defined in %s", path, pod, names[pod]))
				continue
			}
			names[pod] = path
		}
	}
	if len(errs) > 0 {
		return invalidFiles(errs)
	}
	return nil
}

// readFiles reads and checks pod files and directories for run. Nothing is started if one of them is invalid.
func (a *app) readFiles(
	cmd *cobra.Command, paths []string, o spec.Options, level admission.Level,
) (requests []api.CreateRequest, err error) {
	if paths, err = a.expand(paths); err != nil {
		return nil, err
	}
	if o.MaxReplicas, err = a.maxReplicas(cmd); err != nil {
		return nil, err
	}
	o.Others = others(paths)
	var pods []readPod
	err = readEach(paths, func(path, absolute string) (names []string, err error) {
		o.Suffix = spec.NameSuffix()
		parts, err := a.readParts(cmd.Context(), path, o, level)
		for i := range parts {
			text, err := a.textOf(path, &parts[i])
			if err != nil {
				return nil, err
			}
			requests = append(requests, api.CreateRequest{File: absolute, Text: text, Suffix: o.Suffix})
			pods, names = append(pods, readPod{path, parts[i].Pod}), append(names, parts[i].Name)
		}
		return names, err
	})
	if err == nil {
		err = a.checkRead(cmd, paths, pods)
	}
	return requests, err
}

// checkRead checks the pods of files that were read, together.
func (a *app) checkRead(cmd *cobra.Command, paths []string, pods []readPod) error {
	switch {
	case len(a.waitCycles(cmd, pods)) > 0:
		return invalidFiles(nil)
	case len(pods) == 0 && len(paths) > 0:
		return &failure{status: statusUsage, err: errors.New("the files define no pod")}
	}
	return nil
}

// applied is a pod that is applied.
type applied struct {
	pod     string
	project string   // of its Compose file; empty: it has none
	reads   []string // see [spec.Pod.ReadFiles]
	request api.ApplyRequest
}

// readApplied reads and checks pod files and directories for apply and plan, with the value of --policy. Nothing is applied if one of them
// is invalid.
func (a *app) readApplied(cmd *cobra.Command, paths []string, o spec.Options, policy string) (list []applied, err error) {
	level, err := a.level(cmd, policy)
	if err != nil {
		return nil, err
	}
	if paths, err = a.expand(paths); err != nil {
		return nil, err
	}
	var pods []readPod
	c, err := a.config(cmd)
	if err != nil {
		return nil, err
	}
	o.Archives, o.MaxReplicas, o.Lint = true, int(c.Pods.MaxReplicas), a.lint(cmd, c)
	o.Others = others(paths)
	err = readEach(paths, func(path, absolute string) (names []string, err error) {
		parts, err := a.readParts(cmd.Context(), path, o, level)
		for i := range parts {
			file, err := a.relocated(path, absolute, &parts[i])
			if err != nil {
				return nil, err
			}
			request := api.ApplyRequest{File: absolute, Text: string(file.Text)}
			list = append(list, applied{file.Pod.Name, projectOf(path, file.Pod), file.Pod.ReadFiles(), request})
			pods, names = append(pods, readPod{path, file.Pod}), append(names, file.Pod.Name)
		}
		return names, err
	})
	if err == nil {
		err = a.checkRead(cmd, paths, pods)
	}
	return list, err
}

// others returns the manifests among files, whose objects the pods of all of them use; nil: there is one file only. A file that cannot be
// read is reported when it is read itself.
func others(paths []string) []spec.OtherFile {
	if len(paths) < 2 {
		return nil
	}
	list := []spec.OtherFile{}
	for _, path := range paths {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			continue
		}
		if text, err := spec.ReadPodFile(path); err == nil {
			list = append(list, spec.OtherFile{Path: path, Data: text})
		}
	}
	return list
}

// besides returns options with the other files besides one.
func besides(o spec.Options, path string) spec.Options {
	o.Others = slices.DeleteFunc(slices.Clone(o.Others), func(other spec.OtherFile) bool { return other.Path == path })
	return o
}

// lint returns the options of warnings of pod files on this host.
func (a *app) lint(cmd *cobra.Command, c *config.Config) *spec.Lint {
	return &spec.Lint{ShutdownGracePeriod: c.Pods.ShutdownGracePeriod.Duration(), Programs: a.programs(cmd, c)}
}

// programs returns a function that looks for programs in the images of this host, see [spec.Lint]. It finds none if the daemon is not
// running, does not respond or refuses the request, and after presentTimeout for all images together.
func (a *app) programs(cmd *cobra.Command, c *config.Config) func(string, []string) (map[string]string, []string) {
	var refused bool
	var took time.Duration
	known := map[string]api.ImageDetail{}
	return func(image string, names []string) (map[string]string, []string) {
		key := image + " " + strings.Join(names, " ")
		d, asked := known[key]
		if !asked && !refused && took < presentTimeout {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(cmd.Context(), presentTimeout-took)
			defer cancel()
			daemon, _ := newClient(cmd, c)
			defer daemon.Close()
			var err error
			if d, err = a.running(daemon).InspectImage(ctx, image, "", names...); err != nil {
				e, answered := errors.AsType[*api.Error](err)
				refused = !answered || e.Status == http.StatusForbidden
			}
			took += time.Since(begun)
			known[key] = d
		}
		if d.Archive || d.Foreign { // the pod does not see this image
			return nil, nil
		}
		return d.Programs, d.SearchPath
	}
}

// maxReplicas returns how many pods of one object this host accepts.
func (a *app) maxReplicas(cmd *cobra.Command) (int, error) {
	c, err := a.config(cmd)
	if err != nil {
		return 0, err
	}
	return int(c.Pods.MaxReplicas), nil
}

// relocated returns a pod of a file as a file of its own. Paths and a generated name are fixed, so that a request that is repeated defines
// the same pod.
func (a *app) relocated(path, absolute string, p *spec.Part) (file spec.Accepted, err error) {
	text, err := a.textOf(path, p)
	if err != nil {
		return file, err
	}
	file, problems, err := spec.AcceptRelocated(absolute, []byte(text))
	unmovable, is := errors.AsType[spec.Problems](err)
	if is {
		problems = unmovable
	}
	if is || file.Pod == nil {
		a.problems(problems.Errors())
		return file, fmt.Errorf("%s: %w", path, errInvalidFile)
	}
	return file, nil
}

// lossFlags adds the flags for what a file has that is not taken. The flag for details has a short form, which may be empty.
func lossFlags(cmd *cobra.Command, o *spec.Options, short string) {
	cmd.Flags().BoolVar(&o.AllowLoss, "allow-loss", false, "take a file although some of its fields or objects are not supported")
	cmd.Flags().BoolVarP(&o.Verbose, "verbose", short, false, "print also which fields are ignored because only a cluster uses them")
}

func levelFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "policy", "", "Pod Security Standards `level` for the pod files, at least as strict as the host's: "+
		strings.Join(admission.Levels(), ", ")+" (default the host's podSecurity)")
}

// level returns the level of the flag --policy, "" if it is not set. It must not be less strict than that of the host.
func (a *app) level(cmd *cobra.Command, value string) (admission.Level, error) {
	if value == "" {
		return "", nil
	}
	c, err := a.config(cmd)
	if err != nil {
		return "", err
	}
	level, host := admission.Level(value), c.Policy.PodSecurity
	switch {
	case !slices.Contains(admission.Levels(), value):
		return "", usage(cmd, "--policy %q: must be one of %s", value, strings.Join(admission.Levels(), ", "))
	case !level.Includes(admission.Level(host)):
		return "", usage(cmd, "--policy %s: must be at least as strict as podSecurity of this host, %s", value, host)
	}
	return level, nil
}

// checkLevel prints what a pod requests beyond the level baseline, and its violations of the level. It reports whether there are none of
// the latter.
func checkLevel(w io.Writer, path string, pod *spec.Pod, level admission.Level) bool {
	noteBeyondBaseline(w, path, pod)
	violations := admission.CheckLevel(pod, level)
	for i := range violations {
		fmt.Fprintf(w, "%s: %s: %s\n", plain.Text(path), plain.Text(violations[i].Field), plain.Text(violations[i].Message))
	}
	return len(violations) == 0
}

// noteBeyondBaseline prints what a pod requests beyond the level baseline. Host ports are no news: they are how a single host publishes a
// port.
func noteBeyondBaseline(w io.Writer, path string, pod *spec.Pod) {
	requests := slices.DeleteFunc(admission.BeyondBaseline(pod), func(r string) bool { return strings.HasPrefix(r, "hostPort ") })
	if len(requests) > 0 {
		fmt.Fprintf(w, "%s: exceeds the baseline Pod Security Standard: %s\n", plain.Text(path), plain.Text(strings.Join(requests, ", ")))
	}
}

// presentTimeout bounds how long a command that checks pod files waits for the daemon.
const presentTimeout = 5 * time.Second

// waitCycles prints which of the pods wait for each other, also through pods of this host, and returns the cycles. The daemon sees one file
// after the other, so that it would accept the first.
func (a *app) waitCycles(cmd *cobra.Command, list []readPod) [][]string {
	if !waitForPods(list) {
		return nil
	}
	return a.cyclesAmong(list, a.present(cmd))
}

// waitForPods reports whether some of the pods wait for pods.
func waitForPods(list []readPod) bool {
	return slices.ContainsFunc(list, func(r readPod) bool { return len(r.pod.WaitsForPods()) > 0 })
}

// cyclesAmong is waitCycles with other pods that exist.
func (a *app) cyclesAmong(list []readPod, present []*spec.Pod) [][]string {
	cycles := cyclesOf(list, present)
	for _, cycle := range cycles {
		i := slices.IndexFunc(list, func(r readPod) bool { return r.pod.Name == cycle[0] })
		fmt.Fprintln(a.err, plain.Text(fmt.Sprintf("%s: waitFor: %s", list[i].path, cycleMessage(cycle))))
		a.hint(cycleHint)
	}
	return cycles
}

// cyclesOf returns the cycles of pods that wait for each other, also through others that exist.
func cyclesOf(list []readPod, present []*spec.Pod) [][]string {
	var pods []*spec.Pod
	for _, r := range list {
		pods = append(pods, r.pod)
	}
	return spec.WaitCycles(pods, present)
}

const cycleHint = "remove one of these pods from waitFor"

func cycleMessage(cycle []string) string {
	return "pods wait for each other: " + strings.Join(cycle, " -> ")
}

// present returns the pods of this host that have not completed and are not being deleted: those of the daemon or, if it is not running,
// those that it starts.
func (a *app) present(cmd *cobra.Command) []*spec.Pod { return a.onHost(cmd).active }

// hostPods are the pods of this host, without those that are being deleted.
type hostPods struct {
	active    []*spec.Pod
	completed []*spec.Pod // in a terminal phase
	all       bool        // there are no other pods on this host
}

// onHost returns the pods of the daemon or, if it is not running, those that it starts.
func (a *app) onHost(cmd *cobra.Command) (pods hostPods) {
	c, err := a.config(cmd)
	if err != nil {
		return pods
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), presentTimeout)
	defer cancel()
	client, _ := newClient(cmd, c)
	list, err := a.running(client).Pods(ctx)
	pods.all = err == nil
	for i := range list.Items {
		p := &list.Items[i]
		pod := p.Spec.Pod
		pod.Name = p.Metadata.Name
		switch {
		case p.Metadata.UID == "": // the definition is not known
			pods.all = false
		case p.Metadata.DeletionTimestamp != nil:
		case p.Status.Phase.Terminal():
			pods.completed = append(pods.completed, &pod)
		default:
			pods.active = append(pods.active, &pod)
		}
	}
	if errors.Is(err, api.ErrUnavailable) {
		pods.active, pods.all = filesOfHost(c)
	}
	return pods
}

// filesOfHost returns the pods of the pods directory, and whether the host has no others.
func filesOfHost(c *config.Config) (pods []*spec.Pod, all bool) {
	isEmpty := func(dir string) bool {
		entries, err := os.ReadDir(dir)
		return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
	}
	all = isEmpty(filepath.Join(c.StateDir, "pods")) // the daemon knows no pods
	files, err := expand([]string{c.Pods.Dir})
	if err != nil {
		return nil, all && isEmpty(c.Pods.Dir)
	}
	for _, path := range files {
		text, err := spec.ReadPodFile(path)
		if err != nil {
			all = all && errors.Is(err, os.ErrNotExist)
			continue
		}
		parts, problems := spec.Options{MaxReplicas: int(c.Pods.MaxReplicas)}.ParseParts(path, text)
		all = all && len(problems.Errors()) == 0
		for i := range parts {
			if pod := parts[i].Pod; pod != nil {
				pods = append(pods, pod)
			}
		}
	}
	return pods, all
}
