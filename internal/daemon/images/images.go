// Package images implements the API's images on a container engine: it finds which pods use them, and refuses to remove those. It owns no
// state.
package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
)

// Store has the images of a host. *runtime.Images implements it.
type Store interface {
	Catalog(ctx context.Context) ([]image.Entry, error)
	Detail(ctx context.Context, record string) (image.Detail, error)
	Platform(text string) (string, error)
	Pull(ctx context.Context, ref, platform string, policy spec.PullPolicy, progress func(image.Progress)) (record string, img image.Image, err error)
	Login(ctx context.Context, registry string, l credentials.Login) error
	Logout(ctx context.Context, registry string) error
	Import(ctx context.Context, r io.Reader, keep bool, signatures ...signature.Signature) ([]image.Image, error)
	Export(ctx context.Context, w io.Writer, records ...string) error
	Signatures(ctx context.Context, record string) ([]signature.Signature, error)
	Restore(ctx context.Context, record string, after time.Time) (bool, error)
	Requested(ctx context.Context) (map[string]bool, error)
	Forget(ctx context.Context, record string) error
	ForgetUnless(ctx context.Context, records []string, used func() (bool, error)) (removed bool, err error)
	Free(ctx context.Context, remove func() error) (int64, error)
}

// Pods are the pods of the host. [*supervisor.Supervisor] implements it.
type Pods interface {
	Planned() []*spec.Pod
	Pods() []supervisor.Snapshot
}

// Files are the files of the pods directory. *podfiles.Set implements it.
type Files interface {
	Definitions(ctx context.Context) ([]*spec.Pod, error)
}

// Images implements [server.Images]. It is safe for concurrent use.
type Images struct {
	store Store
	pods  Pods
	files Files
	// protected is nil if no other images are kept.
	protected image.Protected
}

// New returns the images of a store. Images that protected returns are not pruned; nil: none.
func New(store Store, pods Pods, files Files, protected image.Protected) *Images {
	return &Images{store, pods, files, protected}
}

// found is an image with its entry in the store.
type found struct {
	api.Image
	entry *image.Entry
	// protected is why the image must not be pruned, although no pod uses it; empty: it may be.
	protected string
}

// List implements [server.Images]. If the pods directory cannot be listed, it knows only the pods that exist.
func (i *Images) List(ctx context.Context) ([]api.Image, error) {
	list, err := i.find(ctx, false)
	if err != nil {
		return nil, failure("list images", "", err)
	}
	images := make([]api.Image, len(list))
	for n := range list {
		images[n] = list[n].Image
	}
	return images, nil
}

// find returns all images. If strict, it fails if the pods directory cannot be listed.
func (i *Images) find(ctx context.Context, strict bool) ([]found, error) {
	users, err := i.users(ctx, strict)
	if err != nil {
		return nil, err
	}
	entries, err := i.store.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	list, err := match(entries, users)
	if err != nil {
		return nil, err
	}
	return list, i.protect(ctx, list)
}

// match returns the images with their users.
func match(entries []image.Entry, users []user) ([]found, error) {
	uses := map[string]map[string]bool{} // by record: the pods, and whether they run
	for _, u := range users {
		records, err := u.records(entries)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			if uses[record] == nil {
				uses[record] = map[string]bool{}
			}
			uses[record][u.pod.Name] = uses[record][u.pod.Name] || u.running
		}
	}
	list := make([]found, len(entries))
	for n := range entries {
		e := &entries[n]
		list[n] = found{Image: describe(e), entry: e}
		used := uses[e.Record]
		list[n].Pods = slices.Sorted(maps.Keys(used))
		maps.DeleteFunc(used, func(_ string, running bool) bool { return !running })
		list[n].Running = slices.Sorted(maps.Keys(used))
	}
	return list, nil
}

func describe(e *image.Entry) api.Image {
	img := api.Image{
		Name: e.Name, Digest: e.Target.Digest.String(), ID: e.ConfigDigest, Platform: e.Platform, Size: e.Size, CreatedAt: e.CreatedAt,
		Generations: e.Kept, File: e.File, Archive: e.Scoped, Foreign: e.Foreign, Damaged: e.Damaged,
	}
	if e.Verification.Required {
		img.Verification, img.VerifiedBy = api.ImageUnverified, e.Verification.Key
		if e.Verification.Key != "" {
			img.Verification = api.ImageVerified
		}
	}
	if e.ByHand {
		img.Requested = api.ImagePulled
		if e.FromArchive {
			img.Requested = api.ImageImported
		}
	}
	return img
}

// Inspect implements [server.Images].
func (i *Images) Inspect(ctx context.Context, name, platform string) (api.ImageDetail, error) {
	list, err := i.find(ctx, false)
	if err != nil {
		return api.ImageDetail{}, failure("inspect image", name, err)
	}
	chosen, err := i.choose(list, name, platform)
	if err != nil {
		return api.ImageDetail{}, err
	}
	d, err := i.store.Detail(ctx, chosen[0].entry.Record)
	if err != nil {
		return api.ImageDetail{}, failure("inspect image", name, err)
	}
	return detail(&chosen[0].Image, &d), nil
}

