package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/spec"
)

// TestReadPullSecrets reads secrets from each of their sources, and some that cannot be used.
func TestReadPullSecrets(t *testing.T) {
	const config = `{"auths": {"a.example": {"username": "NAME", "password": "p"}}}`
	dir, systemd := t.TempDir(), t.TempDir()
	for path, name := range map[string]string{
		filepath.Join(dir, "secrets/directory/.dockerconfigjson"): "directory", filepath.Join(systemd, "cred"): "credential",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(config, "NAME", name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pod := &spec.Pod{Secrets: []spec.Secret{
		{Name: "inline", Data: spec.SecretData{credentials.DockerCfg: `{"a.example": {"username": "inline", "password": "p"}}`}},
		{Name: "credential", Credential: "cred"},
		{Name: "opaque", Data: spec.SecretData{"password": "hunter22"}},
	}}
	for _, name := range []string{"inline", "none", "directory", "opaque", "credential"} {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, spec.ObjectReference{Name: name})
	}
	ring, missing, err := readPullSecrets(configsource.Source{Dir: dir, Credentials: systemd}, pod)
	var users []string
	for _, l := range ring.Logins("a.example/shop") {
		users = append(users, l.Username)
	}
	if want := []string{"inline", "directory", "credential"}; !slices.Equal(users, want) {
		t.Errorf("users %q, want %q", users, want)
	}
	if want := []string{"none", "opaque"}; !slices.Equal(missing, want) {
		t.Errorf("missing %q, want %q", missing, want)
	}
	for _, want := range []string{`secret "none" not found`, `secret "opaque": has neither key .dockerconfigjson nor key .dockercfg`} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
