package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/podstead/podstead/api"
)

// FileQuery selects a file of a container.
type FileQuery struct {
	UID       string
	Container string // empty: the first container of the pod
	// Path is the path in the container. A relative path starts at the working directory of the container.
	Path string
}

func (q FileQuery) values() url.Values {
	v := query("uid", q.UID, "container", q.Container)
	v.Set("path", q.Path)
	return v
}

// StatFile returns the attributes of a file of a container. It follows symbolic links, which do not lead out of the container.
func (c *Client) StatFile(ctx context.Context, pod string, q FileQuery) (stat api.FileStat, err error) {
	return stat, c.call(ctx, http.MethodGet, podPath(pod)+"/files/stat", q.values(), nil, &stat)
}

// ReadFiles writes a file or a directory of a container to w, as a tar stream. The names in it start with the last element of the path or,
// for a path that ends with "/.", with the names in the directory. The container wrote the content: use the names with care, see os.Root.
// After an error, the stream is incomplete. ReadFiles blocks while w does, up to a limit of the server.
func (c *Client) ReadFiles(ctx context.Context, pod string, q FileQuery, w io.Writer) (result api.CopyResult, err error) {
	return c.readArchive(ctx, podPath(pod)+"/files", q.values(), w)
}

// readArchive writes the tar stream of a response to w.
func (c *Client) readArchive(ctx context.Context, path string, v url.Values, w io.Writer) (result api.CopyResult, err error) {
	r, err := c.do(ctx, http.MethodGet, path, v, nil)
	if err != nil {
		return result, c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	body := &source{r: r.Body}
	if result.Bytes, err = io.Copy(w, body); err != nil {
		if body.failed() == nil {
			return result, err // of w
		}
		return result, c.unavailable(ctx, err)
	}
	text := r.Trailer.Get(api.CopyTrailer)
	if text == "" {
		return result, fmt.Errorf("%w: the copy is incomplete", api.ErrUnavailable)
	}
	var end api.CopyEnd
	if err := json.Unmarshal([]byte(text), &end); err != nil {
		return result, fmt.Errorf("read end of copy: %w", err)
	}
	result.Warnings = end.Warnings
	if end.Error != nil {
		return result, end.Error
	}
	return result, nil
}

// WriteFiles creates files of a container from a tar stream, in the directory of the query, which must exist. With preserve, owners,
// permissions and times of the stream are kept; otherwise the files belong to the user of the container. After an error, the files before
// it exist, and each of them is complete. WriteFiles may return before the end of the stream.
func (c *Client) WriteFiles(
	ctx context.Context, pod string, q FileQuery, preserve bool, stream io.Reader,
) (result api.CopyResult, err error) {
	v := q.values()
	if !preserve {
		v.Set("preserve", "false")
	}
	return result, c.upload(ctx, http.MethodPut, podPath(pod)+"/files", v, stream, &result)
}

// Volumes lists the persistent volumes, sorted by name.
func (c *Client) Volumes(ctx context.Context) (list api.VolumeList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/volumes", nil, nil, &list)
}

// RemoveVolume deletes a persistent volume and its data. If a pod uses the volume, it returns an [*api.Error] with status 409.
func (c *Client) RemoveVolume(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, volumePath(name), nil, nil, nil)
}

// ExportVolume writes the files of a persistent volume to w, as a tar stream with their owners, permissions, extended attributes, holes and
// hard links. A pod that runs may change them meanwhile. After an error, the stream is incomplete.
func (c *Client) ExportVolume(ctx context.Context, name string, w io.Writer) (api.CopyResult, error) {
	return c.readArchive(ctx, volumePath(name)+"/files", nil, w)
}

// ImportVolume creates a persistent volume with the files of a tar stream. With replace it replaces the files of a volume that is not
// empty. The volume has all files of the stream, or is not changed. No pod that uses it may run: otherwise the error is an [*api.Error]
// with status 409. ImportVolume may return before the end of the stream.
func (c *Client) ImportVolume(ctx context.Context, name string, replace bool, stream io.Reader) (result api.CopyResult, err error) {
	return result, c.upload(ctx, http.MethodPut, volumePath(name)+"/files", query("replace", flag(replace)), stream, &result)
}

func volumePath(name string) string { return "/v1/volumes/" + url.PathEscape(name) }
