package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxStaged limits how many images are pulled at the same time for one definition.
const maxStaged = 4

// Stage provides what a new definition of a pod needs, while the pod runs on: admission (of the definition in the place of the old one),
// images pulled and unpacked, config maps and secrets readable, volumes present. It returns when everything is there, or with the first
// error: a [*RefusedError], a [lifecycle.Failure] of a pull, a [*NotSupervisedError]. Images of containers that [change.Between] the
// running pod and the new one does not restart are not pulled, unless they are in newer, see [Supervisor.NewerImages], or other image
// archives contain another image. Calls of progress, which is not nil, do not overlap.
func (s *Supervisor) Stage(
	ctx context.Context, pod *spec.Pod, newer map[string]lifecycle.Image, progress func(container string, p lifecycle.Progress),
) (Staged, error) {
	s.mu.Lock()
	held, l := s.blocked[pod.Name], s.pods[pod.Name]
	s.mu.Unlock()
	if held != nil {
		return Staged{}, &NotSupervisedError{Pod: pod.Name, Why: held.why, Reason: held.snapshot.Status.Reason}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.onLeave(cancel)()
	g := staging{supervisor: s, pod: pod, newer: newer, loop: l, report: progress, pulling: pulls{}, staged: Staged{
		Images: map[string]lifecycle.Image{}, Shadows: map[string][]lifecycle.Shadow{},
	}}
	if running, exists := s.Pod(pod.Name); exists {
		g.running = &running
		defer g.show()()
	}
	if err := g.findNewer(ctx); err != nil {
		return Staged{}, s.stageError(ctx, pod, err)
	}
	if refusals := g.refusals(); len(refusals) > 0 {
		return Staged{}, &RefusedError{Pod: pod.Name, Refusals: refusals}
	}
	if err := g.readable(ctx); err != nil {
		return Staged{}, s.stageError(ctx, pod, err)
	}
	if err := g.pull(ctx); err != nil {
		return Staged{}, s.stageError(ctx, pod, err)
	}
	return g.staged, nil
}

// onLeave calls cancel when the supervisor leaves. The returned function ends that.
func (s *Supervisor) onLeave(cancel context.CancelFunc) (stop func() bool) {
	return context.AfterFunc(s.ctx, cancel)
}

func (s *Supervisor) stageError(ctx context.Context, pod *spec.Pod, err error) error {
	if ctx.Err() != nil && s.ctx.Err() != nil {
		return ErrLeaving
	}
	return fmt.Errorf("prepare pod %q: %w", pod.Name, err)
}

// staging is one call of [Supervisor.Stage].
type staging struct {
	supervisor *Supervisor
	pod        *spec.Pod
	running    *Snapshot // the pod of the name; nil: there is none
	newer      map[string]lifecycle.Image

	mu     sync.Mutex // guards what follows, and is held while report is called
	report func(container string, p lifecycle.Progress)
	staged Staged

	loop    *loop // of the running pod, which shows its clients what is pulled; nil: there is none
	pulling pulls
}

// refusals returns why the definition cannot be admitted in the place of the running one.
func (g *staging) refusals() []lifecycle.Refusal {
	s := g.supervisor
	list := s.check(g.pod)
	if g.running != nil {
		if !s.shared.runsWith(g.running, withEphemerals(g.pod, nil), g.newer) { // its start is checked
			return slices.DeleteFunc(list, func(r lifecycle.Refusal) bool { return r.Reason == lifecycle.ReasonNodePorts })
		}
		list = slices.DeleteFunc(list, g.ownPort)
	}
	allocatable := s.shared.runtime.Allocatable()
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(list, s.conflicts(g.pod, allocatable)...)
}

// ownPort reports whether a refusal is for a host port that the running pod has: the process that listens on it may be its own.
func (g *staging) ownPort(r lifecycle.Refusal) bool {
	if r.Reason != lifecycle.ReasonNodePorts || g.running.Status.Phase.Terminal() {
		return false
	}
	for field, port := range g.pod.HostPortFields() {
		if field == r.Field {
			return slices.ContainsFunc(g.running.Pod.HostPorts(), port.Overlaps)
		}
	}
	return false
}

func (g *staging) readable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	_, err := guard.Call(ctx, cleanupTimeout, g.supervisor.shared.log, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, g.supervisor.shared.runtime.Readable(ctx, g.pod)
	})
	return err
}

