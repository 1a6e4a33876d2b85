package api

import (
	"context"
	"net/http"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/explain"
)

// Story is why a pod is as it is.
type Story = explain.Story

// StoryList is the stories of all pods.
type StoryList struct {
	Items []Story `json:"items"`
}

// Why tells the story of a pod, or of the newest of its name that is there no more, as long as anything is kept of it.
func (c *Client) Why(ctx context.Context, name string) (s Story, err error) {
	return s, c.call(ctx, http.MethodGet, podPath(name)+"/why", nil, nil, &s)
}

// WhyAll tells the stories of all pods, sorted by name.
func (c *Client) WhyAll(ctx context.Context) (list StoryList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/why", nil, nil, &list)
}

func (s *Server) why(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if snapshot, there := s.o.Supervisor.Pod(name); there {
		return s.story(r.Context(), &snapshot), nil
	}
	events, _ := s.o.Supervisor.History(r.Context(), name) // what could be read may be all that there is
	if gone, known := explain.Gone(events); known {
		return gone, nil
	}
	return nil, failure(http.StatusNotFound, "no such pod %q", name)
}

func (s *Server) whyAll(r *http.Request) (any, error) {
	list := StoryList{Items: []Story{}}
	for _, snapshot := range s.o.Supervisor.Pods() {
		list.Items = append(list.Items, s.story(r.Context(), &snapshot))
	}
	return list, nil
}

// story tells of a pod. What of its events cannot be read is left out: the pod itself is there to be told of.
func (s *Server) story(ctx context.Context, snapshot *supervisor.Snapshot) Story {
	limited, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	events, _ := s.o.Supervisor.History(limited, snapshot.Pod.Name)
	return explain.Of(snapshot, events, s.o.Supervisor.Now())
}
