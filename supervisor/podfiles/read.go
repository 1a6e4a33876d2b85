package podfiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/podfiles/watch"
)

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

// settleTimeout bounds the wait for files that keep changing.
const settleTimeout = 10 * time.Second

// beginSettled is [Set.begin] when no file may be half-written any more, or after settleTimeout.
func (s *Set) beginSettled(ctx context.Context) error {
	for deadline := time.Now().Add(settleTimeout); ; {
		if err := s.begin(ctx); err != nil {
			return err
		}
		due := s.facts.settled
		if due.IsZero() || due.After(deadline) || time.Now().After(deadline) {
			return nil
		}
		s.turn.Unlock()
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look updates the facts about pods, workers and, if list is set, files. Removed has the files that were removed one by one since the look
// before. The error is that of the listing. s.turn must be held.
func (s *Set) look(ctx context.Context, list bool, removed map[string]bool) (err error) {
	f := &s.facts
	f.now = time.Now()
	first := f.listed.IsZero()
	f.working = map[string]progress{}
	for name, w := range s.workers {
		f.working[name] = w.progress()
	}
	if list {
		f.pods = podsOf(s.pods.Pods())
		err = s.list(ctx, removed)
	}
	f.pods = podsOf(s.pods.Pods()) // listing may have taken long
	if list {
		f.findMissing(time.Now())
		if first {
			f.settleFirst()
		}
		s.forget()
	}
	s.forgetGenerations()
	return err
}

// forget removes what is known about pods and files that do not exist any more. s.turn must be held.
func (s *Set) forget() {
	f := &s.facts
	f.forget()
	maps.DeleteFunc(s.compared, func(name string, _ comparison) bool { _, exists := f.pods[name]; return !exists })
	maps.DeleteFunc(s.references, func(path string, d *disk.Caller) bool { return !f.present[path] && d.Idle() })
}

// list lists the directory, and takes the files that have changed, apart from those that may be half-written. After the end of ctx it
// changes nothing.
func (s *Set) list(ctx context.Context, removed map[string]bool) error {
	f := &s.facts
	listed := s.listed
	l, err := disk.Call(ctx, s.disk, listed.List)
	if err != nil {
		s.listed = watch.NewDir(s.dir) // the listing before may not have ended
	}
	accepted := s.acceptChanged(ctx, &l)
	if ctx.Err() != nil {
		s.listed = watch.NewDir(s.dir) // what it has read is not taken
		return context.Cause(ctx)
	}
	f.directory = f.directory.observe(&l, err, removed, f.owned(), f.now, f.times.settle)
	s.logListing(ctx, err)
	present, contents, changing := map[string]bool{}, map[string]*content{}, map[string]*content{}
	f.settled = time.Time{}
	for i := range l.Files {
		file := &l.Files[i]
		path := filepath.Join(s.dir, file.Name)
		present[path] = true
		c, due := s.take(file, path, accepted[i])
		if !due.IsZero() {
			changing[path] = accepted[i]
			if f.settled.IsZero() || due.Before(f.settled) {
				f.settled = due
			}
		}
		if c != nil {
			contents[path] = c
		}
	}
	for _, name := range l.Omitted {
		path := filepath.Join(s.dir, name)
		present[path] = true
		contents[path] = unreadable(path, fmt.Errorf("pods directory %s has more than %d pod files", s.dir, watch.MaxFiles))
	}
	f.listed, f.present, f.contents, f.changing = f.now, present, contents, changing
	if f.directory.lost == nil && f.directory.read {
		f.scheduled = f.hasSchedule()
	}
	return err
}

// logListing logs that the directory cannot be listed, if that is new. A directory that does not exist is normal.
func (s *Set) logListing(ctx context.Context, err error) {
	if why := text(err); why != "" && why != s.facts.listError {
		s.log.LogAttrs(ctx, slog.LevelInfo, "cannot list the pods directory", slog.String("error", why))
	}
	s.facts.listError = text(err)
}

// maxAccepting is how many files are validated at the same time.
const maxAccepting = 64

// acceptChanged validates the files of a listing that have changed, with those that they refer to. The result has the same indexes; nil:
// the file has not changed. The content of a file that refers to one that does not respond cannot be read. s.turn must be held.
func (s *Set) acceptChanged(ctx context.Context, l *watch.Listing) []*content {
	accepted := make([]*content, len(l.Files))
	var all sync.WaitGroup
	free := make(chan struct{}, maxAccepting)
	for i := range l.Files {
		file := &l.Files[i]
		if file.Err != nil || file.Text == nil {
			continue
		}
		path := filepath.Join(s.dir, file.Name)
		if before := s.facts.contents[path]; before != nil && before.err == nil && before.text == sha256.Sum256(file.Text) {
			accepted[i] = before // such as a file that was applied
			continue
		}
		d := s.referenced(path)
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			c, err := disk.Call(ctx, d, func() (*content, error) { return s.accept(path, file.Text), nil })
			if err != nil {
				c = unreadable(path, fmt.Errorf("read the files that %s refers to: %w", path, err))
			}
			accepted[i] = c
		})
	}
	all.Wait()
	return accepted
}

