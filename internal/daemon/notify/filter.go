package notify

import (
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/supervisor/event"
)

// filter selects events.
type filter struct {
	c        config.Notifier
	selector labels.Selector // nil: all
	labels   func(pod string) (map[string]string, bool)
	known    map[string]map[string]string // the last labels of pods with events, for the events of their deletion
}

func newFilter(c config.Notifier, of func(pod string) (map[string]string, bool)) *filter {
	f := &filter{c: c, labels: of, known: map[string]map[string]string{}}
	if c.Selector != "" {
		f.selector, _ = labels.Parse(c.Selector) // the configuration was checked
	}
	return f
}

// match reports whether an event is to be sent.
func (f *filter) match(e *event.Event) bool {
	selected := f.selected(e) // first: it remembers the labels
	switch {
	case len(f.c.Reasons) > 0 && !slices.Contains(f.c.Reasons, e.Reason):
		return false
	case len(f.c.Types) > 0 && !slices.Contains(f.c.Types, string(e.Level)):
		return false
	case len(f.c.Types) == 0 && len(f.c.Reasons) == 0 && e.Level != api.EventWarning:
		return false
	}
	return selected && f.named(e.Pod)
}

func (f *filter) named(pod string) bool {
	return len(f.c.Pods) == 0 || slices.ContainsFunc(f.c.Pods, func(pattern string) bool {
		ok, _ := filepath.Match(pattern, pod)
		return ok
	})
}

// selected compares the labels of the pod with the selector. Events of the daemon have no pod, and match no selector.
func (f *filter) selected(e *event.Event) bool {
	if f.selector == nil {
		return true
	}
	if e.Pod == "" {
		return false
	}
	set, found := f.labels(e.Pod)
	if found {
		f.known[e.Pod] = set
	} else {
		set, found = f.known[e.Pod]
	}
	if e.Kind == api.EventPodRemoved {
		delete(f.known, e.Pod)
	}
	return found && f.selector.Matches(labels.Set(set))
}
