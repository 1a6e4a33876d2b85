package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/podfiles/watch"
)

// maxFiles is the number of files that are reported.
const maxFiles = 5

// podsDirectory reports the files of the pods directory that do not run, and whether the directory is lost.
func podsDirectory(ctx context.Context, s *config.Pods, c *client.Client) result {
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	pods, err := c.Pods(ctx)
	if err != nil && !errors.Is(err, api.ErrUnavailable) {
		return result{Warn, "list pods: " + err.Error(), "restart the daemon with podstead daemon stop; containers keep running"}
	}
	var rejected map[string]api.Event // reported by a check of their own
	if err == nil {
		if rejected, err = rejections(ctx, c, time.Now()); err != nil {
			rejected = nil // that check reports the error
		}
	}
	return podsDirResult(s, pods.Items, rejected)
}

// podsDirResult lists the files that do not run: those that are invalid, and those that the daemon has refused, without the rejections. The
// directory is lost if it has no files although pods follow them.
func podsDirResult(s *config.Pods, pods []api.Pod, rejected map[string]api.Event) result {
	dir := s.Dir
	l, err := watch.NewDir(dir).List()
	missing := errors.Is(err, fs.ErrNotExist)
	followers := following(dir, pods)
	switch {
	case len(followers) > 0 && (missing || err == nil && len(l.Files) == 0):
		return lostDirectory(dir, missing, followers)
	case missing:
		return ok("%s does not exist", dir)
	case err != nil:
		return result{Warn, err.Error(), "run podstead doctor as root, or repair the directory"}
	}
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o002 != 0 {
		return result{Warn, dir + " is writable by all users, who can run pods with it", "run chmod o-w " + dir}
	}
	var problems, hints []string
	for i := range l.Files {
		if text := fileProblem(filepath.Join(dir, l.Files[i].Name), &l.Files[i], int(s.MaxReplicas)); text != "" {
			problems = append(problems, text)
		}
	}
	if len(problems) > 0 {
		hints = append(hints, "correct the files: podstead validate "+dir+" shows all problems")
	}
	refused, undone := refusedFiles(pods, rejected)
	if len(refused) > 0 {
		hints = append(hints, "podstead why POD shows what a file waits for, or why it is refused")
	}
	if len(undone) > 0 {
		hints = append(hints,
			"change the file with podstead edit POD, or its image: podstead rollout history POD shows the generations of the pod")
	}
	problems = slices.Concat(problems, refused, undone)
	if len(problems) == 0 {
		return ok("%s, pod files: %d", dir, len(l.Files))
	}
	if more := len(problems) - maxFiles; more > 0 {
		problems = append(problems[:maxFiles], fmt.Sprintf("and %d more", more))
	}
	return result{Warn, strings.Join(problems, "; "), strings.Join(hints, "; ")}
}

// fileProblem is the first error of a file; "": it is valid.
func fileProblem(path string, f *watch.File, maxReplicas int) string {
	if f.Err != nil {
		return f.Err.Error()
	}
	_, problems := spec.Options{MaxReplicas: maxReplicas}.AcceptParts(path, f.Text)
	if errs := problems.Errors(); len(errs) > 0 {
		return errs[0].String()
	}
	return ""
}

// following returns the names of the pods that follow a file of the directory.
func following(dir string, pods []api.Pod) (names []string) {
	for i := range pods {
		p := &pods[i]
		if p.Status.File != "" && filepath.Dir(p.Status.File) == filepath.Clean(dir) && p.Metadata.DeletionTimestamp == nil {
			names = append(names, p.Metadata.Name)
		}
	}
	return names
}

func lostDirectory(dir string, missing bool, pods []string) result {
	what := "has no pod files"
	if missing {
		what = "does not exist"
	}
	if more := len(pods) - maxFiles; more > 0 {
		pods = append(pods[:maxFiles], fmt.Sprintf("%d more", more))
	}
	return result{
		Warn, fmt.Sprintf("%s %s, its pods are kept: %s", dir, what, strings.Join(pods, ", ")),
		"restore the directory, or delete the pods with podstead apply --prune",
	}
}

// refusedFiles returns why the daemon does not run the newest content of files, except of those that are invalid, and of those that were
// rolled back, which are undone. The newest rejections of pods, by name, are left out.
func refusedFiles(pods []api.Pod, rejected map[string]api.Event) (refused, undone []string) {
	isReported := func(pod, message string) bool {
		_, cause, found := strings.Cut(rejected[pod].Fields["error"], ": ") // without the reason
		return found && strings.Contains(message, cause)
	}
	for i := range pods {
		p := &pods[i]
		isFile := p.Metadata.UID == "" && p.Status.Schedule == nil
		if isFile && p.Status.Reason != api.ReasonInvalidFile && !isReported(p.Metadata.Name, p.Status.Message) {
			refused = append(refused, p.Metadata.Name+": "+p.Status.Message)
		}
		for _, c := range p.Status.Conditions {
			switch {
			case c.Type != api.FileAccepted || c.Status != "False" || c.Reason == api.ReasonInvalidFile:
			case isReported(p.Metadata.Name, c.Message):
			case c.Reason == api.ReasonRolledBack, c.Reason == api.ReasonRolloutUndone:
				undone = append(undone, p.Metadata.Name+": "+c.Message)
			default:
				refused = append(refused, p.Metadata.Name+": "+c.Message)
			}
		}
	}
	return refused, undone
}
