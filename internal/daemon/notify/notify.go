// Package notify sends events to the commands and URLs of the configuration. It owns the files with the events that were not sent yet. It
// follows the events in goroutines of its own, so that no receiver and no disk delays pods. It emits no events, and logs no secrets.
package notify

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Dir is the name of the directory with the states in the state directory.
const Dir = "notify"

// Options are what notifiers need. All are required.
type Options struct {
	Dir    string // for the states
	Events *event.Ring
	// Labels returns the labels of a pod, and whether the pod exists.
	Labels func(pod string) (map[string]string, bool)
	Now    func() lifecycle.Instant
	Log    *slog.Logger

	send func(context.Context, *config.Notifier, *Message) error // in tests
}

// Set has the running notifiers. Its methods are not safe for concurrent use.
type Set struct {
	o       Options
	running map[string]*running
	seen    map[string]bool // names that ran in this process
}

// running is a notifier with what ends it.
type running struct {
	c      config.Notifier
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New returns a set without notifiers.
func New(o Options) *Set {
	if o.send == nil {
		o.send = func(ctx context.Context, n *config.Notifier, m *Message) error { return Send(ctx, n, m, nil) }
	}
	return &Set{o: o, running: map[string]*running{}, seen: map[string]bool{}}
}

// Apply starts, restarts and stops notifiers, so that those of a list run. An attempt of a notifier that changed is canceled, and repeated
// with the new definition. The states of other notifiers are deleted.
func (s *Set) Apply(ctx context.Context, list []config.Notifier) {
	wanted := map[string]bool{}
	for i := range list {
		wanted[list[i].Name] = true
	}
	for name, r := range s.running {
		if !wanted[name] {
			s.stop(name, r)
		}
	}
	s.forget(wanted)
	for i := range list {
		c := list[i]
		r := s.running[c.Name]
		if r != nil && reflect.DeepEqual(r.c, c) {
			continue
		}
		if r != nil {
			s.stop(c.Name, r)
		}
		s.start(ctx, c)
	}
}

// Close stops all notifiers. Events that were not sent remain in the states.
func (s *Set) Close() {
	for _, r := range s.running {
		r.cancel()
	}
	for name, r := range s.running {
		s.stop(name, r)
	}
}

func (s *Set) start(ctx context.Context, c config.Notifier) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // until Close
	r := &running{c: c, cancel: cancel}
	n := &notifier{o: &s.o, c: c, filter: newFilter(c, s.o.Labels), more: make(chan struct{}, 1)}
	first := !s.seen[c.Name]
	s.seen[c.Name], s.running[c.Name] = true, r
	newest := s.o.Events.Newest()
	r.done.Go(func() {
		n.load(ctx, first, newest)
		var sender sync.WaitGroup
		sender.Go(func() { n.sendAll(ctx) })
		n.follow(ctx)
		sender.Wait()
		n.leave()
	})
}

func (s *Set) stop(name string, r *running) {
	r.cancel()
	r.done.Wait()
	delete(s.running, name)
}

// forget deletes the states of notifiers that are not wanted, apart from those that only a later version understands.
func (s *Set) forget(wanted map[string]bool) {
	files, err := os.ReadDir(s.o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Log.Warn("states of notifiers cannot be listed", slog.Any("error", err))
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || wanted[name] {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.o.Dir, f.Name()))
		if err != nil || Format.Check(data) != nil {
			continue
		}
		delete(s.seen, name)
		_ = os.Remove(filepath.Join(s.o.Dir, f.Name())) // a file that remains is deleted later
	}
}
