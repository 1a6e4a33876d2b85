package api_test

import (
	"errors"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// TestApplyReturnsExistingPod checks that the pod of a new file exists or is refused when Apply returns, although the pods directory is read
// after the file was written.
func TestApplyReturnsExistingPod(t *testing.T) {
	const delay = 300 * time.Millisecond
	d := newTestDaemon(t, fakeruntime.Options{})
	q := applied("web", app("main", "sleep 1000"))
	d.files.OnCreate = func(create func() error) error {
		time.AfterFunc(delay, func() {
			if err := create(); err != nil {
				t.Error(err)
			}
		})
		return nil
	}
	if _, err := d.client.Apply(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if p, err := d.client.Pod(t.Context(), "web"); err != nil || p.Metadata.UID == "" {
		t.Errorf("pod after Apply: %+v, %v", p, err)
	}

	d.files.OnCreate = func(func() error) error {
		time.AfterFunc(delay, func() {
			d.files.Refuse(podfiles.File{Path: "/pods.d/bad.toml", Pod: "bad", Reason: podfiles.ReasonRejected, Refused: errors.New("taken")})
		})
		return nil
	}
	if _, err := d.client.Apply(t.Context(), applied("bad", app("main", "sleep 1000"))); err != nil {
		t.Fatal(err)
	}
	if p, err := d.client.Pod(t.Context(), "bad"); err != nil || p.Status.Reason != api.Reason(podfiles.ReasonRejected) {
		t.Errorf("refused pod after Apply: %+v, %v", p, err)
	}
}
