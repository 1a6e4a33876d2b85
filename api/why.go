package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/explain"
)

const (
	// DefaultEvidenceLines is how many of the last log lines of a failed run an explanation has.
	DefaultEvidenceLines = 3
	// maxEvidenceLines bounds what a client can ask for.
	maxEvidenceLines = 1000
)

// Explanation is why a pod is in its state.
type Explanation = explain.Explanation

// ExplanationList is the explanations of all pods.
type ExplanationList struct {
	Items []Explanation `json:"items"`
}

// SecretSource gives the values of a secret of a pod, by key. The error of a secret that does not exist is an [fs.ErrNotExist].
type SecretSource interface {
	Secret(pod *spec.Pod, name string) (map[string][]byte, error)
}

// Why explains a pod, or the newest deleted one of its name for as long as its events are stored. For each run that failed, the
// explanation has the given number of log lines at most.
func (c *Client) Why(ctx context.Context, name string, lines int) (e Explanation, err error) {
	return e, c.call(ctx, http.MethodGet, podPath(name)+"/why", linesQuery(lines), nil, &e)
}

// WhyAll explains all pods, sorted by name.
func (c *Client) WhyAll(ctx context.Context, lines int) (list ExplanationList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/why", linesQuery(lines), nil, &list)
}

func linesQuery(lines int) url.Values { return url.Values{"lines": {strconv.Itoa(lines)}} }

// readLines is the number of log lines that a request asks for.
func readLines(r *http.Request) (int, error) {
	q := r.URL.Query()
	if !q.Has("lines") {
		return DefaultEvidenceLines, nil
	}
	n, err := number(q, "lines")
	if err == nil && n > maxEvidenceLines {
		err = failure(http.StatusBadRequest, "lines=%d: must be at most %d", n, maxEvidenceLines)
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
	events, _ := s.o.Supervisor.History(r.Context(), name) // with an error it returns those that could be read
	e, known := explain.ForDeletedPod(events)
	if !known {
		return nil, failure(http.StatusNotFound, "no such pod %q", name)
	}
	e.Render(s.o.Supervisor.Now().Wall.Local())
	return e, nil
}

func (s *Server) whyAll(r *http.Request) (any, error) {
	lines, err := readLines(r)
	if err != nil {
		return nil, err
	}
	list := ExplanationList{Items: []Explanation{}}
	for _, snapshot := range s.o.Supervisor.Pods() {
		list.Items = append(list.Items, s.explain(r.Context(), &snapshot, lines))
	}
	return list, nil
}

// explain explains a pod by its facts, and by those of its events and log lines that can be read in time.
func (s *Server) explain(ctx context.Context, snapshot *supervisor.Snapshot, lines int) Explanation {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	events, _ := s.o.Supervisor.History(ctx, snapshot.Pod.Name)
	e := explain.ForPod(snapshot, events, s.o.Supervisor.Now())
	for i := range e.Containers {
		if c := &e.Containers[i]; c.Evidence != nil {
			c.AddLog(s.lastLines(ctx, snapshot, c.Name, c.Evidence.Run, max(lines, 1)), lines)
		}
	}
	if values, err := s.secretsOf(snapshot.Pod); err != nil {
		e.Withhold()
	} else {
		e.Redact(values)
	}
	e.Render(s.o.Supervisor.Now().Wall.Local())
	return e
}

// lastLines are the last lines of the log of a run, as far as they can be read.
func (s *Server) lastLines(ctx context.Context, snapshot *supervisor.Snapshot, container string, run, n int) []string {
	c := containerOutput{server: s, pod: snapshot.Pod.Name, uid: snapshot.Facts.UID, name: container}
	var lines []string
	for entry, err := range crilog.Read(ctx, filepath.Join(c.dir(), strconv.Itoa(run)+".log"), crilog.ReadOptions{Tail: n}) {
		if err != nil {
			break
		}
		lines = append(lines, string(entry.Text))
	}
	return lines[max(0, len(lines)-n):] // parts of one long line may be more
}

// secretsOf are the values of the secrets that a pod refers to. Secrets that do not exist have none.
func (s *Server) secretsOf(pod *spec.Pod) ([]string, error) {
	if s.o.Secrets == nil {
		return nil, nil
	}
	var values []string
	for _, name := range secretNames(pod) {
		secret, err := s.o.Secrets.Secret(pod, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read secret %q: %w", name, err)
		}
		for _, value := range secret {
			values = append(values, string(value))
		}
	}
	return values, nil
}

// secretNames are the names of the inline secrets of a pod, and of those that its environment variables and volumes refer to.
func secretNames(pod *spec.Pod) []string {
	var names []string
	for i := range pod.Secrets {
		names = append(names, pod.Secrets[i].Name)
	}
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers, pod.EphemeralContainers} {
		for i := range list {
			for _, from := range list[i].EnvFrom {
				if from.SecretRef != nil {
					names = append(names, from.SecretRef.Name)
				}
			}
			for _, env := range list[i].Env {
				if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
					names = append(names, env.ValueFrom.SecretKeyRef.Name)
				}
			}
		}
	}
	for i := range pod.Volumes {
		v := &pod.Volumes[i]
		if v.Secret != nil {
			names = append(names, v.Secret.SecretName)
		}
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					names = append(names, source.Secret.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
