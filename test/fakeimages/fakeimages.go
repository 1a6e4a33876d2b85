// Package fakeimages has the images of a host in memory, for tests of the API and of the commands.
package fakeimages

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
)

// Images implements [server.Images]. An archive is the name of its image.
type Images struct {
	// OnPull is called by Pull; nil: the image is pulled. Its error is that of Pull.
	OnPull func(ctx context.Context, q api.PullRequest, progress func(api.PullProgress)) error
	// OnImport is called by Import; nil: nothing is.
	OnImport func(signatures []string)
	// OnPrune is called by Prune when the images are removed; nil: not called. Its error is that of Prune.
	OnPrune func(ctx context.Context) error

	// OnSignatures returns the signatures of an image; nil: one is made up.
	OnSignatures func(name string) ([]string, error)

	// Logins are the passwords by registry and user name that Login accepts, as "registry user".
	Logins map[string]string

	mu       sync.Mutex
	list     []api.Image
	replaced map[string]replaced // by name
	loggedIn []string
	onExport func() error
}

// SetOnExport sets what Export calls after the names are written; nil: nothing. A client does not wait for the end of an export that fails.
func (i *Images) SetOnExport(f func() error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.onExport = f
}

// Add adds an image.
func (i *Images) Add(img api.Image) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.list = append(i.list, img)
}

// List returns the images.
func (i *Images) List(context.Context) ([]api.Image, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.list), nil
}

func (i *Images) find(name string) (api.Image, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, img := range i.list {
		if img.Name == name {
			return img, nil
		}
	}
	return api.Image{}, &api.Error{
		Status: http.StatusNotFound, Message: fmt.Sprintf("no such image %q", name), Hint: "list images with podstead image ls",
	}
}

// Login accepts the credentials in Logins.
func (i *Images) Login(_ context.Context, q api.LoginRequest) (string, error) {
	if want, ok := i.Logins[q.Registry+" "+q.Username]; !ok || want != q.Password {
		return "", &api.Error{
			Status: http.StatusForbidden, Message: fmt.Sprintf("log in to %q: unauthorized: incorrect user name or password", q.Registry),
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.loggedIn = append(i.loggedIn, q.Registry)
	return q.Registry, nil
}

// Logout forgets a login.
func (i *Images) Logout(_ context.Context, registry string) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := slices.Index(i.loggedIn, registry)
	if n < 0 {
		return "", &api.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("log out of %q: not logged in", registry)}
	}
	i.loggedIn = slices.Delete(i.loggedIn, n, n+1)
	return registry, nil
}

// Inspect returns an image with two steps in its history, and the program sh.
func (i *Images) Inspect(_ context.Context, name, _ string, programs []string) (api.ImageDetail, error) {
	img, err := i.find(name)
	found := map[string]string{}
	for _, program := range programs {
		found[program] = ""
		if program == "sh" || program == "/bin/sh" {
			found[program] = "/bin/sh"
		}
	}
	return api.ImageDetail{
		Programs: found, SearchPath: []string{"/bin"},
		Image: img, Platforms: []string{img.Platform}, Layers: []api.ImageLayer{{Digest: "sha256:1", Size: 1 << 20}},
		History: []api.ImageHistory{{CreatedBy: "ADD  rootfs\n/", Size: 1 << 20}, {CreatedBy: "CMD sh", Comment: "buildkit"}},
	}, err
}

// Pull adds an image.
func (i *Images) Pull(ctx context.Context, q api.PullRequest, progress func(api.PullProgress)) (api.Image, bool, error) {
	if i.OnPull != nil {
		if err := i.OnPull(ctx, q, progress); err != nil {
			return api.Image{}, false, err
		}
	}
	img := api.Image{
		Name: q.Name, Digest: "sha256:0123456789abcdef", Platform: q.Platform, Requested: api.ImagePulled, Foreign: q.Platform != "",
	}
	i.Add(img)
	return img, q.Policy == "Always", nil
}

