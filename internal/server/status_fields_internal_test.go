package server

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

const podWithEverything = `
name = "web"
restartPolicy = "Always"
resources.limits.cpu = "1"

[[initContainers]]
name = "init"
image = "init:1"

[[initContainers]]
name = "sidecar"
image = "sidecar:1"
restartPolicy = "Always"

[[containers]]
name = "app"
image = "app:1"
resources.limits.memory = "64Mi"

[[containers]]
name = "missing"
image = "missing:1"
`

// TestStatusFields checks the rows of the status in docs/pod-api.md: the JSON of pods in simulated worlds has the fields that are filled,
// none that is never filled, and no other. TestPodAPI of test/repo checks that the page has all fields of the API.
func TestStatusFields(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	pod, problems := spec.Accept("web.toml", []byte(podWithEverything))
	if pod == nil {
		t.Fatal(problems)
	}
	w := lifecycletest.New(pod, lifecycletest.Script{
		Pulls: map[string][]lifecycletest.Start{"missing": {{Failure: &lifecycle.Failure{Message: "not found"}}}},
		Runs: map[string][]lifecycletest.Run{"app": {
			{Lasts: time.Second, Exit: lifecycle.Exit{Code: 1, Reason: lifecycle.ReasonError, Message: "no such file"}},
		}},
	})
	var conditions []lifecycle.Condition
	w.Observe = func(s lifecycletest.Step) {
		status := lifecycle.StatusOf(s.Pod, s.After, s.Now).Since(conditions, s.Now)
		conditions = status.Conditions
		p := podOf(&supervisor.Snapshot{Pod: s.Pod, Facts: s.After, Status: status}, []api.PodIP{{IP: "192.0.2.1"}})
		text, err := json.Marshal(p.Status)
		if err != nil {
			t.Fatal(err)
		}
		var object any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		collect(found, "status", object)
	}
	w.At(20*time.Second, func() { w.AddEphemeral("debug") })
	w.At(time.Minute, w.Evict)
	if err := w.Run(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/pod-api.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(status\\.[^`]*)` \\| (filled|never filled: .*) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) == 0 {
		t.Fatal("the page has no rows")
	}
	for _, row := range rows {
		if filled := row[2] == "filled"; filled != found[row[1]] {
			t.Errorf("%s: the page has %q, pods have it: %v", row[1], row[2], !filled)
		}
		delete(found, row[1])
	}
	for path := range found {
		t.Errorf("%s is not a field of the API", path)
	}
}

// amounts are tables with the names of resources.
var amounts = regexp.MustCompile(`\.(allocatedResources|limits|requests)$`)

// collect adds the paths of the fields of a value in JSON that are no tables, as on the page.
func collect(found map[string]bool, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			to := path + "." + name
			switch {
			case amounts.MatchString(path):
				to = path
			case name == "lastState":
				found[to], to = true, path+".state"
			case name == "initContainerStatuses" || name == "ephemeralContainerStatuses":
				found[to], to = true, path+".containerStatuses"
			}
			collect(found, to, inner)
		}
	case []any:
		for _, inner := range v {
			if _, table := inner.(map[string]any); table {
				collect(found, path+"[]", inner)
			} else {
				found[path] = true
			}
		}
	default:
		found[path] = true
	}
}
