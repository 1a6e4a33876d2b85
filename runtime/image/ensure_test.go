package image_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// wantError checks for an *Error with this reason and these words.
func wantError(t *testing.T, err error, reason string, words ...string) {
	t.Helper()
	var e *image.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want an *Error with %s", err, reason)
	}
	if e.Reason != reason {
		t.Errorf("reason is %s, want %s: %v", e.Reason, reason, err)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("message %q lacks %q", e.Message, w)
		}
	}
}

func TestEnsurePolicy(t *testing.T) {
	t.Parallel()
	const (
		local  = "what is here"
		remote = "what the registry has"
		gone   = "ErrImageNeverPull"
		failed = "ErrImagePull"
	)
	for _, c := range []struct {
		name     string
		tag      string
		policy   spec.PullPolicy
		archived bool // version local was imported from an archive
		pulled   bool // version local was pulled
		offline  bool // the registry is stopped
		want     string
	}{
		{name: "missing image is pulled", tag: ":1", want: remote},
		{name: "Never with a missing image", tag: ":1", policy: spec.PullNever, want: gone},
		{name: "Never with a present image", tag: ":1", policy: spec.PullNever, pulled: true, want: local},
		{name: "Never with an image from an archive", tag: ":1", policy: spec.PullNever, archived: true, want: local},
		{name: "IfNotPresent with a present image", tag: ":1", policy: spec.PullIfNotPresent, pulled: true, want: local},
		{name: "IfNotPresent with tag latest", tag: ":latest", policy: spec.PullIfNotPresent, pulled: true, want: local},
		{name: "Always pulls a present image", tag: ":1", policy: spec.PullAlways, pulled: true, want: remote},
		{name: "Always replaces an image from an archive", tag: ":1", policy: spec.PullAlways, archived: true, want: remote},
		{
			name: "Always with a present image and no registry", tag: ":1", policy: spec.PullAlways, pulled: true, offline: true,
			want: failed,
		},
		{name: "default for a tag is IfNotPresent", tag: ":1", pulled: true, offline: true, want: local},
		{name: "default for latest is Always", tag: ":latest", pulled: true, want: remote},
		{name: "default without a tag is Always", tag: "", pulled: true, want: remote},
		{name: "default for latest from an archive is IfNotPresent", tag: ":latest", archived: true, offline: true, want: local},
		{name: "default without a tag from an archive is IfNotPresent", tag: "", archived: true, offline: true, want: local},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			reg := newRegistry(t)
			tag := c.tag
			if tag == "" {
				tag = ":latest"
			}
			scope := w.store.In()
			if c.archived {
				archive := save(t, sample(reg.host+"/shop"+tag, local))
				if _, err := w.load(ctx, archive); err != nil {
					t.Fatal(err)
				}
				scope = w.store.In(archive)
			}
			if c.pulled {
				reg.push(t, sample("shop"+tag, local))
				if _, err := w.scope.Ensure(ctx, reg.host+"/shop"+tag, "", nil); err != nil {
					t.Fatal(err)
				}
			}
			reg.push(t, sample("shop"+tag, remote))
			if c.offline {
				reg.intercept(hangUp)
			}
			if here, err := scope.Find(ctx, reg.host+"/shop"+c.tag, c.policy); here != (c.want == local) || err != nil {
				t.Errorf("found: %v, %v", here, err)
			}
			img, err := scope.Ensure(ctx, reg.host+"/shop"+c.tag, c.policy, nil)
			if c.want == gone || c.want == failed {
				if c.want == failed {
					c.want = "ErrImagePull" // it hung up in the middle of an answer
				}
				wantError(t, err, c.want, reg.host+"/shop"+c.tag)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := w.read(ctx, t, img, "version"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if img.Pulled != (c.want == remote) || img.FromArchive != (c.archived && c.want == local) {
				t.Errorf("%+v", img)
			}
		})
	}
}

func TestEnsureInvalidName(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	for _, ref := range []string{"", "UPPER", "a b", "shop:", "shop@sha256:1", "http://shop"} {
		_, err := w.scope.Ensure(ctx, ref, "", nil)
		wantError(t, err, image.ReasonInvalidName, "parse image name")
		_, err = w.scope.Find(ctx, ref, "")
		wantError(t, err, image.ReasonInvalidName, "parse image name")
	}
}

func TestEnsureUnreachableRegistry(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	const host = "127.0.0.1:1" // no listener, and never assigned dynamically
	_, err := w.scope.Ensure(ctx, host+"/shop:1", "", nil)
	wantError(t, err, image.ReasonPull, host+"/shop:1", "connection refused")
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v does not wrap its cause", err)
	}
	if n := w.leases(ctx, t); n != 0 {
		t.Errorf("%d leases without content remain", n)
	}
}

func TestEnsureUnknownImage(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	_, err := w.scope.Ensure(ctx, reg.host+"/shop:1", "", nil)
	wantError(t, err, image.ReasonPull, reg.host+"/shop:1", "not found")
}

