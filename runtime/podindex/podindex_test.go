package podindex

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

func TestIndex(t *testing.T) {
	x := New()
	web, old := &spec.Pod{Name: "web"}, &spec.Pod{Name: "old"}
	x.Put("u", web, 2)
	<-x.Changed()
	x.Put("u", old, 1)
	x.Remove("u", 1)
	if diff := cmp.Diff(map[string]Pod{"u": {web, 2}}, x.All()); diff != "" {
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
