package credentials_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/image/credentials"
)

// newFile returns a credentials file with a text; empty: none exists.
func newFile(t *testing.T, text string) *credentials.File {
	t.Helper()
	f := &credentials.File{Path: filepath.Join(t.TempDir(), "etc", "auth.json")}
	if text != "" {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// helpers adds credential helpers to $PATH: their scripts by name.
func helpers(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, "docker-credential-"+name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

func TestLoginIsSaved(t *testing.T) {
	f := newFile(t, "")
	for _, registry := range []string{"a.example:5000", "docker.io"} {
		if list, err := f.Logins(t.Context(), registry+"/shop"); err != nil || list != nil {
			t.Fatalf("before the login: %v, %v", list, err)
		}
		if err := f.Login(t.Context(), registry, credentials.Login{Username: "me", Password: "hunter22"}); err != nil {
			t.Fatal(err)
		}
		list, err := f.Logins(t.Context(), registry+"/team/shop")
		if err != nil || len(list) != 1 || list[0].Username != "me" || list[0].Password != "hunter22" {
			t.Errorf("after the login: %v, %v", list, err)
		}
	}
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil || !strings.Contains(string(text), `"https://index.docker.io/v1/"`) {
		t.Errorf("file %s, %v", text, err)
	}
	for _, registry := range []string{"docker.io", "a.example:5000"} {
		if err := f.Logout(t.Context(), registry); err != nil {
			t.Error(err)
		}
		if err := f.Logout(t.Context(), registry); !errors.Is(err, credentials.ErrNotLoggedIn) {
			t.Errorf("second logout: %v", err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(f.Path)); err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v", entries, err)
	}
}

// TestChangeKeepsTheRest checks that a login keeps what Docker or a person has written, and that the file may be a link.
func TestChangeKeepsTheRest(t *testing.T) {
	f := newFile(t,
		`{"auths": {"https://a.example/v1/": {"auth": "b2xkOm9sZA=="}, "b.example/team": {"auth": "b2xkOm9sZA=="}}, "HttpHeaders": `+
			`{"X": "1"}}`)
	target := f.Path + ".target"
	if err := errors.Join(os.Rename(f.Path, target), os.Symlink(target, f.Path)); err != nil {
		t.Fatal(err)
	}
	if err := f.Login(t.Context(), "a.example", credentials.Login{Username: "new", Password: "new"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Auths       map[string]any
		HTTPHeaders map[string]string `json:"HttpHeaders"`
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Auths) != 2 || file.Auths["a.example"] == nil ||
		file.HTTPHeaders["X"] != "1" {
		t.Errorf("file %s, %v", text, err)
	}
}

func TestUnusableFile(t *testing.T) {
	const hidden = "hunter22"
	for want, text := range map[string]string{
		"invalid JSON at byte ": `{"auths": ` + hidden, "auth is not the base64 form": `{"auths": {"a": {"auth": "` + hidden + `"}}}`,
		"invalid JSON at byte 11: want an object, not a number": `{"auths": 1}`, "want an object, not an array": `[]`,
		"want a string, not true or false":                               `{"credsStore": false}`,
		"want an object, not a string":                                   `{"credHelpers": "` + hidden + `"}`,
		"credential helper docker-credential-missing: program not found": `{"credsStore": "missing"}`,
		`credential helper "../a": invalid name`:                         `{"credHelpers": {"a.example": "../a"}}`,
	} {
		f := newFile(t, text)
		_, err := f.Logins(t.Context(), "a.example/shop")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), hidden) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f := newFile(t, "{}")
	if err := os.Chmod(f.Path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err := f.Logins(t.Context(), "a.example/shop")
	if !errors.Is(err, credentials.ErrFile) ||
		!strings.Contains(err.Error(), "is accessible by other users than its owner (mode 0640): chmod 600") {
		t.Errorf("file for a group: %v", err)
	}
	if err := f.Login(t.Context(), "a.example", credentials.Login{Username: "a", Password: "b"}); !errors.Is(err, credentials.ErrFile) {
		t.Errorf("login with a file for a group: %v", err)
	}
}

// storeScript is a credential helper that keeps one login in the file $STORE, and what it was called with in $STORE.calls.
const storeScript = `
input=$(cat); echo "$1 $input" >> $STORE.calls
case $1 in
get) [ -f $STORE ] && cat $STORE || { echo "credentials not found in native keychain"; exit 1; } ;;
store) echo "$input" > $STORE ;;
erase) rm $STORE ;;
esac
`

func TestCredentialHelper(t *testing.T) {
	dir := helpers(t, map[string]string{"keep": storeScript, "fixed": `echo '{"Username": "<token>", "Secret": "identity"}'`})
	store := filepath.Join(dir, "store")
	t.Setenv("STORE", store)
	f := newFile(t, `{"credsStore": "keep", "credHelpers": {"fixed.example": "fixed"}, "auths": {"a.example": {}}}`)
	list, err := f.Logins(t.Context(), "fixed.example/shop")
	if err != nil || len(list) != 1 || list[0].IdentityToken != "identity" {
		t.Errorf("helper for the registry: %v, %v", list, err)
	}
	if list, err := f.Logins(t.Context(), "docker.io/library/nginx"); err != nil || list != nil {
		t.Errorf("store without credentials: %v, %v", list, err)
	}
	if err := f.Login(t.Context(), "docker.io", credentials.Login{Username: "me", Password: "hunter22"}); err != nil {
		t.Fatal(err)
	}
	list, err = f.Logins(t.Context(), "docker.io/library/nginx")
	if err != nil || len(list) != 1 || list[0].Password != "hunter22" {
		t.Errorf("store: %v, %v", list, err)
	}
	if err := f.Logout(t.Context(), "docker.io"); err != nil {
		t.Error(err)
	}
	if err := f.Logout(t.Context(), "docker.io"); !errors.Is(err, credentials.ErrNotLoggedIn) {
		t.Errorf("second logout: %v", err)
	}
	calls, err := os.ReadFile(store + ".calls")
	if err != nil ||
		!strings.HasPrefix(string(calls), "get https://index.docker.io/v1/\nstore {\"ServerURL\":\"https://index.docker.io/v1/\"") {
		t.Errorf("calls %s, %v", calls, err)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil || strings.Contains(string(text), "hunter22") || strings.Contains(string(text), "index.docker.io") {
		t.Errorf("file %s, %v", text, err)
	}
}

// TestBadHelper checks that a helper that hangs, also with a child that has its output, fails in time, and that no error has its output.
func TestBadHelper(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"hang":  {"sleep 1000 & sleep 1000", "no answer within 500ms"},
		"fail":  {"echo hunter22; echo hunter22 >&2; exit 3", "credential helper docker-credential-fail get: exit status 3"},
		"other": {"echo hunter22", "credential helper docker-credential-other: invalid JSON at byte 1"},
		"much":  {"yes hunter22", "credential helper docker-credential-much get: signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			helpers(t, map[string]string{name: test.script})
			f := newFile(t, fmt.Sprintf(`{"credsStore": %q}`, name))
			f.HelperTimeout = 10 * time.Second
			if name == "hang" {
				f.HelperTimeout = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := f.Logins(ctx, "a.example/shop")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter22") {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}
