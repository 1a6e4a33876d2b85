package container

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
)

// noValues has no config maps and no secrets.
type noValues struct{}

func (noValues) ConfigMap(_ *spec.Pod, name string) (map[string][]byte, error) {
	return nil, fmt.Errorf("configmap %q not found%.0w", name, fs.ErrNotExist)
}

func (noValues) Secret(_ *spec.Pod, name string) (map[string][]byte, error) {
	return nil, fmt.Errorf("secret %q not found%.0w", name, fs.ErrNotExist)
}

func TestReadable(t *testing.T) {
	s := New(Config{Values: noValues{}, ConfigDir: t.TempDir()})
	variable := spec.EnvVar{Name: "A", ValueFrom: &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: "db", Key: "password"}}}
	profile := &spec.SecurityContext{SeccompProfile: &spec.SecurityProfile{Type: "Localhost", LocalhostProfile: new("none.json")}}
	for _, test := range []struct {
		name string
		pod  *spec.Pod
		want string
	}{
		{"nothing to read", &spec.Pod{Containers: []spec.Container{{Name: "c"}}}, ""},
		{
			"missing secret", &spec.Pod{InitContainers: []spec.Container{{Name: "i", Env: []spec.EnvVar{variable}}}},
			`container "i": secret "db" not found`,
		},
		{
			"file of another container",
			&spec.Pod{Containers: []spec.Container{{Name: "c", Env: []spec.EnvVar{fileVariable("app.env")}}}}, "",
		},
		{"missing profile", &spec.Pod{Containers: []spec.Container{{Name: "c", SecurityContext: profile}}}, "none.json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := s.Readable(&oci.Downward{Pod: test.pod})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
