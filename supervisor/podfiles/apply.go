package podfiles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/diskcall"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/generation"
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

// Apply writes a pod file into the directory, and has it carried out. Text is what [spec.Relocate] returns, pod what it defines. The file
// of the same pod is replaced, whatever its name; otherwise the file is named after the pod. It returns when the file is written and
// synced, before the pod is ready; [Set.Files] has the new content then. The error is [spec.Problems] if the text is invalid, a
// [*supervisor.NameTakenError] if a client has created the pod of that name, and a [*ConflictError] if the file is that of another pod or a
// symbolic link. It does not name the operation.
//
// An image archive of the pod that was replaced, and an image that was imported, are a change of the containers that use an earlier one.
func (s *Set) Apply(ctx context.Context, pod *spec.Pod, extension string, text []byte, o ApplyOptions) (Plan, error) {
	began := s.pods.Now()
	images, err := s.pods.NewerImages(ctx, pod) // it may have to read archives, for which no other pod waits
	if err != nil {
		return Plan{}, err
	}
	if err := s.begin(ctx); err != nil {
		return Plan{}, err
	}
	defer s.turn.Unlock()
	path, replaced, err := s.place(ctx, pod.Name, "."+strings.TrimPrefix(extension, "."), text)
	if err != nil {
		return Plan{}, err
	}
	if err := s.checkOverwrite(ctx, pod.Name, path, text, replaced); err != nil {
		return Plan{}, err
	}
	next, err := s.accept(ctx, path, text)
	switch {
	case err != nil:
		return Plan{}, err
	case next.pod == nil:
		return Plan{}, next.problems.Errors()
	case next.pod.Name != pod.Name:
		return Plan{}, fmt.Errorf("the file defines pod %q", next.pod.Name)
	}
	plan := Plan{Pod: pod.Name, File: path, Outcome: Created, Replaced: replaced, SpecHash: next.pod.Hash}
	newest := false // newer images are requested
	if p, exists := s.world.pods[pod.Name]; exists && !p.deleting {
		changesUnit := p.unit && next.pod.Systemd != nil && s.world.contents[path] != nil // systemctl reload carries it out
		if p.file == "" && !p.unowned && !changesUnit {
			return Plan{}, &supervisor.NameTakenError{Name: p.name, Holder: p.by}
		}
		byImages := supervisor.ImageChanges(p.snapshot, next.pod, images)
		plan.Outcome, plan.Changes = Unchanged, slices.Concat(s.between(&p, next), byImages)
		change.Sort(plan.Changes)
		if len(plan.Changes) > 0 {
			plan.Outcome = Configured
		} else {
			plan.SpecHash = p.definition.Hash
		}
		newest = len(byImages) > 0
	}
	if err := s.checkCreate(pod.Name, o); err != nil {
		return Plan{}, err
	}
	if err := s.rollouts.Load(ctx); err != nil {
		return Plan{}, err
	}
	instead := s.rollouts.Instead(pod.Name)
	if len(plan.Changes) > 0 {
		plan.Undone = instead.Undo()
	}
	again := instead != nil && instead.Digest == next.hex()
	failed := again && instead.By == "" && (!newest || s.rollouts.FailedWith(pod.Name, images))
	if failed && (len(plan.Changes) > 0 || !s.hasReturned(pod.Name, instead, began)) { // until the file or an image is changed
		newest = false
		plan.Outcome, plan.Changes, plan.Instead = Unchanged, nil, instead.String()
	}
	if o.DryRun {
		return plan, nil
	}
	defer s.wake()
	s.appliedBy[path] = applied{next.digest, o.By}
	delete(s.world.attempts, pod.Name) // a step that failed is repeated
	s.trusted[path] = next.digest
	if err := s.change(ctx, func() error { return write(path, text, replaced) }); err != nil {
		return Plan{}, err
	}
	s.written(next, replaced)
	delete(s.world.newer, pod.Name)
	if newest {
		s.world.newer[pod.Name] = newer{next.digest, images}
	}
	if again && plan.Instead == "" { // a person had it undone, its images are others, or they are again those that run
		s.rollouts.Retry(ctx, pod.Name, s.world.pods[pod.Name].uid)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "pod file applied", slog.String("pod", pod.Name), slog.String("file", path), slog.String("by", o.By))
	return plan, nil
}

// hasReturned reports whether a pod had the images of the generation that runs in place of its file when an instant came. s.turn must be
// held.
func (s *Set) hasReturned(name string, instead *generation.Instead, at lifecycle.Instant) bool {
	p, exists := s.world.pods[name]
	return exists && !p.deleting && p.snapshot.Facts.Trial.Since.Before(at) &&
		len(supervisor.ImageChanges(p.snapshot, p.definition, instead.Definition.Images)) == 0
}

// checkCreate returns an error if a pod is to be created that exists, or that a valid file defines. s.turn must be held.
func (s *Set) checkCreate(name string, o ApplyOptions) error {
	_, exists := s.world.pods[name]
	for _, c := range s.world.contents {
		exists = exists || c.pod != nil && c.pod.Name == name
	}
	if !o.Create || !exists {
		return nil
	}
	return &ConflictError{Message: fmt.Sprintf("pod %q already exists", name), Hint: "update it with podstead apply FILE"}
}

