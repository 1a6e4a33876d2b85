package ui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/view"
)

const (
	// settle is the time after a change in which further ones are sent with it.
	settle = 200 * time.Millisecond
	// statsInterval is the interval of samples of CPU and memory, and the longest time between two lists.
	statsInterval = 5 * time.Second
)

// row is the line of a pod.
type row struct {
	Name   string  `json:"name"`
	UID    string  `json:"uid"`
	Status string  `json:"status"`
	Ready  string  `json:"ready"`
	Need   need    `json:"need"`
	Text   string  `json:"text"` // the first line of why
	CPU    *uint64 `json:"cpu,omitempty"`
	Memory *uint64 `json:"memory,omitempty"` // bytes
	Limit  *uint64 `json:"limit,omitempty"`  // bytes

	Restarts    int       `json:"restarts"`
	LastRestart time.Time `json:"lastRestart,omitzero"`
	Created     time.Time `json:"created,omitzero"`
}

// need is how much a pod needs a person. Lists begin with the lowest.
type need int

const (
	failing need = iota // it is not ready, and not as requested
	noticed             // it is ready, and was restarted within the last hour
	moving              // it starts or stops
	well
	over // it has completed, or was stopped by request
)

// needOf returns how much a pod needs a person.
func needOf(p *api.Pod, e *api.Explanation) need {
	switch {
	case e == nil: // a file that was refused, or a pod that was just created
		if p.Metadata.UID == "" || p.Status.Phase == api.PhaseFailed {
			return failing
		}
		return moving
	case e.State == api.PodStateSucceeded, e.State == api.PodStateStopped:
		return over
	case e.State == api.PodStateStopping:
		return moving
	case e.Healthy:
		return well
	case e.State == api.PodStateReady:
		return noticed
	case e.State == api.PodStateNotReady && p.Status.Phase == api.PhasePending && e.Restarts == 0 && progressing(e.Cause):
		return moving
	}
	return failing
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

// list is a value of the stream of pods.
type list struct {
	Pods []row `json:"pods"`
}

// pods streams the list of pods.
func (s *Server) pods(w http.ResponseWriter, r *http.Request) {
	out := newStream(w)
	for {
		err := s.watch(r.Context(), out)
		if !errors.Is(err, api.ErrUnavailable) || out.send(lost{err.Error()}) != nil || reach(r.Context(), s.client) != nil {
			return // the page sends the request again
		}
	}
}

var errEnded = errors.Join(api.ErrUnavailable, errors.New("it has stopped"))

// watch streams the list until an error.
func (s *Server) watch(ctx context.Context, out *stream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, ended := make(chan api.PodChange), make(chan error, 1)
	go func() { ended <- watchInto(ctx, s.client, changes) }()
	pods := map[[2]string]*api.Pod{}
	var stats api.StatsSummary
	due := time.NewTimer(time.Hour)
	due.Stop()
	sample := time.NewTicker(statsInterval)
	defer sample.Stop()
	for waiting := false; ; {
		measure := false
		select {
		case err := <-ended:
			return err
		case change := <-changes:
			id := [2]string{change.Object.Metadata.Name, change.Object.Metadata.UID}
			switch change.Type {
			case api.Deleted:
				delete(pods, id)
			case api.Listed:
				measure = true
			default:
				pods[id] = &change.Object
			}
			if !measure {
				if !waiting {
					waiting = true
					due.Reset(settle)
				}
				continue
			}
		case <-sample.C:
			measure = true
		case <-due.C:
			waiting = false
		}
		if measure {
			var err error
			if stats, err = s.client.Stats(ctx); err != nil {
				return err
			}
		}
		explained, err := s.client.WhyAll(ctx, 0)
		if err != nil {
			return err
		}
		if err := out.send(list{rows(pods, stats.Pods, explained.Items, time.Now())}); err != nil {
			return err
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
func rows(pods map[[2]string]*api.Pod, stats []api.PodStats, explained []api.Explanation, now time.Time) []row {
	usage, why := map[string]*api.PodStats{}, map[[2]string]*api.Explanation{}
	for i := range stats {
		usage[stats[i].PodRef.UID] = &stats[i]
	}
	for i := range explained {
		why[[2]string{explained[i].Pod, explained[i].UID}] = &explained[i]
	}
	out := make([]row, 0, len(pods))
	for id, p := range pods {
		e := why[id]
		one := row{
			Name: id[0], UID: id[1], Status: view.Status(p), Ready: view.Ready(p), Need: needOf(p, e),
			Created: p.Metadata.CreationTimestamp,
		}
		one.Restarts, one.LastRestart = view.RestartsOf(p)
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
	slices.SortFunc(out, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Need, b.Need), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return out
}
