package podfiles

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// ApplyOptions are options of [Set.Apply].
type ApplyOptions struct {
	DryRun bool   // plan only
	Create bool   // the pod must not exist
	By     string // the client, for people
}

// ConflictError reports that other files or pods do not allow a change of files.
type ConflictError struct {
	Message string
	Hint    string // what to do; may be empty
}

func (e *ConflictError) Error() string { return e.Message }

func conflictf(format string, args ...any) *ConflictError {
	return &ConflictError{Message: fmt.Sprintf(format, args...)}
}

// Apply writes a pod file into the directory, and has it carried out. The file of the same pod is replaced, whatever its name; otherwise
// the file is named after the pod. It returns when the file is written and synced, before the pod is ready; [Set.Files] has the new content
// then. The error is [spec.Problems] if the file is invalid, a [*supervisor.NameTakenError] if a client has created the pod of that name,
// and a [*ConflictError] if the file is that of another pod or a symbolic link. It does not name the operation.
//
// An image archive of the pod that was replaced, and an image that was imported, are a change of the containers that use an earlier one.
func (s *Set) Apply(ctx context.Context, file *spec.Accepted, o ApplyOptions) (Plan, error) {
	if file.Pod == nil {
		return Plan{}, file.Problems.Errors()
	}
	pod := file.Pod.Name
	began := s.pods.Now()
	images, err := s.pods.NewerImages(ctx, file.Pod) // it may have to read archives, for which no other pod waits
	if err != nil {
		return Plan{}, err
	}
	if err := s.begin(ctx); err != nil {
		return Plan{}, err
	}
	defer s.turn.Unlock()
	f := &s.facts
	next, replaced, err := f.place(file)
	if err != nil {
		return Plan{}, err
	}
	path := next.path
	if err := s.checkOverwrite(ctx, pod, path, file.Text, replaced); err != nil {
		return Plan{}, err
	}
	division, err := s.divide(ctx, pod, append(slices.Clone(replaced), path))
	if err != nil {
		return Plan{}, err
	}
	replaced = division.without(replaced)
	unloaded := s.load(ctx)
	a, err := f.apply(next, replaced, images, began, o.Create)
	switch {
	case err != nil:
		return Plan{}, err
	case unloaded != nil:
		return Plan{}, unloaded
	case o.DryRun:
		return a.plan, nil
	}
	defer s.wake()
	f.applied[path] = applied{next.digest, o.By}
	delete(f.attempts, pod) // a step that failed is repeated
	err = s.change(ctx, func() error {
		if err := division.write(); err != nil {
			return err
		}
		return write(path, file.Text, replaced)
	})
	if err != nil {
		return Plan{}, err
	}
	s.divideFacts(ctx, division, "the division of "+path)
	s.written(next, replaced)
	delete(f.newer, pod)
	if a.newest != nil {
		f.newer[pod] = newer{next.digest, a.newest}
	}
	if a.retry {
		s.retry(ctx, pod)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "pod file applied", slog.String("pod", pod), slog.String("file", path), slog.String("by", o.By))
	return a.plan, nil
}

// application is what applying a file does.
type application struct {
	plan   Plan
	newest map[string]lifecycle.Image // newer images that the pod is to use; nil: none
	retry  bool                       // the file is carried out again in place of which another generation runs
}

// apply decides what a content does that replaces the files of its pod, with the images that were the newest when an instant came. With
// create, the pod must not exist, and no valid file may define it.
func (f *facts) apply(
	next *content, replaced []string, images map[string]lifecycle.Image, at lifecycle.Instant, create bool,
) (application, error) {
	name := next.pod.Name
	a := application{plan: Plan{Pod: name, File: next.path, Outcome: api.PodCreated, Replaced: replaced, SpecHash: next.pod.Hash}}
	plan := &a.plan
	p, exists := f.pods[name]
	if exists && !p.deleting {
		changesUnit := p.unit && next.pod.Systemd != nil && f.contents[next.path] != nil // systemctl reload carries it out
		if p.file == "" && !p.unowned && !changesUnit {
			return application{}, &supervisor.NameTakenError{Name: p.name, Holder: p.by}
		}
		byImages := supervisor.ImageChanges(p.snapshot, next.pod, images)
		plan.Outcome, plan.Changes = api.PodUnchanged, slices.Concat(f.between(&p, next), byImages)
		change.Sort(plan.Changes)
		if len(plan.Changes) > 0 {
			plan.Outcome = api.PodConfigured
		} else if p.unit || p.file == next.path { // otherwise the pod gets the definition of the file that it follows then
			plan.SpecHash = p.definition.Hash
		}
		if len(byImages) > 0 {
			a.newest = images
		}
	}
	if before := f.defining(name); !exists && next.pod.Schedule != nil && before != nil && before.pod.Schedule != nil {
		plan.Outcome, plan.Changes = api.PodUnchanged, f.compare(before.pod, next.pod)
		if len(plan.Changes) > 0 || before.path != next.path {
			plan.Outcome = api.PodConfigured
		}
		for i := range plan.Changes { // what runs is not changed
			plan.Changes[i].Container, plan.Changes[i].Effect = "", min(plan.Changes[i].Effect, change.NextRound)
		}
	}
	if create && (exists || f.isDefined(name)) {
		err := conflictf("pod %q already exists", name)
		err.Hint = "update it with podstead apply FILE"
		return application{}, err
	}
	instead := f.instead(name)
	if len(plan.Changes) > 0 {
		plan.Undone = instead.Undo()
	}
	if instead == nil || instead.Digest != next.hex() {
		return a, nil
	}
	failed := instead.By == "" && (a.newest == nil || failedWith(f.histories[name], images))
	if failed && (len(plan.Changes) > 0 || !f.hasReturned(name, instead, at)) { // until the file or an image is changed
		a.newest = nil
		plan.Outcome, plan.Changes, plan.Instead = api.PodUnchanged, nil, instead.String()
		return a, nil
	}
	a.retry = true // a person had it undone, its images are others, or they are again those that run
	return a, nil
}

