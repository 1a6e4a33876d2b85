package filewatch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/patternmatcher"
	"golang.org/x/sys/unix"
)

// maxFiles bounds the files and directories of all trees.
const maxFiles = 20_000

// editors are patterns of files that editors and version control leave beside those of a person.
var editors = []string{"**/.git", "**/.hg", "**/*~", "**/.*.sw?", "**/.*.swpx", "**/4913", "**/.#*", "**/#*#", "**/___jb_*___"}

// Set is what is watched. All paths are absolute.
type Set struct {
	// Files need not exist. Links are followed.
	Files []string
	Trees []Tree
}

// Tree is a file, or a directory with the files below it, or a link to one of them. Links in it are not followed.
type Tree struct {
	Path string
	// Flat leaves out what is in subdirectories.
	Flat bool
	// Include are patterns of files; empty: all. Ignore are those of files that are left out, as are those of editors and of version
	// control. They have the form of .dockerignore, and are relative to Path.
	Include, Ignore []string
}

// Has reports whether a file with this absolute path is part of the tree.
func (t *Tree) Has(path string) bool {
	relative, err := filepath.Rel(t.Path, path)
	if err != nil || !filepath.IsLocal(relative) {
		return false
	}
	if path == t.Path {
		return true
	}
	include, ignore, err := t.matchers()
	if err != nil || t.Flat && strings.Contains(relative, "/") {
		return false
	}
	ignored, err := ignore.MatchesOrParentMatches(relative)
	if err != nil || ignored {
		return false
	}
	included, err := include.MatchesOrParentMatches(relative)
	return err == nil && (included || len(t.Include) == 0)
}

func (t *Tree) matchers() (include, ignore *patternmatcher.PatternMatcher, err error) {
	if ignore, err = patternmatcher.New(slices.Concat(editors, t.Ignore)); err != nil {
		return nil, nil, fmt.Errorf("watch %s: ignore: %w", t.Path, err)
	}
	if include, err = patternmatcher.New(t.Include); err != nil {
		return nil, nil, fmt.Errorf("watch %s: include: %w", t.Path, err)
	}
	return include, ignore, nil
}

// stamp identifies the content of a file. A change of the owner or the mode is none: containers change those of what they mount.
type stamp struct {
	device, inode uint64
	size          int64
	modified      unix.Timespec
}

// scan is the state of a set at one moment.
type scan struct {
	files   map[string]stamp     // those that exist
	changed map[string]time.Time // when the files were last written, renamed or created, or had their mode changed
	dirs    map[string]bool      // those whose entries can change the state; they need not exist
	failed  []string             // the paths of trees that are left out
}

func newScan() *scan {
	return &scan{files: map[string]stamp{}, changed: map[string]time.Time{}, dirs: map[string]bool{}}
}

// take returns the state of a set. After an error it lacks trees, such as one with too many files.
func take(s *Set) (*scan, error) {
	now := newScan()
	for _, path := range s.Files {
		now.add(path)
		now.dirs[filepath.Dir(path)] = true
		if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
			now.dirs[filepath.Dir(target)] = true
		}
	}
	var first error
	for _, flat := range []bool{true, false} { // many files in a tree must not hide a directory of definitions
		for i := range s.Trees {
			t := &s.Trees[i]
			if t.Flat != flat {
				continue
			}
			found, err := t.scan(len(now.files) + len(now.dirs))
			if err != nil {
				first, now.failed = cmp.Or(first, err), append(now.failed, t.Path)
				continue
			}
			maps.Copy(now.files, found.files)
			maps.Copy(now.changed, found.changed)
			maps.Copy(now.dirs, found.dirs)
		}
	}
	return now, first
}

// keep adds the files of trees that are left out, as they were in an earlier state of the set.
func (s *scan) keep(before *scan, set *Set) {
	for path, was := range before.files {
		if _, exists := s.files[path]; exists || slices.Contains(set.Files, path) {
			continue
		}
		if slices.ContainsFunc(s.failed, func(tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }) {
			s.files[path] = was
		}
	}
}

// add adds a file, if it exists.
func (s *scan) add(path string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		s.files[path] = stamp{uint64(st.Dev), st.Ino, st.Size, st.Mtim} //nolint:unconvert // of another type elsewhere
		s.changed[path] = time.Unix(st.Ctim.Unix())
	}
}

// scan returns the state of a tree. Others have a number of files and directories.
func (t *Tree) scan(others int) (*scan, error) {
	include, ignore, err := t.matchers()
	if err != nil {
		return nil, err
	}
	s := newScan()
	root := t.Path
	if target, err := filepath.EvalSymlinks(t.Path); err == nil {
		root = target
	}
	s.dirs[filepath.Dir(t.Path)], s.dirs[filepath.Dir(root)] = true, true
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil // removed meanwhile, or of another user
			}
			return fmt.Errorf("watch %s: %w", t.Path, err)
		}
		if others+len(s.files)+len(s.dirs) > maxFiles {
			return fmt.Errorf("watch %s: more than %d files", t.Path, maxFiles)
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if path != root {
			ignored, err := ignore.MatchesOrParentMatches(relative)
			if err != nil {
				return fmt.Errorf("watch %s: %w", t.Path, err)
			}
			switch {
			case ignored && e.IsDir() && !ignore.Exclusions(), e.IsDir() && t.Flat:
				return fs.SkipDir
			case ignored && !e.IsDir():
				return nil
			}
		}
		switch {
		case e.IsDir():
			s.dirs[path] = true
		case path == root:
			s.add(t.Path)
		case e.Type().IsRegular() || t.Flat:
			included, err := include.MatchesOrParentMatches(relative)
			if err != nil {
				return fmt.Errorf("watch %s: %w", t.Path, err)
			}
			if included || len(t.Include) == 0 {
				s.add(filepath.Join(t.Path, relative))
			}
		}
		return nil
	})
	return s, err
}

// changes returns the files that differ between two states of a set, also those that are new or removed.
func changes(before, after *scan) map[string]bool {
	changed := map[string]bool{}
	for path, was := range before.files {
		if is, exists := after.files[path]; !exists || is != was {
			changed[path] = true
		}
	}
	for path := range after.files {
		if _, existed := before.files[path]; !existed {
			changed[path] = true
		}
	}
	return changed
}

// missed returns the files of a set that have changed since a time at which another set had a state, or were removed since.
func (s *Set) missed(before, now *scan, since time.Time) map[string]bool {
	const tick = 20 * time.Millisecond // by which the clock of file systems is behind
	changed := map[string]bool{}
	for path, is := range now.files {
		was, known := before.files[path]
		if known && is != was || !known && !now.changed[path].Before(since.Add(-tick)) {
			changed[path] = true
		}
	}
	for path := range before.files {
		_, exists := now.files[path]
		below := func(t Tree) bool { return strings.HasPrefix(path, t.Path+"/") || path == t.Path }
		if !exists && (slices.Contains(s.Files, path) || slices.ContainsFunc(s.Trees, below)) {
			changed[path] = true
		}
	}
	return changed
}
