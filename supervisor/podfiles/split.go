package podfiles

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/spec"
)

// ownFile is the file that a pod gets when the file that defines it with others is divided.
type ownFile struct {
	content *content
	text    []byte
}

// division replaces files with several pods by files of one pod each.
type division struct {
	own []ownFile
	// whole are the texts of the files that are divided, by path. A person has written their comments, which the new files do not have
	// in all formats.
	whole map[string][]byte
}

// backupSuffix is that of the copy of a file that was divided, as of the backups of editors. The file is not a pod file.
const backupSuffix = "~"

// divide returns a file of its own for each other pod that the files of a pod define: the pod is about to be changed or removed, and the
// others keep their definitions. s.turn must be held.
func (s *Set) divide(ctx context.Context, pod string, paths []string) (*division, error) {
	d := &division{whole: map[string][]byte{}}
	for _, path := range paths {
		c := s.facts.contents[path]
		if c == nil || c.others == nil {
			continue
		}
		text, err := disk.Call(context.WithoutCancel(ctx), s.disk, func() ([]byte, error) { return spec.ReadPodFile(path) })
		switch {
		case err != nil:
			return nil, err
		case sha256.Sum256(text) != c.text:
			return nil, conflictf("file %s changed a moment ago", path)
		}
		files, err := s.divided(pod, path, text)
		if err != nil {
			return nil, err
		}
		d.own = append(d.own, files...)
		d.whole[path] = text
	}
	for _, o := range d.own {
		if s.facts.present[o.content.path] && !slices.Contains(paths, o.content.path) {
			err := conflictf("file %s defines several pods, and file %s exists", filepath.Base(paths[0]), o.content.path)
			err.Hint = "change the pod in " + paths[0]
			return nil, err
		}
	}
	return d, nil
}

// divided returns the files of the other pods of one file.
func (s *Set) divided(pod, path string, text []byte) (own []ownFile, err error) {
	parts, _ := options(path, s.maxReplicas).AcceptParts(path, text)
	for i := range parts {
		p := &parts[i]
		if p.Name == pod {
			continue
		}
		if p.Pod == nil {
			err := conflictf("file %s defines several pods, and is invalid: %v", path, p.Problems.Errors()[0])
			err.Hint = "correct the file"
			return nil, err
		}
		t, err := p.Text()
		if err != nil {
			return nil, err
		}
		at := filepath.Join(s.dir, spec.FileName(p.Name)+spec.Extension(path, text))
		c := s.accept(at, t)
		if c.pod == nil || c.pod.Hash != p.Pod.Hash {
			return nil, fmt.Errorf("file %s cannot be divided: the definition of pod %q is another one alone", path, p.Name)
		}
		own = append(own, ownFile{c, t})
	}
	return own, nil
}

// without returns the paths that are not those of the new files.
func (d *division) without(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		return slices.ContainsFunc(d.own, func(o ownFile) bool { return o.content.path == path })
	})
}

// write writes the files of pods, after copies of the files that they replace.
func (d *division) write() error {
	for _, path := range slices.Sorted(maps.Keys(d.whole)) {
		if err := atomicfile.Write(path+backupSuffix, d.whole[path], fileMode); err != nil {
			return err
		}
	}
	for _, o := range d.own {
		if err := write(o.content.path, o.text, nil); err != nil {
			return err
		}
	}
	return nil
}

// divideFacts records the files of pods that were written in place of one that defined several. s.turn must be held.
func (s *Set) divideFacts(ctx context.Context, d *division, by string) {
	f := &s.facts
	for _, path := range slices.Sorted(maps.Keys(d.whole)) {
		s.log.LogAttrs(ctx, slog.LevelInfo, "pod file divided into a file for each pod", slog.String("file", path),
			slog.String("backup", path+backupSuffix))
	}
	for _, o := range d.own {
		f.contents[o.content.path], f.present[o.content.path] = o.content, true
		f.applied[o.content.path] = applied{o.content.digest, by}
	}
}

// pathsOf returns the paths of the files with a definition of a pod: valid ones, and broken ones.
func (f *facts) pathsOf(pod string) (same, broken []string) {
	for _, path := range slices.Sorted(maps.Keys(f.contents)) {
		for c := range f.contents[path].all() {
			if f.nameOf(c) != pod {
				continue
			}
			if c.pod == nil {
				broken = append(broken, path)
			} else {
				same = append(same, path)
			}
			break
		}
	}
	return same, broken
}
