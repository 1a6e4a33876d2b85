package server

import (
	"encoding/json"
	"net/http"

	"github.com/podstead/podstead/api"
)

// login checks and saves credentials. No message contains the body.
func (s *Server) login(r *http.Request) (any, error) {
	var q api.LoginRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: invalid JSON")
	}
	switch {
	case q.Registry == "":
		return nil, invalidField("registry", "registry: required")
	case q.Username == "":
		return nil, invalidField("username", "username: required")
	case q.Password == "":
		return nil, invalidField("password", "password: required")
	}
	name, err := s.o.Images.Login(r.Context(), q)
	return api.Registry{Name: name}, err
}

func (s *Server) logout(r *http.Request) (any, error) {
	var q api.LogoutRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, failure(http.StatusBadRequest, "read request: invalid JSON")
	}
	if q.Registry == "" {
		return nil, invalidField("registry", "registry: required")
	}
	name, err := s.o.Images.Logout(r.Context(), q.Registry)
	return api.Registry{Name: name}, err
}
