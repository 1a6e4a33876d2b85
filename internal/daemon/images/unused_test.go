package images

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestWholes: names with the same configuration are one image. It is used if one name is, or if a container runs it under another name.
func TestWholes(t *testing.T) {
	const same, running, kept, protected, free = "docker.io/library/same:1", "docker.io/library/moved:1", "docker.io/library/kept:1", "docker.io/library/protected:1", "docker.io/library/free:1"
	store, p, i := newHost(nginx, same, running, kept, protected, free, redis)
	id := func(name string) string { return "sha256:config of " + name }
	store.entries[1].ConfigDigest = id(nginx)
	store.keep(3, "web")
	store.request(redis)
	store.claims = append(store.claims, image.Claim{By: image.Directory, Who: "/usr/share/podstead/images/a.tar", Image: protected})
	p.pods = append(p.pods, supervisor.Snapshot{
		Pod:   pod("run", "other:1"),
		Facts: lifecycle.Facts{Containers: map[string]*lifecycle.Container{"c": {Image: lifecycle.Image{ID: id(running)}}}},
	})
	p.files = []*spec.Pod{pod("refused", "docker.io/library/none:1")}
	facts, err := i.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for n := range facts.Images {
		_, claimed := facts.Claimed(&facts.Images[n], Collection)
		got[facts.Images[n].ID] = !claimed
	}
	want := map[string]bool{id(nginx): false, id(running): false, id(kept): false, id(protected): false, id(free): true, id(redis): false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	pruned, err := i.Prune(t.Context(), true, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{same, running, free, redis}, names(pruned.Items)); diff != "" {
		t.Error("pruned:", diff)
	}
	for _, c := range []struct {
		id      string
		respect Respect
		want    bool
	}{
		{id(nginx), CollectionAll, false},
		{id(protected), CollectionAll, false},
		{id(redis), Collection, false},
		{id(redis), CollectionAll, true},
		{id(free), Collection, true},
		{id(free), Collection, false},
	} {
		removed, freed, err := i.Discard(t.Context(), c.id, c.respect)
		if err != nil || removed != c.want || freed != 42 {
			t.Errorf("discard %s, respect %v: %t, %d, %v", c.id, c.respect, removed, freed, err)
		}
	}
	if left, err := i.List(t.Context()); err != nil || len(left) != 5 {
		t.Errorf("left: %v, %v", names(left), err)
	}
}

// TestUncertainUse: nothing is removed if it is not known which images are protected.
func TestUncertainUse(t *testing.T) {
	store, _, i := newHost(redis)
	failed := errors.New("cannot read the image directory")
	store.unclaimed = failed
	if _, _, err := i.Discard(t.Context(), store.entries[0].ConfigDigest, CollectionAll); !errors.Is(err, failed) {
		t.Errorf("discard: %v", err)
	}
	if removed, err := i.Prune(t.Context(), true, false); err == nil || len(removed.Items) > 0 || len(store.entries) != 1 {
		t.Errorf("prune: %v, %v", removed, err)
	}
	var refusal *api.Error
	if _, err := i.Prune(t.Context(), true, false); !errors.As(err, &refusal) {
		t.Errorf("prune: %v is no error of the API", err)
	}
}

// TestPodBeginsToUseRemovedImage: a pod that is accepted while its image is removed finds it.
func TestPodBeginsToUseRemovedImage(t *testing.T) {
	for name, remove := range map[string]func(i *Images, id string) (bool, error){
		"discard": func(i *Images, id string) (bool, error) {
			removed, _, err := i.Discard(t.Context(), id, CollectionAll)
			return removed, err
		},
		"prune": func(i *Images, _ string) (bool, error) {
			list, err := i.Prune(t.Context(), true, false)
			return len(list.Items) > 0, err
		},
	} {
		store, p, i := newHost(redis)
		store.onForget = func() { p.planned = append(p.planned, pod("db", redis)) }
		if removed, err := remove(i, store.entries[0].ConfigDigest); removed || err != nil {
			t.Errorf("%s: removed %t, %v", name, removed, err)
		}
		if left, err := i.List(t.Context()); err != nil || len(left) != 1 {
			t.Errorf("%s: left %v, %v", name, names(left), err)
		}
	}
}
