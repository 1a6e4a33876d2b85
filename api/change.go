package api

import (
	"context"
	"net/http"
	"net/url"
)

// EphemeralRequest requests an ephemeral container in a running pod.
type EphemeralRequest struct {
	// File is the name of the file in problems. Text is TOML, with the keys of a container at the top level.
	File string `json:"file"`
	Text string `json:"text"`
	// ImageArchives are image archives for the container, beside those of the pod. The paths are absolute. Only root can name files.
	ImageArchives []string `json:"imageArchives,omitempty"`
	// UID, if set, restricts the request to the pod with this UID.
	UID string `json:"-"`
}

// AddEphemeral adds an ephemeral container to a running pod, and returns the pod. The container is never restarted, and remains until the
// pod is deleted. If the name is taken or the pod has terminated, it returns an [*Error] with status 409.
func (c *Client) AddEphemeral(ctx context.Context, pod string, q EphemeralRequest) (created Created, err error) {
	return created, c.call(ctx, http.MethodPost, podPath(pod)+"/ephemeral", uidQuery(q.UID), q, &created)
}

// ConditionRequest sets a condition of a pod.
type ConditionRequest struct {
	Status  string `json:"status"` // "True", "False" or "Unknown"
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// UID, if set, restricts the request to the pod with this UID.
	UID string `json:"-"`
}

// SetCondition sets the condition of a readiness gate of the pod, and returns the pod. If the pod has no readiness gate with the
// condition type, it returns an [*Error] with status 404.
func (c *Client) SetCondition(ctx context.Context, pod, conditionType string, q ConditionRequest) (p Pod, err error) {
	return p, c.call(ctx, http.MethodPut, podPath(pod)+"/conditions/"+conditionType, uidQuery(q.UID), q, &p)
}

func uidQuery(uid string) url.Values {
	if uid == "" {
		return nil
	}
	return url.Values{"uid": {uid}}
}
