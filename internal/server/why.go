package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/explain"
)

const (
	// maxEvidenceLines bounds what a client can ask for.
	maxEvidenceLines = 1000
	// maxParallelExplanations bounds how many pods are explained at the same time. Each may wait for a file system.
	maxParallelExplanations = 16
	// maxSecretReads bounds how many secrets are read at the same time for all explanations. It is half of the limit of package
	// configsource, so that explanations do not delay the start of containers.
	maxSecretReads = 32
	// maxReaderReads is the same for requests over the read-only socket, so that its users do not delay those of the other one.
	maxReaderReads = 16
)

// SecretSource gives the values of a secret of a pod, by key. The error of a secret that does not exist is an [fs.ErrNotExist].
type SecretSource interface {
	Secret(pod *spec.Pod, name string) (map[string][]byte, error)
}

// readLines is the number of log lines that a request asks for.
func readLines(r *http.Request) (int, error) {
	q := r.URL.Query()
	if !q.Has("lines") {
		return api.DefaultEvidenceLines, nil
	}
	n, err := number(q, "lines")
	if err == nil && n > maxEvidenceLines {
		err = invalidField("lines", "lines=%d: must be at most %d", n, maxEvidenceLines)
	}
	return int(n), err
}

func (s *Server) why(r *http.Request) (any, error) {
	lines, err := readLines(r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if snapshot, exists := s.o.Supervisor.Pod(name); exists {
		return s.explain(r.Context(), &snapshot, lines), nil
	}
	if status, ok := s.scheduled(name); ok {
		return s.explainSchedule(r.Context(), &status), nil
	}
	f := s.refusals()[name]
	if f != nil && f.absent() {
		e := f.explanation(name)
		explain.Render(&e, s.o.Supervisor.Now().Wall.Local())
		return e, nil
	}
	events, _ := s.o.Supervisor.History(r.Context(), name) // with an error it returns those that could be read
	e, known := explain.ForDeletedPod(events)
	switch {
	case !known && f != nil:
		return nil, f.noSuchPod(name)
	case !known:
		return nil, failure(http.StatusNotFound, "no such pod %q", name)
	}
	explain.Render(&e, s.o.Supervisor.Now().Wall.Local())
	return e, nil
}

func (s *Server) whyAll(r *http.Request) (any, error) {
	lines, err := readLines(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), historyLimit) // for all pods together
	defer cancel()
	snapshots := s.o.Supervisor.Pods()
	list := api.ExplanationList{Items: make([]api.Explanation, len(snapshots))}
	var group errgroup.Group
	group.SetLimit(maxParallelExplanations)
	for i := range snapshots {
		group.Go(func() error {
			list.Items[i] = s.explain(ctx, &snapshots[i], lines)
			return nil
		})
	}
	err = group.Wait()
	list.Items = s.withRefused(ctx, list.Items)
	return list, err
}

// explain explains a pod by its facts, and by those of its events and log lines that can be read in time.
func (s *Server) explain(ctx context.Context, snapshot *supervisor.Snapshot, lines int) api.Explanation {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	events, _ := s.o.Supervisor.History(ctx, snapshot.Pod.Name)
	e := explain.ForPod(snapshot, s.withHostEvents(events), s.o.Supervisor.Now())
	s.refusals()[e.Pod].explain(&e)
	for i := range e.Containers {
		if c := &e.Containers[i]; c.Evidence != nil {
			explain.AddLog(snapshot, c, s.lastLines(ctx, snapshot, c.Name, c.Evidence.Run, max(lines, 1)), lines)
		}
	}
	if values, err := s.secretsOf(ctx, snapshot.Pod); err != nil {
		explain.Withhold(&e)
	} else {
		explain.Redact(&e, plain.NewRedactor(values))
	}
	explain.Render(&e, s.o.Supervisor.Now().Wall.Local())
	s.addProbes(&e)
	return e
}

// withHostEvents adds the events that belong to no pod, in the order of their numbers.
func (s *Server) withHostEvents(events []event.Event) []event.Event {
	all, _ := s.o.Supervisor.Events().Since(0)
	events = append(slices.Clip(events), slices.DeleteFunc(all, func(e event.Event) bool { return e.Pod != "" })...)
	order.Sort(events, func(a, b event.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return events
}

// addProbes adds the newest answers of probes to an explanation.
func (s *Server) addProbes(e *api.Explanation) {
	if s.o.Probes == nil {
		return
	}
	for _, answer := range s.o.Probes(e.UID) {
		for i := range e.Containers {
			if c := &e.Containers[i]; c.Name == answer.Container {
				c.Probes = append(c.Probes, answer.ProbeAnswer)
			}
		}
	}
}

// maxEvidenceLine is the maximum size of a log line in an explanation, in bytes. Longer lines are cut.
const maxEvidenceLine = 4 << 10

// lastLines are the last lines of the log of a run, as far as they can be read. Of a line that is stored in parts it returns the
// beginning only, since the redaction of secrets needs whole values.
func (s *Server) lastLines(ctx context.Context, snapshot *supervisor.Snapshot, container string, run, n int) []string {
	c := containerOutput{server: s, pod: snapshot.Pod.Name, uid: snapshot.Facts.UID, name: container}
	var lines []string
	continued := map[crilog.Stream]bool{} // the next entry of a stream continues its line
	for entry, err := range crilog.Read(ctx, c.log(run), crilog.ReadOptions{Tail: n}) {
		if err != nil {
			break
		}
		skip := continued[entry.Stream]
		continued[entry.Stream] = entry.Partial
		if skip {
			continue
		}
		line := string(entry.Text)
		if len(line) > maxEvidenceLine {
			line = strings.ToValidUTF8(line[:min(len(line), maxEvidenceLine)], "\uFFFD") + "…"
		}
		lines = append(lines, line)
	}
	return lines[max(0, len(lines)-n):]
}

// secretsOf are the values of the secrets that a pod refers to. A missing secret is an error unless it is optional: it existed when the
// container ran that may have printed it.
func (s *Server) secretsOf(ctx context.Context, pod *spec.Pod) ([]string, error) {
	if s.o.Secrets == nil {
		return nil, nil
	}
	type result struct {
		values map[string][]byte
		err    error
	}
	slots := s.secretReads
	if isReader(ctx) {
		slots = s.readerReads
	}
	names := pod.SecretNames()
	results := make(chan result, len(names))
	for name, required := range names { // in parallel: each read may wait for a file system
		if err := slots.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		go func() {
			defer slots.Release(1)
			secret, err := s.o.Secrets.Secret(pod, name)
			if err != nil && !required && errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			if err != nil {
				err = fmt.Errorf("read secret %q: %w", name, err)
			}
			results <- result{secret, err}
		}()
	}
	var values []string
	for range names {
		select {
		case r := <-results:
			if r.err != nil {
				return nil, r.err
			}
			for _, value := range r.values {
				values = append(values, string(value))
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return values, nil
}