func TestUnpackIsSynced(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	if _, err := w.load(ctx, save(t, sample("till:1", "2"))); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{reg.host + "/shop:1", "till:1"} {
		if _, err := w.scope.Ensure(ctx, ref, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	// The images have two layers each and share one.
	if applied, synced := w.applier.counts(); applied != 3 || synced != 3 {
		t.Errorf("%d layers were unpacked, %d of them synced, want 3 and 3", applied, synced)
	}
}

func TestDamagedContentIsPulledAgain(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"first layer", "second layer", "config", "manifest"} {
		t.Run(part, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			reg := newRegistry(t)
			reg.push(t, sample("shop:1", "1"))
			ref := reg.host + "/shop:1"
			// The image comes from an archive, so there is content but nothing is unpacked.
			list, err := w.load(ctx, save(t, sample(ref, "1")))
			if err != nil {
				t.Fatal(err)
			}
			d := map[string]int{"first layer": 0, "second layer": 1, "config": 2, "manifest": 3}[part]
			w.damage(t, w.digests(ctx, t, list[0])[d])

			_, err = w.scope.Ensure(ctx, ref, spec.PullNever, nil)
			wantError(t, err, image.ReasonNeverPull, ref, "damaged")
			img, err := w.scope.Ensure(ctx, ref, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.read(ctx, t, img, "version"); got != "1" || !img.Pulled {
				t.Errorf("version %q, %+v", got, img)
			}
		})
	}
}

func TestUnpackedImageNeedsNoLayers(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	list, err := w.load(ctx, save(t, sample("shop:1", "1")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.scope.Ensure(ctx, "shop:1", "", nil); err != nil {
		t.Fatal(err)
	}
	for _, d := range w.digests(ctx, t, list[0])[:2] {
		if err := w.client.ContentStore().Delete(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.scope.Ensure(ctx, "shop:1", spec.PullNever, nil); err != nil {
		t.Error(err)
	}
}

func TestFailedUnpackKeepsGoodContent(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	list, err := w.load(ctx, save(t, sample("shop:1", "1")))
	if err != nil {
		t.Fatal(err)
	}
	w.applier.before = func(context.Context) error { return syscall.ENOSPC }
	_, err = w.scope.Ensure(ctx, "shop:1", "", nil)
	wantError(t, err, image.ReasonPull, "unpack image", "no space left")
	w.applier.before = nil
	if img, err := w.scope.Ensure(ctx, "shop:1", spec.PullNever, nil); err != nil || img.ConfigDigest != list[0].ConfigDigest {
		t.Errorf("%+v, %v", img, err)
	}
}

func TestKilledUnpackIsFinishedByNextStore(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	archive := save(t, sample("shop:1", "1"))
	if _, err := w.load(ctx, archive); err != nil {
		t.Fatal(err)
	}
	// The store is closed in the middle of a layer. Like a killed process, the applier cannot remove what it has written.
	started := make(chan struct{})
	w.applier.before = func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.scope.Ensure(ctx, "shop:1", "", nil)
		ended <- err
	}()
	<-started
	w.store.Close()
	if err := <-ended; !errors.Is(err, image.ErrClosed) {
		t.Errorf("unpacking with a store that closes: %v", err)
	}
	if _, err := w.client.SnapshotService("native").Prepare(ctx, "extract-1-x killed", ""); err != nil {
		t.Fatal(err)
	}
	w.applier.before = nil
	next := image.New(w.client, image.Options{Snapshotter: "native", Collect: w.garbage})
	defer next.Close()
	img, err := next.In(archive).Ensure(ctx, "shop:1", spec.PullNever, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.collect(ctx, t)
	if got := w.read(ctx, t, img, "version"); got != "1" {
		t.Errorf("version %q", got)
	}
	if s, l := w.snapshots(ctx, t), w.leases(ctx, t); s != 2 || l != 0 {
		t.Errorf("%d snapshots and %d leases, want those of the 2 layers alone", s, l)
	}
}

func TestCancelledUnpackContinuesForOtherCallers(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	if _, err := w.load(ctx, save(t, sample("shop:1", "1"))); err != nil {
		t.Fatal(err)
	}
	started, release := make(chan struct{}, 2), make(chan struct{})
	w.applier.before = func(ctx context.Context) error {
		started <- struct{}{}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ensure := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := w.scope.Ensure(ctx, "shop:1", "", nil)
			ended <- err
		}()
		return ended
	}
	first, cancel := context.WithTimeoutCause(ctx, time.Hour, errors.New("an hour"))
	one := ensure(first)
	<-started
	two := ensure(ctx)
	image.WaitForWaiters(t, w.store, 2)
	cancel()
	if err := <-one; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call returned %v", err)
	}
	close(release)
	if err := <-two; err != nil {
		t.Errorf("the other call returned %v", err)
	}
}

func TestCancelledWorkReturnsBeforeNextStarts(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	if _, err := w.load(ctx, save(t, sample("shop:1", "1"))); err != nil {
		t.Fatal(err)
	}
	started, release := make(chan struct{}, 10), make(chan struct{})
	w.applier.before = func(ctx context.Context) error { // ignores ctx, as I/O on a hanging disk does
		started <- struct{}{}
		<-release
		return ctx.Err()
	}
	first, cancel := context.WithCancel(ctx)
	go func() {
		<-started
		cancel()
	}()
	if _, err := w.scope.Ensure(first, "shop:1", "", nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("the cancelled call returned %v", err)
	}
	next := make(chan error, 1)
	go func() {
		_, err := w.scope.Ensure(ctx, "shop:1", "", nil)
		next <- err
	}()
	select {
	case err := <-next:
		t.Fatalf("the next one did not wait for the first: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if err := <-next; err != nil {
		t.Errorf("the next call returned %v", err)
	}
}

func TestListShowsDamagedImages(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	list, err := w.load(ctx, save(t, sample("shop:1", "1"), sample("till:1", "2")))
	if err != nil {
		t.Fatal(err)
	}
	w.damage(t, list[0].Target.Digest)
	all, err := w.list(ctx)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", names(all), err)
	}
	for _, img := range all {
		if damaged := img.Name == list[0].Name; damaged != (img.ConfigDigest == "") {
			t.Errorf("%+v", img)
		}
	}
}
