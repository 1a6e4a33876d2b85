package podfiles

import (
	"errors"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// TestSystemdTable: a file with the table systemd is carried out by its unit only, and the pod that its unit has created is left alone.
func TestSystemdTable(t *testing.T) {
	t.Parallel()
	files := map[string]string{"web.toml": "systemd.after = [\"a.service\"]\n" + podText("busybox:1")}
	own := running("web", "web.toml", "busybox:2").with(func(p *pod) { p.file, p.by = "", "created by podstead@web.service" })
	for name, w := range map[string]*facts{"no pod": factsOf(files), "pod of the unit": factsOf(files, own)} {
		r := w.plan()
		if len(r.steps) != 0 || len(r.files) != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
		if f := r.files[0]; f.Refused == nil || !strings.Contains(f.Refused.Error(), "started by podstead@web.service") || f.Reason != "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	files["web.toml"] = podText("busybox:1")
	r := factsOf(files, own).plan()
	if f := r.files[0]; f.Reason != api.ReasonRejected || !strings.Contains(f.Refused.Error(), "created by podstead@web.service, so ") {
		t.Errorf("a file of the name of a unit's pod: %+v", f)
	}
}

// TestApplySystemdTable: a file with the table systemd can be changed while its unit runs the pod. The pod of a unit with a file elsewhere
// has taken the name.
func TestApplySystemdTable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	file := func(hash string) string { return "systemd.after = [\"a.service\"]\n" + named("web", hash) }
	if plan, err := b.apply("web", ".toml", file("a"), false); err != nil || plan.Outcome != api.PodCreated {
		t.Fatalf("%+v, %v", plan, err)
	}
	c := accept(b.dir+"/web.toml", []byte(file("a")))
	if _, err := b.AddStaged(c.pod, state.Owner{By: "podstead@web.service", Unit: "podstead@web.service"},
		supervisor.Staged{}); err != nil {
		t.Fatal(err)
	}
	if plan, err := b.apply("web", ".toml", file("b"), false); err != nil || plan.Outcome != api.PodConfigured {
		t.Errorf("%+v, %v", plan, err)
	}
	if _, err := b.apply("web", ".toml", named("web", "b"), false); err == nil {
		t.Error("a file without the table was written while the unit runs the pod")
	}
	other := accept("/etc/podstead/units.d/db.toml", []byte(named("db", "a")))
	if _, err := b.AddStaged(other.pod, state.Owner{By: "podstead@db.service", Unit: "podstead@db.service"},
		supervisor.Staged{}); err != nil {
		t.Fatal(err)
	}
	_, err := b.apply("db", ".toml", "systemd.after = [\"a.service\"]\n"+named("db", "b"), false)
	if _, taken := errors.AsType[*supervisor.NameTakenError](err); !taken {
		t.Errorf("the pod of another file: %v", err)
	}
}
