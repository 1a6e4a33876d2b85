package server

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/state"
)

// TestLabelFilterOfDeletedPods checks that a filter keeps the labels of a pod that was deleted, until it has too many pods.
func TestLabelFilterOfDeletedPods(t *testing.T) {
	store, err := state.NewDir(filepath.Join(t.TempDir(), "pods"))
	if err != nil {
		t.Fatal(err)
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		t.Fatal(err)
	}
	pods := supervisor.New(t.Context(), supervisor.Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: store, Clock: clock})
	if err := pods.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pods.Leave(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	uids := map[string]string{}
	for _, name := range []string{"gone", "web"} {
		text := "name = \"" + name + "\"\nlabels.app = \"shop\"\n[[containers]]\nname = \"c\"\nimage = \"i\"\n"
		pod, problems := spec.Parse("pod.toml", []byte(text))
		if pod == nil {
			t.Fatal(problems)
		}
		snapshot, err := pods.Add(pod, state.Owner{})
		if err != nil {
			t.Fatal(err)
		}
		uids[name] = snapshot.Facts.UID
	}
	s := &Server{o: Options{Supervisor: pods}}
	f, err := s.labelFilter("app=shop")
	if err != nil {
		t.Fatal(err)
	}
	gone, web := &event.Event{Pod: "gone", UID: uids["gone"]}, &event.Event{Pod: "web", UID: uids["web"]}
	if !f.has(gone) || !f.has(web) {
		t.Fatal("the pods do not match")
	}
	if err := pods.Stop(t.Context(), "gone", supervisor.StopOptions{Grace: new(time.Duration), Delete: true}); err != nil {
		t.Fatal(err)
	}
	for changed := pods.Changed(); ; changed = pods.Changed() {
		if _, exists := pods.Pod("gone"); !exists {
			break
		}
		<-changed
	}
	other, err := s.labelFilter("app=shop")
	if err != nil {
		t.Fatal(err)
	}
	if !f.has(gone) || other.has(gone) {
		t.Error("a deleted pod must match if the filter has seen it before, and otherwise not")
	}
	for i := len(f.known); i < maxLabelled; i++ {
		f.known[fmt.Sprint(i)] = labelled{pod: "none"}
	}
	if !f.has(web) || f.has(gone) || len(f.known) != 1 {
		t.Errorf("the filter has not forgotten the deleted pods: %d pods", len(f.known))
	}
}
