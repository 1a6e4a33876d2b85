package image_test

import (
	"os"
	"testing"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
)

// TestEnsureAgain checks that a container keeps its image when the name refers to another one, unless its policy requires a pull.
func TestEnsureAgain(t *testing.T) {
	t.Parallel()
	const first, second, remote = "first", "second", "remote"
	for _, c := range []struct {
		name     string
		tag      string
		policy   spec.PullPolicy
		previous bool // whether the container has run
		pulled   bool // the name was retagged by a pull, not by an archive
		want     string
	}{
		{name: "first run", tag: ":1", want: second},
		{name: "default policy", tag: ":1", previous: true, want: first},
		{name: "Never", tag: ":1", policy: spec.PullNever, previous: true, want: first},
		{name: "IfNotPresent", tag: ":1", policy: spec.PullIfNotPresent, previous: true, want: first},
		{name: "default policy for latest from an archive", tag: ":latest", previous: true, want: first},
		{
			name: "default policy for latest from an archive, pulled for another pod", tag: ":latest", previous: true, pulled: true,
			want: first,
		},
		{name: "Always", tag: ":1", policy: spec.PullAlways, previous: true, want: remote},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, w := newEnv(t, image.Options{})
			reg := newRegistry(t)
			ref := reg.host + "/shop" + c.tag
			archive := save(t, sample(ref, first))
			scope := w.store.In(archive)
			list, err := w.store.ImportFile(ctx, archive, nil)
			if err != nil {
				t.Fatal(err)
			}
			var previous image.Previous
			if c.previous {
				previous = image.Previous{ConfigDigest: list[0].ConfigDigest, FromArchive: true}
			}
			if c.pulled {
				reg.push(t, sample("shop"+c.tag, second))
				_, err = w.store.In().Ensure(ctx, ref, spec.PullAlways, nil)
			} else if err = os.Rename(save(t, sample(ref, second)), archive); err == nil {
				_, err = w.store.ImportFile(ctx, archive, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			reg.push(t, sample("shop"+c.tag, remote))

			found, here, err := scope.FindAgain(ctx, ref, c.policy, previous)
			if here != (c.want != remote) || err != nil {
				t.Errorf("found: %v, %v", here, err)
			}
			img, err := scope.EnsureAgain(ctx, ref, c.policy, previous, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.read(ctx, t, img, "version"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if here && found.ConfigDigest != img.ConfigDigest {
				t.Errorf("found %s, ensured %s", found.ConfigDigest, img.ConfigDigest)
			}
			if img.Pulled != (c.want == remote) || img.FromArchive != (c.want != remote) {
				t.Errorf("%+v", img)
			}
			if config, err := w.store.Config(ctx, img); err != nil || config.Config.Env[0] != "VERSION="+c.want {
				t.Errorf("config: %+v, %v", config.Config, err)
			}
		})
	}
}

// TestEnsureAgainRemoved checks that the name decides if the previous image is not present.
func TestEnsureAgainRemoved(t *testing.T) {
	ctx, w := newEnv(t, image.Options{})
	previous := image.Previous{ConfigDigest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", FromArchive: true}
	archive := save(t, sample("shop:1", "1"))
	scope := w.store.In(archive)
	_, err := scope.EnsureAgain(ctx, "shop:1", spec.PullNever, previous, nil)
	wantError(t, err, "ErrImageNeverPull", "shop:1")
	if _, here, err := scope.FindAgain(ctx, "shop:1", "", previous); here || err != nil {
		t.Errorf("found: %v, %v", here, err)
	}
	list, err := w.store.ImportFile(ctx, archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	img, err := scope.EnsureAgain(ctx, "shop:1", spec.PullNever, previous, nil)
	if err != nil || img.ConfigDigest != list[0].ConfigDigest {
		t.Errorf("got %+v, %v, want %+v", img, err, list[0])
	}
}
