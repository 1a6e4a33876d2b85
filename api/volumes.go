package api

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/internal/filecopy"
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

// VolumeFiles reads and writes the files of persistent volumes.
type VolumeFiles interface {
	// ExportVolume writes the files of a volume to a tar stream. The error is [fs.ErrNotExist] if there is none.
	ExportVolume(ctx context.Context, name string, w io.Writer) (filecopy.Result, error)
	// ImportVolume creates a volume with the files of a tar stream, or replaces its files. It calls free, which returns an error if a pod
	// uses the volume, while no pod can start to use it.
	ImportVolume(ctx context.Context, name string, r io.Reader, replace bool, free func() error) (filecopy.Result, error)
}

func (s *Server) volumes(r *http.Request) (any, error) {
	list, err := s.o.Supervisor.Volumes(r.Context())
	return VolumeList{Items: convert(list, volumeOf)}, err
}

func (s *Server) removeVolume(r *http.Request) (any, error) {
	name, err := volumeName(r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.o.Supervisor.RemoveVolume(r.Context(), name)
}

// volumeName returns the volume of a request.
func volumeName(r *http.Request) (string, error) {
	name := r.PathValue("name")
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		return "", invalidField("name", "volume %q: %s", clipped(name), reasons[0])
	}
	return name, nil
}

// volumeOfFiles returns the volume of a request for its files.
func (s *Server) volumeOfFiles(r *http.Request) (string, error) {
	if s.o.VolumeFiles == nil {
		return "", failure(http.StatusNotImplemented, "the daemon cannot copy volumes")
	}
	return volumeName(r)
}

// exportVolume sends the files of a volume.
func (s *Server) exportVolume(w http.ResponseWriter, r *http.Request) {
	name, err := s.volumeOfFiles(r)
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	s.sendArchive(w, r, func(ctx context.Context, to io.Writer) (filecopy.Result, error) {
		result, err := s.o.VolumeFiles.ExportVolume(ctx, name, to)
		if errors.Is(err, fs.ErrNotExist) {
			err = failure(http.StatusNotFound, "volume %q not found", name)
		}
		return result, err
	})
}

// importVolume creates a volume, or replaces its files.
func (s *Server) importVolume(w http.ResponseWriter, r *http.Request) {
	name, err := s.volumeOfFiles(r)
	replace := false
	if err == nil && r.URL.Query().Has("replace") {
		replace, err = flag(r.URL.Query(), "replace")
	}
	s.receiveArchive(w, r, err, func(ctx context.Context, from io.Reader) (filecopy.Result, error) {
		return s.o.VolumeFiles.ImportVolume(ctx, name, from, replace, func() error {
			pod := s.o.Supervisor.RunningVolumeUser(name)
			if pod == "" {
				return nil
			}
			e := failure(http.StatusConflict, "volume %q is in use by pod %q, which is running", name, pod)
			e.Hint = "stop it with podstead stop " + pod
			return e
		})
	})
}