// place returns the path for the file of a pod, and the files of that pod that it replaces under another name. s.turn must be held.
func (s *Set) place(ctx context.Context, name, extension string, text []byte) (path string, replaced []string, err error) {
	path = filepath.Join(s.dir, spec.FileName(name)+extension)
	var same, broken []string
	for _, p := range slices.Sorted(maps.Keys(s.world.contents)) {
		switch c := s.world.contents[p]; {
		case s.world.nameOf(c) != name:
		case c.pod == nil:
			broken = append(broken, p)
		default:
			same = append(same, p)
		}
	}
	if len(same) > 1 {
		err := conflictf("it is defined by %s", strings.Join(same, " and "))
		err.Hint = "remove all but one of these files"
		return "", nil, err
	}
	for _, p := range slices.Concat(same, broken) {
		if filepath.Ext(p) != extension {
			continue
		}
		c, err := s.accept(ctx, p, text)
		if err != nil {
			return "", nil, err
		}
		if c.pod != nil && c.pod.Name == name {
			path = p
			break
		}
	}
	if c := s.world.contents[path]; c != nil && c.pod != nil && c.pod.Name != name {
		return "", nil, conflictf("file %s defines pod %q", path, c.pod.Name)
	}
	if other := s.world.heldBy(path, name, s.world.plan().desired); other != "" {
		return "", nil, conflictf("file %s is the file of pod %q", path, other)
	}
	replaced = slices.DeleteFunc(slices.Concat(same, broken), func(p string) bool { return p == path })
	return path, replaced, nil
}

// removeFiles removes files.
func removeFiles(paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, atomicfile.Remove(path))
	}
	return errors.Join(errs...)
}

// begin locks s.turn and lists the directory, which need not exist.
func (s *Set) begin(ctx context.Context) error {
	if err := s.turn.LockContext(ctx); err != nil {
		return err
	}
	if err := s.look(context.WithoutCancel(ctx), true, nil); err != nil && !isMissing(err) {
		s.turn.Unlock()
		return err
	}
	return nil
}

// accept validates the text of a file, which may refer to other files. s.turn must be held.
func (s *Set) accept(ctx context.Context, path string, text []byte) (*content, error) {
	return diskcall.Do(context.WithoutCancel(ctx), s.referenced(path), func() (*content, error) { return accept(path, text), nil })
}

// referenced returns the disk for the files that a pod file refers to, such as env files. Each pod file has its own, so that one whose
// env file does not respond keeps no other. s.turn must be held.
func (s *Set) referenced(path string) *diskcall.Disk {
	if s.references[path] == nil {
		s.references[path] = diskcall.New(s.log)
	}
	return s.references[path]
}

// change changes files. If it times out, the change may happen later. s.turn must be held.
func (s *Set) change(ctx context.Context, do func() error) error {
	_, err := diskcall.Do(context.WithoutCancel(ctx), s.disk, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// written shows the content of a file that was written, and no longer shows the files that it replaces. s.turn must be held.
func (s *Set) written(c *content, replaced []string) {
	w := &s.world
	for _, old := range replaced {
		delete(w.contents, old)
		delete(w.present, old)
	}
	w.contents[c.path], w.present[c.path] = c, true
	s.publish(w.plan().files)
}

// Remove removes the files of a pod, and returns the path of the first; empty: the pod has no file. The pod is deleted. If the file is
// missing because the directory is lost, that is confirmed.
func (s *Set) Remove(ctx context.Context, pod string) (string, error) {
	if err := s.begin(ctx); err != nil {
		return "", fmt.Errorf("remove the file of pod %q: %w", pod, err)
	}
	defer s.turn.Unlock()
	defer s.wake()
	paths, err := s.world.filesOf(pod)
	if err != nil {
		return "", fmt.Errorf("remove the file of pod %q: %w", pod, err)
	}
	if err := s.change(ctx, func() error { return removeFiles(paths) }); err != nil {
		return "", fmt.Errorf("remove the file of pod %q: %w", pod, err)
	}
	if p := s.world.pods[pod]; p.file != "" {
		s.world.confirmed[p.file] = true
	}
	if s.rollouts.Load(ctx) == nil {
		s.rollouts.Drop(pod)
	}
	if len(paths) == 0 {
		return "", nil
	}
	return paths[0], nil
}

// filesOf returns the paths of the files of a pod, and an error if another pod runs from one of them.
func (w *world) filesOf(pod string) ([]string, error) {
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(w.contents)) {
		if w.nameOf(w.contents[path]) == pod {
			paths = append(paths, path)
		}
	}
	p := w.pods[pod]
	if p.file != "" && w.present[p.file] && !slices.Contains(paths, p.file) {
		if c := w.contents[p.file]; c == nil || c.pod == nil {
			paths = append(paths, p.file) // not read yet
		}
	}
	desired := w.plan().desired
	for _, path := range paths {
		if other := w.heldBy(path, pod, desired); other != "" {
			return nil, conflictf("file %s is the file of pod %q", path, other)
		}
	}
	return paths, nil
}
