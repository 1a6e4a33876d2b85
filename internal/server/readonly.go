package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
)

// forbidden is the response of the read-only socket to a request for an endpoint that it does not have.
func (s *Server) forbidden(e *Endpoint) error {
	err := failure(http.StatusForbidden, "%s is not allowed over the read-only socket", e.Pattern())
	err.Hint = "use the socket " + cmp.Or(s.o.Socket, "of the daemon") + " as root or as a member of group " + Group
	return err
}

// visible returns what the client of a request may see of pods. Environment variables often have passwords. Values of secrets are never
// part of a response.
func visible(r *http.Request, pods []api.Pod) []api.Pod {
	if !isReadOnly(r) {
		return pods
	}
	for i := range pods {
		p := &pods[i].Spec.Pod
		p.CloneContainers() // the definition is shared
		for c := range p.EveryContainer() {
			c.Env = slices.Clone(c.Env)
			for v := range c.Env {
				if c.Env[v].Value != "" {
					c.Env[v].Value = api.Hidden
				}
			}
		}
	}
	return pods
}

// visibleRollout returns what the client of a request may see of the generations of a pod.
func visibleRollout(r *http.Request, rollout api.Rollout) api.Rollout {
	if !isReadOnly(r) {
		return rollout
	}
	for i := range rollout.Generations {
		changes := slices.Clone(rollout.Generations[i].Changes)
		for c := range changes {
			if path := changes[c].Path; strings.Contains(path, "].env") {
				changes[c].Old, changes[c].New, changes[c].Diff = hiddenValue(changes[c].Old), hiddenValue(changes[c].New), ""
			}
		}
		rollout.Generations[i].Changes = changes
	}
	return rollout
}

func hiddenValue(value string) string {
	if value == "" {
		return ""
	}
	return api.Hidden
}
