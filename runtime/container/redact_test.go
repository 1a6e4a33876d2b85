package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/spec"
)

func TestRedact(t *testing.T) {
	pod := &spec.Pod{
		Secrets: []spec.Secret{{Name: "db", Data: spec.SecretData{
			"password": "hunter2", "longer": "hunter2-and-more", "lines": "first\nsecond", "pin": "x7", "empty": "",
		}}},
		Containers: []spec.Container{
			{Name: "env", Env: []spec.EnvVar{
				{Name: "A", ValueFrom: &spec.EnvVarSource{ConfigMapKeyRef: &spec.KeyRef{Name: "missing", Key: "k"}}},
				{Name: "B", ValueFrom: &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: "missing", Key: "k"}}},
				{Name: "C", ValueFrom: &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: "db", Key: "password"}}},
			}},
			{
				Name:    "all",
				EnvFrom: []spec.EnvFrom{{SecretRef: &spec.EnvReference{Name: "missing"}}, {SecretRef: &spec.EnvReference{Name: "db"}}},
			},
			{Name: "unreadable", EnvFrom: []spec.EnvFrom{{SecretRef: &spec.EnvReference{Name: "open"}}}},
			{Name: "none", Env: []spec.EnvVar{{Name: "A", Value: "hunter2"}}},
		},
	}
	dir := t.TempDir()
	open := filepath.Join(dir, "secrets", "open")
	if err := os.MkdirAll(open, 0o755); err != nil {
		t.Fatal(err)
	}
	// the source refuses a file that others can read
	if err := os.WriteFile(filepath.Join(open, "k"), []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	source := configsource.Source{Dir: dir}
	for _, test := range []struct{ container, err, want string }{
		{"env", `exec: "hunter2": not found`, `exec: "[hidden]": not found`},
		{"env", `exec: "/bin/hunter2-and-more": not found`, `exec: "/bin/[hidden]": not found`},
		{"all", "stat hunter2: not found", "stat [hidden]: not found"},
		{"all", `exec: "first\nsecond": not found`, `exec: "[hidden]": not found`},
		{"all", `exec: "x7" of x77`, `exec: "[hidden]" of x77`},
		{"all", `exec: "": not found`, `exec: "": not found`},
		{"none", `exec: "hunter2": not found`, `exec: "hunter2": not found`},
	} {
		err := redactError(source, pod, pod.Container(test.container), &fs.PathError{Op: "exec", Path: test.err, Err: fs.ErrNotExist})
		if want := "exec " + test.want + ": file does not exist"; err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want %s", test.container, err, want)
		}
	}
	err := redactError(source, pod, pod.Container("unreadable"), &fs.PathError{Op: "exec", Path: "hunter2", Err: fs.ErrNotExist})
	if strings.Contains(err.Error(), "hunter2") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error of a container whose secret is unreadable: %v", err)
	}
	if err := redactError(source, pod, pod.Container("unreadable"), nil); err != nil {
		t.Errorf("a nil error became %v", err)
	}
}
