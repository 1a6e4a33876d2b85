package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/spec"
)

// Image is a name of an image of this host, with what uses it.
type Image struct {
	// Name is the full name: docker.io/library/busybox:1.36.
	Name string `json:"name"`
	// Digest is that of the manifest or index that the name refers to.
	Digest string `json:"digest"`
	// ID is the digest of the image's configuration, as imageID in the status of containers. It is empty if content is missing.
	ID string `json:"id,omitempty"`
	// Platform is such as linux/amd64. It is empty if content is missing.
	Platform string `json:"platform,omitempty"`
	// Size is the size of the compressed content in bytes.
	Size int64 `json:"size"`
	// CreatedAt is the time when the name was created on this host.
	CreatedAt time.Time `json:"createdAt"`
	// Pods are the pods whose definition names the image, sorted. They may not be running.
	Pods []string `json:"pods,omitempty"`
	// Running are those of them that are not at rest.
	Running []string `json:"running,omitempty"`
	// Generations are the pods that keep a generation with the image for a rollback.
	Generations []string `json:"generations,omitempty"`
	// Requested is [ImagePulled] or [ImageImported] if a person has requested the image. Otherwise it is empty.
	Requested string `json:"requested,omitempty"`
	// File is the archive in an image directory that has the image, which is kept until the archive is removed; empty: none.
	File string `json:"file,omitempty"`
	// Archive is true if the image is from the imageArchives of a pod. Only pods that list the archive see the name.
	Archive bool `json:"archive,omitempty"`
	// Foreign is true if the image is for another platform than that of the host. Pods do not see the name.
	Foreign bool `json:"foreign,omitempty"`
	// Damaged is true if content is missing.
	Damaged bool `json:"damaged,omitempty"`
	// Verification is [ImageVerified] or [ImageUnverified] if images.verify requires a signature or rejects the image. Otherwise it is
	// empty.
	Verification string `json:"verification,omitempty"`
	// VerifiedBy is the file with the key that has signed the image.
	VerifiedBy string `json:"verifiedBy,omitempty"`
}

// What is known about the signature of an [Image] that must be signed. An image that is unverified is verified before it is used.
const (
	ImageVerified   = "verified"
	ImageUnverified = "unverified"
)

// How a person has requested an [Image].
const (
	ImagePulled   = "pulled"
	ImageImported = "imported"
)

// Used reports whether the image is named by a pod, kept for a rollback, or in an archive of an image directory.
func (i *Image) Used() bool { return len(i.Pods) > 0 || len(i.Generations) > 0 || i.File != "" }

// ImageList is a list of images.
type ImageList struct {
	Items []Image `json:"items"`
}

// ImageDetail is an image with its configuration.
type ImageDetail struct {
	Image
	// Platforms are those in the index of the image.
	Platforms []string          `json:"platforms"`
	Author    string            `json:"author,omitempty"`
	Created   *time.Time        `json:"created,omitempty"` // when the image was built
	Labels    map[string]string `json:"labels,omitempty"`
	Config    ImageConfig       `json:"config"`
	Layers    []ImageLayer      `json:"layers"`
	History   []ImageHistory    `json:"history,omitempty"`
}

// ImageConfig is what an image sets for its containers.
type ImageConfig struct {
	User         string   `json:"user,omitempty"`
	Env          []string `json:"env,omitempty"`
	Entrypoint   []string `json:"entrypoint,omitempty"`
	Cmd          []string `json:"cmd,omitempty"`
	WorkingDir   string   `json:"workingDir,omitempty"`
	ExposedPorts []string `json:"exposedPorts,omitempty"`
	Volumes      []string `json:"volumes,omitempty"`
	StopSignal   string   `json:"stopSignal,omitempty"`
}

