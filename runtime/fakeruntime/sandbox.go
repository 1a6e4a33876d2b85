package fakeruntime

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// StartSandbox creates the sandbox, or returns an existing ready one.
func (r *Runtime) StartSandbox(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox,
) (lifecycle.SandboxStarted, error) {
	err := r.do(ctx, Call{Method: "StartSandbox", UID: uid, Sandbox: a.Sandbox}, func() error {
		p := r.pods[uid]
		if p == nil {
			p = &podState{sandboxes: map[int]bool{}, runs: map[lifecycle.Ref]*run{}}
			r.pods[uid] = p
		}
		p.pod = pod
		p.sandboxes[a.Sandbox] = true
		r.claim(pod)
		return nil
	})
	if err != nil {
		return lifecycle.SandboxStarted{}, err
	}
	return lifecycle.SandboxStarted{Sandbox: a.Sandbox}, nil
}

// WaitSandbox returns when the sandbox does not exist, or with the message of [Runtime.Evict].
func (r *Runtime) WaitSandbox(ctx context.Context, uid string, _ *spec.Pod, sandbox int) (eviction string, err error) {
	for first := true; ; first = false {
		var ready bool
		var eviction string
		var changed <-chan struct{}
		look := func() error {
			p := r.pods[uid]
			ready, changed = p != nil && p.sandboxes[sandbox], r.changed
			if ready {
				eviction = p.eviction
			}
			return nil
		}
		if first {
			if err := r.do(ctx, Call{Method: "WaitSandbox", UID: uid, Sandbox: sandbox}, look); err != nil {
				return "", err
			}
		} else {
			r.mu.Lock()
			_ = look()
			r.mu.Unlock()
		}
		if !ready || eviction != "" {
			return eviction, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// WatchShim reports what [Runtime.HangShim] has changed.
func (r *Runtime) WatchShim(ctx context.Context, uid string, sandbox int, report func(responds bool)) error {
	for hung := false; ; {
		r.mu.Lock()
		p, changed := r.pods[uid], r.changed
		exists := p != nil && p.sandboxes[sandbox]
		now := exists && p.hung
		r.mu.Unlock()
		if !exists {
			return nil
		}
		if now != hung {
			hung = now
			report(!hung)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// WatchVolumes reports what [Runtime.HoldVolumes] has changed.
func (r *Runtime) WatchVolumes(ctx context.Context, uid string, report func(stale string)) error {
	for reported, first := "", true; ; first = false {
		r.mu.Lock()
		stale, changed := r.stale[uid], r.changed
		r.mu.Unlock()
		if first || stale != reported {
			reported = stale
			report(stale)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// HoldVolumes prevents the update of the volumes of a pod for a reason; empty: they are updated again.
func (r *Runtime) HoldVolumes(uid, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale[uid] = why
	r.notify()
}

// HangShim makes the shim of a pod stop responding, or respond again. Only the watchers of the shim notice.
func (r *Runtime) HangShim(uid string, hung bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		p.hung = hung
	}
	r.notify()
}

// Evict evicts a pod: the watchers of its sandbox receive the message.
func (r *Runtime) Evict(uid, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		p.eviction = message
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// ResizePod gives the pod the requests and limits of a definition.
func (r *Runtime) ResizePod(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.ResizePod) error {
	return r.do(ctx, Call{Method: "ResizePod", UID: uid, Sandbox: a.Sandbox}, func() error {
		p := r.pods[uid]
		if p == nil || !p.sandboxes[a.Sandbox] {
			return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "sandbox not found"}
		}
		p.resized = pod
		return nil
	})
}

// Resized returns the definition of the newest [Runtime.ResizePod] of a pod; nil: there was none.
func (r *Runtime) Resized(uid string) *spec.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		return p.resized
	}
	return nil
}

// RemoveSandbox removes the sandbox and kills its running containers.
func (r *Runtime) RemoveSandbox(ctx context.Context, uid string, sandbox int) error {
	return r.do(ctx, Call{Method: "RemoveSandbox", UID: uid, Sandbox: sandbox}, func() error {
		if p := r.pods[uid]; p != nil {
			r.endSandbox(p, sandbox)
			delete(p.sandboxes, sandbox)
		}
		return nil
	})
}

// endSandbox kills a sandbox and its running containers. The caller holds the lock.
func (r *Runtime) endSandbox(p *podState, sandbox int) {
	p.hung = false
	for _, run := range p.runs {
		if run.Sandbox == sandbox {
			r.advance(run)
			run.kill(time.Now())
		}
	}
	if p.sandboxes[sandbox] {
		p.sandboxes[sandbox] = false
	}
	r.notify()
}

// RemovePod removes everything of a pod.
func (r *Runtime) RemovePod(ctx context.Context, uid string, pod *spec.Pod) error {
	return r.do(ctx, Call{Method: "RemovePod", UID: uid}, func() error {
		r.remove(uid)
		return r.removeLogs(uid, pod)
	})
}

// CollectPod removes everything of a pod but its logs.
func (r *Runtime) CollectPod(ctx context.Context, uid string, _ *spec.Pod) error {
	return r.do(ctx, Call{Method: "CollectPod", UID: uid}, func() error {
		r.remove(uid)
		return nil
	})
}

// remove removes a pod. The caller holds the lock.
func (r *Runtime) remove(uid string) {
	if p := r.pods[uid]; p != nil {
		for n := range p.sandboxes {
			r.endSandbox(p, n)
		}
		delete(r.pods, uid)
		r.notify()
	}
}

// Inventory returns every pod with any state in the engine, sorted by UID.
func (r *Runtime) Inventory(ctx context.Context) ([]lifecycle.Found, error) {
	var all []lifecycle.Found
	err := r.do(ctx, Call{Method: "Inventory"}, func() error {
		for _, uid := range slices.Sorted(maps.Keys(r.pods)) {
			p := r.pods[uid]
			f := lifecycle.Found{UID: uid, Pod: p.pod}
			for n, ready := range p.sandboxes {
				if n >= f.Sandbox {
					f.Sandbox, f.Ready = n, ready
				}
			}
			for _, run := range p.runs {
				f.Runs = append(f.Runs, lifecycle.Run{
					StartContainer: run.StartContainer, ID: run.id(uid), Image: run.image,
				})
			}
			slices.SortFunc(f.Runs, func(a, b lifecycle.Run) int { return cmpRef(a.Ref, b.Ref) })
			all = append(all, f)
		}
		return nil
	})
	return all, err
}

// LoseSandbox terminates the newest sandbox of a pod with its containers, as a killed shim does.
func (r *Runtime) LoseSandbox(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil && len(p.sandboxes) > 0 {
		r.endSandbox(p, slices.Max(slices.Collect(maps.Keys(p.sandboxes))))
	}
}

// Reboot terminates everything that runs, with unknown exit codes. Records of containers and images are kept.
func (r *Runtime) Reboot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		clear(p.sandboxes)
		for _, run := range p.runs {
			r.advance(run)
			run.end(time.Now(), lifecycle.Exit{
				Code: 255, Reason: lifecycle.ReasonUnknown, Message: "how the container ended is not known",
			})
		}
	}
	r.notify()
}
