package podfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Histories stores the generations of pods. [*HistoryDir] implements it.
type Histories interface {
	Load() (histories map[string]*History, problems []error, err error)
	Save(h *History) error
	Delete(pod string) error
}

// Values are the config maps and secrets of the host. The methods return the values by key, and an error that matches [fs.ErrNotExist] if
// there is no such object. Inline objects of the pod take precedence.
type Values interface {
	ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error)
	Secret(pod *spec.Pod, name string) (map[string][]byte, error)
}

// generations stores the generations of all pods, with the config and the images that they need. It decides nothing. It is not safe for
// concurrent use.
type generations struct {
	store   Histories // nil: the generations are known until the set ends
	values  Values    // nil: no config is kept
	log     *slog.Logger
	retry   time.Duration // before a disk that failed is used again
	saving  *disk.Caller  // for calls of store
	reading *disk.Caller  // for calls of values
	images  *keeper

	histories map[string]*History // by name of the pod; nil: not loaded yet. Values are not changed, but replaced
	unsaved   map[string]bool     // names of pods whose history has changed
	saveAgain time.Time           // when to save after a failure; zero: now
	events    []func()            // to be emitted when what they report is saved
}

func newGenerations(o *Options, log *slog.Logger, retry time.Duration) *generations {
	return &generations{
		store: o.Histories, values: o.Values, log: log, retry: retry, saving: disk.NewCaller(log), reading: disk.NewCaller(log),
		images: newKeeper(o.Images, log, retry), unsaved: map[string]bool{},
	}
}

// load loads the generations, once. Until it succeeds, no file must be carried out: it may have failed before.
func (g *generations) load(ctx context.Context, now lifecycle.Instant) error {
	if g.histories != nil {
		return nil
	}
	loaded, problems := map[string]*History{}, 0
	if g.store != nil {
		type result struct {
			histories map[string]*History
			problems  []error
		}
		r, err := disk.Call(ctx, g.saving, func() (result, error) {
			histories, problems, err := g.store.Load()
			return result{histories, problems}, err
		})
		if err != nil {
			return err
		}
		for _, problem := range r.problems {
			g.log.LogAttrs(ctx, slog.LevelWarn, "generations of a pod not available", slog.Any("error", problem))
		}
		loaded, problems = r.histories, len(r.problems)
	}
	g.histories = loaded
	known := map[string]bool{}
	for name, h := range loaded {
		r := h.Running()
		if r != nil && r.Outcome == api.GenerationProgressing && !r.ReadyAt.IsZero() && r.ReadyAt.Boot != now.Boot {
			r.ReadyAt = lifecycle.Instant{} // an update starts again with the host
			g.unsaved[name] = true
		}
		if h.forgetCredentials() {
			g.unsaved[name] = true
		}
		known[name] = true
		g.images.keep(name, h.Images())
	}
	if problems == 0 { // otherwise there are pods whose images are not known
		g.images.keepOnly(known)
	}
	return nil
}

// of returns a copy of the generations of a pod, which has none at first.
func (g *generations) of(pod string) *History {
	if h := g.histories[pod]; h != nil {
		return h.Clone()
	}
	return &History{Pod: pod}
}

// definitions returns the definitions of all generations that are kept, of all pods.
func (g *generations) definitions() (list []*spec.Pod) {
	for _, h := range g.histories {
		for n := range h.Generations {
			if d := h.Generations[n].Definition; d != nil {
				list = append(list, d.Pod)
			}
		}
		if h.Instead != nil && h.Instead.Definition != nil {
			list = append(list, h.Instead.Definition.Pod)
		}
	}
	return list
}

// forget removes the generations of all pods but these.
func (g *generations) forget(pods map[string]bool) {
	for name := range g.histories {
		if !pods[name] {
			g.drop(name)
		}
	}
}

// drop removes the generations of a pod that is deleted.
func (g *generations) drop(pod string) {
	if g.histories[pod] != nil {
		delete(g.histories, pod)
		g.unsaved[pod] = true
		g.images.keep(pod, nil)
	}
}

// put replaces a history.
func (g *generations) put(h *History) {
	g.histories[h.Pod] = h
	g.unsaved[h.Pod] = true
	g.images.keep(h.Pod, h.Images())
}

// keep returns a function that keeps the images of the generations of a pod, before the runs end that use them. It can be called
// concurrently with other methods.
func (g *generations) keep(pod string) func(context.Context) error {
	h := g.histories[pod]
	if h == nil || len(h.Images()) == 0 {
		return func(context.Context) error { return nil }
	}
	images := h.Images()
	return func(ctx context.Context) error {
		if err := g.images.keepNow(ctx, pod, images); err != nil {
			return fmt.Errorf("keep the images of earlier generations: %w", err)
		}
		return nil
	}
}

