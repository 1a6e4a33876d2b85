package connect

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// The request is valid for the parser of ephemeral containers, with any text in its strings.
func TestDebuggerRequest(t *testing.T) {
	pod := &spec.Pod{Name: "web", Containers: []spec.Container{{Name: "app", Image: "a:1"}}}
	const text = "a \"b\" \\ \n\t\x01\x7f <é>"
	c := Debugger{
		Name: "look", Image: "b:1", Target: "app", Command: []string{"sh", "-c", text}, Env: []string{"A=" + text, "B="},
		Stdin: true, TTY: true, Archive: "busybox.tar",
	}
	q, name, err := c.Request()
	if err != nil || name != "look" {
		t.Fatal(name, err)
	}
	if len(q.ImageArchives) != 1 || !strings.HasPrefix(q.ImageArchives[0], "/") || !strings.HasSuffix(q.ImageArchives[0], "/busybox.tar") {
		t.Errorf("archives %q", q.ImageArchives)
	}
	got, problems := spec.ParseEphemeral(q.File, []byte(q.Text), pod)
	if got == nil {
		t.Fatalf("%v in\n%s", problems, q.Text)
	}
	if got.Name != "look" || got.Image != "b:1" || got.TargetContainerName != "app" || got.Command[2] != text ||
		got.Env[0] != (spec.EnvVar{Name: "A", Value: text}) || !got.Stdin || got.StdinOnce || !got.TTY {
		t.Errorf("%+v", got)
	}
}

func TestDebuggerDefaults(t *testing.T) {
	c := Debugger{Stdin: true}
	q, name, err := c.Request()
	if err != nil {
		t.Fatal(err)
	}
	got, problems := spec.ParseEphemeral(q.File, []byte(q.Text), &spec.Pod{Name: "web"})
	if got == nil {
		t.Fatal(problems)
	}
	if !strings.HasPrefix(name, "debugger-") || got.Name != name || got.Image != DebuggerImage || got.Command != nil || !got.StdinOnce ||
		q.ImageArchives != nil {
		t.Errorf("%+v, archives %v", got, q.ImageArchives)
	}
	for _, env := range []string{"A", "=1", ""} {
		if _, _, err := (&Debugger{Env: []string{env}}).Request(); err == nil {
			t.Errorf("--env %q was accepted", env)
		}
	}
}

// Only the general profile adds a capability, and only to look into a target.
func TestDebuggerProfiles(t *testing.T) {
	pod := &spec.Pod{Name: "web", Containers: []spec.Container{{Name: "app", Image: "a:1"}}}
	for _, test := range []struct{ profile, target, added, dropped string }{
		{"", "", "", ""},
		{"", "app", "SYS_PTRACE", ""},
		{"general", "app", "SYS_PTRACE", ""},
		{"baseline", "app", "", ""},
		{"restricted", "app", "", "ALL"},
	} {
		q, _, err := (&Debugger{Profile: test.profile, Target: test.target}).Request()
		if err != nil {
			t.Fatal(err)
		}
		c, problems := spec.ParseEphemeral(q.File, []byte(q.Text), pod)
		if c == nil {
			t.Fatalf("%+v: %v", test, problems)
		}
		var added, dropped string
		if c.SecurityContext != nil && c.SecurityContext.Capabilities != nil {
			added, dropped = strings.Join(c.SecurityContext.Capabilities.Add, " "), strings.Join(c.SecurityContext.Capabilities.Drop, " ")
		}
		if added != test.added || dropped != test.dropped {
			t.Errorf("%+v: adds %q, drops %q", test, added, dropped)
		}
	}
	if _, _, err := (&Debugger{Profile: "x"}).Request(); err == nil || !strings.Contains(err.Error(), "general, baseline, restricted") {
		t.Errorf("unknown profile: %v", err)
	}
}

// changes is a watch that yields these changes and then ends.
type changes []api.PodChange

func (c changes) Watch(context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) {
		for _, change := range c {
			if !yield(change, nil) {
				return
			}
		}
		yield(api.PodChange{}, errors.New("end of the watch"))
	}
}

func change(uid string, s api.ContainerState) api.PodChange {
	c := api.PodChange{Type: "MODIFIED"}
	c.Object.Metadata.UID = uid
	c.Object.Status.EphemeralContainerStatuses = []api.ContainerStatus{{Name: "other"}, {Name: "look", State: s}}
	return c
}

func waiting(r api.Reason) api.ContainerState {
	return api.ContainerState{Waiting: &api.Waiting{Reason: r, Message: "because"}}
}

func TestAwaitDebugger(t *testing.T) {
	running := api.ContainerState{Running: &api.Running{}}
	exited := api.ContainerState{Terminated: &api.Terminated{ExitCode: 3}}
	pulling := change("u", waiting(api.ReasonContainerCreating))
	gone := pulling
	gone.Type = api.Deleted
	for name, test := range map[string]struct {
		changes changes
		want    string // in the error
		hint    bool
	}{
		"running": {changes: changes{change("v", exited), pulling, change("u", running)}},
		"exited":  {changes: changes{change("u", api.ContainerState{}), change("u", exited)}},
		"no image": {
			changes{pulling, change("u", waiting(api.ReasonErrImagePull))}, `start debug container "look": ErrImagePull: because`, true,
		},
		"not created": {
			changes{pulling, change("u", waiting(api.ReasonCreateConfigError))}, "CreateContainerConfigError: because", false,
		},
		"deleted":         {changes{pulling, gone}, "the pod was deleted", false},
		"deleted before":  {changes{change("v", running), {Type: api.Listed}}, "the pod was deleted", false},
		"connection lost": {changes{pulling, {Type: api.Listed}}, "end of the watch", false},
	} {
		state, err := AwaitDebugger(t.Context(), test.changes, "u", "look")
		if test.want == "" && (err != nil || state.Running == nil && state.Terminated == nil) ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
		if e, ok := errors.AsType[*StartError](err); ok && (e.HintFor("/images") != "") != test.hint {
			t.Errorf("%s: hint %q", name, e.HintFor("/images"))
		}
	}
}
