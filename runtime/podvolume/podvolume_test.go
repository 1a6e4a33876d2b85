package podvolume

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/layout"
	"github.com/podstead/podstead/spec"
)

func TestDownward(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dirs := layout.Dirs{State: t.TempDir()}
	d, err := Downward(dirs, "u", &spec.Pod{Name: "web"}, []string{"10.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	if d.NodeName != host || d.UID != "u" || len(d.HostIPs) == 0 || !cmp.Equal(d.PodIPs, []string{"10.0.0.2"}) {
		t.Errorf("%+v", d)
	}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
		if q := d.Allocatable[name]; q.Sign() <= 0 {
			t.Errorf("allocatable %s: %v, want a positive quantity", name, q)
		}
	}
	if d, err = Downward(dirs, "u", &spec.Pod{HostNetwork: true}, nil); err != nil || !cmp.Equal(d.PodIPs, d.HostIPs) {
		t.Errorf("hostNetwork: addresses %v, %v; want those of the host", d.PodIPs, err)
	}
}

func TestHasContent(t *testing.T) {
	for _, test := range []struct {
		name   string
		volume spec.Volume
		want   bool
	}{
		{"emptyDir", spec.Volume{EmptyDir: &spec.EmptyDirVolume{}}, false},
		{"configMap", spec.Volume{ConfigMap: &spec.ConfigMapVolume{}}, true},
		{"secret", spec.Volume{Secret: &spec.SecretVolume{}}, true},
		{"projected", spec.Volume{Projected: &spec.ProjectedVolume{}}, true},
	} {
		if got := hasContent(&spec.Pod{Volumes: []spec.Volume{test.volume}}); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
