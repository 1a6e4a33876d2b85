package live

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/view"
)

const (
	// settle is the time after a change in which further ones are sent with it.
	settle = 200 * time.Millisecond
	// StatsInterval is the interval of samples of CPU and memory, and the longest time between two lists.
	StatsInterval = 5 * time.Second
	// whyInterval is the longest time between two explanations while no pod changes: they also change with time.
	whyInterval = 15 * time.Second
	// failureInterval is the time after which a request that has failed is repeated.
	failureInterval = 5 * time.Second
)

// Row is the line of a pod in the list.
type Row struct {
	Name   string  `json:"name"`
	UID    string  `json:"uid"`
	Status string  `json:"status"`
	Ready  string  `json:"ready"`
	Need   Need    `json:"need"`
	Text   string  `json:"text"`             // the first line of why
	CPU    *uint64 `json:"cpu,omitempty"`    // nanocores
	Memory *uint64 `json:"memory,omitempty"` // bytes
	Limit  *uint64 `json:"limit,omitempty"`  // bytes

	Restarts    int       `json:"restarts"`
	LastRestart time.Time `json:"lastRestart,omitzero"`
	Created     time.Time `json:"created,omitzero"`

	Scheduled  bool     `json:"scheduled,omitempty"` // it is started by its schedule, under other names
	Refused    bool     `json:"-"`                   // it is a file that was refused, and no pod
	Containers []string `json:"-"`                   // those of its spec, then sidecars
}

// Need is how much a pod needs a person. Lists begin with the lowest.
type Need int

// The needs.
const (
	Failing Need = iota // it is not ready, and not as requested, or its file or its state needs a correction
	Noticed             // it is ready, and was restarted within the last hour
	Moving              // it starts or stops
	Well
	Over // it has completed, or was stopped by request
)

// needOf returns how much a pod needs a person.
func needOf(p *api.Pod, e *api.Explanation) Need {
	switch {
	case e == nil && p.Status.Schedule != nil:
		return Well
	case e == nil: // a file that was refused, or a pod that was just created
		if p.Metadata.UID == "" || p.Status.Phase == api.PhaseFailed {
			return Failing
		}
		return Moving
	case e.NotResized != "", e.NotUpdated != "", e.NotDurable != "", e.NotRemoved != "", refusedFile(p) && !e.Healthy:
		return Failing
	case e.State == api.PodStateSucceeded, e.State == api.PodStateStopped:
		return Over
	case e.State == api.PodStateStopping:
		return Moving
	case e.Healthy:
		return Well
	case e.State == api.PodStateReady:
		return Noticed
	case e.State == api.PodStateNotReady && p.Status.Phase == api.PhasePending && e.Restarts == 0 && progressing(e.Cause):
		return Moving
	}
	return Failing
}

// refusedFile reports whether the file of a pod has another definition than what runs, and does not only wait.
func refusedFile(p *api.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c api.Condition) bool {
		return c.Type == api.FileAccepted && c.Status == "False" &&
			c.Reason != api.ReasonUpdatePending && c.Reason != api.ReasonRolloutUndone
	})
}

// progressing reports whether a cause is a part of a start.
func progressing(c *api.Cause) bool {
	if c == nil {
		return true
	}
	return slices.Contains([]api.CauseKind{
		api.CauseCreating, api.CauseImagePulling, api.CauseImageImporting, api.CauseInitRunning, api.CausePostStartRunning,
		api.CauseWaitsFor, api.CauseConditionUnmet, api.CauseStartRequested, api.CauseRestartRequested,
	}, c.Kind)
}

// List is the list of pods, those that need a person first.
type List struct {
	Pods []Row `json:"pods"`
}

// Lost reports the loss of the connection to the daemon. The next list follows when a daemon responds.
type Lost struct {
	Error string `json:"lost"`
}

// Failed reports an error of a daemon that responds. The request is repeated.
type Failed struct {
	Error string `json:"failed"`
}

// Source gets what screens show from a daemon. It is safe for concurrent use: screens share measurements.
type Source struct {
	client *client.Client
	rounds measurer
	// failure is [failureInterval], unless a test changes it.
	failure time.Duration
}

// New returns a source. The client must start no daemon.
func New(c *client.Client) *Source {
	return &Source{client: c, rounds: measurer{daemon: c, rest: minRest, lock: make(chan struct{}, 1)}, failure: failureInterval}
}