// ImageLayer is a compressed layer of an image.
type ImageLayer struct {
	Digest    string `json:"digest"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
}

// ImageHistory is a step of the build of an image, the oldest first.
type ImageHistory struct {
	Created   *time.Time `json:"created,omitempty"`
	CreatedBy string     `json:"createdBy,omitempty"`
	Comment   string     `json:"comment,omitempty"`
	// Size is that of the compressed layer that the step added; 0: none.
	Size int64 `json:"size"`
}

// PullRequest requests the pull of an image.
type PullRequest struct {
	Name string `json:"name"`
	// Platform is such as linux/arm64; empty: that of the host.
	Platform string `json:"platform,omitempty"`
	// Policy is Always or IfNotPresent; empty: Always.
	Policy spec.PullPolicy `json:"policy,omitempty"`
}

// LoginRequest requests that credentials for a registry are checked and saved.
type LoginRequest struct {
	// Registry is HOST or HOST:PORT.
	Registry string `json:"registry"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// LogoutRequest requests that the credentials for a registry are deleted.
type LogoutRequest struct {
	// Registry is HOST or HOST:PORT.
	Registry string `json:"registry"`
}

// Registry is a registry to which a user logged in or out.
type Registry struct {
	// Name is HOST or HOST:PORT.
	Name string `json:"name"`
}

// ImageSignatures are the signatures of an image.
type ImageSignatures struct {
	// Items are sigstore bundles, or objects with Base64Signature and Payload as cosign download signature prints them.
	Items []string `json:"items"`
}

// RestoredImage reports whether the name of an image refers to another image now.
type RestoredImage struct {
	Restored bool `json:"restored"`
}

// PullProgress is the progress of a pull. It is zero until the registry has sent the manifest.
type PullProgress struct {
	Done        int64 `json:"done"` // bytes
	Total       int64 `json:"total"`
	Layers      int   `json:"layers"` // complete ones
	TotalLayers int   `json:"totalLayers"`
}

// PullUpdate is a value of the stream of a pull: a progress, an image or an error. The last one has the image or the error.
type PullUpdate struct {
	Progress *PullProgress `json:"progress,omitempty"`
	Image    *Image        `json:"image,omitempty"`
	// Pulled is true with an image for which a registry was contacted.
	Pulled bool   `json:"pulled,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// RemovedImages are the names of images that were removed.
type RemovedImages struct {
	Items []Image `json:"items"`
	// Freed is the size in bytes of the content and the unpacked layers that were deleted from disk. Other names, containers and
	// generations can keep what an image shares with them.
	Freed int64 `json:"freed"`
}

// imageQuery is the query of requests about images.
func imageQuery(platform string, names ...string) url.Values {
	v := url.Values{"name": names}
	if platform != "" {
		v.Set("platform", platform)
	}
	return v
}

// Images lists the images of the host, sorted by name.
func (c *Client) Images(ctx context.Context) (list ImageList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/images", nil, nil, &list)
}

// InspectImage returns an image with its configuration; the platform is such as linux/arm64, or empty for any.
func (c *Client) InspectImage(ctx context.Context, name, platform string) (d ImageDetail, err error) {
	return d, c.call(ctx, http.MethodGet, "/v1/images/inspect", imageQuery(platform, name), nil, &d)
}

// RemoveImage removes a name of an image. An image that a pod or a generation uses is not removed; with force, only if a pod runs that uses
// it.
func (c *Client) RemoveImage(ctx context.Context, name, platform string, force bool) (removed RemovedImages, err error) {
	v := imageQuery(platform, name)
	v.Set("force", strconv.FormatBool(force))
	return removed, c.callWithin(ctx, clientRemovalTimeout, http.MethodDelete, "/v1/images", v, nil, &removed)
}

// PruneImages removes the images that nothing uses. Those that a person has requested are removed only with all. With dryRun, nothing is
// removed. With an error it returns those that were removed nevertheless.
func (c *Client) PruneImages(ctx context.Context, all, dryRun bool) (removed RemovedImages, err error) {
	v := url.Values{"all": {strconv.FormatBool(all)}, "dryRun": {strconv.FormatBool(dryRun)}}
	err = c.callWithin(ctx, clientRemovalTimeout, http.MethodPost, "/v1/images/prune", v, nil, &removed)
	if e, ok := errors.AsType[*Error](err); ok && e.Removed != nil {
		removed = *e.Removed
	}
	return removed, err
}

// PullImage pulls an image, and yields its progress and then the image. The pull ends with the context.
func (c *Client) PullImage(ctx context.Context, q PullRequest) iter.Seq2[PullUpdate, error] {
	return func(yield func(PullUpdate, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r, err := c.do(ctx, http.MethodPost, "/v1/images/pull", nil, q)
		if err != nil {
			yield(PullUpdate{}, c.unavailable(ctx, err))
			return
		}
		defer r.Body.Close()
		if r.StatusCode >= 300 {
			yield(PullUpdate{}, c.readError(ctx, r))
			return
		}
		for lines := json.NewDecoder(r.Body); ; {
			var u PullUpdate
			if err := lines.Decode(&u); err != nil {
				yield(PullUpdate{}, c.unavailable(ctx, err))
				return
			}
			if u.Error != nil {
				yield(PullUpdate{}, u.Error)
				return
			}
			if !yield(u, nil) || u.Image != nil {
				return
			}
		}
	}
}

// Login checks credentials with a registry and saves them on the host. It returns the normalized name of the registry.
func (c *Client) Login(ctx context.Context, q LoginRequest) (r Registry, err error) {
	return r, c.callWithin(ctx, clientLoginTimeout, http.MethodPost, "/v1/registries/login", nil, q, &r)
}

// Logout deletes the credentials for a registry from the host. It returns the normalized name of the registry.
func (c *Client) Logout(ctx context.Context, registry string) (r Registry, err error) {
	return r, c.callWithin(ctx, clientLoginTimeout, http.MethodPost, "/v1/registries/logout", nil, LogoutRequest{registry}, &r)
}

// ImportImages imports an image archive in the OCI or Docker layout, which may be compressed. The images are kept until they are removed.
// The signatures are those beside the archive, as the endpoint documents them.
func (c *Client) ImportImages(ctx context.Context, archive io.Reader, signatures ...string) (list ImageList, err error) {
	return c.importImages(ctx, archive, url.Values{}, signatures)
}

// ImportUsedImages is ImportImages for images that are kept only while a pod or a generation uses them.
func (c *Client) ImportUsedImages(ctx context.Context, archive io.Reader, signatures ...string) (list ImageList, err error) {
	return c.importImages(ctx, archive, url.Values{"whileUsed": {"true"}}, signatures)
}

// JoinSignatures returns signatures as a request to import images has them.
func JoinSignatures(signatures []string) string { return strings.Join(signatures, "\n") }

func (c *Client) importImages(ctx context.Context, archive io.Reader, v url.Values, signatures []string) (list ImageList, err error) {
	documents := JoinSignatures(signatures)
	if len(documents) > 0 { // a daemon that is older than the parameter imports archives without signatures
		v.Set(SignatureBytes, strconv.Itoa(len(documents)))
	}
	body := &failingReader{r: io.MultiReader(strings.NewReader(documents), archive)}
	u := url.URL{Scheme: "http", Host: "podstead", Path: "/v1/images/import", RawQuery: v.Encode()}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), body)
	if err != nil {
		return list, err
	}
	q.Header.Set("User-Agent", c.agent)
	q.Header.Set("Content-Type", "application/x-tar")
	r, err := c.http.Do(q)
	if err != nil {
		if failed := body.failed(); failed != nil {
			return list, failed
		}
		return list, c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return list, c.readError(ctx, r)
	}
	return list, c.unavailable(ctx, json.NewDecoder(r.Body).Decode(&list))
}

// ExportImages writes an archive of images in the OCI layout, which is also in the Docker layout. After an error the archive is incomplete.
func (c *Client) ExportImages(ctx context.Context, w io.Writer, platform string, names ...string) error {
	r, err := c.do(ctx, http.MethodGet, "/v1/images/export", imageQuery(platform, names...), nil)
	if err != nil {
		return c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return c.readError(ctx, r)
	}
	body := &failingReader{r: r.Body}
	_, err = io.Copy(w, body)
	if failed := body.failed(); failed != nil {
		return c.unavailable(ctx, failed)
	}
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// ImageSignatures returns the signatures that the registry of a pulled image has, for [Client.ImportImages]. They are not verified.
func (c *Client) ImageSignatures(ctx context.Context, name, platform string) (s ImageSignatures, err error) {
	return s, c.callWithin(ctx, clientLoginTimeout, http.MethodGet, "/v1/images/signatures", imageQuery(platform, name), nil, &s)
}

// RestoreImage makes a name refer again to the image that it had before [Client.ImportUsedImages] was called after a time. It reports
// whether it has done so: not if the name has been changed since.
func (c *Client) RestoreImage(ctx context.Context, name string, after time.Time) (r RestoredImage, err error) {
	v := imageQuery("", name)
	v.Set("after", after.UTC().Format(time.RFC3339Nano))
	return r, c.call(ctx, http.MethodPost, "/v1/images/restore", v, nil, &r)
}

// failingReader keeps the error of a reader, to distinguish it from that of the other side.
type failingReader struct {
	r   io.Reader
	err atomic.Pointer[error]
}

func (f *failingReader) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err.Store(&err)
	}
	return n, err
}

func (f *failingReader) failed() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}