// hasReturned reports whether a pod had the images of the generation that runs in place of its file when an instant came.
func (f *facts) hasReturned(name string, instead *Instead, at lifecycle.Instant) bool {
	p, exists := f.pods[name]
	return exists && !p.deleting && p.snapshot.Facts.Trial.Since.Before(at) &&
		len(supervisor.ImageChanges(p.snapshot, p.definition, instead.Definition.Images)) == 0
}

// isDefined reports whether a valid file defines a pod.
func (f *facts) isDefined(name string) bool {
	for c := range f.each() {
		if c.pod != nil && c.pod.Name == name {
			return true
		}
	}
	return false
}

// place decides where a file is written, and which files of its pod it replaces under another name.
func (f *facts) place(file *spec.Accepted) (next *content, replaced []string, err error) {
	name, extension := file.Pod.Name, spec.Extension(file.Path, file.Text)
	path := filepath.Join(f.path, spec.FileName(name)+extension)
	same, broken := f.pathsOf(name)
	if len(same) > 1 {
		err := conflictf("it is defined by %s", strings.Join(same, " and "))
		err.Hint = "remove all but one of these files"
		return nil, nil, err
	}
	for _, p := range slices.Concat(same, broken) {
		if _, is := file.At(p); is && filepath.Ext(p) == extension && f.contents[p].others == nil {
			path = p
			break
		}
	}
	if c := f.contents[path]; c != nil && c.pod != nil && !c.has(name) {
		return nil, nil, conflictf("file %s defines pod %q", path, c.pod.Name)
	}
	d := f.planFiles()
	for _, p := range append([]string{path}, broken...) {
		if other := f.heldBy(p, name, &d); other != "" {
			return nil, nil, conflictf("file %s is the file of pod %q", p, other)
		}
	}
	moved, is := file.At(path)
	if !is {
		return nil, nil, fmt.Errorf("the file defines pod %q", baseName(path))
	}
	sum := sha256.Sum256(file.Text)
	next = &content{path: path, text: sum, digest: sum, pod: moved.Pod, problems: moved.Problems}
	replaced = slices.DeleteFunc(slices.Concat(same, broken), func(p string) bool { return p == path })
	return next, replaced, nil
}

// fileMode is the mode of files that clients apply. Commands and environment variables may contain passwords, and only the daemon reads
// them.
const fileMode fs.FileMode = 0o600

// existing is a file that is about to be overwritten or removed, as it is at this moment.
type existing struct {
	path string
	link string // what it points to; empty: it is no link
	text []byte // nil: it cannot be read
}

// checkOverwrite returns why the files that an applied text replaces must be kept. A file that was saved a moment ago is not in the listing
// yet, and may define another pod. A link leads to a file elsewhere, and the next change of that file would be lost.
// s.turn must be held.
func (s *Set) checkOverwrite(ctx context.Context, pod, path string, text []byte, replaced []string) error {
	paths := append(slices.Clone(replaced), path)
	found, err := disk.Call(context.WithoutCancel(ctx), s.disk, func() ([]existing, error) { return inspect(paths) })
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.link != "" && (f.path != path || string(f.text) != string(text)) {
			err := conflictf("file %s is a symbolic link to %s", f.path, f.link)
			err.Hint = "change " + f.link + ", or remove the link"
			return err
		}
		if known := s.facts.contents[f.path]; f.text == nil || known != nil && known.text == sha256.Sum256(f.text) {
			continue
		}
		c, err := disk.Call(context.WithoutCancel(ctx), s.referenced(f.path), func() (*content, error) {
			return s.accept(f.path, f.text), nil
		})
		if err != nil {
			return err
		}
		for d := range c.all() {
			if d.pod != nil && d.pod.Name != pod {
				return conflictf("file %s defines pod %q", f.path, d.pod.Name)
			}
		}
	}
	return nil
}

// inspect returns those of some files that exist.
func inspect(paths []string) ([]existing, error) {
	var found []existing
	for _, path := range paths {
		info, err := os.Lstat(path)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := existing{path: path}
		if info.Mode()&fs.ModeSymlink != 0 {
			if f.link, err = os.Readlink(path); err != nil {
				return nil, err
			}
		}
		f.text, _ = spec.ReadPodFile(path) // the listing reports the error
		found = append(found, f)
	}
	return found, nil
}

// write writes a file, unless it has that text, and removes the files that it replaces. A link with that text is kept.
func write(path string, text []byte, replaced []string) error {
	before, info, err := spec.ReadFile(path, int64(len(text)))
	if err != nil || string(before) != string(text) || info.Mode().Perm()&^fileMode != 0 && !isLink(path) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Write(path, text, fileMode); err != nil {
			return err
		}
	}
	return removeFiles(replaced)
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// change changes files. If it times out, the change may happen later. s.turn must be held.
func (s *Set) change(ctx context.Context, do func() error) error {
	_, err := disk.Call(context.WithoutCancel(ctx), s.disk, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// written shows the content of a file that was written, and no longer shows the files that it replaces. s.turn must be held.
func (s *Set) written(c *content, replaced []string) {
	f := &s.facts
	for _, old := range replaced {
		delete(f.contents, old)
		delete(f.present, old)
	}
	f.contents[c.path], f.present[c.path] = c, true
	d := f.plan()
	s.publish(&d)
}