// save saves what has changed. After a failure it tries again later, and returns when to call it: pods are changed nevertheless.
func (g *generations) save(ctx context.Context) (again time.Time) {
	defer func() {
		for _, emit := range g.events {
			emit()
		}
		g.events = nil
	}()
	now := time.Now()
	if g.store == nil || len(g.unsaved) == 0 || now.Before(g.saveAgain) {
		return g.saveAgain
	}
	g.saveAgain = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(g.unsaved)) {
		h := g.histories[name]
		_, err := disk.Call(context.WithoutCancel(ctx), g.saving, func() (struct{}, error) {
			if h == nil {
				return struct{}{}, g.store.Delete(name)
			}
			return struct{}{}, g.store.Save(h)
		})
		if err != nil {
			g.log.LogAttrs(ctx, slog.LevelWarn, "generations of a pod not saved", slog.String("pod", name), slog.Any("error", err))
			g.saveAgain = now.Add(g.retry)
			break
		}
		delete(g.unsaved, name)
	}
	return g.saveAgain
}

// config returns the config maps and secrets of the host that a pod uses. Those that cannot be read are not kept.
func (g *generations) config(ctx context.Context, p *spec.Pod) PinnedConfig {
	if g.values == nil {
		return PinnedConfig{}
	}
	c, err := disk.Call(context.WithoutCancel(ctx), g.reading, func() (PinnedConfig, error) { return readConfig(g.values, p) })
	if err != nil {
		g.log.LogAttrs(ctx, slog.LevelWarn, "config of a generation cannot be read", slog.String("pod", p.Name), slog.Any("error", err))
	}
	return c
}

// pinned returns a definition with the config that it had, where that differs from the present one.
func (g *generations) pinned(ctx context.Context, d *Definition) *Definition {
	return d.Pin(g.config(ctx, d.Pod))
}

