package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/supervisor/podfiles"
)

const (
	earlierPod = "name = \"web\"\n[[containers]]\nname = \"app\"\nimage = \"busybox:1\"\n"
	bundledPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: 'busybox:2'}]}\n"
)

// undoing returns a carrying on a host with a real pods directory, which has files, and a function that returns the content of the
// directory.
func undoing(t *testing.T, files map[string]string) (*carrying, func() map[string]string) {
	t.Helper()
	h := newTestHost(t, api.Version{})
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := podfiles.New(dir, h.pods, podfiles.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- set.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	h.closeServer()
	h.options.Files = set
	h.serve(t)
	client := api.NewClient(h.socket, "test")
	t.Cleanup(client.Close)
	c := &carrying{a: &app{out: io.Discard, err: io.Discard}, w: &watcher{Starter: &ondemand.Starter{Client: client}}}
	c.pods = []applied{{"web", api.ApplyRequest{File: filepath.Join(dir, "web.yaml"), Text: bundledPod}}}
	return c, func() map[string]string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			found[e.Name()] = string(text)
		}
		return found
	}
}

// awaitImage waits until the pod web runs an image; empty: there is no pod.
func awaitImage(t *testing.T, c *carrying, want string) {
	t.Helper()
	tick, timeout := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		list, err := c.w.Client.Pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for i := range list.Items {
			if p := &list.Items[i]; p.Metadata.UID != "" {
				found = p.Spec.Containers[0].Image
			}
		}
		if found == want {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("the pod has image %q, want %q", found, want)
		}
	}
}

// planned returns the plan for the pod of the bundle.
func planned(t *testing.T, c *carrying) []api.Applied {
	t.Helper()
	request := c.pods[0].request
	request.DryRun = true
	plan, err := c.w.Client.Apply(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return []api.Applied{plan}
}

// TestBundleUndo: the file that a pod had before the bundle is restored, whatever its name and its extension.
func TestBundleUndo(t *testing.T) {
	for _, name := range []string{"web.toml", "site.toml", ""} {
		t.Run(name, func(t *testing.T) {
			files, wanted := map[string]string{}, ""
			if name != "" {
				files[name], wanted = earlierPod, "busybox:1"
			}
			c, content := undoing(t, files)
			awaitImage(t, c, wanted)
			earlier, err := c.readEarlier(t.Context(), planned(t, c))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.applyPod(t.Context(), c.pods[0], earlier[0]); err != nil {
				t.Fatal(err)
			}
			awaitImage(t, c, "busybox:2")
			if found := content(); len(found) != 1 || found["web.yaml"] != bundledPod {
				t.Errorf("applied: %v", found)
			}
			if err := c.restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			awaitImage(t, c, wanted)
			if found := content(); !maps.Equal(found, files) {
				t.Errorf("restored: %v, want %v", found, files)
			}
		})
	}
}

// TestBundleUndoKeepsOthers: what another client has created since the plan is not deleted.
func TestBundleUndoKeepsOthers(t *testing.T) {
	c, content := undoing(t, nil)
	plans := planned(t, c)
	earlier, err := c.readEarlier(t.Context(), plans)
	if err != nil || earlier[0] != nil {
		t.Fatal(earlier, err)
	}
	if _, err := c.w.Client.Create(t.Context(), api.CreateRequest{File: "/web.toml", Text: earlierPod}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.applyPod(t.Context(), c.pods[0], earlier[0]); err == nil {
		t.Error("no error: the name is taken")
	}
	if err := c.restore(t.Context()); err != nil {
		t.Error(err)
	}
	awaitImage(t, c, "busybox:1")
	if found := content(); len(found) > 0 {
		t.Errorf("files %v", found)
	}
}

// TestBundleRefusesWhatItCannotUndo: an invalid file could not be restored.
func TestBundleRefusesWhatItCannotUndo(t *testing.T) {
	c, content := undoing(t, map[string]string{"web.yaml": "kind: Pod\nnonsense"})
	before := content()
	_, err := c.readEarlier(t.Context(), planned(t, c))
	if err == nil || !strings.Contains(err.Error(), "a failure could not be undone") {
		t.Errorf("error %v", err)
	}
	if found := content(); !maps.Equal(found, before) {
		t.Errorf("files %v, want %v", found, before)
	}
}

// TestBundleRestoresImages: an undo makes names refer to the images before the bundle, and names those that another has changed since.
func TestBundleRestoresImages(t *testing.T) {
	h, images := newImageHost(t)
	client := api.NewClient(h.socket, "test")
	t.Cleanup(client.Close)
	var out bytes.Buffer
	host, began := image.HostPlatform(), time.Now()
	c := &carrying{a: &app{out: io.Discard, err: &out}, w: &watcher{Starter: &ondemand.Starter{Client: client}}, bundle: &bundle.Bundle{}, began: began}
	for _, name := range []string{"localhost/moved:1", "localhost/changed:1", "localhost/same:1"} {
		c.bundle.Images = append(c.bundle.Images, bundle.Image{Name: name})
		c.images = append(c.images, api.Image{Name: name, Digest: "sha256:aaa", Platform: host})
		images.Add(c.images[len(c.images)-1])
	}
	images.Replace("localhost/moved:1", "sha256:bbb", began.Add(time.Second))
	images.Replace("localhost/changed:1", "sha256:bbb", began.Add(-time.Second))
	c.bundle.Images = append(c.bundle.Images, bundle.Image{Name: "localhost/new:1"})
	images.Add(api.Image{Name: "localhost/new:1", Digest: "sha256:bbb", Platform: host})
	if err := c.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `image "localhost/changed:1" was changed, and is not restored; before, it was sha256:aaa`) {
		t.Errorf("notes %q", got)
	}
	now, err := client.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"localhost/moved:1": "sha256:aaa", "localhost/changed:1": "sha256:bbb", "localhost/same:1": "sha256:aaa", "localhost/new:1": "sha256:bbb",
	}
	for _, img := range now.Items {
		if digest := want[img.Name]; digest != "" && img.Digest != digest {
			t.Errorf("%s refers to %s, want %s", img.Name, img.Digest, digest)
		}
	}
}
