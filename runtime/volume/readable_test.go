package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/spec"
)

func TestReadable(t *testing.T) {
	s := newSet(t, &fakeValues{configMaps: map[string]map[string]string{"shop": {"a": "1"}}})
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	hostPath := func(path string, kind spec.HostPathType) spec.Volume {
		return spec.Volume{Name: "v", HostPath: &spec.HostPathVolume{Path: path, Type: kind}}
	}
	for _, test := range []struct {
		name   string
		volume spec.Volume
		want   string
	}{
		{"config map", spec.Volume{Name: "v", ConfigMap: &spec.ConfigMapVolume{Name: "shop"}}, ""},
		{
			"missing config map",
			spec.Volume{Name: "v", ConfigMap: &spec.ConfigMapVolume{Name: "none"}},
			`volume "v": configmap "none" not found`,
		},
		{"emptyDir", spec.Volume{Name: "v", EmptyDir: &spec.EmptyDirVolume{}}, ""},
		{"directory", hostPath(dir, spec.HostPathDirectory), ""},
		{"directory that is created", hostPath(missing, spec.HostPathDirectoryOrCreate), ""},
		{
			"missing directory", hostPath(missing, spec.HostPathDirectory),
			`volume "v": hostPath type check failed: ` + missing + " is not a directory: it does not exist",
		},
		{"another type", hostPath(dir, spec.HostPathFile), `volume "v": hostPath type check failed: ` + dir + " is not a file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := s.Readable(t.Context(), Pod{Spec: &spec.Pod{Volumes: []spec.Volume{test.volume}}}); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the host path was created")
	}
}

func TestReadableConfined(t *testing.T) {
	s := newSet(t, nil)
	allowed := t.TempDir()
	s.opts.HostPaths = []string{allowed}
	pod := func(path string) Pod {
		return Pod{
			Spec: &spec.Pod{Volumes: []spec.Volume{{Name: "v", HostPath: &spec.HostPathVolume{Path: path, Type: spec.HostPathDirectory}}}},
		}
	}
	if err := s.Readable(t.Context(), pod(allowed)); err != nil {
		t.Error(err)
	}
	if err := s.Readable(t.Context(), pod("/etc")); err == nil {
		t.Error("a host path outside of the allowed directories was accepted")
	}
}
