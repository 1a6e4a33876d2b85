package credentials_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/image/credentials"
)

// secret returns a secret of type kubernetes.io/dockerconfigjson whose users are the numbers of the registries.
func secret(registries ...string) map[string][]byte {
	var entries []string
	for i, r := range registries {
		auth := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%d:password", i))
		entries = append(entries, fmt.Sprintf("%q: {\"auth\": %q}", r, auth))
	}
	return map[string][]byte{".dockerconfigjson": []byte(`{"auths": {` + strings.Join(entries, ",") + `}}`)}
}

func users(list []credentials.Login) string {
	names := make([]string, len(list))
	for i, l := range list {
		names[i] = l.Username
	}
	return strings.Join(names, " ")
}

// TestKeyringMatches has the cases of the kubelet's keyring (kubernetes/pkg/credentialprovider/keyring_test.go).
func TestKeyringMatches(t *testing.T) {
	for _, test := range []struct {
		name       string
		registries []string
		repository string
		want       string
	}{
		{"host", []string{"registry.example"}, "registry.example/shop", "0"},
		{"another host", []string{"registry.example"}, "other.example/shop", ""},
		{"host of a longer name", []string{"registry.example"}, "a.registry.example/shop", ""},
		{"port", []string{"registry.example:5000"}, "registry.example:5000/shop", "0"},
		{"another port", []string{"registry.example:5000"}, "registry.example:5001/shop", ""},
		{"entry without the port", []string{"registry.example"}, "registry.example:5000/shop", ""},
		{"address", []string{"127.0.0.1:5000"}, "127.0.0.1:5000/shop", "0"},
		{"IPv6 address", []string{"[::1]:5000"}, "[::1]:5000/shop", "0"},
		{"path", []string{"registry.example/team"}, "registry.example/team/shop", "0"},
		{"another path", []string{"registry.example/team"}, "registry.example/other/shop", ""},
		{
			"longest path first",
			[]string{"registry.example", "registry.example/team/shop", "registry.example/team"},
			"registry.example/team/shop", "1 2 0",
		},
		{"scheme and version", []string{"https://registry.example/v1/", "http://registry.example/v2/"}, "registry.example/shop", "1 0"},
		{"path after the version", []string{"https://registry.example/v2/team"}, "registry.example/team/shop", "0"},
		{"wildcard label", []string{"*.example"}, "registry.example/shop", "0"},
		{"wildcard is one label", []string{"*.example"}, "a.registry.example/shop", ""},
		{"wildcard in a label", []string{"reg*.example"}, "registry.example/shop", "0"},
		{"wildcard with a port and a path", []string{"*.example:5000/team"}, "registry.example:5000/team/shop", "0"},
		{"several wildcards", []string{"*.*.example"}, "a.b.example/shop", "0"},
		{"name and wildcard", []string{"*.example", "registry.example"}, "registry.example/shop", "1 0"},
		{"key of the Docker Hub", []string{"https://index.docker.io/v1/"}, "docker.io/library/nginx", "0"},
		{"name of the Docker Hub", []string{"docker.io"}, "docker.io/library/nginx", "0"},
		{"Docker Hub for other registries", []string{"https://index.docker.io/v1/"}, "registry.example/nginx", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var k credentials.Keyring
			if err := k.AddSecret(secret(test.registries...)); err != nil {
				t.Fatal(err)
			}
			if got := users(k.Logins(test.repository)); got != test.want {
				t.Errorf("users %q, want %q", got, test.want)
			}
		})
	}
}

func TestKeyringOfSeveralSecrets(t *testing.T) {
	var k credentials.Keyring
	for _, values := range []map[string][]byte{
		{".dockerconfigjson": []byte(`{"auths": {"a.example": {"username": "first", "password": "p"}, "empty.example": {}}}`)},
		{".dockercfg": []byte(`{"https://a.example": {"username": "second", "password": "p", "email": "x"}}`)},
		{".dockerconfigjson": []byte(`{"auths": {"a.example": {"identitytoken": "token"}}}`)},
	} {
		if err := k.AddSecret(values); err != nil {
			t.Fatal(err)
		}
	}
	list := k.Logins("a.example/shop")
	if got := users(list); got != "first second " {
		t.Errorf("users %q: want those of the secrets in their order", got)
	}
	if user, token := list[2].Basic(); user != "" || token != "token" {
		t.Errorf("identity token %q %q", user, token)
	}
	if list := k.Logins("empty.example/shop"); list != nil {
		t.Errorf("entry without credentials: %v", list)
	}
}

// TestErrorsHaveNoCredentials checks that an error for a value does not quote it.
func TestErrorsHaveNoCredentials(t *testing.T) {
	for want, values := range map[string]map[string][]byte{
		"has neither key .dockerconfigjson nor key .dockercfg":     {"password": []byte("hunter22")},
		"key .dockerconfigjson: invalid JSON at byte ":             {".dockerconfigjson": []byte(`{"auths": hunter22}`)},
		"invalid JSON at byte 20: want a string, not an array":     {".dockercfg": []byte(`{"a": {"password": ["hunter22"]}}`)},
		"auths of \"a\": auth is not the base64 form of username:": {".dockercfg": []byte(`{"a": {"auth": "hunter22"}}`)},
		"auths: an entry has an invalid name": {
			".dockercfg": []byte(`{"https://me:hunter22@host": {"password": "p"}}`),
		},
	} {
		var k credentials.Keyring
		err := k.AddSecret(values)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
