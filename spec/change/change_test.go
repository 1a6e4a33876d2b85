package change_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/spec/change/changetest"
)

// accept parses a pod file in a directory.
func accept(t *testing.T, dir, text string) *spec.Pod {
	t.Helper()
	pod, problems := spec.Accept(filepath.Join(dir, "pair.toml"), []byte(text))
	if pod == nil {
		t.Fatalf("%v\n%s", problems, text)
	}
	return pod
}

// roundTrip returns a pod as it comes from a state file.
func roundTrip(t *testing.T, pod *spec.Pod) *spec.Pod {
	t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var back spec.Pod
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back.WithSecretValues(pod.SecretValues())
}

var indexes = regexp.MustCompile(`\[\d+\]`)

// TestPairs checks for every field that a change of it, and of nothing else, is found with its effect, also after a JSON round trip.
func TestPairs(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range changetest.Pairs() {
		t.Run(p.Field, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range p.Files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before, after := accept(t, dir, p.Before), accept(t, dir, p.After)
			changes := change.Between(before, after)
			if len(changes) == 0 || change.Largest(changes) != p.Effect {
				t.Errorf("%v, want %v\n--- before\n%s--- after\n%s", changes, p.Effect, p.Before, p.After)
			}
			if diff := cmp.Diff(changes, change.Between(roundTrip(t, before), roundTrip(t, after))); diff != "" {
				t.Errorf("after a JSON round trip (-want +got):\n%s", diff)
			}
			for _, pod := range []*spec.Pod{before, after} {
				back := roundTrip(t, pod)
				back.Hash = "" // compare the fields
				if found := change.Between(back, pod); len(found) > 0 {
					t.Errorf("the definition differs from itself: %v", found)
				}
			}
			for _, c := range changes {
				seen[rowOf(t, c)+" "+c.Effect.String()] = true
			}
		})
	}
	for _, r := range change.Rows() {
		if r.Field == "containers[].name" {
			continue // a container that is removed and another one that is added
		}
		if !seen[r.Field+" "+r.Effect.String()] || r.If != "" && !seen[r.Field+" "+r.Larger.String()] {
			t.Errorf("no pair for each effect of %s", r.Field)
		}
	}
}

// rowOf returns the field of the row of a change.
func rowOf(t *testing.T, c change.Change) string {
	t.Helper()
	field := indexes.ReplaceAllString(c.Path, "[]")
	field = strings.Replace(field, "initContainers[].", "containers[].", 1)
	switch field {
	case "containers[]", "initContainers[]":
		field = strings.TrimSuffix(field, "[]")
	}
	for _, name := range []string{"labels", "annotations"} {
		if strings.HasPrefix(field, name+".") {
			field = name
		}
	}
	row, ok := change.RowOf(field)
	if !ok {
		t.Errorf("%s has no row", c.Path)
	}
	return row.Field
}

// noPair are fields that have only one valid value.
var noPair = []string{
	"containers[].env[].valueFrom.fieldRef.apiVersion",
	"containers[].livenessProbe.successThreshold", "containers[].startupProbe.successThreshold",
	"containers[].readinessProbe.terminationGracePeriodSeconds",
	"volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion", "volumes[].downwardAPI.items[].fieldRef.apiVersion",
}

// TestFields checks that every field of a pod file has a row and a pair, and that there are no others.
func TestFields(t *testing.T) {
	fields, pairs := leaves(reflect.TypeFor[spec.Pod](), ""), changetest.Fields()
	for _, field := range fields {
		if _, ok := change.RowOf(field); !ok {
			t.Errorf("%s has no row: add its effect to the table", field)
		}
		if slices.Contains(noPair, field) == slices.Contains(pairs, field) {
			t.Errorf("%s has no pair, or is in noPair: add a pair", field)
		}
	}
	isField := func(name string) bool {
		return slices.ContainsFunc(append(fields, "containers", "initContainers"), func(field string) bool {
			return field == name || strings.HasPrefix(field, name+".") || strings.HasPrefix(field, name+"[")
		})
	}
	for _, name := range pairs {
		if !isField(name) {
			t.Errorf("the pair of %s is not of a field", name)
		}
	}
	for _, r := range change.Rows() {
		if !isField(r.Field) {
			t.Errorf("the row of %s is not of a field", r.Field)
		}
		if r.Why == "" || (r.If == "") != (r.Larger == 0) {
			t.Errorf("the row of %s is not complete", r.Field)
		}
	}
}

// leaves returns the fields with a value, with the path of their table.
func leaves(in reflect.Type, prefix string) []string {
	var fields []string
	for f := range in.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Tag.Get("podfile") == "-" || prefix+name == "initContainers" {
			continue
		}
		at, kind := prefix+name, f.Type
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
			if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct {
				at += "[]"
			}
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct && kind != reflect.TypeFor[spec.Quantity]() && kind != reflect.TypeFor[spec.Port]() {
			fields = append(fields, leaves(kind, at+".")...)
			continue
		}
		fields = append(fields, at)
	}
	return fields
}

// TestRelocatedPairs checks that a pod file that [spec.Relocate] has made independent of its directory is no change.
func TestRelocatedPairs(t *testing.T) {
	const file, other = "/srv/shop/pair.toml", "/etc/podstead/pods.d/pair.toml"
	for _, p := range changetest.Pairs() {
		if p.Files == nil && p.Field != "imageArchives" {
			continue // no relative path
		}
		for _, text := range []string{p.Before, p.After} {
			before, problems := spec.Parse(file, []byte(text))
			moved, err := spec.Relocate(file, []byte(text))
			if before == nil || err != nil {
				t.Fatalf("%v, %v\n%s", problems, err, text)
			}
			after, problems := spec.Parse(other, moved)
			if after == nil {
				t.Fatalf("%v\n%s", problems, moved)
			}
			if found := change.Between(before, after); len(found) > 0 {
				t.Errorf("%v\n%s", found, moved)
			}
			after.Hash = "" // compare the fields
			if found := change.Between(before, after); len(found) > 0 {
				t.Errorf("%v\n%s", found, moved)
			}
		}
	}
}

// TestDefaultPolicy checks that the pull policy that a container has without one is no change.
func TestDefaultPolicy(t *testing.T) {
	parse := func(image, policy string) *spec.Pod {
		pod, problems := spec.Parse("web.toml", []byte("[[containers]]\nname = \"a\"\nimage = \""+image+"\"\n"+policy))
		if pod == nil {
			t.Fatal(problems)
		}
		return pod
	}
	for _, test := range []struct {
		image, policy string
		changes       int
	}{{"nginx:1.27", "IfNotPresent", 0}, {"nginx:1.27", "Always", 1}, {"nginx", "IfNotPresent", 1}, {"nginx", "Always", 1}} {
		changes := change.Between(parse(test.image, ""), parse(test.image, "imagePullPolicy = \""+test.policy+"\"\n"))
		if len(changes) != test.changes {
			t.Errorf("%s with %s: %v, want %d changes", test.image, test.policy, changes, test.changes)
		}
	}
}
