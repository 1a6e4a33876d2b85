package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

func TestUnpublished(t *testing.T) {
	for _, test := range []struct {
		name, host string
		published  bool
	}{
		{"web", "edge-7", true},
		{"runsc", "edge-7", true},
		{"runsc", "edge-7 runsc", false}, // in /etc/hosts
		{"web", "", true},
		{"kubernetes-dashboard", "edge-7", true},
		{"edge", "edge-7", true},
		{"mirror.example.org", "edge-7", false},
		{"registry.example.com", "", false},
		{"host.docker.internal", "", false},
		{"kubernetes", "", false},
		{"metadata", "", false},
		{"localhost", "", false},
		{"edge-7", "edge-7", false},
		{"edge-7", "Edge-7", false},
	} {
		if why := spec.Unpublished(test.name, strings.Fields(test.host)); (why == "") != test.published {
			t.Errorf("%s on host %q: %q, want published %v", test.name, test.host, why, test.published)
		}
	}
}

// TestUnpublishedNames: a pod with a name that others do not see is valid, and its file has a warning.
func TestUnpublishedNames(t *testing.T) {
	for text, want := range map[string]string{
		`name = "web"`: "",
		`name = "mirror.example.org"`: `web.toml:1:8: name: other pods cannot reach the pod by the name "mirror.example.org": ` +
			`it has a dot, so it may be the name of another host`,
		`name = "web"` + "\n" + `hostname = "kubernetes"`: `web.toml:2:12: hostname: ` +
			`other pods cannot reach the pod by the name "kubernetes": it has a meaning in clusters or networks`,
	} {
		pod, problems := spec.Parse("web.toml", []byte(text+"\n[[containers]]\nname = \"c\"\nimage = \"i\"\n"))
		if pod == nil || problems.Error() != want || len(problems.Errors()) > 0 {
			t.Errorf("%s: %q, want the warning %q", text, problems.Error(), want)
		}
	}
}

func TestHiddenNames(t *testing.T) {
	pods := []*spec.Pod{
		{Name: "web", Hostname: "db"},
		{Name: "db"},
		{Name: "b", Hostname: "edge-7"},
		{Name: "d", Hostname: "shared"},
		{Name: "c", Hostname: "shared"},
		{Name: "mirror.example.org", Hostname: "mirror"},
		{Name: "same", Hostname: "same"},
	}
	want := []spec.HiddenName{
		{"web", "db", "another pod is named so"},
		{"b", "edge-7", "it is the hostname of this host, or in its /etc/hosts"},
		{"d", "shared", `pod "c" has the same hostname`},
		{"mirror.example.org", "mirror.example.org", "it has a dot, so it may be the name of another host"},
	}
	if diff := cmp.Diff(want, spec.HiddenNames(pods, []string{"edge-7"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
