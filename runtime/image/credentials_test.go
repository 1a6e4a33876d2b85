package image_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/credentials"
)

// demandLogin makes a registry refuse requests without one of the logins, as user:password. It returns the users that have tried.
func demandLogin(reg *registry, logins ...string) (tried func() string) {
	var mu sync.Mutex
	var users []string
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		mu.Lock()
		if ok && (len(users) == 0 || users[len(users)-1] != user) {
			users = append(users, user)
		}
		mu.Unlock()
		if slices.Contains(logins, user+":"+password) {
			return r.URL.Path == "/v2/" // the root of the API
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, "no access with %s", r.Header.Get("Authorization"))
		return true
	})
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(users, " ")
	}
}

// keyring returns the credentials of a pod: pairs of a registry and user:password.
func keyring(t *testing.T, pairs ...string) image.PullSecrets {
	t.Helper()
	ring := &credentials.Keyring{}
	for i := 0; i < len(pairs); i += 2 {
		user, password, _ := strings.Cut(pairs[i+1], ":")
		text := fmt.Sprintf(`{%q: {"username": %q, "password": %q}}`, pairs[i], user, password)
		if err := ring.AddSecret(map[string][]byte{credentials.DockerCfg: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	return func() (*credentials.Keyring, []string, error) { return ring, nil, nil }
}

// hostFile returns the credentials file of a host with an entry.
func hostFile(t *testing.T, registry, login string) *credentials.File {
	t.Helper()
	f := &credentials.File{Path: filepath.Join(t.TempDir(), "auth.json")}
	user, password, _ := strings.Cut(login, ":")
	text := fmt.Sprintf(`{"auths": {%q: {"username": %q, "password": %q}}}`, registry, user, password)
	if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCredentialsAreTriedInOrder pulls an image with several credentials of a pod and of the host.
func TestCredentialsAreTriedInOrder(t *testing.T) {
	const good = "good:password-1"
	for _, test := range []struct {
		name  string
		pod   []string // pairs of a path at the registry and a login
		host  string
		tried string
		want  string // of the error; "": the image is pulled
	}{
		{name: "none", want: "no basic auth credentials"},
		{name: "of the pod", pod: []string{"", good}, tried: "good"},
		{name: "of the host", host: good, tried: "good"},
		{name: "second of the pod", pod: []string{"", "bad:password-2", "", good}, tried: "bad good"},
		{name: "longer path first", pod: []string{"", good, "/team", "path:password-3"}, tried: "path good"},
		{name: "another path", pod: []string{"/other", "bad:password-2"}, host: good, tried: "good"},
		{name: "host after the pod", pod: []string{"", "bad:password-2"}, host: good, tried: "bad good"},
		{name: "all rejected", pod: []string{"", "bad:password-2"}, host: "bad2:password-4", tried: "bad bad2", want: "401 Unauthorized"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reg := newRegistry(t)
			reg.push(t, sample("team/shop:1", "1"))
			tried := demandLogin(reg, good)
			opts := image.Options{}
			if test.host != "" {
				opts.Credentials = hostFile(t, reg.host, test.host)
			}
			for i := 0; i < len(test.pod); i += 2 {
				test.pod[i] = reg.host + test.pod[i]
			}
			ctx, w := newEnv(t, opts)
			_, err := w.store.In().Using(keyring(t, test.pod...)).Ensure(ctx, reg.host+"/team/shop:1", "", nil)
			if got := tried(); got != test.tried {
				t.Errorf("tried %q, want %q", got, test.tried)
			}
			if test.want == "" && err != nil {
				t.Error(err)
			}
			if test.want != "" {
				wantError(t, err, image.ReasonPull, test.want)
			}
			if err != nil && (strings.Contains(err.Error(), "password-") || strings.Contains(err.Error(), "cGFzc3dvcmQ")) {
				t.Errorf("the error has credentials: %v", err)
			}
		})
	}
}

// TestErrorsHaveNoCredentials checks what a registry sends back, and where it refers to.
func TestErrorsHaveNoCredentials(t *testing.T) {
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token":
			_, _ = fmt.Fprint(w, `{"access_token": "planted-token", "token": "planted-token"}`)
		case r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="s"`, reg.host))
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, "http://127.0.0.1:1/blob?Signature=planted-signature", http.StatusTemporaryRedirect)
		case r.Header.Get("X-Echo") == "" && strings.Contains(r.URL.Path, "echo"):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"errors": [{"message": "`+r.Header.Get("Authorization")+` planted-password"}]}`)
		default:
			return false
		}
		return true
	})
	ctx, w := newEnv(t, image.Options{Credentials: hostFile(t, reg.host, "me:planted-password")})
	for name, want := range map[string]string{"echo:1": "400 Bad Request", "shop:1": "?[redacted]"} {
		_, err := w.store.In().Ensure(ctx, reg.host+"/"+name, "", nil)
		wantError(t, err, image.ReasonPull, want)
		if strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// withServer changes the server in the hosts.toml of a registry.
func withServer(t *testing.T, certs, registry, server string) {
	t.Helper()
	path := filepath.Join(certs, registry, "hosts.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(path, []byte(fmt.Sprintf("server = %q\n%s", server, rest)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMirrorGetsItsOwnCredentials checks that a mirror does not get the credentials for the registry.
func TestMirrorGetsItsOwnCredentials(t *testing.T) {
	const registryName = "registry.example"
	for _, test := range []struct{ name, login, tried string }{
		{"none for the mirror", "", ""}, {"one for the mirror", "mirror:password-2", "mirror"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reg := newRegistry(t)
			reg.push(t, sample("shop:1", "1"))
			tried := demandLogin(reg, "mirror:password-2")
			certs := t.TempDir()
			mirrored(t, certs, registryName, reg.host)
			withServer(t, certs, registryName, "http://127.0.0.1:1")
			pairs := []string{registryName, "origin:password-1"}
			if test.login != "" {
				pairs = append(pairs, reg.host, test.login)
			}
			ctx, w := newEnv(t, image.Options{CertsDir: certs})
			_, err := w.store.In().Using(keyring(t, pairs...)).Ensure(ctx, registryName+"/shop:1", "", nil)
			if (err == nil) != (test.login != "") || tried() != test.tried {
				t.Errorf("tried %q: %v", tried(), err)
			}
		})
	}
}

// TestPodsDoNotShareCredentials checks that a pod without credentials does not get an image by the pull of another pod, if its policy
// requires a pull.
func TestPodsDoNotShareCredentials(t *testing.T) {
	reg := newRegistry(t)
	reg.push(t, sample("shop:latest", "1"))
	demandLogin(reg, "good:password-1")
	ctx, w := newEnv(t, image.Options{MaxParallelPulls: 4})
	ref := reg.host + "/shop:latest"
	var all sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		all.Go(func() {
			scope := w.store.In()
			if i%2 == 0 {
				scope = scope.Using(keyring(t, reg.host, "good:password-1"))
			}
			_, errs[i] = scope.Ensure(ctx, ref, "", nil)
		})
	}
	all.Wait()
	for i, err := range errs {
		if (err == nil) != (i%2 == 0) {
			t.Errorf("pod %d: %v", i, err)
		}
	}
	if n := w.leases(ctx, t); n != 0 {
		t.Errorf("%d leases remain", n)
	}
}

func TestMissingPullSecrets(t *testing.T) {
	reg := newRegistry(t)
	reg.push(t, sample("shop:1", "1"))
	ctx, w := newEnv(t, image.Options{})
	missing := func() (*credentials.Keyring, []string, error) {
		return &credentials.Keyring{}, []string{"a", "b"}, fmt.Errorf("secret %q not found", "a")
	}
	var reported []string
	report := func(p image.Progress) { reported = append(reported, p.MissingSecrets) }
	_, err := w.store.In().Using(missing).Ensure(ctx, reg.host+"/none:1", "", report)
	wantError(t, err, image.ReasonPull, `(secret "a" not found)`)
	if len(reported) == 0 || reported[0] != "a, b" {
		t.Errorf("reported %q", reported)
	}
	if _, err := w.store.In().Using(missing).Ensure(ctx, reg.host+"/shop:1", "", nil); err != nil {
		t.Errorf("an image that needs no credentials: %v", err)
	}
}

func TestLogin(t *testing.T) {
	basic, token, open := newRegistry(t), newRegistry(t), newRegistry(t)
	demandLogin(basic, "me:hunter22")
	token.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token" && (r.FormValue("username") != "me" || r.FormValue("password") != "hunter22"):
			w.WriteHeader(http.StatusUnauthorized)
			return true
		case r.URL.Path == "/token":
			_, _ = fmt.Fprint(w, `{"access_token":"secret"}`)
			return true
		case r.Header.Get("Authorization") == "Bearer secret":
			return true
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=\"s\"", "http://"+token.host+"/token"))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	open.intercept(func(http.ResponseWriter, *http.Request) bool { return true })
	certs := t.TempDir()
	mirrored(t, certs, "moved.example", basic.host)
	mirrored(t, certs, "mirrored.example", basic.host)
	withServer(t, certs, "mirrored.example", "http://127.0.0.1:1")
	file := &credentials.File{Path: filepath.Join(t.TempDir(), "auth.json")}
	ctx, w := newEnv(t, image.Options{Credentials: file, CertsDir: certs})
	for _, test := range []struct{ name, registry, password, want string }{
		{"Basic", basic.host, "hunter22", ""},
		{"Basic, wrong password", basic.host, "hunter23", "unauthorized: incorrect user name or password"},
		{"Bearer", token.host, "hunter22", ""},
		{"Bearer, wrong password", token.host, "hunter23", "unauthorized: incorrect user name or password"},
		{"no authentication", open.host, "hunter22", ""},
		{"nothing listens", "127.0.0.1:1", "hunter22", "connection refused"},
		{"server in hosts.toml", "moved.example", "hunter22", ""},
		{"mirror in hosts.toml", "mirrored.example", "hunter22", "127.0.0.1:1: connect: connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := w.store.Login(ctx, test.registry, credentials.Login{Username: "me", Password: test.password})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), test.password) {
				t.Errorf("the error has the password: %v", err)
			}
			list, err := file.Logins(ctx, test.registry+"/shop")
			if err != nil || test.want == "" && len(list) != 1 {
				t.Errorf("saved %v, %v", list, err)
			}
		})
	}
	if err := w.store.Logout(ctx, basic.host); err != nil {
		t.Error(err)
	}
}
