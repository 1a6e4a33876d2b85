package api

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/supervisor"
)

// Volume is a persistent volume of this host, with the pods that use it.
type Volume struct {
	Name string   `json:"name"`
	Pods []string `json:"pods,omitempty"` // that use it, sorted
}

func volumeOf(v *supervisor.Volume) Volume { return Volume{Name: v.Name, Pods: v.Pods} }

// VolumeList is the list of persistent volumes.
type VolumeList struct {
	Items []Volume `json:"items"`
}

// Volumes lists the persistent volumes, sorted by name.
func (c *Client) Volumes(ctx context.Context) (list VolumeList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/volumes", nil, nil, &list)
}

// RemoveVolume deletes a persistent volume and its data. If a pod uses the volume, it returns an [*Error] with status 409.
func (c *Client) RemoveVolume(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/v1/volumes/"+url.PathEscape(name), nil, nil, nil)
}

func (s *Server) volumes(r *http.Request) (any, error) {
	list, err := s.o.Supervisor.Volumes(r.Context())
	return VolumeList{Items: convert(list, volumeOf)}, err
}

func (s *Server) removeVolume(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		return nil, invalidField("name", "volume %q: %s", clipped(name), reasons[0])
	}
	return struct{}{}, s.o.Supervisor.RemoveVolume(r.Context(), name)
}
