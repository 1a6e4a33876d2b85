package applet

import (
	"os"
	"testing"
)

// TestMain runs an applet if this program is started under its name.
func TestMain(m *testing.M) {
	if code, invoked := Main(os.Args); invoked {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestNoApplet(t *testing.T) {
	for _, args := range [][]string{nil, {"podstead-monitor", "monitor"}, {"pause", "other"}, {"podstead-init"}} {
		if _, invoked := Main(args); invoked {
			t.Errorf("%q names an applet", args)
		}
	}
}
