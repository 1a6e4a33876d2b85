package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/state"
	"github.com/podstead/podstead/test/fakeimages"
)

const (
	earlierPod = "name = \"web\"\n[[containers]]\nname = \"app\"\nimage = \"busybox:1\"\n"
	bundledPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: 'busybox:2'}]}\n"
)

// undoing returns a transaction on a host with a real pods directory, which has files, and a function that returns the content of the
// directory.
func undoing(t *testing.T, files map[string]string) (*Transaction, func() map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := serve(t, dir, nil)
	tx := &Transaction{
		Bundle: &Bundle{
			Manifest: Manifest{Pods: []Pod{{Name: "web", File: "pods/web.yaml"}}},
			Text:     map[string][]byte{"pods/web.yaml": []byte(bundledPod)},
		},
		Note: func(string, ...any) {}, config: &config.Config{Pods: config.Pods{Dir: dir}}, client: c,
	}
	return tx, func() map[string]string {
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

// serve returns a client of a server with an engine in memory, a real pods directory and images.
func serve(t *testing.T, podsDir string, images server.Images) *client.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	store, err := state.NewDir(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		t.Fatal(err)
	}
	pods := supervisor.New(t.Context(), supervisor.Options{
		Runtime: fakeruntime.New(fakeruntime.Options{LogDir: filepath.Join(dir, "logs")}), Store: store, Clock: clock,
		MinReady: new(time.Duration),
	})
	if err := pods.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := podfiles.New(podsDir, pods, podfiles.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var running errgroup.Group
	running.Go(func() error { return files.Run(ctx) })
	srv := server.New(ctx, server.Options{Supervisor: pods, Files: files, Images: images, Version: api.Version{Instance: "one"}})
	l, err := server.Listen(ctx, filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() error { return srv.Serve(l) })
	c := client.New(filepath.Join(dir, "s"), "test")
	t.Cleanup(func() {
		ending, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		var errs []error
		for _, p := range pods.Pods() {
			if err := pods.Stop(ending, p.Pod.Name,
				supervisor.StopOptions{Grace: new(time.Duration), Delete: true}); !errors.Is(err, supervisor.ErrNotFound) {
				errs = append(errs, err)
			}
		}
		c.Close()
		errs = append(errs, srv.Close(ending), pods.Leave(ending))
		cancel()
		if err := running.Wait(); !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	})
	return c
}

// awaitImage waits until the pod web runs an image; empty: there is no pod.
func awaitImage(t *testing.T, tx *Transaction, want string) {
	t.Helper()
	tick, timeout := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		list, err := tx.client.Pods(t.Context())
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
func planned(t *testing.T, tx *Transaction) []api.Applied {
	t.Helper()
	request := tx.request(tx.Bundle.Pods[0])
	request.DryRun = true
	plan, err := tx.client.Apply(t.Context(), request)
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
			tx, content := undoing(t, files)
			awaitImage(t, tx, wanted)
			earlier, err := tx.readEarlier(t.Context(), planned(t, tx))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.applyPod(t.Context(), tx.Bundle.Pods[0], earlier[0]); err != nil {
				t.Fatal(err)
			}
			awaitImage(t, tx, "busybox:2")
			if found := content(); len(found) != 1 || found["web.yaml"] != bundledPod {
				t.Errorf("applied: %v", found)
			}
			if err := tx.restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			awaitImage(t, tx, wanted)
			if found := content(); !maps.Equal(found, files) {
				t.Errorf("restored: %v, want %v", found, files)
			}
		})
	}
}

// TestBundleUndoKeepsOthers: what another client has created since the plan is not deleted.
func TestBundleUndoKeepsOthers(t *testing.T) {
	tx, content := undoing(t, nil)
	plans := planned(t, tx)
	earlier, err := tx.readEarlier(t.Context(), plans)
	if err != nil || earlier[0] != nil {
		t.Fatal(earlier, err)
	}
	if _, err := tx.client.Create(t.Context(), api.CreateRequest{File: "/web.toml", Text: earlierPod}); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.applyPod(t.Context(), tx.Bundle.Pods[0], earlier[0]); err == nil {
		t.Error("no error: the name is taken")
	}
	if err := tx.restore(t.Context()); err != nil {
		t.Error(err)
	}
	awaitImage(t, tx, "busybox:1")
	if found := content(); len(found) > 0 {
		t.Errorf("files %v", found)
	}
}

// TestBundleRefusesWhatItCannotUndo: an invalid file could not be restored.
func TestBundleRefusesWhatItCannotUndo(t *testing.T) {
	tx, content := undoing(t, map[string]string{"web.yaml": "kind: Pod\nnonsense"})
	before := content()
	_, err := tx.readEarlier(t.Context(), planned(t, tx))
	if err == nil || !strings.Contains(err.Error(), "a failure could not be undone") {
		t.Errorf("error %v", err)
	}
	if found := content(); !maps.Equal(found, before) {
		t.Errorf("files %v, want %v", found, before)
	}
}

// TestBundleRestoresImages: an undo makes names refer to the images before the bundle, and names those that another has changed since.
func TestBundleRestoresImages(t *testing.T) {
	images := &fakeimages.Images{}
	c := serve(t, t.TempDir(), images)
	var notes []string
	host, began := image.HostPlatform(), time.Now()
	tx := &Transaction{
		Bundle: &Bundle{}, Note: func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }, client: c,
		began: began,
	}
	for _, name := range []string{"localhost/moved:1", "localhost/changed:1", "localhost/same:1"} {
		tx.Bundle.Images = append(tx.Bundle.Images, Image{Name: name})
		tx.images = append(tx.images, api.Image{Name: name, Digest: "sha256:aaa", Platform: host})
		images.Add(tx.images[len(tx.images)-1])
	}
	images.Replace("localhost/moved:1", "sha256:bbb", began.Add(time.Second))
	images.Replace("localhost/changed:1", "sha256:bbb", began.Add(-time.Second))
	tx.Bundle.Images = append(tx.Bundle.Images, Image{Name: "localhost/new:1"})
	images.Add(api.Image{Name: "localhost/new:1", Digest: "sha256:bbb", Platform: host})
	if err := tx.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 ||
		!strings.HasPrefix(notes[0], `image "localhost/changed:1" was changed, and is not restored; before, it was sha256:aaa`) {
		t.Errorf("notes %q", notes)
	}
	now, err := c.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"localhost/moved:1": "sha256:aaa", "localhost/changed:1": "sha256:bbb", "localhost/same:1": "sha256:aaa",
		"localhost/new:1": "sha256:bbb",
	}
	for _, img := range now.Items {
		if digest := want[img.Name]; digest != "" && img.Digest != digest {
			t.Errorf("%s refers to %s, want %s", img.Name, img.Digest, digest)
		}
	}
}
