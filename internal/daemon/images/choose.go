package images

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/runtime/image"
)

// identifier matches the start of an image ID or of a digest.
var identifier = lazyregexp.New("^(?:sha256:)?([0-9a-f]{12,64})$")

// choose returns the images that a person means by a name, or else by the start of an image ID or a digest: those that all pods see and
// those for other platforms or, if there are none, those of archives of pods. The platform restricts them unless it is empty.
func (i *Images) choose(list []found, name, platform string) ([]found, error) {
	if platform != "" {
		var err error
		if platform, err = i.store.Platform(platform); err != nil {
			return nil, &api.Error{Status: http.StatusBadRequest, Message: err.Error()}
		}
	}
	full, err := image.FullName(name)
	var chosen []found
	if err == nil {
		chosen = among(list, platform, func(e *image.Entry) bool { return image.Refers(full, &e.Image) })
	}
	id := identifier.FindStringSubmatch(name)
	if len(chosen) == 0 && id != nil {
		start := "sha256:" + id[1]
		chosen = among(list, platform, func(e *image.Entry) bool {
			return strings.HasPrefix(e.ConfigDigest, start) || strings.HasPrefix(e.Target.Digest.String(), start)
		})
		if err := ambiguous(name, chosen); err != nil {
			return nil, err
		}
	}
	switch {
	case len(chosen) > 0:
		return chosen, nil
	case err != nil && id == nil:
		return nil, &api.Error{Status: http.StatusBadRequest, Message: err.Error()}
	}
	return nil, notFound(name, full, platform, id != nil)
}

// among returns the images that match: those that all pods see or, if there are none, those of archives of pods.
func among(list []found, platform string, match func(*image.Entry) bool) []found {
	var global, scoped []found
	for _, f := range list {
		switch {
		case platform != "" && f.Platform != platform, !match(f.entry):
		case f.Archive:
			scoped = append(scoped, f)
		default:
			global = append(global, f)
		}
	}
	if len(global) > 0 {
		return global
	}
	return scoped
}

// ambiguous returns an error if the images that an ID means differ.
func ambiguous(id string, chosen []found) error {
	if !slices.ContainsFunc(chosen, func(f found) bool { return f.ID != chosen[0].ID }) {
		return nil
	}
	return &api.Error{
		Status: http.StatusConflict, Message: fmt.Sprintf("image %q is ambiguous: %s", id, strings.Join(namesOf(chosen), ", ")),
		Hint: "use more digits, or a name",
	}
}

// oneName returns an error if an ID means several names, which a removal would remove.
func oneName(id string, chosen []found) error {
	if names := namesOf(chosen); len(names) > 1 && identifier.MatchString(id) {
		return &api.Error{
			Status: http.StatusConflict, Message: fmt.Sprintf("remove image %q: it has several names: %s", id, strings.Join(names, ", ")),
			Hint: "remove the names",
		}
	}
	return nil
}

// namesOf returns the names of images, sorted and without duplicates.
func namesOf(list []found) []string {
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func notFound(name, full, platform string, id bool) error {
	e := &api.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("no such image %q", name), Hint: "list images with podstead image ls"}
	if platform != "" {
		e.Message += " for platform " + platform
	}
	if image.IsShort(name) && !id {
		e.Hint = "use a full name, such as " + full
	}
	return e
}
