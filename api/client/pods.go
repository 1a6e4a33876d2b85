package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/podstead/podstead/api"
)

// AddEphemeral adds an ephemeral container to a running pod, and returns the pod. The container is never restarted, and remains until the
// pod is deleted. If the name is taken or the pod has terminated, it returns an [*api.Error] with status 409.
func (c *Client) AddEphemeral(ctx context.Context, pod string, q api.EphemeralRequest) (created api.Created, err error) {
	return created, c.call(ctx, http.MethodPost, podPath(pod)+"/ephemeral", query("uid", q.UID), q, &created)
}

// SetCondition sets the condition of a readiness gate of the pod, and returns the pod. If the pod has no readiness gate with the
// condition type, it returns an [*api.Error] with status 404.
func (c *Client) SetCondition(ctx context.Context, pod, conditionType string, q api.ConditionRequest) (p api.Pod, err error) {
	return p, c.call(ctx, http.MethodPut, podPath(pod)+"/conditions/"+conditionType, query("uid", q.UID), q, &p)
}

// Pods lists all pods, sorted by name.
func (c *Client) Pods(ctx context.Context) (list api.PodList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/pods", nil, nil, &list)
}

// Pod returns one pod.
func (c *Client) Pod(ctx context.Context, name string) (p api.Pod, err error) {
	return p, c.call(ctx, http.MethodGet, podPath(name), nil, nil, &p)
}

// PodWithUID returns the pod with a UID. After the pod was deleted, it returns the final state, until the session that created the pod
// ends.
func (c *Client) PodWithUID(ctx context.Context, name, uid string) (p api.Pod, err error) {
	return p, c.call(ctx, http.MethodGet, podPath(name), url.Values{"uid": {uid}}, nil, &p)
}

// Create creates a pod. With a session it is idempotent: a call whose response was lost can be repeated.
func (c *Client) Create(ctx context.Context, q api.CreateRequest) (created api.Created, err error) {
	return created, c.call(ctx, http.MethodPost, "/v1/pods", nil, q, &created)
}

// Touch sends a heartbeat of a session. It reports whether the session exists.
func (c *Client) Touch(ctx context.Context, session string) (bool, error) {
	err := c.call(ctx, http.MethodPut, "/v1/sessions/"+url.PathEscape(session), nil, nil, nil)
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// EndSession reports that the client needs no final states of deleted pods any more. The pods of the session are not affected.
func (c *Client) EndSession(ctx context.Context, session string) error {
	return c.call(ctx, http.MethodDelete, "/v1/sessions/"+url.PathEscape(session), nil, nil, nil)
}

// Watch yields every pod as [api.Added], one change of type [api.Listed], and then every change, until the context ends or the connection
// is lost.
func (c *Client) Watch(ctx context.Context) iter.Seq2[api.PodChange, error] {
	return stream[api.PodChange](ctx, c, http.MethodGet, "/v1/pods", query("watch", "true"), nil, nil)
}

// RedactedPods is [Client.Pods] without the values of the secrets of each pod in the messages of its status. If the secrets of a pod cannot
// be read, termination messages are withheld.
func (c *Client) RedactedPods(ctx context.Context) (list api.PodList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/pods", query("redact", "true"), nil, &list)
}

// Stats measures pods with these names, or all pods. The result is sorted by name. If a pod does not exist, the error is an [*api.Error]
// with status 404.
func (c *Client) Stats(ctx context.Context, pods ...string) (s api.StatsSummary, err error) {
	return s, c.call(ctx, http.MethodGet, "/v1/stats", url.Values{"pod": pods}, nil, &s)
}

// StopOptions are the options of [Client.Stop].
type StopOptions struct {
	UID    string         // if set, only the pod with this UID is stopped
	Grace  *time.Duration // nil: the grace period of the pod; 0: kill immediately
	Delete bool           // delete the pod after it has terminated
	// KeepFile keeps the file in the pods directory, which [Client.SuspendFiles] has suspended.
	KeepFile bool
}

// Stop requests the stop of a pod. It returns when the request is saved, and does not wait until the pod has terminated. A second call
// can shorten the grace period and add the deletion.
func (c *Client) Stop(ctx context.Context, name string, o StopOptions) error {
	_, err := c.stop(ctx, name, o)
	return err
}

// Delete is [Client.Stop] with the deletion of the pod and of its file in the pods directory. It also deletes files that are refused, by
// the name of their pod.
func (c *Client) Delete(ctx context.Context, name string, o StopOptions) (api.Deletion, error) {
	o.Delete = true
	return c.stop(ctx, name, o)
}

func (c *Client) stop(ctx context.Context, name string, o StopOptions) (d api.Deletion, err error) {
	q := query("uid", o.UID, "delete", flag(o.Delete), "keepFile", flag(o.KeepFile))
	if o.Grace != nil {
		q.Set("grace", o.Grace.String())
	}
	return d, c.call(ctx, http.MethodDelete, podPath(name), q, nil, &d)
}

// Start starts a pod again that was stopped or has completed. It keeps its UID and volumes. A pod that runs is unchanged. An empty UID
// matches any pod of the name.
func (c *Client) Start(ctx context.Context, name, uid string) (s api.Started, err error) {
	return s, c.call(ctx, http.MethodPost, podPath(name)+"/start", query("uid", uid), nil, &s)
}

// Restart stops the containers of a pod with their hooks and grace periods, and starts the pod again. It keeps its UID and volumes. With a
// container it restarts only that one. It returns when the request is saved. An empty UID matches any pod of the name.
func (c *Client) Restart(ctx context.Context, name, uid, container string) (s api.Started, err error) {
	return s, c.call(ctx, http.MethodPost, podPath(name)+"/restart", query("uid", uid, "container", container), nil, &s)
}

// Why explains a pod, or the newest deleted one of its name for as long as its events are stored. For each run that failed, the
// explanation has the given number of log lines at most.
func (c *Client) Why(ctx context.Context, name string, lines int) (e api.Explanation, err error) {
	return e, c.call(ctx, http.MethodGet, podPath(name)+"/why", linesQuery(lines), nil, &e)
}

// WhyAll explains all pods, sorted by name.
func (c *Client) WhyAll(ctx context.Context, lines int) (list api.ExplanationList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/why", linesQuery(lines), nil, &list)
}

func linesQuery(lines int) url.Values { return query("lines", strconv.Itoa(lines)) }
