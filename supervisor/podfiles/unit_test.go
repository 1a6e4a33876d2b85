package podfiles

import (
	"strings"
	"testing"
)

// TestSystemdTable: a file with the table systemd is carried out by its unit only, and the pod that its unit has created is left alone.
func TestSystemdTable(t *testing.T) {
	files := map[string]string{"web.toml": "systemd.after = [\"a.service\"]\n" + podText("busybox:1")}
	own := running("web", "web.toml", "busybox:2").with(func(p *pod) { p.file, p.by = "", "created by podstead@web.service" })
	for name, w := range map[string]*world{"no pod": worldOf(files), "pod of the unit": worldOf(files, own)} {
		r := w.plan()
		if len(r.steps) != 0 || len(r.files) != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
		if f := r.files[0]; f.Refused == nil || !strings.Contains(f.Refused.Error(), "started by podstead@web.service") || f.Reason != "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	files["web.toml"] = podText("busybox:1")
	r := worldOf(files, own).plan()
	if f := r.files[0]; f.Reason != ReasonRejected || !strings.Contains(f.Refused.Error(), "created by podstead@web.service, so ") {
		t.Errorf("a file of the name of a unit's pod: %+v", f)
	}
}
