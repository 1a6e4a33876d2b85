package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/test/fakeimages"
)

// newImageDaemon returns a daemon with an image.
func newImageDaemon(t *testing.T) (*testDaemon, *fakeimages.Images) {
	t.Helper()
	d := newTestDaemon(t, fakeruntime.Options{})
	images := &fakeimages.Images{}
	images.Add(api.Image{Name: "a:1", Size: 5, Pods: []string{"web"}})
	d.closeServer()
	d.images = images
	d.serve(t, "second")
	return d, images
}

func wantImageError(t *testing.T, err error, status int, message string) {
	t.Helper()
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != status || !strings.Contains(e.Message, message) {
		t.Errorf("error %#v, want status %d with %q", err, status, message)
	}
}

// pull pulls an image, and returns the updates.
func pull(ctx context.Context, d *testDaemon, q api.PullRequest) (updates []api.PullUpdate, err error) {
	for u, err := range d.client.PullImage(ctx, q) {
		if err != nil {
			return updates, err
		}
		updates = append(updates, u)
	}
	return updates, nil
}

func TestImages(t *testing.T) {
	t.Parallel()
	d, _ := newImageDaemon(t)
	list, err := d.client.Images(t.Context())
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "a:1" {
		t.Fatalf("images %+v, %v", list, err)
	}
	detail, err := d.client.InspectImage(t.Context(), "a:1", "")
	if err != nil || detail.Name != "a:1" || len(detail.History) != 2 {
		t.Errorf("detail %+v, %v", detail, err)
	}
	detail, err = d.client.InspectImage(t.Context(), "a:1", "", "sh", "curl")
	if diff := cmp.Diff(map[string]string{"sh": "/bin/sh", "curl": ""}, detail.Programs); err != nil || diff != "" {
		t.Errorf("programs, %v: %s", err, diff)
	}
	for _, programs := range [][]string{{""}, {"bin/sh"}, {"./sh"}, make([]string, 65)} {
		_, err = d.client.InspectImage(t.Context(), "a:1", "", programs...)
		wantImageError(t, err, http.StatusBadRequest, "program: ")
	}
	_, err = d.client.InspectImage(t.Context(), "none", "")
	wantImageError(t, err, http.StatusNotFound, "no such image")
	_, err = d.client.InspectImage(t.Context(), "", "")
	wantImageError(t, err, http.StatusBadRequest, "exactly one")
	_, err = d.client.RemoveImage(t.Context(), "a:1", "", false)
	wantImageError(t, err, http.StatusConflict, "in use")
	removed, err := d.client.RemoveImage(t.Context(), "a:1", "", true)
	if err != nil || removed.Freed != 5 || len(removed.Items) != 1 {
		t.Errorf("removed %+v, %v", removed, err)
	}
	removed, err = d.client.PruneImages(t.Context(), true, false)
	if err != nil || removed.Items == nil || len(removed.Items) != 0 {
		t.Errorf("pruned %+v, %v", removed, err)
	}
}

// TestEmptyFlags: a parameter whose value is empty does not make a request delete more.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	d, _ := newImageDaemon(t)
	for _, request := range []string{
		"DELETE /v1/images?name=a:1&force=", "POST /v1/images/prune?all=", "POST /v1/images/prune?dryRun=",
		"POST /v1/images/import?whileUsed=",
	} {
		method, path, _ := strings.Cut(request, " ")
		status, body := d.request(t, method, path, "")
		if status != http.StatusBadRequest || !strings.Contains(body, "must be true or false") {
			t.Errorf("%s: %d %s", request, status, body)
		}
	}
}

// TestPruneImagesPartially: a removal may take longer than other requests, and its error has what was removed.
func TestPruneImagesPartially(t *testing.T) {
	t.Parallel()
	d, images := newImageDaemon(t)
	images.Add(api.Image{Name: "unused:1", Size: 7})
	images.OnPrune = func(ctx context.Context) error {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < 10*time.Minute {
			t.Errorf("deadline %v, %t", deadline, ok)
		}
		return errors.New("the disk fails")
	}
	removed, err := d.client.PruneImages(t.Context(), false, false)
	wantImageError(t, err, http.StatusInternalServerError, "the disk fails")
	if removed.Freed != 7 || len(removed.Items) != 1 || removed.Items[0].Name != "unused:1" {
		t.Errorf("removed %+v", removed)
	}
}

