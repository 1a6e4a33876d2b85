package lifecycle

import (
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
)

// Resize is the newest change of requests and limits that running containers get without a restart (KEP-1287), and what became of it. It is
// carried out when no container of an earlier definition runs any more, and then for the whole pod at once.
type Resize struct {
	N         int     `json:"n,omitempty"`        // number of the request, from 1
	Sandbox   int     `json:"sandbox,omitempty"`  // that was resized: a later one has the cgroups of its definition; 0: the present one
	Requested Instant `json:"requested,omitzero"` // zero: the pod has the cgroups of its definition
	Issued    int     `json:"issued,omitempty"`   // number of the request that is being carried out; 0: none
	Begun     int     `json:"begun,omitempty"`    // number of the newest request that was begun, also if interrupted
	Failed    Instant `json:"failed,omitzero"`    // the newest failure since the request
	Reason    Reason  `json:"reason,omitempty"`   // of the failure, see [ReasonInfeasible]
	Message   string  `json:"message,omitempty"`  // why it failed
	Done      Instant `json:"done,omitzero"`      // when the newest request succeeded
}

// resizing reports whether a request has not succeeded yet. One for an earlier sandbox does not count: a version of the daemon from before
// resizes, which keeps these facts as they are, may have replaced the sandbox. The first version with resizes has written no sandbox, and
// has dropped the request with it.
func (f *Facts) resizing() bool {
	return !f.Resize.Requested.IsZero() && (f.Resize.Sandbox == 0 || f.Resize.Sandbox == f.Sandbox.N)
}

// drop forgets the request: the pod gets its cgroups from its definition.
func (r *Resize) drop() { *r = Resize{N: r.N, Issued: r.Issued} }

// requestResize records that requests or limits of containers have changed. What a run has that is not replaced, it keeps until the resize.
func (f *Facts) requestResize(e DefinitionChanged) {
	if !f.Sandbox.mayExist() {
		return
	}
	resized, earlier := false, map[string]bool{}
	for name, c := range f.Containers {
		earlier[name] = c.Newest.live() && c.Newest.Resources != nil
	}
	for from := range containersOf(e.From) {
		to := e.To.Container(from.Name)
		if to == nil || sameResources(from, to) {
			continue
		}
		resized = true
		h := f.Containers[from.Name]
		if h == nil || slices.Contains(e.Restarted, from.Name) {
			continue
		}
		for _, a := range [...]*Attempt{&h.Previous, &h.Newest} {
			if a.N() > 0 && a.Resources == nil {
				a.Resources = &from.Resources
			}
		}
	}
	if !resized { // but another try may succeed, and a message would be of an earlier request
		f.Resize.Failed, f.Resize.Reason, f.Resize.Message = Instant{}, "", ""
		return
	}
	if f.Resize.Issued == f.Resize.N && f.Resize.N > 0 { // with the definition that changes
		for from := range containersOf(e.From) {
			if earlier[from.Name] {
				f.Containers[from.Name].Newest.Resizing = &from.Resources
			}
		}
	}
	f.Resize = Resize{N: f.Resize.N + 1, Sandbox: f.Sandbox.N, Requested: e.At, Issued: f.Resize.Issued}
}

// endResize records that no resize is carried out any more. What a later change has replaced is in effect if it was completed.
func (f *Facts) endResize(completed bool) {
	f.Resize.Issued = 0
	for _, c := range f.Containers {
		a := &c.Newest
		if completed && a.live() && a.Resizing != nil {
			a.Resources = a.Resizing
		}
		a.Resizing = nil
	}
}

// resized ends the back-off of a container that gets other requests or limits, and counts its restarts anew: those before had the earlier
// ones (kubelet: GetBackoffKey).
func (f *Facts) resized(from, to *spec.Container) {
	if h := f.Containers[from.Name]; h != nil && !sameResources(from, to) {
		h.resetDelays()
		h.Exits = 0
	}
}

// ResizesFailed reports whether the change gives other requests or limits to a container whose newest run has failed.
func (e DefinitionChanged) ResizesFailed(f Facts) bool {
	for from := range containersOf(e.From) {
		to := e.To.Container(from.Name)
		if to != nil && !sameResources(from, to) && f.Container(from.Name).Newest.countsAsFailed() {
			return true
		}
	}
	return false
}

