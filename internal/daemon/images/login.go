package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/credentials"
)

// Login implements [server.Images].
func (i *Images) Login(ctx context.Context, q api.LoginRequest) (string, error) {
	const operation = "log in to"
	registry, err := registryOf(operation, q.Registry)
	if err != nil {
		return "", err
	}
	err = i.store.Login(ctx, registry, credentials.Login{Username: q.Username, Password: q.Password})
	return registry, loginFailure(operation, registry, err)
}

// Logout implements [server.Images].
func (i *Images) Logout(ctx context.Context, name string) (string, error) {
	const operation = "log out of"
	registry, err := registryOf(operation, name)
	if err != nil {
		return "", err
	}
	return registry, loginFailure(operation, registry, i.store.Logout(ctx, registry))
}

func registryOf(operation, text string) (string, error) {
	registry, err := credentials.Registry(text)
	if err != nil {
		return "", &api.Error{Status: http.StatusBadRequest, Field: "registry", Message: fmt.Sprintf("%s %q: %v", operation, text, err)}
	}
	return registry, nil
}

// loginFailure returns the response for an error of the store; nil for nil.
func loginFailure(operation, registry string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	e := &api.Error{Status: http.StatusBadGateway, Message: fmt.Sprintf("%s %q: %v", operation, registry, err)}
	switch {
	case errors.Is(err, image.ErrUnauthorized):
		e.Status = http.StatusForbidden
	case errors.Is(err, credentials.ErrNotLoggedIn):
		e.Status = http.StatusNotFound
	case errors.Is(err, credentials.ErrFile):
		e.Status = http.StatusInternalServerError
	}
	return e
}
