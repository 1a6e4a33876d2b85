// Package images implements the API's images on a container engine: it collects who needs which image, decides which are removed, see
// [Keep], and refuses to remove others.
//
// A [Collector] removes unused images when the file system of the state directory is nearly full, and images that were unused for long. It
// owns the file with the use of images. It follows the kubelet's image_gc_manager: the images that were used longest ago are removed first,
// until the usage is below the low threshold. Unlike the kubelet, it watches inodes too, and keeps images that a person has pulled or
// imported.
package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	Programs(ctx context.Context, d *image.Detail, names []string) (found map[string]string, search []string, err error)
	Platform(text string) (string, error)
	Pull(ctx context.Context, ref, platform string, policy spec.PullPolicy,
		progress func(image.Progress)) (record string, img image.Image, err error)
	Login(ctx context.Context, registry string, l credentials.Login) error
	Logout(ctx context.Context, registry string) error
	Import(ctx context.Context, r io.Reader, keep bool, signatures ...signature.Signature) ([]image.Image, error)
	Export(ctx context.Context, w io.Writer, records ...string) error
	Signatures(ctx context.Context, record string) ([]signature.Signature, error)
	Restore(ctx context.Context, record string, after time.Time) (bool, error)
	Claims(ctx context.Context) ([]image.Claim, error)
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
}

// New returns the images of a store.
func New(store Store, pods Pods, files Files) *Images { return &Images{store, pods, files} }

// found is an image with its entry in the store.
type found struct {
	api.Image
	entry *image.Entry
	whole Whole // with this name only
}

// List implements [server.Images]. If the pods directory cannot be listed, it knows only the pods that exist.
func (i *Images) List(ctx context.Context) ([]api.Image, error) {
	list, err := i.find(ctx)
	if err != nil {
		return nil, failure("list images", "", err)
	}
	images := make([]api.Image, len(list))
	for n := range list {
		images[n] = list[n].Image
	}
	return images, nil
}

// find returns all images. If the pods directory cannot be listed, it knows only the pods that exist.
func (i *Images) find(ctx context.Context) ([]found, error) {
	list, _, err := i.look(ctx, false)
	return list, err
}

// look returns all images, and the facts about each name. If strict, it fails if the pods directory cannot be listed.
func (i *Images) look(ctx context.Context, strict bool) (list []found, names Facts, err error) {
	entries, err := i.store.Catalog(ctx)
	if err != nil {
		return nil, Facts{}, err
	}
	names.Now = time.Now()
	if names.Claims, err = i.claims(ctx, entries, strict); err != nil {
		return nil, Facts{}, err
	}
	for n := range entries {
		e := &entries[n]
		f := found{Image: describe(e), entry: e}
		w := Whole{ID: cmp.Or(f.ID, e.Record), Names: []string{f.Name}, Records: []string{e.Record}, Size: f.Size}
		f.whole = w
		f.claimed(names.Claims)
		list, names.Images = append(list, f), append(names.Images, w)
	}
	return list, names, nil
}

// claimed describes the claims on an image.
func (f *found) claimed(claims []image.Claim) {
	for _, c := range claims {
		if !f.whole.isOf(c) {
			continue
		}
		switch c.By {
		case image.RunningPod:
			f.Running, f.Pods = append(f.Running, c.Who), append(f.Pods, c.Who)
		case image.Pod:
			f.Pods = append(f.Pods, c.Who)
		case image.Generation:
			f.Generations = append(f.Generations, c.Who)
		case image.Directory:
			f.File = c.Who
		case image.Person:
			f.Requested = api.ImagePulled
			if f.entry.FromArchive {
				f.Requested = api.ImageImported
			}
		case image.Import, image.Container: // the API does not show them
		}
	}
	for _, pods := range []*[]string{&f.Running, &f.Pods, &f.Generations} {
		slices.Sort(*pods)
		*pods = slices.Compact(*pods)
	}
}

func describe(e *image.Entry) api.Image {
	img := api.Image{
		Name: e.Name, Digest: e.Target.Digest.String(), ID: e.ConfigDigest, Platform: e.Platform, Size: e.Size, CreatedAt: e.CreatedAt,
		Archive: e.Scoped, Foreign: e.Foreign, Damaged: e.Damaged,
	}
	if e.Verification.Required {
		img.Verification, img.VerifiedBy = api.ImageUnverified, e.Verification.Key
		if e.Verification.Key != "" {
			img.Verification = api.ImageVerified
		}
	}
	return img
}

// Inspect implements [server.Images].
func (i *Images) Inspect(ctx context.Context, name, platform string, programs []string) (api.ImageDetail, error) {
	list, err := i.find(ctx)
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
	out := detail(&chosen[0].Image, &d)
	if len(programs) > 0 {
		if out.Programs, out.SearchPath, err = i.store.Programs(ctx, &d, programs); err != nil {
			return api.ImageDetail{}, failure("inspect image", name, err)
		}
	}
	return out, nil
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
		progress(api.PullProgress{
			Done: p.Bytes, Total: p.TotalBytes, Layers: p.Layers, TotalLayers: p.TotalLayers, Unpacking: p.Unpacking,
		})
	})
	if err != nil {
		return api.Image{}, false, failure("pull image", full, err)
	}
	list, err := i.find(ctx)
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
		Status: http.StatusBadRequest, Message: fmt.Sprintf("pull image %q: the name has no registry", name),
		Hint: "use a full name, such as " + full,
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
	list, err := i.find(ctx)
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
	list, err := i.find(ctx)
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
	list, err := i.find(ctx)
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
