package image

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/runtime/image/credentials"
)

// PullSecrets returns the credentials in the secrets of a pod, the names of those that cannot be used, and why. It is called before a pull
// only.
type PullSecrets func() (ring *credentials.Keyring, missing []string, err error)

// Using returns the scope of a pod whose secrets have credentials.
func (s Scope) Using(secrets PullSecrets) Scope {
	s.secrets = secrets
	return s
}

// keyring is the result of [PullSecrets].
func (s Scope) keyring() (ring *credentials.Keyring, missing []string, err error) {
	if s.secrets == nil {
		return &credentials.Keyring{}, nil, nil
	}
	return s.secrets()
}

// keyOf identifies the credentials of a pod for a repository in memory, so that a pod without them does not share a pull with one that has
// them.
func keyOf(ring *credentials.Keyring, name string) string {
	repo, _ := repository(name)
	logins := ring.Logins(repo)
	if len(logins) == 0 {
		return ""
	}
	text, err := json.Marshal(logins)
	if err != nil {
		panic(fmt.Sprintf("strings as JSON: %v", err)) // cannot fail
	}
	return fmt.Sprintf(" with %x", sha256.Sum256(text))
}

// access is the access of one pull to the registries of an image. It knows which credentials must be in no error.
type access struct {
	store *Store
	name  string
	ring  *credentials.Keyring // of the pod
	meter *meter

	mu      sync.Mutex
	secrets []string

	server atomic.Pointer[string] // the host that serves the registry
	// denied is set when a registry has rejected credentials.
	denied atomic.Bool
}

// try calls work with a resolver for each of the credentials, until they are accepted: those of the pod and then those of the host, or none
// if there are no credentials. The error contains no credentials.
func (a *access) try(ctx context.Context, work func(remotes.Resolver) error) error {
	var last error
	for login, err := range a.logins(ctx) {
		if err != nil {
			return a.redact(errors.Join(last, err))
		}
		a.denied.Store(false)
		if last = a.tryOne(ctx, login, work); last == nil {
			return nil
		}
		if ctx.Err() != nil || !a.denied.Load() && !errdefs.IsNotFound(last) { // some registries hide what a user cannot read
			break
		}
	}
	return a.redact(last)
}

func (a *access) tryOne(ctx context.Context, login credentials.Login, work func(remotes.Resolver) error) error {
	resolver, release := a.store.resolver(ctx, a, login)
	defer release()
	return work(resolver)
}

// logins yields the credentials for the image. That of the host are read, and its helpers run, when those of the pod were not accepted.
func (a *access) logins(ctx context.Context) iter.Seq2[credentials.Login, error] {
	return func(yield func(credentials.Login, error) bool) {
		repo, _ := repository(a.name)
		own := a.ring.Logins(repo)
		for _, l := range own {
			if !yield(a.known(l), nil) {
				return
			}
		}
		list, err := a.store.opts.Credentials.Logins(ctx, repo)
		if err != nil {
			yield(credentials.Login{}, err)
			return
		}
		for _, l := range list {
			if !yield(a.known(l), nil) {
				return
			}
		}
		if len(own)+len(list) == 0 {
			yield(credentials.Login{}, nil)
		}
	}
}

// known returns l, whose secret will be in no error.
func (a *access) known(l credentials.Login) credentials.Login {
	user, secret := l.Basic()
	a.hide(secret, user+":"+secret)
	return l
}

// learnServer learns which host serves the registry: that of the image name, or the server in its hosts.toml. It follows the mirrors.
func (a *access) learnServer(hosts docker.RegistryHosts) docker.RegistryHosts {
	return func(host string) ([]docker.RegistryHost, error) {
		list, err := hosts(host)
		if len(list) > 0 {
			a.server.Store(&list[len(list)-1].Host)
		}
		return list, err
	}
}

// credentialsFor returns the function that containerd asks for the credentials of a host. Those of the image are only for its registry. A
// mirror gets those for its own name.
func (a *access) credentialsFor(ctx context.Context, login credentials.Login) func(host string) (string, string, error) {
	repo, _ := repository(a.name)
	_, path, _ := strings.Cut(repo, "/")
	return func(host string) (string, string, error) {
		if server := a.server.Load(); server != nil && host == *server {
			user, secret := login.Basic()
			return user, secret, nil
		}
		list := a.ring.Logins(host + "/" + path)
		if len(list) == 0 {
			var err error
			if list, err = a.store.opts.Credentials.Logins(ctx, host+"/"+path); err != nil {
				return "", "", err
			}
		}
		if len(list) == 0 {
			return "", "", nil
		}
		user, secret := a.known(list[0]).Basic()
		return user, secret, nil
	}
}

// hide records values that must be in no error.
func (a *access) hide(values ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range values {
		if !slices.Contains(a.secrets, v) {
			a.secrets = append(a.secrets, v)
		}
	}
}

// sent records the credentials in a request, and whether they were rejected.
func (a *access) sent(r *http.Request, resp *http.Response) {
	authorization := r.Header.Get("Authorization")
	if _, value, ok := strings.Cut(authorization, " "); ok {
		a.hide(value)
	}
	if resp == nil {
		return
	}
	rejected := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	if rejected && (authorization != "" || resp.StatusCode == http.StatusForbidden || !strings.HasPrefix(r.URL.Path, "/v2/")) {
		a.denied.Store(true) // also a service for tokens, which gets the credentials in the body
	}
}

// redact removes credentials from an error: what a registry has sent back, and the queries of URLs that it refers to. A nil error stays
// nil.
func (a *access) redact(err error) error {
	if err == nil {
		return nil
	}
	a.mu.Lock()
	text := plain.NewRedactor(a.secrets).Text(withoutQueries(err))
	a.mu.Unlock()
	if text == err.Error() {
		return err
	}
	return &redactedError{text, err}
}

// redactedError is an error with another text.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

// Unwrap returns the error with its own text, which must not be shown.
func (e *redactedError) Unwrap() error { return e.err }

// withoutQueries returns the text of an error without the queries of the URLs in it. A registry that refers to a storage service signs the
// URL by its query.
func withoutQueries(err error) string {
	text := err.Error()
	var visit func(error)
	visit = func(err error) {
		if e, ok := err.(*url.Error); ok { //nolint:errorlint // it visits all of the tree
			if u, perr := url.Parse(e.URL); perr == nil && u.RawQuery != "" {
				text = strings.ReplaceAll(text, "?"+u.RawQuery, "?"+plain.Redacted)
			}
		}
		switch e := err.(type) { //nolint:errorlint // as above
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil {
				visit(inner)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				visit(inner)
			}
		}
	}
	visit(err)
	return text
}
