package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// Volume is a persistent volume of this host, with the pods that use it.
type Volume struct {
	Name string   `json:"name"`
	Pods []string `json:"pods,omitempty"` // that use it, sorted
}

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
	return c.call(ctx, http.MethodDelete, volumePath(name), nil, nil, nil)
}

// ExportVolume writes the files of a persistent volume to w, as a tar stream with their owners, permissions, extended attributes, holes and
// hard links. A pod that runs may change them meanwhile. After an error, the stream is incomplete.
func (c *Client) ExportVolume(ctx context.Context, name string, w io.Writer) (CopyResult, error) {
	return c.readArchive(ctx, volumePath(name)+"/files", nil, w)
}

// ImportVolume creates a persistent volume with the files of a tar stream. With replace it replaces the files of a volume that is not
// empty. The volume has all files of the stream, or is not changed. No pod that uses it may run: otherwise the error is an [*Error] with
// status 409. ImportVolume may return before the end of the stream.
func (c *Client) ImportVolume(ctx context.Context, name string, replace bool, stream io.Reader) (CopyResult, error) {
	v := url.Values{}
	if replace {
		v.Set("replace", "true")
	}
	return c.writeArchive(ctx, volumePath(name)+"/files", v, stream)
}

func volumePath(name string) string { return "/v1/volumes/" + url.PathEscape(name) }
