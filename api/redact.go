package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/internal/redact"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// withheld stands for what containers, hooks and probes of a pod have written whose secrets cannot be read.
const withheld = "[withheld: the secrets of the pod cannot be read]"

// RedactRequest has texts that may contain values of secrets.
type RedactRequest struct {
	Texts []string `json:"texts"`
}

// Redacted is the response to a [RedactRequest].
type Redacted struct {
	Texts []string `json:"texts"` // in the same order
	// Unreadable are the names of pods whose secrets cannot be read now. Their values are not replaced.
	Unreadable []string `json:"unreadable,omitempty"`
}

// Redact replaces the values of the secrets of all pods in texts. It is for root: others could find out values by trial. The size of the texts
// is limited, see [Client.Create].
func (c *Client) Redact(ctx context.Context, texts []string) (r Redacted, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/redact", nil, RedactRequest{texts}, &r)
}

// RedactedPods is [Client.Pods] without the values of the secrets of each pod in the messages of its status. If the secrets of a pod cannot
// be read, termination messages are withheld.
func (c *Client) RedactedPods(ctx context.Context) (list PodList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/pods", map[string][]string{"redact": {"true"}}, nil, &list)
}

// redact handles a [RedactRequest].
func (s *Server) redact(r *http.Request) (any, error) {
	if p := peerOf(r.Context()); !p.isTrusted() {
		return nil, failure(http.StatusForbidden, "only root can redact texts, uid %d cannot", p.uid)
	}
	var q RedactRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: %v", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), historyLimit)
	defer cancel()
	snapshots := s.o.Supervisor.Pods()
	values := make([][]string, len(snapshots))
	unreadable := make([]string, len(snapshots))
	var group errgroup.Group
	group.SetLimit(maxParallelExplanations)
	for i := range snapshots {
		group.Go(func() error {
			var err error
			if values[i], err = s.secretsOf(ctx, snapshots[i].Pod); err != nil {
				unreadable[i] = snapshots[i].Pod.Name
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	redactor := redact.New(slices.Concat(values...))
	for i := range q.Texts {
		q.Texts[i] = redactor.Text(q.Texts[i])
	}
	return Redacted{Texts: q.Texts, Unreadable: slices.DeleteFunc(unreadable, func(name string) bool { return name == "" })}, nil
}

// redactorOf returns the redactor of a pod; nil: its secrets cannot be read.
func (s *Server) redactorOf(ctx context.Context, pod *spec.Pod) *redact.Redactor {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	values, err := s.secretsOf(ctx, pod)
	if err != nil {
		return nil
	}
	return redact.New(values)
}

// redactPods removes the values of secrets from the messages of pods.
func (s *Server) redactPods(ctx context.Context, pods []Pod) error {
	ctx, cancel := context.WithTimeout(ctx, historyLimit) // for all pods together
	defer cancel()
	var group errgroup.Group
	group.SetLimit(maxParallelExplanations)
	for i := range pods {
		p := &pods[i]
		group.Go(func() error {
			if p.Metadata.UID == "" { // a file that is refused
				return nil
			}
			redactStatus(&p.Status, s.redactorOf(ctx, &p.Spec.Pod))
			return nil
		})
	}
	return group.Wait()
}

// redactStatus removes the values of secrets from a status, which no other request uses. Without a redactor, they cannot be read.
func redactStatus(status *PodStatus, r *redact.Redactor) {
	replace := func(message *string) {
		if r != nil {
			*message = r.Text(*message)
		}
	}
	replace(&status.Message)
	for i := range status.Conditions {
		replace(&status.Conditions[i].Message)
	}
	for _, list := range [][]ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			for _, state := range []*ContainerState{&list[i].State, &list[i].LastState} {
				if state.Waiting != nil {
					replace(&state.Waiting.Message)
				}
				if t := state.Terminated; t != nil && r == nil && t.Message != "" {
					t.Message = withheld
				} else if t != nil {
					replace(&t.Message)
				}
			}
		}
	}
}

// eventRedactor removes the values of secrets from events. The secrets of each pod are read once.
type eventRedactor struct {
	server *Server
	pods   map[string]*redact.Redactor // by UID; nil: the secrets cannot be read, or the pod was deleted
}

func (s *Server) newEventRedactor() *eventRedactor {
	return &eventRedactor{server: s, pods: map[string]*redact.Redactor{}}
}

// event returns an event without values of secrets.
func (r *eventRedactor) event(ctx context.Context, e Event) Event {
	if e.UID == "" || len(e.Fields) == 0 {
		return e
	}
	redactor, known := r.pods[e.UID]
	if !known {
		if snapshot, ok := r.server.o.Supervisor.Pod(e.Pod); ok && snapshot.Facts.UID == e.UID {
			redactor = r.server.redactorOf(ctx, snapshot.Pod)
		}
		r.pods[e.UID] = redactor
	}
	e.Fields = maps.Clone(e.Fields)
	if redactor == nil {
		return withhold(e)
	}
	for name, value := range e.Fields {
		e.Fields[name] = redactor.Text(value)
	}
	e.Message = redactor.Text(e.Message)
	return e
}

// withhold replaces what containers, hooks and probes have written. Other errors stay: the runtime has removed secrets from them.
func withhold(e Event) Event {
	fields := []string{"output", "message", "warning"}
	if slices.Contains([]event.Kind{event.ProbeErrored, event.UpdateFailed, event.UpdateWaiting, event.RollbackStarted}, event.Kind(e.Kind)) {
		fields = append(fields, "error")
	}
	changed := false
	for _, name := range fields {
		if e.Fields[name] != "" {
			e.Fields[name], changed = withheld, true
		}
	}
	if changed {
		e.Message = event.New(event.Kind(e.Kind), time.Time{}, e.Pod, e.Fields).Message
	}
	return e
}

// isRedacted reads the parameter redact of a request.
func isRedacted(r *http.Request) (bool, error) { return flag(r.URL.Query(), "redact") }

// redactedPod is the response of a request for a pod.
func (s *Server) redactedPod(r *http.Request, snapshot *supervisor.Snapshot) (any, error) {
	pods := []Pod{s.pod(snapshot)}
	redacted, err := isRedacted(r)
	if err == nil && redacted {
		err = s.redactPods(r.Context(), pods)
	}
	return pods[0], err
}
