package image_test

import (
	"fmt"
	"testing"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// TestImageThatAnArchiveClaims checks that an archive with the name of the image that another pod uses changes neither the first run of
// that pod nor a restart, with any pull policy.
func TestImageThatAnArchiveClaims(t *testing.T) {
	t.Parallel()
	const genuine, remote = "genuine", "remote"
	for _, own := range []bool{false, true} { // whether the other pod has an archive of its own; otherwise its image was pulled
		for policy, want := range map[spec.PullPolicy]string{
			"": genuine, spec.PullIfNotPresent: genuine, spec.PullNever: genuine, spec.PullAlways: remote,
		} {
			t.Run(fmt.Sprintf("archive %v, policy %q", own, policy), func(t *testing.T) {
				ctx, w := newEnv(t, image.Options{})
				reg := newRegistry(t)
				reg.push(t, sample("nginx:1", genuine))
				ref := reg.host + "/nginx:1"
				scope := w.store.In()
				if own {
					archive := save(t, sample(ref, genuine))
					scope = w.store.In(archive)
					if _, err := w.store.ImportFile(ctx, archive, nil); err != nil {
						t.Fatal(err)
					}
				}
				first, err := scope.Ensure(ctx, ref, "", nil)
				if err != nil {
					t.Fatal(err)
				}
				reg.push(t, sample("nginx:1", remote))
				if _, err := w.store.ImportFile(ctx, save(t, sample(ref, "forged")), nil); err != nil {
					t.Fatal(err)
				}
				again := image.Previous{ConfigDigest: first.ConfigDigest, FromArchive: first.FromArchive}
				for run, previous := range map[string]image.Previous{"first run": {}, "restart": again} {
					_, here, err := scope.FindAgain(ctx, ref, policy, previous)
					if here != (want == genuine) || err != nil {
						t.Errorf("%s: found: %v, %v", run, here, err)
					}
					img, err := scope.EnsureAgain(ctx, ref, policy, previous, nil)
					if err != nil {
						t.Fatal(err)
					}
					if got := w.read(ctx, t, img, "version"); got != want {
						t.Errorf("%s: got %q, want %q", run, got, want)
					}
				}
			})
		}
	}
}

// TestFalseDigest checks that an archive cannot give an image the digest of another one, which pods may require.
func TestFalseDigest(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	list, err := w.load(ctx, save(t, sample("shop:1", "genuine")))
	if err != nil {
		t.Fatal(err)
	}
	d := list[0].Target.Digest.String()
	_, err = w.load(ctx, save(t, sample("shop@"+d, "forged")))
	wantError(t, err, image.ReasonPull, "the image has the digest sha256:")
	if here, err := w.scope.Find(ctx, "shop@"+d, ""); here || err != nil {
		t.Errorf("found: %v, %v", here, err)
	}
	if _, err := w.load(ctx, save(t, sample("shop@"+d, "genuine"))); err != nil {
		t.Error(err)
	}
	if _, err := w.scope.Ensure(ctx, "shop@"+d, spec.PullNever, nil); err != nil {
		t.Error(err)
	}
}

// TestShadowing checks which images of archives are reported because this host has different images of the same names.
func TestShadowing(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	reg := newRegistry(t)
	reg.push(t, sample("nginx:1", "genuine"))
	ref := reg.host + "/nginx:1"
	if _, err := w.store.In().Ensure(ctx, ref, "", nil); err != nil {
		t.Fatal(err)
	}
	docker := sample(ref, "genuine") // the same image with other digests of its layers
	docker.Gzip = false
	same, forged, other := save(t, docker), save(t, sample(ref, "forged"), sample("till:1", "till")), save(t, sample("till:1", "other"))
	expect := func(scope image.Scope, name, want string) {
		t.Helper()
		img, err := scope.Ensure(ctx, name, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := scope.Shadowing(ctx, img); got != want || err != nil {
			t.Errorf("image %s shadows from %q, %v, want %q", name, got, err, want)
		}
	}
	load := func(archive string) {
		t.Helper()
		if _, err := w.store.ImportFile(ctx, archive, nil); err != nil {
			t.Fatal(err)
		}
	}
	load(same)
	expect(w.store.In(same), ref, "")
	load(forged)
	expect(w.store.In(forged), ref, forged)
	expect(w.store.In(forged, same), ref, same) // differs from that of forged
	expect(w.store.In(), ref, "")
	expect(w.store.In(forged), "till:1", "")
	load(other)
	expect(w.store.In(other), "till:1", other)
	expect(w.store.In(forged, other), "till:1", other)
}
