package podfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/diskcall"
)

// errUnsettled is why a loss cannot be confirmed while files change.
var errUnsettled = conflictf("pod files changed a moment ago")

// ConfirmLoss deletes the pods whose files are lost: they follow a file that does not exist, and no file defines them. It does not delete
// the pods in keep, and removes no files. It returns the paths of the missing files, by name of the pod. With dryRun, it deletes nothing.
func (s *Set) ConfirmLoss(ctx context.Context, keep []string, dryRun bool) (map[string]string, error) {
	if err := s.begin(ctx); err != nil {
		return nil, fmt.Errorf("confirm the loss of pod files: %w", err)
	}
	defer s.turn.Unlock()
	w := &s.world
	if w.unsettled {
		return nil, fmt.Errorf("confirm the loss of pod files: %w", errUnsettled)
	}
	paths := w.undefined(keep)
	for pod, path := range paths {
		exists, err := diskcall.Do(context.WithoutCancel(ctx), s.disk, func() (bool, error) { return fileExists(path) })
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
		w.confirmed[path] = true
		s.log.LogAttrs(ctx, slog.LevelInfo, "loss of a pod file confirmed", slog.String("pod", pod), slog.String("file", path))
	}
	return paths, nil
}

// undefined returns the paths of files that pods follow and that are not in the directory, by name of the pod, apart from the pods that
// a file defines or that are in keep.
func (w *world) undefined(keep []string) map[string]string {
	defined := map[string]bool{}
	for _, c := range w.contents {
		defined[w.nameOf(c)] = true
	}
	paths := map[string]string{}
	for name, p := range w.pods {
		if p.file != "" && !p.deleting && p.held == "" && !w.present[p.file] && !defined[name] && !slices.Contains(keep, name) {
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