// acceptWith validates the text of a pod file. A generated name depends on the path only, so that it stays the same.
func acceptWith(o spec.Options, path string, text []byte) *content {
	parts, problems := o.AcceptParts(path, text)
	c := &content{path: path, text: sha256.Sum256(text), digest: sha256.Sum256(text), problems: problems}
	switch len(parts) {
	case 0:
		return c
	case 1:
		c.pod = parts[0].Pod
		return c
	}
	contents := make([]*content, len(parts))
	for i := range parts {
		contents[i] = &content{path: path, text: c.text, digest: c.text, name: parts[i].Name, problems: parts[i].Problems}
		contents[i].define(&parts[i])
	}
	contents[0].others = contents[1:]
	return contents[0]
}

// options are those of a pod file of the directory.
func options(path string, maxReplicas int) spec.Options {
	sum := sha256.Sum256([]byte(path))
	return spec.Options{Suffix: hex.EncodeToString(sum[:])[:5], MaxReplicas: maxReplicas}
}

// define sets the definition of one of several pods of a file.
func (c *content) define(p *spec.Part) {
	if p.Pod == nil {
		return
	}
	text, err := p.Text()
	if problems, is := errors.AsType[spec.Problems](err); is {
		c.problems = append(slices.Clone(c.problems), problems...)
		return
	}
	c.pod, c.digest = p.Pod, sha256.Sum256(text)
}

// referenced returns the disk for the files that a pod file refers to, such as env files. Each pod file has its own, so that one whose
// env file does not respond keeps no other. s.turn must be held.
func (s *Set) referenced(path string) *disk.Caller {
	if s.references[path] == nil {
		s.references[path] = disk.NewCaller(s.log)
	}
	return s.references[path]
}

// take returns the content of a file that counts: the newest, or the one before if the newest may be half-written until due.
func (s *Set) take(file *watch.File, path string, next *content) (c *content, due time.Time) {
	before := s.facts.contents[path]
	switch {
	case file.Err != nil:
		if before != nil && before.err != nil && before.err.Error() == file.Err.Error() {
			return before, time.Time{}
		}
		return unreadable(path, file.Err), time.Time{}
	case file.Text == nil:
		return before, time.Time{}
	}
	if before != nil && before.err == nil && before.text == next.text {
		return before, time.Time{}
	}
	if next.err != nil { // look at it again in the next listing, although it has not changed
		s.listed.Forget(file.Name)
		return next, time.Time{}
	}
	wait := s.times.quiet
	if !next.isValid() {
		wait = s.times.halfWritten
	}
	if applied, ok := s.facts.applied[path]; ok && applied.digest == next.text {
		return next, time.Time{}
	}
	// A change in the future is one before the clock was set back. A listing may take long, so now is not the time at which it began. The
	// clock of file systems can differ a little.
	if s.facts.now.Sub(file.Changed) < wait && !file.Changed.After(time.Now().Add(s.times.quiet)) {
		s.listed.Forget(file.Name)
		return before, file.Changed.Add(wait)
	}
	return next, time.Time{}
}
