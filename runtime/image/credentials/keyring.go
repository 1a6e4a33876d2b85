// Package credentials finds the credentials for a registry: in secrets of pods, as the kubelet's keyring does, and in the credentials file
// of the host, which is Docker's config.json. It owns that file and runs the credential helpers that the file names. Errors contain no
// credentials and no output of a helper.
package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Keys of secrets with credentials.
const (
	// DockerConfigJSON is the key of secrets of type kubernetes.io/dockerconfigjson.
	DockerConfigJSON = ".dockerconfigjson"
	// DockerCfg is the key of secrets of type kubernetes.io/dockercfg, whose value has the entries at the top level.
	DockerCfg = ".dockercfg"
)

// Login is what a client presents to a registry.
type Login struct {
	Username, Password string
	// IdentityToken is used instead of both if it is set.
	IdentityToken string
}

// Basic returns the user and the secret for a token request or a Basic authentication. The user of an identity token is empty.
func (l Login) Basic() (username, secret string) {
	if l.IdentityToken != "" {
		return "", l.IdentityToken
	}
	return l.Username, l.Password
}

// Keyring has credentials by registry and path. The zero value is empty. It is safe for concurrent use after the last Add.
type Keyring struct {
	logins map[string][]Login // by pattern: a host with an optional port and path
}

// AddSecret adds the credentials of a secret. It ignores keys other than [DockerConfigJSON] and [DockerCfg].
func (k *Keyring) AddSecret(values map[string][]byte) error {
	if text, ok := values[DockerConfigJSON]; ok {
		var d document
		if err := decode(text, &d); err != nil {
			return fmt.Errorf("key %s: %w", DockerConfigJSON, err)
		}
		return k.add(d.Auths)
	}
	if text, ok := values[DockerCfg]; ok {
		var entries map[string]entry
		if err := decode(text, &entries); err != nil {
			return fmt.Errorf("key %s: %w", DockerCfg, err)
		}
		return k.add(entries)
	}
	return fmt.Errorf("has neither key %s nor key %s", DockerConfigJSON, DockerCfg)
}

// Logins returns the credentials that match a repository, such as registry.example/team/shop, in the order in which the kubelet tries them:
// the patterns in reverse alphabetical order, so that a longer path precedes a shorter one.
func (k *Keyring) Logins(repository string) (list []Login) {
	target, err := url.Parse("https://" + repository)
	if err != nil {
		return nil
	}
	patterns := slices.Sorted(maps.Keys(k.logins))
	for _, pattern := range slices.Backward(patterns) {
		if matches(pattern, target) {
			list = append(list, k.logins[pattern]...)
		}
	}
	if len(list) == 0 && target.Host == hub {
		list = append(list, k.logins[hubIndex]...)
	}
	return list
}

// Names of the Docker Hub.
const (
	hub       = "docker.io"
	hubIndex  = "index.docker.io"
	hubServer = "https://index.docker.io/v1/" // its key in Docker's files
	hubHost   = "registry-1.docker.io"        // where its API is
)

// document is Docker's config.json.
type document struct {
	Auths       map[string]entry  `json:"auths"`
	CredHelpers map[string]string `json:"credHelpers"`
	CredsStore  string            `json:"credsStore"`
}

// entry is an entry of auths.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // base64 of username:password
	IdentityToken string `json:"identitytoken"`
}

// login returns the credentials of an entry, and whether it has any. Docker keeps empty entries for a credential helper.
func (e entry) login() (Login, bool, error) {
	l := Login{e.Username, e.Password, e.IdentityToken}
	if e.Auth != "" {
		text, err := base64.StdEncoding.DecodeString(e.Auth)
		if err != nil { // Docker accepts it with and without padding
			text, err = base64.RawStdEncoding.DecodeString(e.Auth)
		}
		username, password, ok := strings.Cut(string(text), ":")
		if err != nil || !ok {
			return Login{}, false, errors.New("auth is not the base64 form of username:password")
		}
		l.Username, l.Password = username, strings.TrimRight(password, "\x00") // as Docker
	}
	return l, l.Password != "" || l.IdentityToken != "", nil
}

// add adds entries by registry. The error names the registry.
func (k *Keyring) add(entries map[string]entry) error {
	for _, registry := range slices.Sorted(maps.Keys(entries)) {
		pattern, err := patternOf(registry)
		if err != nil {
			return err
		}
		l, ok, err := entries[registry].login()
		if err != nil {
			return fmt.Errorf("auths of %q: %w", registry, err)
		}
		if !ok {
			continue
		}
		if k.logins == nil {
			k.logins = map[string][]Login{}
		}
		k.logins[pattern] = append(k.logins[pattern], l)
	}
	return nil
}

// patternOf returns the key of an entry without a scheme and without the version of the API, as the kubelet does.
func patternOf(registry string) (string, error) {
	text := registry
	if !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return "", errors.New("auths: an entry has an invalid name, want HOST[:PORT][/PATH]") // the name may contain a password
	}
	p := u.Path
	if strings.HasPrefix(p, "/v1/") || strings.HasPrefix(p, "/v2/") {
		p = p[len("/v1"):]
	}
	if p == "/" {
		p = ""
	}
	return u.Host + p, nil
}

// matches reports whether a pattern matches a repository: the port is the same, the path starts with that of the pattern, and each label of
// the host matches as a glob.
func matches(pattern string, target *url.URL) bool {
	u, err := url.Parse("https://" + pattern)
	if err != nil || u.Port() != target.Port() || !strings.HasPrefix(target.Path, u.Path) {
		return false
	}
	globs, labels := strings.Split(u.Hostname(), "."), strings.Split(target.Hostname(), ".")
	if len(globs) != len(labels) {
		return false
	}
	for i := range globs {
		if ok, err := path.Match(globs[i], labels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// decode parses JSON. The error does not quote the text, which has credentials.
func decode(text []byte, v any) error {
	err := json.Unmarshal(text, v)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("invalid JSON at byte %d", e.Offset)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		got, _, _ := strings.Cut(e.Value, " ") // a number comes with its digits
		return fmt.Errorf("invalid JSON at byte %d: want %s, not %s", e.Offset, named(e.Type.Kind()), kinds[got])
	}
	if err != nil {
		return errors.New("invalid JSON")
	}
	return nil
}

// kinds are the kinds of JSON values by their names in [json.UnmarshalTypeError].
var kinds = map[string]string{
	"object": "an object", "array": "an array", "string": "a string", "number": "a number", "bool": "true or false",
}

// named returns the kind of the JSON value that is read into a Go value.
func named(k reflect.Kind) string {
	switch k {
	case reflect.Map, reflect.Struct:
		return kinds["object"]
	case reflect.Slice:
		return kinds["array"]
	}
	return kinds["string"]
}
