package explain_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/explain"
)

// words returns the values of the constants of a type of package api.
func words(t *testing.T, typ string) (list []string) {
	t.Helper()
	source, err := os.ReadFile("../../api/explanation.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\b`+typ+`\s+= "(\w+)"`).FindAllSubmatch(source, -1) {
		list = append(list, string(m[1]))
	}
	if len(list) < 5 {
		t.Fatalf("type %s has the values %q", typ, list)
	}
	return list
}

// TestRenderInconsistent renders explanations whose parts do not fit, or are missing, as another version of the daemon can have them: each
// state with each cause, without an exit, without its container, and with restarts of unknown causes.
func TestRenderInconsistent(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	kinds := append(words(t, "CauseKind"), "ofALaterVersion")
	exits := []*api.ContainerExit{nil, {Code: 1}, {}}
	containers := [][]api.ExplainedContainer{nil}
	for _, state := range append(words(t, "ExplainedContainerState"), "") {
		for _, causes := range [][]api.RestartCause{nil, {{Count: 1}}, {{Count: 1, Cause: &api.Cause{}}, {Count: 1}}} {
			c := api.ExplainedContainer{Name: "app", State: api.ExplainedContainerState(state), Restarts: 3, RestartCauses: causes}
			containers = append(containers, []api.ExplainedContainer{c}, []api.ExplainedContainer{c, {Name: "b"}})
		}
	}
	for _, state := range append(words(t, "PodState"), "") {
		e := api.Explanation{Pod: "web", State: api.PodState(state)}
		if explain.Render(&e, now); e.Text == "" {
			t.Errorf("state %q without a cause has no text", state)
		}
		for _, kind := range kinds {
			for _, exit := range exits {
				for _, list := range containers {
					e := api.Explanation{Pod: "web", State: api.PodState(state), Containers: list}
					e.Cause = &api.Cause{Kind: api.CauseKind(kind), Container: "app", Exit: exit}
					func() {
						defer func() {
							if p := recover(); p != nil {
								t.Fatalf("state %q, cause %q, exit %v, containers %+v: %v", state, kind, exit, list, p)
							}
						}()
						explain.Render(&e, now)
					}()
					if e.Text == "" {
						t.Fatalf("state %q, cause %q: no text", state, kind)
					}
				}
			}
		}
	}
}
