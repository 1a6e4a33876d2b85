package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestRedactIsForRoot: a client without the rights of the daemon could find out values by trial.
func TestRedactIsForRoot(t *testing.T) {
	stranger := peer{uid: uint32(os.Geteuid()) + 1}
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), peerKey{}, stranger), http.MethodPost, "/v1/redact",
		strings.NewReader(`{"texts":["a"]}`))
	_, err := (&Server{}).redact(r)
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusForbidden {
		t.Errorf("error %v", err)
	}
	r = httptest.NewRequestWithContext(context.WithValue(t.Context(), peerKey{}, peer{}), http.MethodPost, "/v1/redact",
		strings.NewReader("{"))
	_, err = (&Server{}).redact(r)
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Status != http.StatusBadRequest {
		t.Errorf("invalid request: %v", err)
	}
}
