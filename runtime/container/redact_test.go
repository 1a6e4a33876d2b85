package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/volume"
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
			{Name: "file", Env: []spec.EnvVar{fileVariable("gone"), fileVariable("app.env")}},
			{Name: "broken", Env: []spec.EnvVar{fileVariable("broken.env")}},
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
	files := func(_, path string) ([]byte, error) {
		text, known := map[string]string{"app.env": "OTHER='else'\nKEY='hunter2'\n", "broken.env": "KEY=hunter2"}[path]
		if !known {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}
	for _, test := range []struct{ container, err, want string }{
		{"env", `exec: "hunter2": not found`, `exec: "[hidden]": not found`},
		{"env", `exec: "/bin/hunter2-and-more": not found`, `exec: "/bin/[hidden]": not found`},
		{"all", "stat hunter2: not found", "stat [hidden]: not found"},
		{"all", `exec: "first\nsecond": not found`, `exec: "[hidden]": not found`},
		{"all", `exec: "x7" of x77`, `exec: "[hidden]" of x77`},
		{"all", `exec: "": not found`, `exec: "": not found`},
		{"file", `exec: "hunter2" of else: not found`, `exec: "[hidden]" of else: not found`},
		{"none", `exec: "hunter2": not found`, `exec: "hunter2": not found`},
	} {
		c := pod.Container(test.container)
		err := redactError(source, files, pod, c, &fs.PathError{Op: "exec", Path: test.err, Err: fs.ErrNotExist})
		if want := "exec " + test.want + ": file does not exist"; err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want %s", test.container, err, want)
		}
	}
	for _, name := range []string{"unreadable", "broken"} {
		err := redactError(source, files, pod, pod.Container(name), &fs.PathError{Op: "exec", Path: "hunter2", Err: fs.ErrNotExist})
		if strings.Contains(err.Error(), "hunter2") || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error of container %s, whose values cannot be read: %v", name, err)
		}
	}
	if err := redactError(source, files, pod, pod.Container("unreadable"), nil); err != nil {
		t.Errorf("a nil error became %v", err)
	}
}

// fileVariable is a variable from the key KEY of a file.
func fileVariable(path string) spec.EnvVar {
	return spec.EnvVar{Name: "F", ValueFrom: &spec.EnvVarSource{FileKeyRef: &spec.FileKeyRef{VolumeName: "v", Path: path, Key: "KEY"}}}
}

// TestMaskedFiles checks that a file is read once for the start of a container, that its values count as secrets, and that all of them
// together are bounded.
func TestMaskedFiles(t *testing.T) {
	reads := 0
	c := &spec.Container{Env: []spec.EnvVar{
		fileVariable("app.env"), fileVariable("app.env"), fileVariable("0"), fileVariable("1"), fileVariable("2"),
	}}
	c.Env[1].ValueFrom.FileKeyRef.Key = "EMPTY"
	values := newSecretSnapshot(configsource.Source{}, func(volume, path string) ([]byte, error) {
		reads++
		if path != "app.env" {
			return []byte("KEY='" + strings.Repeat(strings.Repeat("x", 1<<10)+"\n", 500) + "'"), nil
		}
		return []byte("KEY='hunter2'\nEMPTY=''\n"), nil
	}, c)
	ref := *fileVariable("app.env").ValueFrom.FileKeyRef
	empty := ref
	empty.Key = "EMPTY"
	if value, err := values.FileValue(&empty); value != "" || err != nil || values.HasSecrets() {
		t.Errorf("an empty value: %q, %v, has secrets: %v", value, err, values.HasSecrets())
	}
	if value, err := values.FileValue(&ref); value != "hunter2" || err != nil || !values.HasSecrets() {
		t.Errorf("%q, %v, has secrets: %v", value, err, values.HasSecrets())
	}
	masked := values.Masked()
	if value, err := masked.FileValue(&ref); value != redacted || err != nil {
		t.Errorf("masked: %q, %v", value, err)
	}
	if value, err := masked.FileValue(&empty); value != "" || err != nil || reads != 1 {
		t.Errorf("masked: an empty value is %q, %v, after %d reads", value, err, reads)
	}
	for i, large := range []bool{false, false, true} {
		ref.Path = strconv.Itoa(i)
		if _, err := values.FileValue(&ref); (err != nil) != large {
			t.Errorf("file %d of 500 KiB: %v", i, err)
		}
	}
}

// TestLargeFiles checks that a start reads a bounded number of bytes, also for an error after a failed start.
func TestLargeFiles(t *testing.T) {
	reads := 0
	text := []byte("KEY='a'\n" + strings.Repeat("#\n", (volume.MaxFileBytes-8)/2))
	files := func(_, _ string) ([]byte, error) {
		reads++
		return text, nil
	}
	c := &spec.Container{}
	for i := range 20 {
		c.Env = append(c.Env, fileVariable(strconv.Itoa(i)))
	}
	values := newSecretSnapshot(configsource.Source{}, files, c)
	for i := range c.Env {
		value, err := values.FileValue(c.Env[i].ValueFrom.FileKeyRef)
		if fits := i < 16; fits != (err == nil) || fits != (value == "a") {
			t.Errorf("file %d of 1 MiB: %q, %v", i, value, err)
		}
	}
	if reads != 17 {
		t.Errorf("%d files were read", reads)
	}
	reads = 0
	if err := redactError(configsource.Source{}, files, &spec.Pod{}, c, fs.ErrInvalid); !errors.Is(err, fs.ErrInvalid) || reads != 17 {
		t.Errorf("%v, after %d files", err, reads)
	}
}
