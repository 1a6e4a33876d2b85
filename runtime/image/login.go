package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/image/credentials"
)

// ErrUnauthorized is the error of [Store.Login] if a registry rejects the credentials.
var ErrUnauthorized = errors.New("unauthorized: incorrect user name or password")

// IsUnauthorized reports whether a registry has refused an image to a user without credentials, or with wrong ones.
func IsUnauthorized(err error) bool { return errors.Is(err, docker.ErrInvalidAuthorization) }

// Login checks credentials with a registry, HOST[:PORT], and saves them in the credentials file of the host. A registry that requires no
// authentication accepts any. The error contains no credentials.
func (s *Store) Login(ctx context.Context, registry string, l credentials.Login) error {
	a := &access{store: s, name: registry, ring: &credentials.Keyring{}, meter: &meter{}}
	a.known(l)
	if err := a.check(ctx, registry, l); err != nil {
		return a.redact(err)
	}
	return a.redact(s.opts.Credentials.Login(ctx, registry, l))
}

// Logout deletes the credentials for a registry. The error is [credentials.ErrNotLoggedIn] if there are none.
func (s *Store) Logout(ctx context.Context, registry string) error {
	return s.opts.Credentials.Logout(ctx, registry)
}

// check requests the root of the API, as the specification of the distribution defines for that purpose.
func (a *access) check(ctx context.Context, registry string, l credentials.Login) error {
	hosts, release := a.store.hosts(ctx, a, func(string) (string, string, error) {
		user, secret := l.Basic()
		return user, secret, nil
	})
	defer release()
	host, err := serverOf(hosts, registry)
	if err != nil {
		return err
	}
	resp, err := a.root(ctx, host) //nolint:bodyclose // root closes it
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		err := host.Authorizer.AddResponses(ctx, []*http.Response{resp})
		if errdefs.IsNotImplemented(err) {
			return fmt.Errorf("registry %s supports neither Basic nor Bearer authentication", registry)
		}
		if err != nil {
			return err
		}
		a.denied.Store(false)
		if resp, err = a.root(ctx, host); err != nil { //nolint:bodyclose // root closes it
			if a.denied.Load() {
				return ErrUnauthorized
			}
			return err
		}
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrUnauthorized
	}
	return fmt.Errorf("registry %s responded with %s", registry, resp.Status)
}

// serverOf returns the host that serves a registry itself, and no mirror.
func serverOf(hosts docker.RegistryHosts, registry string) (*docker.RegistryHost, error) {
	list, err := hosts(registry)
	if err != nil {
		return nil, err
	}
	return &list[len(list)-1], nil // after the mirrors; containerd adds the server to every configuration
}

// root requests the root of the API of a registry. The body of the response has been read.
func (a *access) root(ctx context.Context, h *docker.RegistryHost) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.Scheme+"://"+h.Host+h.Path+"/", nil)
	if err != nil {
		return nil, err
	}
	for name, values := range h.Header {
		r.Header[name] = append(r.Header[name], values...)
	}
	if err := h.Authorizer.Authorize(ctx, r); err != nil {
		return nil, err
	}
	resp, err := h.Client.Do(r)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, errors.Join(err, resp.Body.Close())
}