func TestPullImage(t *testing.T) {
	t.Parallel()
	d, images := newImageDaemon(t)
	images.OnPull = func(_ context.Context, _ api.PullRequest, progress func(api.PullProgress)) error {
		progress(api.PullProgress{Total: 10})
		progress(api.PullProgress{Done: 5, Total: 10})
		return nil
	}
	updates, err := pull(t.Context(), d, api.PullRequest{Name: "b:1"})
	if err != nil || len(updates) != 3 || updates[1].Progress.Done != 5 || updates[2].Image.Name != "b:1" || !updates[2].Pulled {
		t.Errorf("updates %+v, %v", updates, err)
	}
	// An error before the first progress, and one after it.
	images.OnPull = func(context.Context, api.PullRequest, func(api.PullProgress)) error {
		return &api.Error{Status: http.StatusBadRequest, Message: "the name has no registry", Hint: "use a full name"}
	}
	_, err = pull(t.Context(), d, api.PullRequest{Name: "b"})
	wantImageError(t, err, http.StatusBadRequest, "no registry")
	images.OnPull = func(_ context.Context, _ api.PullRequest, progress func(api.PullProgress)) error {
		progress(api.PullProgress{})
		return &api.Error{Status: http.StatusBadGateway, Reason: "ErrImagePull", Message: "connection refused"}
	}
	updates, err = pull(t.Context(), d, api.PullRequest{Name: "b:1"})
	wantImageError(t, err, http.StatusBadGateway, "connection refused")
	if e, _ := errors.AsType[*api.Error](err); e.Reason != "ErrImagePull" || len(updates) != 1 {
		t.Errorf("%+v after %d updates", e, len(updates))
	}
	_, err = pull(t.Context(), d, api.PullRequest{Name: "b:1", Policy: "Sometimes"})
	wantImageError(t, err, http.StatusBadRequest, "must be Always or IfNotPresent")
}

