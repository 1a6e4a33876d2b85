package spec_test

import (
	"slices"
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
		`name = "web"` + "\n" + `annotations."podstead.io/aliases" = "my_db, DB2 cache"`: "",
		`name = "web"` + "\n" + `annotations."podstead.io/aliases" = "a_b,Metadata"`: `web.toml:2:37: annotations."podstead.io/aliases": ` +
			`other pods cannot reach the pod by the name "Metadata": it has a meaning in clusters or networks`,
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
		{Name: "x", Annotations: map[string]string{spec.AliasesAnnotation: "a_b, DB"}},
		{Name: "y", Annotations: map[string]string{spec.AliasesAnnotation: "c_d A_B y"}},
	}
	want := []spec.HiddenName{
		{"web", "db", "another pod is named so"},
		{"b", "edge-7", "it is the hostname of this host, or in its /etc/hosts"},
		{"d", "shared", `pod "c" has the same hostname`},
		{"mirror.example.org", "mirror.example.org", "it has a dot, so it may be the name of another host"},
		{"x", "DB", "another pod is named so"},
		{"y", "A_B", `pod "x" has the same name`},
	}
	if diff := cmp.Diff(want, spec.HiddenNames(pods, []string{"edge-7"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAliases checks which aliases are valid.
func TestAliases(t *testing.T) {
	for aliases, want := range map[string]string{
		"a_b, A-1 a_b":          "",
		" , ":                   "must have between 1 and 32 names, found 0",
		"a.b":                   `Invalid value: "a.b": must be at most 63 letters, digits, - and _`,
		"-a":                    `Invalid value: "-a": must be at most 63 letters, digits, - and _`,
		"LocalHost":             `Invalid value: "LocalHost": is reserved for the host`,
		strings.Repeat("a", 64): `Invalid value: "` + strings.Repeat("a", 64) + `": must be at most 63 letters, digits, - and _`,
	} {
		text := "annotations.\"podstead.io/aliases\" = \"" + aliases + "\"\n[[containers]]\nname = \"c\"\nimage = \"i\"\n"
		pod, problems := spec.Parse("web.toml", []byte(text))
		if want != "" {
			want = `web.toml:1:37: annotations."podstead.io/aliases": ` + want
		}
		if problems.Error() != want {
			t.Errorf("%q: %q, want %q", aliases, problems.Error(), want)
		}
		if pod != nil && !slices.Equal(pod.Aliases(), []string{"a_b", "A-1"}) {
			t.Errorf("%q: aliases %q", aliases, pod.Aliases())
		}
	}
}
