package doctor_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/internal/doctor"
	"github.com/podstead/podstead/runtime/engine"
)

// TestDamagedFiles: files of the container engine that were damaged are a warning.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	if f := run(t, dir, "/no/such/runc")["container engine"]; f.Grade != doctor.OK {
		t.Errorf("nothing was damaged: %+v", f)
	}
	journal := engine.DamageJournal(filepath.Join(dir, "lib", "engine"))
	err := journal.Add([]engine.DamageReport{
		{Time: time.Now(), File: "/lib/meta.db", Reason: "page 3 has a bad header", Aside: "/damaged/meta.db.bad-page"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := run(t, dir, "/no/such/runc")["container engine"]
	if f.Grade != doctor.Warn || !strings.Contains(f.Detail, "/lib/meta.db (page 3 has a bad header), now meta.db.bad-page") ||
		!strings.Contains(f.Hint, journal.Dir) {
		t.Errorf("%+v", f)
	}
}
