package wait_test

import (
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/spec"
)

// web returns a pod that runs and is not ready.
func web(changes ...func(*api.Pod)) api.Pod {
	var p api.Pod
	p.Metadata.Name, p.Metadata.UID = "web", "1"
	p.Spec.Containers = []spec.Container{{Name: "app", Image: "a:1"}, {Name: "proxy", Image: "b:2"}}
	p.Status.Phase = api.PhaseRunning
	p.Status.Conditions = []api.Condition{{Type: api.PodReady, Status: "False"}, {Type: "example.org/door", Status: "Unknown"}}
	p.Status.ContainerStatuses = []api.ContainerStatus{{Name: "app", RestartCount: 3}, {Name: "proxy"}}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// check returns whether a pod meets a condition, and its error.
func check(t *testing.T, condition string, pods ...api.Pod) (wait.Outcome, []string) {
	t.Helper()
	c, err := wait.ParseCondition(condition)
	if err != nil {
		t.Fatal(err)
	}
	var met []string
	w := wait.Pods{For: c, Names: []string{"web"}, Met: func(p *api.Pod) error {
		met = append(met, p.Metadata.Name)
		return nil
	}}
	outcome, err := w.Check(pods)
	if err != nil {
		t.Error(err)
	}
	return outcome, met
}

// TestConditions checks conditions of all forms for a pod.
func TestConditions(t *testing.T) {
	for condition, want := range map[string]bool{
		"condition=Ready":                    true,
		"condition=ready=true":               true,
		"condition=Ready=False":              false,
		"condition=example.org/door":         false,
		"condition=example.org/door=unknown": true,
		"condition=none":                     false,
		"condition=none=False":               false,
		"phase=Running":                      true,
		"phase=running":                      true,
		"phase=Succeeded":                    false,
		"create":                             true,
		"Delete":                             false,
		"jsonpath={.status.phase}":           true,
		"jsonpath=.status.phase=Running":     true,
		"jsonpath={.status.phase}=running":   false,
		`jsonpath={.status.phase}="Running"`: true,
		"jsonpath={.status.phase}= Running ": true,
		"jsonpath={.status.podIP}":           false,
		"jsonpath={.status.podIP}=10.0.0.1":  false,
		"jsonpath={.status.containerStatuses[0].restartCount}=3":         true,
		"jsonpath={.status.containerStatuses[7].restartCount}=3":         false,
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`:  true,
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}=False`: false,
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}`:       true,
		"jsonpath={.status.conditions}":                                  true,
		"jsonpath={.status.message}=two  words":                          true,
	} {
		got, met := check(t, condition, web(func(p *api.Pod) { p.Status.Conditions[0].Status, p.Status.Message = "True", " two  words\n" }))
		if len(met) > 0 != want || len(got.Unmet) > 0 == want || len(got.Errors) > 0 {
			t.Errorf("%s: met by %q, outcome %+v; want met %v", condition, met, got, want)
		}
	}
}

// TestConditionErrors checks conditions that a pod cannot meet.
func TestConditionErrors(t *testing.T) {
	for condition, want := range map[string]string{
		"jsonpath={.spec.containers[*].image}": `pod "web": expression "{.spec.containers[*].image}": matches more than one value`,
		"jsonpath={.status.conditions}=True": `pod "web": expression "{.status.conditions}": is an object or a list, which cannot ` +
			`be compared with a value`,
		"jsonpath={.metadata}=True": `pod "web": expression "{.metadata}": is an object or a list, which cannot be ` +
			`compared with a value`,
		"jsonpath={.status.phase[0]}=Running":      `pod "web": expression "{.status.phase[0]}": `,
		"jsonpath={.status.containerStatuses[*]}":  `matches more than one value`,
		"jsonpath={.status.phase[?(@.a=='b')]}=xy": `pod "web": expression `,
	} {
		got, met := check(t, condition, web())
		if len(met) > 0 || len(got.Unmet) > 0 || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error(), want) {
			t.Errorf("%s: met by %q, outcome %+v; want %q", condition, met, got, want)
		}
	}
}

// TestInvalidConditions checks the errors of conditions that cannot be parsed.
func TestInvalidConditions(t *testing.T) {
	for condition, want := range map[string]string{
		"":                 `unrecognized condition: "": must be condition=NAME, `,
		"Ready":            `unrecognized condition: "Ready": must be condition=NAME, `,
		"condition":        `unrecognized condition: "condition": must be condition=NAME, `,
		"condition=":       `must be condition=NAME, `,
		"condition==True":  `must be condition=NAME, `,
		"condition=Ready=": `must be condition=NAME, `,
		"deleted":          `must be condition=NAME, `,
		"phase=Ready": `unrecognized condition: "phase=Ready": the phase must be one of Pending, Running, Succeeded, ` +
			`Failed, Unknown`,
		"phase":                   `the phase must be one of `,
		"jsonpath=":               `expression "": must be a path such as .metadata.name`,
		"jsonpath={.a":            `must be a path such as .metadata.name`,
		"jsonpath={.a}=":          `must have a value after the equals sign, such as jsonpath={.status.phase}=Running`,
		"jsonpath={.a}=''":        `must have a value after the equals sign`,
		"jsonpath={.a}=b=c":       `must have the form jsonpath=EXPRESSION or jsonpath=EXPRESSION=VALUE`,
		"jsonpath={.a[?(@.b=1)]}": `unrecognized condition: "jsonpath={.a[?(@.b=1)]}": `,
	} {
		if _, err := wait.ParseCondition(condition); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", condition, err, want)
		}
	}
}
