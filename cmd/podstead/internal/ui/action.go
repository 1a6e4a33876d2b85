package ui

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

// actionTimeout bounds a request that changes a pod. The daemon answers when it has saved it.
const actionTimeout = time.Minute

// action is a request that changes a pod.
type action struct {
	do   func(ctx context.Context, c *client.Client, name, uid string) (api.Started, error)
	done string // for people, after the name of the pod
}

var actions = map[string]action{
	"restart": {func(ctx context.Context, c *client.Client, name, uid string) (api.Started, error) {
		return c.Restart(ctx, name, uid, "")
	}, "is restarting"},
	"start": {func(ctx context.Context, c *client.Client, name, uid string) (api.Started, error) {
		return c.Start(ctx, name, uid)
	}, "is starting"},
	"stop": {func(ctx context.Context, c *client.Client, name, uid string) (api.Started, error) {
		return api.Started{}, c.Stop(ctx, name, client.StopOptions{UID: uid})
	}, "is stopping"},
}

// AllowActions lets the page restart, stop and start pods, and open terminals in their containers. Without it there are no routes for that.
// Call it before [Server.Serve].
func (s *Server) AllowActions() {
	s.actions = true
	s.guard.policy += "; frame-src 'self'" // that of a terminal
	s.mux.HandleFunc("GET /terminal/", terminalFile)
	s.mux.HandleFunc("GET /api/exec", s.terminal)
	for name, a := range actions {
		s.mux.HandleFunc("POST /api/"+name, func(w http.ResponseWriter, r *http.Request) { s.act(w, r, &a) })
	}
}

// act does an action. The body has the name of the pod and, so that no other pod of the name is changed, its UID.
func (s *Server) act(w http.ResponseWriter, r *http.Request, a *action) {
	var pod struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	}
	if err := json.NewDecoder(r.Body).Decode(&pod); err != nil || pod.Name == "" || pod.UID == "" {
		refuse(w, http.StatusBadRequest, "the body must have the name and the uid of a pod")
		return
	}
	if err := live.MayExist(pod.Name); err != nil {
		fail(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
	defer cancel()
	result, err := a.do(ctx, s.client, pod.Name, pod.UID)
	if err != nil {
		fail(w, err)
		return
	}
	message := "Pod " + pod.Name + " " + a.done + "."
	if len(result.NewerImages) > 0 {
		message += " It keeps its images, newer ones are present (containers: " + strings.Join(result.NewerImages, ", ") + ")."
	}
	answer(w, map[string]string{"message": message})
}
