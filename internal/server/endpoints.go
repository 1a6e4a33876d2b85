package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

// Endpoint is a row of the table of endpoints. The server is built from the table, and docs/reference/api.md and
// docs/reference/openapi.json are generated from it.
type Endpoint struct {
	Method string
	// Path is the pattern of the path, as in package net/http.
	Path string
	// Summary says what a request does, as a verb phrase.
	Summary string
	// Details are further sentences.
	Details string
	Query   []Parameter
	// Request and Response are zero values of the types in the bodies; nil: the body is empty, or an empty object.
	Request, Response any
	// Stream is a zero value of the type of each line, if the response can be a stream; nil: it is never one.
	Stream any
	// Body and Content are the media types of a request and a response that are not JSON; empty: they are.
	Body, Content string
	// Upgrade is the protocol to which a request switches the connection; empty: it does not.
	Upgrade string
	// ReadOnly reports that the endpoint changes nothing, and shows no more than the read-only socket may.
	ReadOnly bool
	// Routine reports that clients repeat the request by themselves, so that it is no news in the log.
	Routine bool
	// Reasons are the reasons of errors, beside those that every endpoint has.
	Reasons []api.ErrorReason

	// One of these serves the request. serve returns an error only if it has sent nothing: the error is the response.
	call  func(*Server, *http.Request) (any, error)
	serve func(*Server, http.ResponseWriter, *http.Request) error
	// limit bounds the call; 0: [api.CallTimeout].
	limit time.Duration
}

// Parameter is a query parameter. A request with a parameter that its endpoint does not have is rejected.
type Parameter struct {
	Name        string
	Type        ParameterType
	Repeated    bool // it can be given several times
	Description string
}

// ParameterType is the type of a [Parameter].
type ParameterType string

// The types of parameters.
const (
	Boolean   ParameterType = "boolean"   // true or false; without a value true, or refused if something would be deleted
	Integer   ParameterType = "integer"   // not negative
	Text      ParameterType = "string"    //
	Timestamp ParameterType = "date-time" // in RFC 3339
	Duration  ParameterType = "duration"  // such as 1m30s
	JSON      ParameterType = "json"      // a JSON value
)

// Pattern returns the pattern of the endpoint in an [http.ServeMux].
func (e *Endpoint) Pattern() string { return e.Method + " " + e.Path }

// commonReasons are the reasons that every endpoint has.
var commonReasons = []api.ErrorReason{api.ReasonBadRequest, api.ReasonForbidden, api.ReasonTooManyRequests, api.ReasonInternalError}

// AllReasons returns the reasons of errors of the endpoint, those of every endpoint first.
func (e *Endpoint) AllReasons() []api.ErrorReason { return slices.Concat(commonReasons, e.Reasons) }

// newMux returns a mux with all endpoints.
func (s *Server) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, e := range Endpoints() {
		serve := func(w http.ResponseWriter, r *http.Request) {
			if err := e.serve(s, w, r); err != nil {
				s.reply(w, r, nil, err)
			}
		}
		if e.call != nil {
			serve = s.handleWithin(cmp.Or(e.limit, api.CallTimeout), func(r *http.Request) (any, error) { return e.call(s, r) })
		}
		mux.HandleFunc(e.Pattern(),
			s.logged(e.Method == http.MethodGet && e.Upgrade == "" || e.Routine, func(w http.ResponseWriter, r *http.Request) {
				boundBody(w, r)
				err := e.check(r)
				if isReadOnly(r) && !e.ReadOnly {
					err = s.forbidden(&e)
				}
				if err != nil {
					s.reply(w, r, nil, err)
					return
				}
				serve(w, r)
			}))
	}
	mux.HandleFunc("/", s.logged(true, s.handle(func(r *http.Request) (any, error) {
		return nil, failure(http.StatusNotFound, api.UnknownEndpoint+"%s %s", r.Method, clipped(r.URL.Path))
	})))
	return mux
}

// check rejects a request with parameters that the endpoint does not have.
func (e *Endpoint) check(r *http.Request) error {
	q := r.URL.Query()
	for name, values := range q {
		i := slices.IndexFunc(e.Query, func(p Parameter) bool { return p.Name == name })
		if i >= 0 && (len(values) == 1 || e.Query[i].Repeated) {
			continue
		}
		err := failure(http.StatusBadRequest, api.UnknownParameter+"%q of %s", clipped(name), e.Pattern())
		if i >= 0 {
			err.Message = "parameter \"" + name + "\": must not be repeated"
		}
		err.Field = name
		if known := e.parameters(); known != "" && i < 0 {
			err.Hint = "use one of " + known
		}
		return err
	}
	return nil
}

// parameters returns the names of the parameters.
func (e *Endpoint) parameters() string {
	var names []string
	for _, p := range e.Query {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}