// Pods calls show with a [List] when all pods are known, and after changes, at least every few seconds. It calls it with [Lost] or [Failed]
// after an error. Texts have the time zone. Pods returns when the context ends or show returns an error.
func (s *Source) Pods(ctx context.Context, zone *time.Location, show func(any) error) error {
	for {
		err := s.watch(ctx, zone, show)
		var unshown *showError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &unshown):
			return unshown.error
		case errors.Is(err, api.ErrUnavailable):
			if err := show(Lost{err.Error()}); err != nil {
				return err
			}
			if err := reach(ctx, s.client); err != nil {
				return err
			}
		default:
			if err := show(Failed{err.Error()}); err != nil {
				return err
			}
			if !pause(ctx, s.failure) {
				return context.Cause(ctx)
			}
		}
	}
}

// showError is an error of the function that shows lists.
type showError struct{ error }

var errEnded = errors.Join(api.ErrUnavailable, errors.New("it has stopped"))

// watch shows lists until an error.
func (s *Source) watch(ctx context.Context, zone *time.Location, show func(any) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, ended := make(chan api.PodChange), make(chan error, 1)
	panics := make(chan *Panic, 2) // of watchInto and of the one measurement
	go carry(panics, func() { ended <- watchInto(ctx, s.client, changes) })
	type result struct {
		*measurement
		err error
	}
	results := make(chan result, 1)
	pods := map[[2]string]*api.Pod{}
	var changed time.Time // the newest change
	listed, waiting, measuring := false, false, false
	due := time.NewTimer(time.Hour)
	due.Stop()
	sample := time.NewTicker(StatsInterval)
	defer sample.Stop()
	measure := func() {
		measuring, waiting = true, false
		since, now := changed, time.Now()
		go carry(panics, func() {
			m, err := s.rounds.measure(ctx, since, now)
			results <- result{m, err}
		})
	}
	for {
		select {
		case p := <-panics:
			panic(p)
		case err := <-ended:
			return err
		case change := <-changes:
			id := [2]string{change.Object.Metadata.Name, change.Object.Metadata.UID}
			switch change.Type {
			case api.Deleted:
				delete(pods, id)
			case api.Listed:
				listed = true
			default:
				pods[id] = &change.Object
			}
			if changed = time.Now(); change.Type == api.Listed {
				measure()
			} else if listed && !waiting {
				waiting = true
				due.Reset(settle)
			}
		case <-sample.C:
			if listed && !measuring {
				measure()
			}
		case <-due.C:
			if waiting && !measuring {
				measure()
			}
		case m := <-results:
			if m.err != nil {
				return m.err
			}
			measuring = false
			if waiting {
				due.Reset(settle)
			}
			if err := show(List{rows(pods, m.stats, m.why, time.Now().In(zone))}); err != nil {
				return &showError{err}
			}
		}
	}
}

// watchInto sends changes of pods until an error.
func watchInto(ctx context.Context, c *client.Client, changes chan<- api.PodChange) error {
	for change, err := range c.Watch(ctx) {
		if err != nil {
			return err
		}
		select {
		case changes <- change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errEnded
}

// rows returns the lines of pods, those that need a person first.
func rows(pods map[[2]string]*api.Pod, stats []api.PodStats, explained []api.Explanation, now time.Time) []Row {
	usage, why := map[string]*api.PodStats{}, map[[2]string]*api.Explanation{}
	for i := range stats {
		usage[stats[i].PodRef.UID] = &stats[i]
	}
	for i := range explained {
		why[[2]string{explained[i].Pod, explained[i].UID}] = &explained[i]
	}
	out := make([]Row, 0, len(pods))
	for id, p := range pods {
		e := why[id]
		one := Row{
			Name: id[0], UID: id[1], Status: view.Status(p), Ready: view.Ready(p), Need: needOf(p, e),
			Created: p.Metadata.CreationTimestamp, Scheduled: p.Status.Schedule != nil,
			Refused: id[1] == "" && p.Status.Schedule == nil,
		}
		one.Restarts, one.LastRestart = view.RestartsOf(p)
		for i := range p.Spec.Containers {
			one.Containers = append(one.Containers, p.Spec.Containers[i].Name)
		}
		for i := range p.Spec.InitContainers {
			if c := &p.Spec.InitContainers[i]; c.IsSidecar() {
				one.Containers = append(one.Containers, c.Name)
			}
		}
		if e != nil {
			one.Text = view.Headline(e, now)
		}
		if u := usage[id[1]]; u != nil {
			if u.CPU != nil {
				one.CPU = u.CPU.UsageNanoCores
			}
			if u.Memory != nil {
				one.Memory, one.Limit = &u.Memory.WorkingSetBytes, u.Memory.LimitBytes
			}
		}
		out = append(out, one)
	}
	order.Sort(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Need, b.Need), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return out
}