// readConfig reads the config maps and secrets of the host that a pod refers to.
func readConfig(values Values, p *spec.Pod) (PinnedConfig, error) {
	c := PinnedConfig{ConfigMaps: map[string]map[string][]byte{}, Secrets: map[string]map[string][]byte{}}
	var errs []error
	read := func(into map[string]map[string][]byte, name string, from func(*spec.Pod, string) (map[string][]byte, error)) {
		v, err := from(p, name)
		if err == nil {
			into[name] = v
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for name := range p.ConfigMapNames() {
		if !slices.ContainsFunc(p.ConfigMaps, func(c spec.ConfigMap) bool { return c.Name == name }) {
			read(c.ConfigMaps, name, values.ConfigMap)
		}
	}
	for name := range p.SecretNames() {
		// The state never has the value of a credential, which can be encrypted on the disk: a rollback uses the present one.
		if !slices.ContainsFunc(p.Secrets, func(s spec.Secret) bool { return s.Name == name }) {
			read(c.Secrets, name, values.Secret)
		}
	}
	return c, errors.Join(errs...)
}

// load loads the generations, or records since when they cannot be read. s.turn must be held.
func (s *Set) load(ctx context.Context) error {
	if err := s.generations.load(ctx, s.pods.Now()); err != nil {
		if s.facts.unloaded.IsZero() {
			s.facts.unloaded = time.Now()
		}
		return err
	}
	s.facts.unloaded, s.facts.histories = time.Time{}, s.generations.histories
	return nil
}

// forgetGenerations removes the generations of pods that do not exist any more. s.turn must be held.
func (s *Set) forgetGenerations() {
	if names, known := s.facts.generationsOf(); known {
		s.generations.forget(names)
	}
}

// emit emits an event when the generations are saved: after a crash before that, what it reports happens again.
func (s *Set) emit(kind api.EventKind, pod, uid string, f event.Fields) {
	s.generations.events = append(s.generations.events, func() { s.add(kind, pod, uid, f) })
}

// record records what has become of generations. s.turn must be held.
func (s *Set) record(ctx context.Context, records ...record) {
	for i := range records {
		r := &records[i]
		h := s.generations.of(r.pod.name)
		if r.verdict == begun {
			by := s.facts.requester(r.target, r.pod.snapshot.Owner.By)
			s.beginNew(ctx, h, &beginning{uid: r.pod.uid, definition: r.pod.own(), digest: r.target.hex(), by: by})
		} else {
			s.conclude(ctx, h, r)
		}
		s.generations.put(h)
	}
}

// conclude changes the newest generation of a history.
func (s *Set) conclude(ctx context.Context, h *History, r *record) {
	g := h.Newest()
	number := strconv.Itoa(g.Number)
	emit := func(kind api.EventKind, f event.Fields) {
		f["generation"] = number
		s.emit(kind, r.pod.name, r.pod.uid, f)
	}
	switch r.verdict {
	case renamed:
		g.Digest = r.target.hex()
	case ready:
		s.isReady(g, &r.pod)
	case unready:
		g.ReadyAt = lifecycle.Instant{}
	case complete:
		s.isReady(g, &r.pod)
		g.Outcome, g.Message = api.GenerationReady, ""
		if g.Number > 1 {
			emit(api.EventUpdateCompleted, event.Fields{})
		}
		h.Trim()
	case failed:
		g.ReadyAt, g.Outcome, g.Message = lifecycle.Instant{}, api.GenerationFailed, r.why
		if g.Number > 1 { // the first one is no update
			emit(api.EventUpdateFailed, event.Fields{"error": r.why})
		}
	case rolledBack:
		g.ReadyAt = lifecycle.Instant{}
		target := h.Target(g.Number)
		h.Return(Instead{
			Digest: g.Digest, Number: target.Number, Failed: g.Number, Why: r.why, At: s.pods.Now(),
			Definition: s.generations.pinned(ctx, target.Definition),
		})
		emit(api.EventRollbackStarted, event.Fields{"target": strconv.Itoa(target.Number), "error": r.why})
	case returned:
		i := *h.Instead
		i.Completed, h.Instead, number = true, &i, strconv.Itoa(i.Number)
		emit(api.EventRollbackCompleted, event.Fields{})
	case begun:
	}
}

// beginGeneration records that a step is about to carry out a file, and keeps the images that the pod may return to. What fails from now
// on is a failure of that definition, also if the daemon is killed before it can look at the pod. It reports whether the pod returns if
// the definition fails. The error is errOutdated if another definition is to run by now.
func (s *Set) beginGeneration(ctx context.Context, step *step, images map[string]lifecycle.Image, by string) (rollsBack bool, err error) {
	rollsBack, keep, err := s.recordStep(ctx, step, images, by)
	if err != nil {
		return false, err
	}
	return rollsBack, keep(context.WithoutCancel(ctx))
}

// recordStep records that a step is about to carry out a file, with these images. The function that it returns keeps images.
func (s *Set) recordStep(
	ctx context.Context, step *step, images map[string]lifecycle.Image, by string,
) (rollsBack bool, keep func(context.Context) error, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if !s.facts.aims(step) {
		return false, nil, errOutdated
	}
	if step.target.instead != nil {
		return false, s.generations.keep(step.pod), nil
	}
	b := s.facts.beginning(step, images, by)
	h := s.generations.of(step.pod)
	switch b.compare(h) {
	case newGeneration:
		s.beginNew(ctx, h, &b)
	case interrupted:
		g := h.Newest()
		g.Since, g.Definition = s.pods.Now(), s.define(ctx, &b)
	case known:
	}
	s.generations.put(h)
	s.generations.save(ctx)
	return rollsBackIfFailed(h), s.generations.keep(step.pod), nil
}

// beginNew adds a generation.
func (s *Set) beginNew(ctx context.Context, h *History, b *beginning) {
	s.resumes(h, b.uid)
	g := Generation{Digest: b.digest, Since: s.pods.Now(), By: b.by, Definition: s.define(ctx, b)}
	if from := definitionOf(h); from != nil {
		g.Changes = slices.Concat(s.facts.compare(from, b.definition), b.changes)
		change.Sort(g.Changes)
	}
	h.Begin(g)
}

// define returns a definition with the config that its containers are about to read.
func (s *Set) define(ctx context.Context, b *beginning) *Definition {
	return &Definition{Pod: b.definition, Images: b.images, Config: s.generations.config(ctx, b.definition)}
}

// resumes reports that a file is about to be carried out that a person had undone.
func (s *Set) resumes(h *History, uid string) {
	if i := h.Instead; i != nil && i.By != "" {
		s.emit(api.EventRolloutResumed, h.Pod, uid, event.Fields{"generation": strconv.Itoa(i.Number), "by": i.By})
	}
}

// isReady records that a generation is ready, and what is needed to return to it.
func (s *Set) isReady(g *Generation, p *pod) {
	d := &Definition{Pod: p.own(), Images: map[string]lifecycle.Image{}, Config: g.Definition.Config}
	for name, c := range p.snapshot.Facts.Containers {
		if d.Pod.Container(name) != nil && c.Image.ID != "" {
			d.Images[name] = c.Image
		}
	}
	g.Definition, g.ReadyAt = d, s.pods.Now()
}
