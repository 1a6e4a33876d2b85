package daemon

import (
	"os"
	"testing"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/bundleundo"
)

// TestNextLook: a daemon that is notified has no timer while there is no record.
func TestNextLook(t *testing.T) {
	o := &Options{Config: &config.Config{StateDir: t.TempDir()}}
	if o.nextLook(true) != nil {
		t.Error("an idle daemon looks for bundles")
	}
	if o.nextLook(false) == nil {
		t.Error("a daemon that is not notified does not look for bundles")
	}
	if err := os.WriteFile(bundleundo.Path(o.Config.StateDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o.nextLook(true) == nil {
		t.Error("no look for a killed client while there is a record")
	}
}
