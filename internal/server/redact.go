package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// withheld stands for what containers, hooks and probes of a pod have written whose secrets cannot be read.
const withheld = "[withheld: the secrets of the pod cannot be read]"

// redact handles a [api.RedactRequest].
func (s *Server) redact(r *http.Request) (any, error) {
	if p := peerOf(r.Context()); !p.isTrusted() {
		return nil, failure(http.StatusForbidden, "only root can redact texts, uid %d cannot", p.uid)
	}
	var q api.RedactRequest
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
	redactor := plain.NewRedactor(slices.Concat(values...))
	for i := range q.Texts {
		q.Texts[i] = redactor.Text(q.Texts[i])
	}
	return api.Redacted{Texts: q.Texts, Unreadable: slices.DeleteFunc(unreadable, func(name string) bool { return name == "" })}, nil
}

// redactorOf returns the redactor of a pod for a request; nil: its secrets cannot be read.
func (s *Server) redactorOf(ctx context.Context, uid string, pod *spec.Pod) *plain.Redactor {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	return s.redactors.of(ctx, pod, redactorKey{uid, isReader(ctx)})
}

// shown returns what the client of a request may see of pods: over the read-only socket, messages without values of secrets, and no values
// of environment variables.
func (s *Server) shown(r *http.Request, pods []api.Pod, redacted bool) []api.Pod {
	if redacted || isReadOnly(r) {
		s.redactPods(r.Context(), pods)
	}
	return visible(r, pods)
}

// redactPods removes the values of secrets from the messages of pods. It returns the UIDs of those whose secrets cannot be read.
func (s *Server) redactPods(ctx context.Context, pods []api.Pod) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, historyLimit) // for all pods together
	defer cancel()
	var group errgroup.Group
	group.SetLimit(maxParallelExplanations)
	unreadable := make([]bool, len(pods))
	for i := range pods {
		if p := &pods[i]; p.Metadata.UID != "" { // otherwise a file that is refused
			group.Go(func() error {
				redactor := s.redactorOf(ctx, p.Metadata.UID, &p.Spec.Pod)
				redactStatus(&p.Status, redactor)
				unreadable[i] = redactor == nil
				return nil
			})
		}
	}
	_ = group.Wait() // the functions return no error
	withheld := map[string]bool{}
	for i := range pods {
		if unreadable[i] {
			withheld[pods[i].Metadata.UID] = true
		}
	}
	return withheld
}

// redactStatus removes the values of secrets; nil: they cannot be read.
func redactStatus(p *api.PodStatus, r *plain.Redactor) {
	replace := func(message *string) {
		if r != nil {
			*message = r.Text(*message)
		}
	}
	replace(&p.Message)
	if r == nil && p.Outcome.Message != "" {
		p.Outcome.Message = withheld
	} else {
		replace(&p.Outcome.Message)
	}
	for i := range p.Conditions {
		replace(&p.Conditions[i].Message)
	}
	for _, list := range [][]api.ContainerStatus{p.InitContainerStatuses, p.ContainerStatuses, p.EphemeralContainerStatuses} {
		for i := range list {
			for _, state := range []*api.ContainerState{&list[i].State, &list[i].LastState} {
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

// redactEvent returns an event without values of secrets.
func (s *Server) redactEvent(ctx context.Context, e api.Event) api.Event {
	if e.UID == "" || len(e.Fields) == 0 {
		return e
	}
	var redactor *plain.Redactor // nil: the secrets cannot be read, or the pod was deleted
	if snapshot, ok := s.o.Supervisor.Pod(e.Pod); ok && snapshot.Facts.UID == e.UID {
		redactor = s.redactorOf(ctx, e.UID, snapshot.Pod)
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
func withhold(e api.Event) api.Event {
	fields := []string{"output", "message", "warning"}
	switch e.Kind { //nolint:exhaustive // others have no output
	case api.EventProbeErrored, api.EventUpdateFailed, api.EventUpdateWaiting, api.EventRollbackStarted:
		fields = append(fields, "error")
	}
	changed := false
	for _, name := range fields {
		if e.Fields[name] != "" {
			e.Fields[name], changed = withheld, true
		}
	}
	if changed {
		e.Message = event.New(e.Kind, time.Time{}, e.Pod, e.Fields).Message
	}
	return e
}

// isRedacted reads the parameter redact of a request.
func isRedacted(r *http.Request) (bool, error) { return flag(r.URL.Query(), "redact") }

// redactedPod is the response of a request for a pod.
func (s *Server) redactedPod(r *http.Request, snapshot *supervisor.Snapshot) (any, error) {
	redacted, err := isRedacted(r)
	return s.shown(r, []api.Pod{s.pod(snapshot)}, redacted)[0], err
}
