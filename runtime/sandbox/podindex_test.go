package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

func TestIndex(t *testing.T) {
	x := NewIndex()
	web, old := &spec.Pod{Name: "web"}, &spec.Pod{Name: "old"}
	x.Put("u", web, 2)
	<-x.Changed()
	x.Put("u", old, 1)
	x.Remove("u", 1)
	if diff := cmp.Diff(map[string]IndexedPod{"u": {web, 2}}, x.All()); diff != "" {
		t.Errorf("an older sandbox changed the index (-want +got):\n%s", diff)
	}
	select {
	case <-x.Changed():
		t.Error("an older sandbox was reported as a change")
	default:
	}
	x.Put("u", web, 3)
	x.Put("u", web, 4)
	<-x.Changed()
	x.Remove("u", 4)
	if all := x.All(); len(all) != 0 {
		t.Errorf("removed pods are still in the index: %v", all)
	}
}

func TestUpdate(t *testing.T) {
	x := NewIndex()
	web, updated := &spec.Pod{Name: "web"}, &spec.Pod{Name: "web", Hostname: "new"}
	x.Update("u", web)
	if _, exists := x.Get("u"); exists {
		t.Error("an update added a pod")
	}
	x.Put("u", web, 2)
	<-x.Changed()
	x.Update("u", web)
	select {
	case <-x.Changed():
		t.Error("the same definition was reported as a change")
	default:
	}
	x.Update("u", updated)
	<-x.Changed()
	if p, exists := x.Get("u"); !exists || p != (IndexedPod{updated, 2}) {
		t.Errorf("%v %+v", exists, p)
	}
}
