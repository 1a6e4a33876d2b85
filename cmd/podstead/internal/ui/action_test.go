package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestActions checks what each action does, that it does not reach another pod of the same name, and that errors are shown.
func TestActions(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	s := newSite(t, h.client, (*Server).AllowActions)
	h.create("web", "", runs)
	h.create("other", "", runs)
	uid := values(s, "/api/pods", func(l list) bool { return l.Actions && len(l.Pods) == 2 && l.Pods[1].Ready == "1/1" }).Pods[1].UID
	act := func(path, name, uid string) (int, string) {
		code, _, body := s.do(s.request(http.MethodPost, path, fmt.Sprintf(`{"name": %q, "uid": %q}`, name, uid)))
		var answer struct{ Message, Error string }
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return code, answer.Message + answer.Error
	}
	state := func() string {
		p, err := h.client.Pod(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		c := p.Status.ContainerStatuses[0]
		return fmt.Sprint(c.State.Running != nil, c.RestartCount)
	}
	for _, test := range []struct{ path, message, state string }{
		{"/api/restart", "Pod web is restarting.", "true1"},
		{"/api/stop", "Pod web is stopping.", "false1"},
		{"/api/start", "Pod web is starting.", "true2"},
	} {
		if code, message := act(test.path, "web", uid); code != http.StatusOK || message != test.message {
			t.Errorf("%s: status %d, %q", test.path, code, message)
		}
		await(t, func() bool { return strings.ReplaceAll(state(), " ", "") == test.state })
	}
	for _, path := range []string{"/api/restart", "/api/stop", "/api/start"} {
		if code, message := act(path, "web", "another"); code != http.StatusNotFound || !strings.Contains(message, `no such pod "web"`) {
			t.Errorf("%s with another UID: status %d, %q", path, code, message)
		}
		if code, message := act(path, "..", uid); code != http.StatusNotFound {
			t.Errorf("%s of ..: status %d, %q", path, code, message)
		}
		for _, body := range []string{"", "{}", `{"name": "web"}`, `{"uid": "u"}`, strings.Repeat(" ", maxBody) + "{}"} {
			if code, _, answer := s.do(s.request(http.MethodPost, path, body)); code != http.StatusBadRequest {
				t.Errorf("%s with the body %q: status %d: %s", path, body, code, answer)
			}
		}
	}
	h.stop()
	if code, message := act("/api/stop", "web", uid); code != http.StatusBadGateway {
		t.Errorf("without a daemon: status %d, %q", code, message)
	}
}

// TestActionAccess checks which requests can change a pod. Each rule has a request that only this rule rejects.
func TestActionAccess(t *testing.T) {
	t.Parallel()
	var changes atomic.Int32
	change := func(w http.ResponseWriter, r *http.Request) {
		changes.Add(1)
		sends(api.Started{NewerImages: []string{"app"}})(w, r)
	}
	c := fakeDaemon(t, map[string]http.HandlerFunc{
		"POST /v1/pods/{name}/restart": change, "POST /v1/pods/{name}/start": change, "DELETE /v1/pods/{name}": change,
	})
	s := newSite(t, c, (*Server).AllowActions)
	const body = `{"name": "web", "uid": "u"}`
	for name, test := range map[string]struct {
		method string
		change func(*http.Request)
		want   int
	}{
		"the page":        {want: http.StatusOK, change: func(*http.Request) {}},
		"no cookie":       {want: http.StatusUnauthorized, change: without("Cookie")},
		"no key":          {want: http.StatusUnauthorized, change: without(keyHeader)},
		"another key":     {want: http.StatusUnauthorized, change: with(keyHeader, s.guard.cookie)},
		"no origin":       {want: http.StatusForbidden, change: without("Origin")},
		"the null origin": {want: http.StatusForbidden, change: with("Origin", "null")},
		"another port":    {want: http.StatusForbidden, change: with("Origin", "http://127.0.0.1:1")},
		"another site":    {want: http.StatusForbidden, change: with("Origin", "http://attacker.example")},
		"DNS rebinding": {want: http.StatusForbidden, change: func(r *http.Request) {
			r.Host = "attacker.example"
			r.Header.Set("Origin", "http://attacker.example")
		}},
		"GET":               {method: http.MethodGet, want: http.StatusNotFound, change: func(*http.Request) {}},
		"PUT":               {method: http.MethodPut, want: http.StatusMethodNotAllowed, change: func(*http.Request) {}},
		"another cookie":    {want: http.StatusUnauthorized, change: with("Cookie", s.guard.cookieName+"="+s.guard.key)},
		"a wrong time zone": {want: http.StatusBadRequest, change: with(zoneHeader, "x")},
	} {
		t.Run(name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = http.MethodPost
			}
			for action := range actions {
				before := changes.Load()
				code, _, answer := s.do(s.request(method, "/api/"+action, body, test.change))
				if code != test.want || changes.Load()-before != map[bool]int32{true: 1}[code == http.StatusOK] {
					t.Errorf("%s: status %d, want %d, %d changes: %s", action, code, test.want, changes.Load()-before, answer)
				}
				if action == "start" && code == http.StatusOK && !strings.Contains(answer, "newer ones are present (containers: app)") {
					t.Errorf("start: %s", answer)
				}
			}
		})
	}
	forbidden := newSite(t, c)
	for action := range actions {
		before := changes.Load()
		if code, _, answer := forbidden.do(forbidden.request(http.MethodPost, "/api/"+action, body)); code != http.StatusNotFound ||
			changes.Load() != before {
			t.Errorf("%s without AllowActions: status %d: %s", action, code, answer)
		}
	}
}