// Pull implements [server.Images].
func (i *Images) Pull(ctx context.Context, q api.PullRequest, progress func(api.PullProgress)) (img api.Image, pulled bool, err error) {
	full, err := image.FullName(q.Name)
	if err != nil {
		return api.Image{}, false, &api.Error{Status: http.StatusBadRequest, Message: err.Error()}
	}
	platform, err := i.store.Platform(q.Platform)
	if err != nil {
		return api.Image{}, false, &api.Error{Status: http.StatusBadRequest, Message: err.Error()}
	}
	if image.IsShort(q.Name) {
		if err := i.knows(ctx, q.Name, full); err != nil {
			return api.Image{}, false, err
		}
	}
	record, result, err := i.store.Pull(ctx, full, q.Platform, q.Policy, func(p image.Progress) {
		progress(api.PullProgress{Done: p.Bytes, Total: p.TotalBytes, Layers: p.Layers, TotalLayers: p.TotalLayers})
	})
	if err != nil {
		return api.Image{}, false, failure("pull image", full, err)
	}
	list, err := i.find(ctx, false)
	if err != nil {
		return api.Image{}, false, failure("pull image", full, err)
	}
	for _, f := range list {
		if f.entry.Record == record {
			return f.Image, result.Pulled, nil
		}
	}
	// Another client has removed it since.
	return describe(&image.Entry{Image: result, Record: record, Platform: platform}), result.Pulled, nil
}

// knows returns an error for a short name that is not that of a local image.
func (i *Images) knows(ctx context.Context, name, full string) error {
	entries, err := i.store.Catalog(ctx)
	if err != nil {
		return failure("pull image", name, err)
	}
	if slices.ContainsFunc(entries, func(e image.Entry) bool { return e.Record == full }) {
		return nil
	}
	return &api.Error{
		Status: http.StatusBadRequest, Message: fmt.Sprintf("pull image %q: the name has no registry", name), Hint: "use a full name, such as " + full,
	}
}

// Import implements [server.Images].
func (i *Images) Import(ctx context.Context, archive io.Reader, keep bool, signatures []string) ([]api.Image, error) {
	beside, err := signature.Parse([]byte(strings.Join(signatures, "\n")))
	if err != nil {
		return nil, &api.Error{Status: http.StatusBadRequest, Message: "import images: " + err.Error()}
	}
	imported, err := i.store.Import(ctx, archive, keep, beside...)
	if err != nil {
		return nil, failure("import images", "", err)
	}
	list, err := i.find(ctx, false)
	if err != nil {
		return nil, failure("import images", "", err)
	}
	images := []api.Image{}
	for _, img := range imported {
		for _, f := range list {
			if f.entry.Record == img.Name {
				images = append(images, f.Image)
			}
		}
	}
	return images, nil
}

// Export implements [server.Images].
func (i *Images) Export(ctx context.Context, w io.Writer, platform string, names []string) error {
	list, err := i.find(ctx, false)
	if err != nil {
		return failure("export images", "", err)
	}
	var records []string
	for _, name := range names {
		chosen, err := i.choose(list, name, platform)
		if err != nil {
			return err
		}
		if record := chosen[0].entry.Record; !slices.Contains(records, record) {
			records = append(records, record)
		}
	}
	if err := i.store.Export(ctx, w, records...); err != nil {
		return failure("export images", "", err)
	}
	return nil
}

// Restore implements [server.Images].
func (i *Images) Restore(ctx context.Context, name string, after time.Time) (bool, error) {
	full, err := image.FullName(name)
	if err != nil {
		return false, &api.Error{Status: http.StatusBadRequest, Field: "name", Message: err.Error()}
	}
	restored, err := i.store.Restore(ctx, full, after)
	if err != nil {
		return false, failure("restore image", name, err)
	}
	return restored, nil
}

// Signatures implements [server.Images].
func (i *Images) Signatures(ctx context.Context, name, platform string) ([]string, error) {
	const operation = "get signatures of image"
	list, err := i.find(ctx, false)
	if err != nil {
		return nil, failure(operation, name, err)
	}
	chosen, err := i.choose(list, name, platform)
	if err != nil {
		return nil, err
	}
	found, err := i.store.Signatures(ctx, chosen[0].entry.Record)
	if err != nil {
		return nil, failure(operation, name, err)
	}
	var texts []string
	for n := range found {
		text, err := found[n].Encode()
		if err != nil {
			return nil, failure(operation, name, err)
		}
		if parsed, err := signature.Parse([]byte(text)); err != nil || len(parsed) != 1 {
			continue // malformed: an import would refuse all others with it
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// failure returns the response for an error of the store.
func failure(operation, name string, err error) error {
	if _, ok := errors.AsType[*api.Error](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, image.ErrClosed) {
		return &api.Error{Status: http.StatusServiceUnavailable, Message: image.ErrClosed.Error()}
	}
	e := &api.Error{Status: http.StatusInternalServerError, Message: strings.TrimSpace(operation+" "+quote(name)) + ": " + err.Error()}
	if cause, ok := errors.AsType[*image.Error](err); ok {
		e.Status, e.Reason = http.StatusBadGateway, api.ErrorReason(cause.Reason)
		e.Message = strings.TrimSpace(operation+" "+quote(name)) + ": " + cmp.Or(cause.Err, error(cause)).Error()
	}
	switch {
	case image.IsNotFound(err):
		e.Status = http.StatusNotFound
	case image.IsUnauthorized(err):
		registry, _, _ := strings.Cut(name, "/")
		e.Hint = "log in with podstead login " + registry
	}
	return e
}

func quote(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%q", name)
}
