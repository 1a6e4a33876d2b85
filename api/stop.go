package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

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

// Deletion is the response to a request to delete a pod.
type Deletion struct {
	// File is the file in the pods directory that was removed; empty: the pod had none.
	File string `json:"file,omitempty"`
}

// Delete is [Client.Stop] with the deletion of the pod and of its file in the pods directory. It also deletes files that are refused, by
// the name of their pod.
func (c *Client) Delete(ctx context.Context, name string, o StopOptions) (Deletion, error) {
	o.Delete = true
	return c.stop(ctx, name, o)
}

func (c *Client) stop(ctx context.Context, name string, o StopOptions) (d Deletion, err error) {
	q := url.Values{}
	if o.UID != "" {
		q.Set("uid", o.UID)
	}
	if o.Grace != nil {
		q.Set("grace", o.Grace.String())
	}
	if o.Delete {
		q.Set("delete", "true")
	}
	if o.KeepFile {
		q.Set("keepFile", "true")
	}
	return d, c.call(ctx, http.MethodDelete, podPath(name), q, nil, &d)
}

// Started is the response to a request to start or restart a pod.
type Started struct {
	// NewerImages are the containers that keep their image although an image archive, an image directory or an import has a newer one.
	// Applying the pod file again uses it.
	NewerImages []string `json:"newerImages,omitempty"`
	// File is the pod's file in the pods directory; empty: it has none.
	File string `json:"file,omitempty"`
	// Unit is the systemd unit that starts the pod; empty: none does.
	Unit string `json:"unit,omitempty"`
}

// Start starts a pod again that was stopped or has completed. It keeps its UID and volumes. A pod that runs is unchanged. An empty UID
// matches any pod of the name.
func (c *Client) Start(ctx context.Context, name, uid string) (s Started, err error) {
	return s, c.call(ctx, http.MethodPost, podPath(name)+"/start", uidQuery(uid), nil, &s)
}

// Restart stops the containers of a pod with their hooks and grace periods, and starts the pod again. It keeps its UID and volumes. With a
// container it restarts only that one. It returns when the request is saved. An empty UID matches any pod of the name.
func (c *Client) Restart(ctx context.Context, name, uid, container string) (s Started, err error) {
	q := uidQuery(uid)
	if container != "" {
		if q == nil {
			q = url.Values{}
		}
		q.Set("container", container)
	}
	return s, c.call(ctx, http.MethodPost, podPath(name)+"/restart", q, nil, &s)
}