// Import adds the image whose name the archive is, and calls OnImport with the signatures.
func (i *Images) Import(_ context.Context, archive io.Reader, _ bool, signatures []string) ([]api.Image, error) {
	if i.OnImport != nil {
		i.OnImport(signatures)
	}
	name, err := io.ReadAll(archive)
	if err != nil {
		return nil, &api.Error{Status: http.StatusBadGateway, Message: "import images: " + err.Error()}
	}
	if len(name) > 100 {
		return nil, &api.Error{Status: http.StatusBadGateway, Message: "import images: not an image archive"}
	}
	img := api.Image{Name: string(name), Digest: "sha256:0123456789abcdef", Requested: api.ImageImported}
	i.Add(img)
	return []api.Image{img}, nil
}

// Export writes the names.
func (i *Images) Export(_ context.Context, w io.Writer, _ string, names []string) error {
	i.mu.Lock()
	onExport := i.onExport
	i.mu.Unlock()
	for _, name := range names {
		if _, err := i.find(name); err != nil {
			return err
		}
		if _, err := io.WriteString(w, name); err != nil {
			return err
		}
	}
	if onExport != nil {
		return onExport()
	}
	return nil
}

// Replace makes a name refer to another image, as an import.
func (i *Images) Replace(name, digest string, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range i.list {
		if img := &i.list[n]; img.Name == name {
			if i.replaced == nil {
				i.replaced = map[string]replaced{}
			}
			i.replaced[name] = replaced{img.Digest, at}
			img.Digest = digest
		}
	}
}

// replaced is an image that has lost its name.
type replaced struct {
	digest string
	at     time.Time
}

// Restore undoes Replace.
func (i *Images) Restore(_ context.Context, name string, after time.Time) (bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	was, ok := i.replaced[name]
	if !ok || was.at.Before(after) {
		return false, nil
	}
	delete(i.replaced, name)
	for n := range i.list {
		if i.list[n].Name == name {
			i.list[n].Digest = was.digest
		}
	}
	return true, nil
}

// Signatures returns a signature with the name of the image as its payload.
func (i *Images) Signatures(_ context.Context, name, _ string) ([]string, error) {
	if _, err := i.find(name); err != nil {
		return nil, err
	}
	if i.OnSignatures != nil {
		return i.OnSignatures(name)
	}
	return []string{fmt.Sprintf(`{"Base64Signature":"YQ==","Payload":%q}`, base64.StdEncoding.EncodeToString([]byte(name)))}, nil
}

// Remove removes an image that no pod uses.
func (i *Images) Remove(_ context.Context, name, _ string, force bool) (api.RemovedImages, error) {
	img, err := i.find(name)
	if err != nil {
		return api.RemovedImages{}, err
	}
	if len(img.Pods) > 0 && !force {
		return api.RemovedImages{}, &api.Error{
			Status: http.StatusConflict, Message: fmt.Sprintf("remove image %q: it is in use by pod %q", name, img.Pods[0]),
		}
	}
	return i.remove(func(img *api.Image) bool { return img.Name == name }), nil
}

// Prune removes the images that nothing uses.
func (i *Images) Prune(ctx context.Context, all, dryRun bool) (api.RemovedImages, error) {
	unused := func(img *api.Image) bool { return !img.Used() && (all || img.Requested == "") }
	if !dryRun {
		removed := i.remove(unused)
		if i.OnPrune != nil {
			return removed, i.OnPrune(ctx)
		}
		return removed, nil
	}
	list, err := i.List(ctx)
	return api.RemovedImages{Items: slices.DeleteFunc(list, func(img api.Image) bool { return !unused(&img) })}, err
}

func (i *Images) remove(which func(img *api.Image) bool) (removed api.RemovedImages) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.list = slices.DeleteFunc(i.list, func(img api.Image) bool {
		gone := which(&img)
		if gone {
			removed.Items, removed.Freed = append(removed.Items, img), removed.Freed+img.Size
		}
		return gone
	})
	return removed
}
