package server_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// TestApplyReturnsDefinition checks that the pod of a file has its definition, is refused or waits for its update when Apply returns,
// although the pods directory is read after the file was written.
func TestApplyReturnsDefinition(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	later := func(do func()) { time.AfterFunc(300*time.Millisecond, do) }
	d.files.OnCreate = func(create func() error) error {
		later(func() {
			if err := create(); err != nil {
				t.Error(err)
			}
		})
		return nil
	}
	q := applied("web", app("main", "sleep 1000"))
	d.apply(t, q)
	if p, err := d.client.Pod(t.Context(), "web"); err != nil || p.Metadata.UID == "" {
		t.Errorf("pod after Apply: %+v, %v", p, err)
	}

	q.Text = strings.Replace(q.Text, `image = "i"`, `image = "j"`, 1)
	d.apply(t, q)
	if p, err := d.client.Pod(t.Context(), "web"); err != nil || p.Spec.Containers[0].Image != "j" {
		t.Errorf("pod after Apply of a change: %+v, %v", p, err)
	}
}

// TestApplyReturnsRefusal: refusals of earlier definitions, and updates that are being prepared, do not end Apply.
func TestApplyReturnsRefusal(t *testing.T) {
	t.Parallel()
	d := newTestDaemon(t, fakeruntime.Options{})
	q := applied("bad", app("main", "sleep 1000"))
	f := podfiles.File{
		Path: "/pods.d/bad.toml", Pod: "bad", Reason: api.ReasonRejected, Refused: errors.New("taken"), SpecHash: d.plan(t, q).SpecHash,
	}
	earlier, preparing := f, f
	earlier.SpecHash = "v1:earlier"
	preparing.Reason, preparing.Refused, preparing.Preparing = "", errors.New("update is being prepared"), true
	d.files.Refuse(earlier)
	d.files.Refuse(preparing)
	var refused atomic.Bool
	d.files.OnCreate = func(func() error) error {
		time.AfterFunc(300*time.Millisecond, func() {
			refused.Store(true)
			d.files.Refuse(f)
		})
		return nil
	}
	if d.apply(t, q); !refused.Load() {
		t.Error("Apply returned before the definition was refused")
	}
	if p, err := d.client.Pod(t.Context(), "bad"); err != nil || p.Status.Reason != api.ReasonRejected {
		t.Errorf("refused pod after Apply: %+v, %v", p, err)
	}
}

func (d *testDaemon) apply(t *testing.T, q api.ApplyRequest) api.Applied {
	t.Helper()
	a, err := d.client.Apply(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (d *testDaemon) plan(t *testing.T, q api.ApplyRequest) api.Applied {
	t.Helper()
	q.DryRun = true
	return d.apply(t, q)
}
