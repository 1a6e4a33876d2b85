package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/filecopy"
	"github.com/podstead/podstead/supervisor"
)

func volumeOf(v *supervisor.Volume) api.Volume {
	return api.Volume{Name: v.Name, Pods: v.Pods, Project: v.Project}
}

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
	return api.VolumeList{Items: convert(list, volumeOf)}, err
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
func (s *Server) exportVolume(w http.ResponseWriter, r *http.Request) error {
	name, err := s.volumeOfFiles(r)
	if err != nil {
		return err
	}
	return s.sendArchive(w, r, func(ctx context.Context, to io.Writer) (filecopy.Result, error) {
		result, err := s.o.VolumeFiles.ExportVolume(ctx, name, to)
		if errors.Is(err, fs.ErrNotExist) {
			err = failure(http.StatusNotFound, "volume %q not found", name)
		}
		return result, err
	})
}

// importVolume creates a volume, or replaces its files.
func (s *Server) importVolume(w http.ResponseWriter, r *http.Request) error {
	name, err := s.volumeOfFiles(r)
	replace := false
	if err == nil {
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
	return nil
}
