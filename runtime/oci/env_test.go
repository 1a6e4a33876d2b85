package oci

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "B": "$(A)", "EMPTY": "", "odd name": "o"}
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"$(A)", "1"},
		{"x$(A)y$(A)z", "x1y1z"},
		{"$(B)", "$(A)"}, // what was put in is not looked at again
		{"$(EMPTY)", ""},
		{"$(odd name)", "o"},
		{"$(NONE)", "$(NONE)"},
		{"$()", "$()"},
		{"$$(A)", "$(A)"},
		{"$$$(A)", "$1"},
		{"$$$$(A)", "$$(A)"},
		{"$", "$"},
		{"$$", "$"},
		{"$A", "$A"},
		{"${A}", "${A}"},
		{"$(A", "$(A"},
		{"$(A$(A)", "$(A$(A)"}, // the name goes up to the first closing one
		{"$($$", "$($"},
		{"a$", "a$"},
		{"$$A", "$A"},
		{"é$(A)é", "é1é"},
	} {
		if got := Expand(test.in, vars); got != test.want {
			t.Errorf("Expand(%q): got %q, want %q", test.in, got, test.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		name  string
		image []string
		env   []spec.EnvVar
		want  []string
	}{
		{"nothing set", nil, nil, []string{defaultPath, "HOSTNAME=h"}},
		{"the image overrides the default", []string{"PATH=/bin", "X=1"}, nil, []string{"PATH=/bin", "HOSTNAME=h", "X=1"}},
		{
			"the container overrides the image",
			[]string{"X=1"},
			[]spec.EnvVar{{Name: "X", Value: "2"}, {Name: "HOSTNAME", Value: "i"}},
			[]string{defaultPath, "HOSTNAME=i", "X=2"},
		},
		{
			"a value sees the ones before it, not the image's",
			[]string{"I=1"},
			[]spec.EnvVar{{Name: "A", Value: "$(B)$(I)"}, {Name: "B", Value: "2"}, {Name: "C", Value: "$(B)$(HOSTNAME)"}},
			[]string{defaultPath, "HOSTNAME=h", "I=1", "A=$(B)$(I)", "B=2", "C=2$(HOSTNAME)"},
		},
		{
			"of two the later one counts, and sees the earlier one", nil,
			[]spec.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, {Name: "A", Value: "$(A)2"}},
			[]string{defaultPath, "HOSTNAME=h", "A=12", "B=1"},
		},
		{"a variable without a value sets nothing", []string{"FLAG", "E="}, nil, []string{defaultPath, "HOSTNAME=h", "E="}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, environment("h", test.image, test.env)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	entrypoint, cmd := []string{"entry", "-e"}, []string{"cmd", "$(A)"}
	for _, test := range []struct {
		name      string
		container spec.Container
		want      []string
	}{
		{"neither", spec.Container{}, []string{"entry", "-e", "cmd", "$(A)"}},
		{"command drops the image's arguments", spec.Container{Command: []string{"c"}}, []string{"c"}},
		{"args replace the image's", spec.Container{Args: []string{"a"}}, []string{"entry", "-e", "a"}},
		{"both", spec.Container{Command: []string{"c"}, Args: []string{"a"}}, []string{"c", "a"}},
		{
			"expanded, where the pod file wrote them",
			spec.Container{Command: []string{"c$(A)"}, Args: []string{"$$(A)", "$(B)"}, Env: []spec.EnvVar{{Name: "A", Value: "1"}}},
			[]string{"c1", "$(A)", "$(B)"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, arguments(&test.container, entrypoint, cmd)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
