//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// TestSlowImportIsReported imports an archive to a disk that hangs. The event, podstead why and podstead get report the import.
//
// fields: imageArchives
func TestSlowImportIsReported(t *testing.T) {
	f := newFixture(t)
	freeze := f.Ext4Disk()
	busybox, err := os.ReadFile(f.Archive("busybox"))
	f.Check(err)
	archive := filepath.Join(f.Dir, "copy.tar")
	f.Check(os.WriteFile(archive, busybox, 0o600))
	path, err := f.WritePod("p", fmt.Sprintf("name = \"p\"\nimageArchives = [%q]\nterminationGracePeriodSeconds = 1\n", archive)+
		container("c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"))
	f.Check(err)
	r := f.start(path)
	r.line("c", 1)
	f.untilQuiet() // the engine's database cannot be read while a write of it hangs
	thaw := freeze()
	f.Check(os.Chtimes(archive, time.Time{}, time.Unix(1, 0))) // so that it is imported again, for an image that is missing
	added := make(chan error, 1)
	ctx := f.Ctx()
	go func() {
		_, err := f.Client().AddEphemeral(ctx, "p", api.EphemeralRequest{
			File: "debug", Text: "name = \"debug\"\nimage = \"localhost/missing:1\"\nimagePullPolicy = \"Never\"\n",
		})
		added <- err
	}()
	importing := fmt.Sprintf("Importing image archive %q", archive)
	e := r.event(api.EventImageImporting)
	for e.Container != "debug" { // on a loaded host the first import takes long enough to be reported, too
		e = r.event(api.EventImageImporting)
	}
	if e.Message != importing {
		t.Errorf("event %+v, want %q", e, importing)
	}
	if why := f.MustRun("why", "p", "-o", "json"); !strings.Contains(why, `"kind": "ImageImporting"`) || !strings.Contains(why, archive) {
		t.Errorf("podstead why shows no import:\n%s", why)
	}
	if p := f.get("p"); p.Status.Pulling["debug"].Archive != archive || p.Status.Pulling["debug"].Total != int64(len(busybox)) {
		t.Errorf("podstead get shows the progress %+v, want that of %s", p.Status.Pulling, archive)
	}
	thaw()
	f.Check(<-added)
	r.event(api.EventImageNeverPull)
	f.Await(func() error {
		if p := f.get("p"); len(p.Status.Pulling) > 0 {
			return fmt.Errorf("progress after the import: %+v", p.Status.Pulling)
		}
		return nil
	})
	r.interrupt()
	if code := r.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// untilQuiet waits until the engine has not written its database for some seconds.
func (f *fixture) untilQuiet() {
	f.Helper()
	f.Await(func() error {
		info, err := os.Stat(filepath.Join(f.StateDir(), "engine", "io.containerd.metadata.v1.bolt", "meta.db"))
		if err == nil && time.Since(info.ModTime()) < 4*time.Second {
			err = fmt.Errorf("the engine wrote its database at %v", info.ModTime())
		}
		return err
	})
}
