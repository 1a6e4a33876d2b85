package server

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// maxLabelled is the number of pods above which a [labelFilter] forgets those that do not exist. A stream may run for a long time.
const maxLabelled = 1000

// labelFilter selects the events of pods whose labels match. Events have no labels: those of the pod count, as they are when the event is
// sent. A pod that was deleted has the labels that it had at its last event in the stream, or its final state has. It does not match if
// neither is known. Events of the host do not match.
type labelFilter struct {
	selector labels.Selector
	pods     *supervisor.Supervisor
	known    map[string]labelled // by UID
}

// labelled is what is known about the labels of a pod.
type labelled struct {
	pod     string // name
	matches bool
}

// labelFilter returns the filter for a label selector. An empty one selects all events.
func (s *Server) labelFilter(text string) (*labelFilter, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, invalidField("labelSelector", "labelSelector=%q: %v", text, err)
	}
	return &labelFilter{selector: selector, pods: s.o.Supervisor, known: map[string]labelled{}}, nil
}

func (f *labelFilter) has(e *event.Event) bool {
	if f.selector.Empty() {
		return true
	}
	pod, ok := f.pods.Pod(e.Pod)
	if !ok || pod.Facts.UID != e.UID {
		if known, ok := f.known[e.UID]; ok {
			return known.matches
		}
		if pod, ok = f.pods.Final(e.UID); !ok {
			return false
		}
	}
	if len(f.known) >= maxLabelled {
		f.forget()
	}
	l := labelled{e.Pod, f.selector.Matches(labels.Set(pod.Pod.Labels))}
	f.known[e.UID] = l
	return l.matches
}

// forget removes pods that do not exist.
func (f *labelFilter) forget() {
	for uid, l := range f.known {
		if pod, ok := f.pods.Pod(l.pod); !ok || pod.Facts.UID != uid {
			delete(f.known, uid)
		}
	}
}
