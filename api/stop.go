package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
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

// stop stops or deletes a pod. The file of a deleted pod is removed first: otherwise the pod would be created again. A file that is refused
// because a pod of a client has the name is kept.
func (s *Server) stop(r *http.Request) (any, error) {
	q := r.URL.Query()
	o := supervisor.StopOptions{By: requester(r)}
	var err error
	if o.Delete, err = flag(q, "delete"); err != nil {
		return nil, err
	}
	keepFile, err := flag(q, "keepFile")
	if err != nil {
		return nil, err
	}
	if text := q.Get("grace"); text != "" {
		grace, err := time.ParseDuration(text)
		if err != nil || grace < 0 {
			return nil, invalidField("grace", "grace=%q: must be a duration, such as 30s", text)
		}
		o.Grace = &grace
	}
	snapshot, err := s.lookUp(r)
	name := r.PathValue("name")
	if err != nil && (!o.Delete || q.Get("uid") != "" || !s.hasFile(name)) {
		return nil, err
	}
	d := Deletion{}
	exists := err == nil
	if o.Delete && !keepFile && s.o.Files != nil && (!exists || snapshot.Owner.File != "") {
		if d.File, err = s.o.Files.Remove(r.Context(), name); err != nil {
			return nil, err
		}
	}
	if !exists {
		return d, nil
	}
	o.UID = snapshot.Facts.UID
	switch err := s.o.Supervisor.Stop(r.Context(), name, o); {
	case err == nil, d.File != "" && errors.Is(err, supervisor.ErrNotFound):
		return d, nil
	case d.File != "":
		e := *asError(err)
		e.Message = fmt.Sprintf("file %s was removed, but the pod was not deleted: %s", d.File, e.Message)
		return nil, &e
	default:
		return nil, err
	}
}

// hasFile reports whether a file of the pods directory defines a pod.
func (s *Server) hasFile(pod string) bool {
	return s.o.Files != nil && slices.ContainsFunc(s.o.Files.Files(), func(f podfiles.File) bool { return f.Pod == pod })
}

func (s *Server) start(r *http.Request) (any, error) {
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	if err := s.o.Restarter.Start(r.Context(), snapshot.Pod.Name, snapshot.Facts.UID, requester(r)); err != nil {
		return nil, err
	}
	return s.started(r.Context(), &snapshot, ""), nil
}

func (s *Server) restart(r *http.Request) (any, error) {
	snapshot, err := s.lookUp(r)
	if err != nil {
		return nil, err
	}
	container := r.URL.Query().Get("container")
	if err := s.o.Restarter.Restart(r.Context(), snapshot.Pod.Name, snapshot.Facts.UID, container, requester(r)); err != nil {
		return nil, err
	}
	return s.started(r.Context(), &snapshot, container), nil
}

// newestTimeout bounds the search for newer images after a restart. A large archive that has changed may have to be read.
const newestTimeout = 10 * time.Second

// started returns which containers of a pod, or whether one of them, could have a newer image. What cannot be read is left out: the pod
// does not need it.
func (s *Server) started(ctx context.Context, p *supervisor.Snapshot, container string) Started {
	ctx, cancel := context.WithTimeout(ctx, newestTimeout)
	defer cancel()
	newer, err := s.o.Supervisor.NewerImages(ctx, p.Pod)
	if err != nil || len(newer) == 0 {
		return Started{}
	}
	found := Started{File: p.Owner.File, Unit: p.Owner.Unit}
	for name := range newer {
		if container == "" || name == container {
			found.NewerImages = append(found.NewerImages, name)
		}
	}
	slices.Sort(found.NewerImages)
	return found
}