// TestPullEndsWithItsClient: a pull whose client is gone is cancelled.
func TestPullEndsWithItsClient(t *testing.T) {
	t.Parallel()
	d, images := newImageDaemon(t)
	cancelled := make(chan struct{})
	images.OnPull = func(ctx context.Context, _ api.PullRequest, progress func(api.PullProgress)) error {
		progress(api.PullProgress{})
		<-ctx.Done()
		close(cancelled)
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for _, err := range d.client.PullImage(ctx, api.PullRequest{Name: "b:1"}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	select {
	case <-cancelled:
	case <-ctx.Done():
		t.Error("the pull goes on without its client")
	}
}

func TestImportImages(t *testing.T) {
	t.Parallel()
	d, _ := newImageDaemon(t)
	list, err := d.client.ImportImages(t.Context(), strings.NewReader("c:1"))
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "c:1" {
		t.Errorf("imported %+v, %v", list, err)
	}
	_, err = d.client.ImportImages(t.Context(), strings.NewReader(strings.Repeat("x", 32<<20))) // more than the limit of other requests
	wantImageError(t, err, http.StatusBadGateway, "not an image archive")
	broken := errors.New("stick was removed")
	_, err = d.client.ImportImages(t.Context(), io.MultiReader(strings.NewReader("c"), failingReader{broken}))
	if !errors.Is(err, broken) || errors.Is(err, api.ErrUnavailable) {
		t.Errorf("error %v, want that of the reader", err)
	}
}

// TestImportSignatures sends 40 bundles, which the header of a request cannot have, with an archive. A client that sends them in the URL is
// served too, and a size that is wrong is refused.
func TestImportSignatures(t *testing.T) {
	t.Parallel()
	d, images := newImageDaemon(t)
	var got []string
	images.OnImport = func(signatures []string) { got = signatures }
	var bundles []string
	for i := range 40 {
		bundles = append(bundles, fmt.Sprintf(`{"mediaType": "%d%s"}`, i, strings.Repeat("a", 10_000)))
	}
	for name, send := range map[string]func(context.Context, io.Reader, ...string) (api.ImageList, error){
		"c:1": d.client.ImportImages, "used:1": d.client.ImportUsedImages,
	} {
		got = nil
		list, err := send(t.Context(), strings.NewReader(name), bundles...)
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != name || !slices.Equal(got, []string{strings.Join(bundles, "\n")}) {
			t.Errorf("imported %+v with %d signatures, %v", list, len(got), err)
		}
	}
	for _, test := range []struct {
		query string
		want  int
		got   []string
	}{
		{"signature=one&signature=two", http.StatusOK, []string{"one", "two"}},
		{"signatureBytes=1&signature=two", http.StatusOK, []string{"a", "two"}},
		{"signatureBytes=10", http.StatusBadRequest, nil}, // more than the body has
		{"signatureBytes=-1", http.StatusBadRequest, nil},
		{fmt.Sprint("signatureBytes=", api.MaxSignatures+1), http.StatusBadRequest, nil},
	} {
		got = nil
		code, body := d.request(t, http.MethodPost, "/v1/images/import?"+test.query, "a:1")
		if code != test.want || !slices.Equal(got, test.got) {
			t.Errorf("%s: %d %s, signatures %q, want %d, %q", test.query, code, body, got, test.want, test.got)
		}
	}
	_, err := d.client.ImportImages(t.Context(), strings.NewReader("c:1"), strings.Repeat("a", api.MaxSignatures+1))
	wantImageError(t, err, http.StatusBadRequest, "at most 8388608")
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestExportImages(t *testing.T) {
	t.Parallel()
	d, images := newImageDaemon(t)
	var out strings.Builder
	if err := d.client.ExportImages(t.Context(), &out, "", "a:1"); err != nil || out.String() != "a:1" {
		t.Errorf("exported %q, %v", out.String(), err)
	}
	wantImageError(t, d.client.ExportImages(t.Context(), &out, "", "none"), http.StatusNotFound, "no such image")
	wantImageError(t, d.client.ExportImages(t.Context(), &out, ""), http.StatusBadRequest, "1 to 256 names")
	full := errors.New("disk is full")
	if err := d.client.ExportImages(t.Context(), brokenWriter{full}, "", "a:1"); !errors.Is(err, full) {
		t.Errorf("error %v, want that of the writer", err)
	}
	images.SetOnExport(func() error { return errors.New("content is damaged") })
	if err := d.client.ExportImages(t.Context(), io.Discard, "", "a:1"); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("an archive that is not complete: %v", err)
	}
}

func TestImageSignatures(t *testing.T) {
	t.Parallel()
	d, _ := newImageDaemon(t)
	s, err := d.client.ImageSignatures(t.Context(), "a:1", "")
	if err != nil || len(s.Items) != 1 || !strings.Contains(s.Items[0], "Base64Signature") {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = d.client.ImageSignatures(t.Context(), "none", "")
	wantImageError(t, err, http.StatusNotFound, "no such image")
	_, err = d.client.ImageSignatures(t.Context(), "", "")
	wantImageError(t, err, http.StatusBadRequest, "name: exactly one is required")
}

func TestRestoreImage(t *testing.T) {
	t.Parallel()
	d, images := newImageDaemon(t)
	at := time.Now()
	images.Replace("a:1", "sha256:bbb", at)
	if r, err := d.client.RestoreImage(t.Context(), "a:1", at.Add(time.Nanosecond)); err != nil || r.Restored {
		t.Errorf("replaced before: %+v, %v", r, err)
	}
	if r, err := d.client.RestoreImage(t.Context(), "a:1", at); err != nil || !r.Restored {
		t.Errorf("%+v, %v", r, err)
	}
	_, err := d.client.RestoreImage(t.Context(), "", at)
	wantImageError(t, err, http.StatusBadRequest, "name: exactly one is required")
}

type brokenWriter struct{ err error }

func (f brokenWriter) Write([]byte) (int, error) { return 0, f.err }

// TestNoImages: a daemon without images responds with a typed error.
func TestNoImages(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	_, err := d.client.Images(t.Context())
	wantImageError(t, err, http.StatusNotImplemented, "does not manage images")
	_, err = d.client.ImportImages(t.Context(), strings.NewReader("c:1"))
	wantImageError(t, err, http.StatusNotImplemented, "does not manage images")
	wantImageError(t, d.client.ExportImages(t.Context(), io.Discard, "", "a:1"), http.StatusNotImplemented, "does not manage images")
}