// needed returns the containers whose images must be present.
func (g *staging) needed() []string {
	none := &spec.Pod{}
	if g.running == nil {
		return affected(none, g.pod, nil)
	}
	from := withEphemerals(g.running.Pod, nil)
	changes := g.supervisor.shared.between(from, g.pod)
	if change.Largest(changes) == change.ReplacePod {
		return affected(none, g.pod, nil)
	}
	names := affected(from, g.pod, changes)
	for name := range g.newer {
		if g.pod.Container(name) != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// pull pulls the images that are needed. The first error cancels the other pulls.
func (g *staging) pull(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxStaged)
	for _, name := range g.needed() {
		group.Go(func() error { return g.pullOne(ctx, name) })
	}
	return group.Wait()
}

// findNewer finds the images that other archives of the definition contain. They are imported with those that are pulled.
func (g *staging) findNewer(ctx context.Context) error {
	if g.running == nil || slices.Equal(g.running.Pod.ImageArchives, g.pod.ImageArchives) {
		return nil
	}
	found, err := g.supervisor.newerImages(ctx, g.running, g.pod)
	if err == nil {
		maps.Copy(found, g.newer)
		g.newer = found
	}
	return err
}

func (g *staging) pullOne(ctx context.Context, container string) error {
	a := lifecycle.PullImage{Container: container, For: 1}
	if _, newer := g.newer[container]; g.running != nil && !newer {
		now, c := g.running.Pod.Container(container), g.pod.Container(container)
		if now != nil && now.Image == c.Image { // it keeps its image unless the policy requires a pull
			a.Image, a.Imported = g.running.Facts.Container(container).Image, true
		}
	}
	pulled, err := guard.Call(ctx, cleanupTimeout, g.supervisor.shared.log, func(ctx context.Context) (lifecycle.ImagePulled, error) {
		return g.supervisor.shared.runtime.PullImage(ctx, g.pod, a, func(p lifecycle.Progress) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if ctx.Err() == nil {
				g.report(container, p)
				p.Image, p.MissingSecrets = g.pod.Container(container).Image, ""
				g.pulling[container] = p
			}
		})
	})
	if err != nil {
		return fmt.Errorf("image %q of container %q: %w", g.pod.Container(container).Image, container, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.staged.Images[container], g.staged.Shadows[container] = pulled.Image, pulled.Shadows
	delete(g.pulling, container)
	return nil
}

// show tells the loop of the running pod at intervals how far the pulls are, until the returned function is called.
func (g *staging) show() (stop func()) {
	if g.loop == nil {
		return func() {}
	}
	done := make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for begun := time.Now(); ; {
			select {
			case <-tick.C:
				g.publish(begun)
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		showing.Wait()
		if g.loop.staging.Swap(nil) != nil {
			g.loop.mailbox.offer(stageProgress{})
		}
	}
}

// publish shows the clients of the pod what is pulled and, after importDelay, what is imported.
func (g *staging) publish(begun time.Time) {
	shown := pulls{}
	g.mu.Lock()
	for container, p := range g.pulling {
		if p.Archive == "" || time.Since(begun) >= importDelay {
			shown[container] = p
		}
	}
	g.mu.Unlock()
	if before := g.loop.staging.Load(); before == nil && len(shown) == 0 || before != nil && maps.Equal(*before, shown) {
		return
	}
	g.loop.staging.Store(&shown)
	g.loop.mailbox.offer(stageProgress{})
}

// NewerImages returns the images that containers of a pod would use if the pod were created now with a definition, by container, as far as
// they differ from those that the containers use: an image archive was replaced, or an image was imported. Images that are pulled are not
// compared, and neither are those of containers that get another reference. It changes nothing.
func (s *Supervisor) NewerImages(ctx context.Context, pod *spec.Pod) (map[string]lifecycle.Image, error) {
	running, exists := s.Pod(pod.Name)
	if !exists {
		return map[string]lifecycle.Image{}, nil
	}
	return s.newerImages(ctx, &running, pod)
}

func (s *Supervisor) newerImages(ctx context.Context, running *Snapshot, to *spec.Pod) (map[string]lifecycle.Image, error) {
	newer := map[string]lifecycle.Image{}
	for _, c := range slices.Concat(to.InitContainers, to.Containers) {
		now := running.Pod.Container(c.Name)
		used := running.Facts.Container(c.Name).Image
		if now == nil || now.Image != c.Image || used.ID == "" {
			continue
		}
		type found struct {
			image lifecycle.Image
			ok    bool
		}
		f, err := guard.Call(ctx, cleanupTimeout, s.shared.log, func(ctx context.Context) (f found, err error) {
			f.image, f.ok, err = s.shared.runtime.NewestImage(ctx, to, c.Name)
			return f, err
		})
		if err != nil {
			return nil, err
		}
		if f.ok && f.image.ID != used.ID {
			newer[c.Name] = f.image
		}
	}
	return newer, nil
}

// Planned returns the definitions of the pods that are being added, changed or started. Call it before [Supervisor.Pods]: a pod is in at
// least one of the two.
func (s *Supervisor) Planned() []*spec.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*spec.Pod
	for _, pod := range s.adding {
		list = append(list, pod)
	}
	for _, r := range s.changing {
		if r.needed != nil {
			list = append(list, r.needed)
		}
	}
	return list
}
