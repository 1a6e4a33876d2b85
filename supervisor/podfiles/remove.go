package podfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/spec"
)

// Remove removes the files of a pod, and returns the path of the first; empty: the pod has no file. The pod is deleted. If the file is
// missing because the directory is lost, that is confirmed.
func (s *Set) Remove(ctx context.Context, pod string) (string, error) {
	if err := s.begin(ctx); err != nil {
		return "", fmt.Errorf("remove the file of pod %q: %w", pod, err)
	}
	defer s.turn.Unlock()
	defer s.wake()
	paths, err := s.facts.filesOf(pod)
	if err != nil {
		return "", fmt.Errorf("remove the file of pod %q: %w", pod, err)
	}
	division, err := s.divide(ctx, pod, paths)
	if err != nil {
		return "", fmt.Errorf("remove the file of pod %q: %w", pod, err)
	}
	removed := division.without(paths)
	err = s.change(ctx, func() error {
		if err := division.write(); err != nil {
			return err
		}
		return removeFiles(removed)
	})
	if err != nil {
		return "", fmt.Errorf("remove the file of pod %q: %w", pod, err)
	}
	if len(division.own) > 0 {
		for _, path := range removed {
			delete(s.facts.contents, path)
			delete(s.facts.present, path)
		}
		s.divideFacts(ctx, division, "the division of a file with several pods")
	}
	if p := s.facts.pods[pod]; p.file != "" && len(division.own) == 0 {
		s.facts.confirmed[p.file] = true
	}
	if s.load(ctx) == nil {
		s.generations.drop(pod)
	}
	if len(paths) == 0 {
		return "", nil
	}
	return paths[0], nil
}

// filesOf returns the paths of the files of a pod, and an error if another pod runs from one of them.
func (f *facts) filesOf(pod string) ([]string, error) {
	var paths []string
	for c := range f.each() {
		if f.nameOf(c) == pod && !slices.Contains(paths, c.path) {
			paths = append(paths, c.path)
		}
	}
	p := f.pods[pod]
	if p.file != "" && f.present[p.file] && !slices.Contains(paths, p.file) {
		if c := f.contents[p.file]; c == nil || c.pod == nil && c.name == "" {
			paths = append(paths, p.file) // not read yet
		}
	}
	d := f.planFiles()
	for _, path := range paths {
		if other := f.heldBy(path, pod, &d); other != "" {
			return nil, conflictf("file %s is the file of pod %q", path, other)
		}
	}
	return paths, nil
}

// errUnsettled is why a loss cannot be confirmed while files change.
var errUnsettled = conflictf("pod files changed a moment ago")

// ConfirmLoss deletes the pods whose files are lost: they follow a file that does not exist, and no file defines them. It does not delete
// the pods in keep, and removes no files. It returns the paths of the missing files, by name of the pod. With dryRun, it deletes nothing.
func (s *Set) ConfirmLoss(ctx context.Context, keep []string, dryRun bool) (map[string]string, error) {
	if err := s.begin(ctx); err != nil {
		return nil, fmt.Errorf("confirm the loss of pod files: %w", err)
	}
	defer s.turn.Unlock()
	f := &s.facts
	if f.unsettled() {
		return nil, fmt.Errorf("confirm the loss of pod files: %w", errUnsettled)
	}
	paths := f.undefined(keep)
	for pod, path := range paths {
		exists, err := disk.Call(context.WithoutCancel(ctx), s.disk, func() (bool, error) { return fileExists(path) })
		if err != nil {
			return nil, fmt.Errorf("confirm the loss of the file of pod %q: %w", pod, err)
		}
		if exists {
			delete(paths, pod)
		}
	}
	if dryRun || len(paths) == 0 {
		return paths, nil
	}
	defer s.wake()
	for pod, path := range paths {
		f.confirmed[path] = true
		s.log.LogAttrs(ctx, slog.LevelInfo, "loss of a pod file confirmed", slog.String("pod", pod), slog.String("file", path))
	}
	return paths, nil
}

// undefined returns the paths of files that pods follow and that are not in the directory, by name of the pod, apart from the pods that
// a file defines or that are in keep.
func (f *facts) undefined(keep []string) map[string]string {
	defined := map[string]bool{}
	for c := range f.each() {
		defined[f.nameOf(c)] = true
	}
	paths := map[string]string{}
	for name, p := range f.pods {
		if p.file != "" && !p.deleting && p.held == "" && !f.present[p.file] && !defined[name] && !slices.Contains(keep, name) {
			paths[name] = p.file
		}
	}
	return paths
}

// fileExists reports whether a path exists. A link counts, whatever it points to.
func fileExists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

// isMissing reports whether an error means that a path does not exist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// removeFiles removes files.
func removeFiles(paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, atomicfile.Remove(path))
	}
	return errors.Join(errs...)
}

// Unknown is why it is not known which pods the files of the directory define.
type Unknown struct{ Cause, Hint string }

// Definitions returns the definitions in the files of the directory, also those that do not run, and those of files that may be
// half-written. The caller must not change them.
func (s *Set) Definitions(ctx context.Context) ([]*spec.Pod, error) {
	if err := s.begin(ctx); err != nil {
		return nil, fmt.Errorf("list the pods directory: %w", err)
	}
	defer s.turn.Unlock()
	return s.facts.definitions(), nil
}

// Claimants returns the definitions that may use persistent volumes: those of pod files and of generations. It reads the directory. With
// settle it waits for files that may be half-written. unknown is why there may be others; nil: there are none.
func (s *Set) Claimants(ctx context.Context, settle bool) (list []*spec.Pod, unknown *Unknown, err error) {
	begin := s.begin
	if settle {
		begin = s.beginSettled
	}
	if err := begin(ctx); err != nil {
		return nil, nil, fmt.Errorf("list the pods directory: %w", err)
	}
	defer s.turn.Unlock()
	if err := s.load(ctx); err != nil {
		return nil, nil, fmt.Errorf("read the generations of the pods: %w", err)
	}
	return append(s.facts.definitions(), s.generations.definitions()...), s.facts.unknown(), nil
}

// definitions returns the definitions in all files. A file that may be half-written has the one before and the newest one.
func (f *facts) definitions() (list []*spec.Pod) {
	for _, contents := range [...]map[string]*content{f.contents, f.changing} {
		for _, file := range contents {
			for c := range file.all() {
				if c.pod != nil {
					list = append(list, c.pod)
				}
			}
		}
	}
	return list
}

// unknown returns why the definitions may not be all; nil: they are.
func (f *facts) unknown() *Unknown {
	if f.directory.lost != nil {
		return &Unknown{Cause: f.directory.message(f.path), Hint: "restore the directory"}
	}
	for _, path := range slices.Sorted(maps.Keys(f.contents)) {
		if !f.contents[path].isValid() {
			return &Unknown{Cause: fmt.Sprintf("pod file %s is invalid", filepath.Base(path)), Hint: "correct or remove the file"}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(f.changing)) {
		return &Unknown{Cause: fmt.Sprintf("pod file %s changed a moment ago", filepath.Base(path)), Hint: "retry when the file is written"}
	}
	return nil
}
