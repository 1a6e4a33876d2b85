package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/podstead/podstead/supervisor"
)

// Volume is a persistent volume of the daemon's machine, with the pods that name it.
type Volume = supervisor.Volume

// VolumeList is all persistent volumes.
type VolumeList struct {
	Items []Volume `json:"items"`
}

// Volumes lists the persistent volumes, sorted by name.
func (c *Client) Volumes(ctx context.Context) (list VolumeList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/volumes", nil, nil, &list)
}

// RemoveVolume removes a persistent volume with what is in it. One that a pod names is refused.
func (c *Client) RemoveVolume(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/v1/volumes/"+url.PathEscape(name), nil, nil, nil)
}

func (s *Server) volumes(r *http.Request) (any, error) {
	list, err := s.o.Supervisor.Volumes(r.Context())
	return VolumeList{Items: list}, err
}

func (s *Server) removeVolume(r *http.Request) (any, error) {
	return struct{}{}, s.o.Supervisor.RemoveVolume(r.Context(), r.PathValue("name"))
}
