package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

// imageQuery is the query of requests about images.
func imageQuery(platform string, names ...string) url.Values {
	v := query("platform", platform)
	v["name"] = names
	return v
}

// Images lists the images of the host, sorted by name.
func (c *Client) Images(ctx context.Context) (list api.ImageList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/images", nil, nil, &list)
}

// InspectImage returns an image with its configuration; the platform is such as linux/arm64, or empty for any. Programs are names or
// absolute paths of programs that the image may have.
func (c *Client) InspectImage(ctx context.Context, name, platform string, programs ...string) (d api.ImageDetail, err error) {
	q := imageQuery(platform, name)
	q["program"] = programs
	return d, c.call(ctx, http.MethodGet, "/v1/images/inspect", q, nil, &d)
}

// RemoveImage removes a name of an image. An image that a pod or a generation uses is not removed; with force, only if a pod runs that uses
// it.
func (c *Client) RemoveImage(ctx context.Context, name, platform string, force bool) (removed api.RemovedImages, err error) {
	v := imageQuery(platform, name)
	v.Set("force", strconv.FormatBool(force))
	return removed, c.callWithin(ctx, removalTimeout, http.MethodDelete, "/v1/images", v, nil, &removed)
}

// PruneImages removes the images that nothing uses. Those that a person has requested are removed only with all. With dryRun, nothing is
// removed. With an error it returns those that were removed nevertheless.
func (c *Client) PruneImages(ctx context.Context, all, dryRun bool) (removed api.RemovedImages, err error) {
	v := query("all", strconv.FormatBool(all), "dryRun", strconv.FormatBool(dryRun))
	err = c.callWithin(ctx, removalTimeout, http.MethodPost, "/v1/images/prune", v, nil, &removed)
	if e, ok := errors.AsType[*api.Error](err); ok && e.Removed != nil {
		removed = *e.Removed
	}
	return removed, err
}

// PullImage pulls an image, and yields its progress and then the image. The pull ends with the context.
func (c *Client) PullImage(ctx context.Context, q api.PullRequest) iter.Seq2[api.PullUpdate, error] {
	return func(yield func(api.PullUpdate, error) bool) {
		for u, err := range stream[api.PullUpdate](ctx, c, http.MethodPost, "/v1/images/pull", nil, q, nil) {
			if u.Error != nil {
				u, err = api.PullUpdate{}, u.Error
			}
			if !yield(u, err) || err != nil || u.Image != nil {
				return
			}
		}
		yield(api.PullUpdate{}, c.unavailable(ctx, io.EOF)) // neither an image nor an error
	}
}

// Login checks credentials with a registry and saves them on the host. It returns the normalized name of the registry.
func (c *Client) Login(ctx context.Context, q api.LoginRequest) (r api.Registry, err error) {
	return r, c.callWithin(ctx, loginTimeout, http.MethodPost, "/v1/registries/login", nil, q, &r)
}

// Logout deletes the credentials for a registry from the host. It returns the normalized name of the registry.
func (c *Client) Logout(ctx context.Context, registry string) (r api.Registry, err error) {
	return r, c.callWithin(ctx, loginTimeout, http.MethodPost, "/v1/registries/logout", nil, api.LogoutRequest{Registry: registry}, &r)
}

// ImportImages imports an image archive in the OCI or Docker layout, which may be compressed. The images are kept until they are removed.
// The signatures are those beside the archive, as the endpoint documents them.
func (c *Client) ImportImages(ctx context.Context, archive io.Reader, signatures ...string) (list api.ImageList, err error) {
	return c.importImages(ctx, archive, false, signatures)
}

// ImportUsedImages is ImportImages for images that are kept only while a pod or a generation uses them.
func (c *Client) ImportUsedImages(ctx context.Context, archive io.Reader, signatures ...string) (list api.ImageList, err error) {
	return c.importImages(ctx, archive, true, signatures)
}

func (c *Client) importImages(ctx context.Context, archive io.Reader, used bool, signatures []string) (list api.ImageList, err error) {
	documents := api.JoinSignatures(signatures)
	v := query("whileUsed", flag(used))
	if len(documents) > 0 { // a daemon that is older than the parameter imports archives without signatures
		v.Set(api.SignatureBytes, strconv.Itoa(len(documents)))
	}
	stream := io.MultiReader(strings.NewReader(documents), archive)
	return list, c.upload(ctx, http.MethodPost, "/v1/images/import", v, stream, &list)
}

// ExportImages writes an archive of images in the OCI layout, which is also in the Docker layout. After an error the archive is incomplete.
func (c *Client) ExportImages(ctx context.Context, w io.Writer, platform string, names ...string) error {
	r, err := c.do(ctx, http.MethodGet, "/v1/images/export", imageQuery(platform, names...), nil)
	if err != nil {
		return c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	body := &source{r: r.Body}
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
func (c *Client) ImageSignatures(ctx context.Context, name, platform string) (s api.ImageSignatures, err error) {
	return s, c.callWithin(ctx, loginTimeout, http.MethodGet, "/v1/images/signatures", imageQuery(platform, name), nil, &s)
}

// RestoreImage makes a name refer again to the image that it had before [Client.ImportUsedImages] was called after a time. It reports
// whether it has done so: not if the name has been changed since.
func (c *Client) RestoreImage(ctx context.Context, name string, after time.Time) (r api.RestoredImage, err error) {
	v := query("name", name, "after", timestamp(after.UTC()))
	return r, c.call(ctx, http.MethodPost, "/v1/images/restore", v, nil, &r)
}