// sameResources reports whether two definitions have the same requests and limits of CPU and memory.
func sameResources(a, b *spec.Container) bool {
	same := func(a, b spec.ResourceList, name string) bool {
		x, had := a[name]
		y, has := b[name]
		return had == has && x.Cmp(y) == 0
	}
	for _, name := range []string{spec.ResourceCPU, spec.ResourceMemory} {
		if !same(a.Resources.Requests, b.Resources.Requests, name) || !same(a.Resources.Limits, b.Resources.Limits, name) {
			return false
		}
	}
	return true
}

// ResizePod sets the requests and limits of the definition in the cgroups of the pod and of its running containers.
type ResizePod struct {
	N       int // number of the request
	Sandbox int
}

func (a ResizePod) issued(f *Facts, _ Instant) { f.Resize.Issued, f.Resize.Begun = a.N, a.N }

func (a ResizePod) failed(f *Facts, why Failure, at Instant) {
	if f.Resize.Issued != a.N {
		return
	}
	f.endResize(false)
	if f.resizing() && f.Resize.N == a.N {
		f.Resize.Failed, f.Resize.Reason, f.Resize.Message = at, why.Reason, why.Message
	}
}

// ResizeInterrupted reports that the outcome of a resize is not known, as after a restart of the supervisor. A pending one is decided anew,
// because a run of an earlier definition may have to stop before.
type ResizeInterrupted struct{}

func (ResizeInterrupted) apply(f *Facts) { f.endResize(false) }

// PodResized is the outcome of [ResizePod].
type PodResized struct {
	N  int // number of the request
	At Instant
}

func (e PodResized) apply(f *Facts) {
	if f.Resize.Issued != e.N {
		return
	}
	f.endResize(true)
	if f.Resize.N != e.N { // the definition has changed again
		return
	}
	f.Resize = Resize{N: e.N, Sandbox: f.Sandbox.N, Done: e.At}
	for _, c := range f.Containers {
		if c.Newest.live() {
			c.Newest.Resources = nil
		}
	}
}

// resize resizes the pod if its definition has changed. A run of an earlier definition is stopped before. What is being started may be of
// an earlier definition, too.
func (p *plan) resize() {
	r := &p.facts.Resize
	if !p.facts.resizing() || r.Issued != 0 || p.held || p.facts.unsettled() {
		return
	}
	if r.Failed.IsZero() || p.due(r.Failed.Add(retryDelay)) {
		p.do(ResizePod{N: r.N, Sandbox: p.facts.Sandbox.N})
	}
}

// unsettled reports whether a container is being started, or has a run of an earlier definition.
func (f *Facts) unsettled() bool {
	for name, c := range f.Containers {
		if a := &c.Newest; a.live() && (a.Started.IsZero() || f.earlier(name, a.N()) != nil) {
			return true
		}
	}
	return false
}

// resizeCondition is present while a resize is pending, as in the kubelet.
func (v *view) resizeCondition() (c Condition, present bool) {
	r := &v.facts.Resize
	if !v.facts.resizing() || v.ended || v.facts.Restart.pending() || !v.facts.Sandbox.ready() {
		return c, false
	}
	switch {
	case r.Failed.IsZero():
		return condition(PodResizeInProgress, true, "", ""), true
	case r.Reason == ReasonInfeasible:
		return condition(PodResizePending, true, ReasonInfeasible, r.Message), true
	}
	return condition(PodResizeInProgress, true, ReasonError, r.Message), true
}

// resizeSubject names the containers whose resize is pending, for people.
func (f *Facts) resizeSubject() string {
	var names []string
	for _, name := range f.names() {
		if a := &f.Container(name).Newest; a.live() && a.Resources != nil {
			names = append(names, strconv.Quote(name))
		}
	}
	switch len(names) {
	case 0:
		return "the resize of the pod"
	case 1:
		return "the resize of container " + names[0]
	}
	return "the resize of containers " + strings.Join(names, ", ")
}
