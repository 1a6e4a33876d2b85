package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

// TestEnvironmentOfDevices: a device knows where its files are, whatever the container sets.
func TestEnvironmentOfDevices(t *testing.T) {
	got := environment("h", nil, resolved(t, []spec.EnvVar{{Name: "LIB", Value: "/a"}}), []string{"LIB=/b", "GPU=0"})
	if diff := cmp.Diff([]string{defaultPath, "HOSTNAME=h", "LIB=/b", "GPU=0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
			if diff := cmp.Diff(test.want, environment("h", test.image, resolved(t, test.env), nil)); diff != "" {
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
			if diff := cmp.Diff(test.want, arguments(resolvedFor(t, &test.container), entrypoint, cmd)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// resolved returns the variables of a container without other sources.
func resolved(t *testing.T, env []spec.EnvVar) Variables {
	t.Helper()
	return resolvedFor(t, &spec.Container{Env: env})
}

func resolvedFor(t *testing.T, c *spec.Container) Variables {
	t.Helper()
	vars, err := Resolve(c, &Downward{Pod: &spec.Pod{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return vars
}

// stored contains config maps and secrets by name, and files by path.
type stored struct {
	configMaps, secrets map[string]map[string][]byte
	files               map[string]string
}

func (s stored) FileValue(ref *spec.FileKeyRef) (string, error) {
	text, known := s.files[ref.Path]
	if !known {
		return "", fmt.Errorf("open: %w", fs.ErrNotExist)
	}
	return NewEnvFile([]byte(text), map[string]bool{ref.Key: true}).Value(ref.Key)
}

func (s stored) ConfigMap(_ *spec.Pod, name string) (map[string][]byte, error) {
	return lookUp("configmap", s.configMaps, name)
}

func (s stored) Secret(_ *spec.Pod, name string) (map[string][]byte, error) {
	return lookUp("secret", s.secrets, name)
}

func lookUp(kind string, all map[string]map[string][]byte, name string) (map[string][]byte, error) {
	if data, known := all[name]; known {
		return data, nil
	}
	return nil, fmt.Errorf("%s %q not found%.0w", kind, name, fs.ErrNotExist)
}

func TestResolve(t *testing.T) {
	values := stored{
		configMaps: map[string]map[string][]byte{"c": {"A": []byte("a$(B)"), "B": []byte("b")}},
		secrets:    map[string]map[string][]byte{"s": {"KEY": []byte("hunter2")}},
		files:      map[string]string{"f": "KEY='$(B)'\nEMPTY=''\nbroken"},
	}
	pod := &spec.Pod{Name: "web", Labels: map[string]string{"app": "shop"}}
	d := &Downward{Pod: pod, UID: "uid-1", PodIPs: []string{"10.0.0.2", "fd00::2"}, NodeName: "edge"}
	configMap := func(name, key string, optional bool) *spec.EnvVarSource {
		return &spec.EnvVarSource{ConfigMapKeyRef: &spec.KeyRef{Name: name, Key: key, Optional: optional}}
	}
	secret := func(name, key string, optional bool) *spec.EnvVarSource {
		return &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: name, Key: key, Optional: optional}}
	}
	file := func(path, key string, optional bool) *spec.EnvVarSource {
		return &spec.EnvVarSource{FileKeyRef: &spec.FileKeyRef{VolumeName: "v", Path: path, Key: key, Optional: optional}}
	}
	field := func(path string) *spec.EnvVarSource {
		return &spec.EnvVarSource{FieldRef: &spec.FieldRef{FieldPath: path}}
	}
	for _, test := range []struct {
		name string
		from []spec.EnvFrom
		env  []spec.EnvVar
		want []string
		err  string
	}{
		{"nothing", nil, nil, nil, ""},
		{
			"all of a config map and of a secret, and what comes from them is not expanded",
			[]spec.EnvFrom{{Prefix: "C_", ConfigMapRef: &spec.EnvReference{Name: "c"}}, {SecretRef: &spec.EnvReference{Name: "s"}}},
			nil,
			[]string{"C_A=a$(B)", "C_B=b", "KEY=hunter2"},
			"",
		},
		{
			"env goes before envFrom, and sees it",
			[]spec.EnvFrom{{ConfigMapRef: &spec.EnvReference{Name: "c"}}},
			[]spec.EnvVar{{Name: "A", Value: "$(B)$(A)"}},
			[]string{"A=ba$(B)", "B=b"},
			"",
		},
		{
			"the later of two sources counts",
			[]spec.EnvFrom{
				{ConfigMapRef: &spec.EnvReference{Name: "c"}},
				{Prefix: "", SecretRef: &spec.EnvReference{Name: "s"}},
				{ConfigMapRef: &spec.EnvReference{Name: "c"}},
			},
			nil,
			[]string{"A=a$(B)", "B=b", "KEY=hunter2"},
			"",
		},
		{"missing config map", []spec.EnvFrom{{ConfigMapRef: &spec.EnvReference{Name: "n"}}}, nil, nil, `configmap "n" not found`},
		{"missing secret", []spec.EnvFrom{{SecretRef: &spec.EnvReference{Name: "n"}}}, nil, nil, `secret "n" not found`},
		{"a source that may be missing", []spec.EnvFrom{{SecretRef: &spec.EnvReference{Name: "n", Optional: true}}}, nil, nil, ""},
		{
			"keys", nil,
			[]spec.EnvVar{
				{Name: "X", ValueFrom: configMap("c", "B", false)},
				{Name: "Y", ValueFrom: secret("s", "KEY", false)},
				{Name: "Z", Value: "$(X)/$(Y)"},
			},
			[]string{"X=b", "Y=hunter2", "Z=b/hunter2"},
			"",
		},
		{
			"a missing key", nil,
			[]spec.EnvVar{{Name: "X", ValueFrom: configMap("c", "N", false)}},
			nil,
			"couldn't find key N in ConfigMap default/c",
		},
		{
			"a missing key of a secret", nil,
			[]spec.EnvVar{{Name: "X", ValueFrom: secret("s", "N", false)}},
			nil,
			"couldn't find key N in Secret default/s",
		},
		{"key of a missing secret", nil, []spec.EnvVar{{Name: "X", ValueFrom: secret("n", "N", false)}}, nil, `secret "n" not found`},
		{
			"what may be missing is not set, and does not unset", nil,
			[]spec.EnvVar{
				{Name: "X", Value: "1"},
				{Name: "X", ValueFrom: configMap("c", "N", true)},
				{Name: "Y", ValueFrom: secret("n", "N", true)},
				{Name: "Z", Value: "$(Y)"},
			},
			[]string{"X=1", "Z=$(Y)"},
			"",
		},
		{
			"a key of a file, which is not expanded", nil,
			[]spec.EnvVar{{Name: "X", ValueFrom: file("f", "KEY", false)}, {Name: "Y", Value: "$(X)"}},
			[]string{"X=$(B)", "Y=$(B)"},
			"",
		},
		{
			"a missing file", nil,
			[]spec.EnvVar{{Name: "X", ValueFrom: file("n", "KEY", false)}},
			nil,
			`couldn't parse env file: file "n" of volume "v": open: file does not exist`,
		},
		{
			"an empty value of a file", nil,
			[]spec.EnvVar{{Name: "X", ValueFrom: file("f", "EMPTY", false)}},
			nil,
			`environment variable key "EMPTY" not found in file "f" of volume "v"`,
		},
		{
			"an invalid line before a missing key of a file", nil,
			[]spec.EnvVar{{Name: "X", ValueFrom: file("f", "N", true)}},
			nil,
			`couldn't parse env file: file "f" of volume "v": invalid environment variable format at line 3: missing '='`,
		},
		{
			"a file and an empty value that may be missing", nil,
			[]spec.EnvVar{
				{Name: "X", Value: "1"}, {Name: "X", ValueFrom: file("n", "KEY", true)}, {Name: "Y", ValueFrom: file("f", "EMPTY", true)},
			},
			[]string{"X=1"},
			"",
		},
		{
			"fields", nil,
			[]spec.EnvVar{
				{Name: "NAME", ValueFrom: field("metadata.name")},
				{Name: "LABEL", ValueFrom: field("metadata.labels['app']")},
				{Name: "IP", ValueFrom: field("status.podIP")},
				{Name: "URL", Value: "http://$(IP)"},
			},
			[]string{"NAME=web", "LABEL=shop", "IP=10.0.0.2", "URL=http://10.0.0.2"},
			"",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &spec.Container{Name: "app", EnvFrom: test.from, Env: test.env}
			vars, err := Resolve(c, d, values)
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err != nil {
				return
			}
			got := environment("h", nil, vars, nil)[2:]
			if diff := cmp.Diff(test.want, append([]string(nil), got...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestResolveIsBounded checks that variables and arguments are bounded in sum, wherever their values come from.
func TestResolveIsBounded(t *testing.T) {
	large := []byte(strings.Repeat("x", 400<<10))
	values := stored{
		configMaps: map[string]map[string][]byte{"large": {"a": large}, "twice": {"a": large, "b": large}},
		secrets:    map[string]map[string][]byte{"large": {"a": large}},
	}
	from := func(name string) spec.EnvFrom { return spec.EnvFrom{ConfigMapRef: &spec.EnvReference{Name: name}} }
	key := func(name string) spec.EnvVar {
		return spec.EnvVar{Name: name, ValueFrom: &spec.EnvVarSource{SecretKeyRef: &spec.KeyRef{Name: "large", Key: "a"}}}
	}
	prefixed := from("large")
	prefixed.Prefix = "P"
	bomb := []spec.EnvVar{{Name: "V0", Value: "0123456789abcdef"}}
	for i := range 60 {
		bomb = append(bomb, spec.EnvVar{Name: fmt.Sprintf("V%d", i+1), Value: fmt.Sprintf("$(V%d)$(V%[1]d)", i)})
	}
	for _, test := range []struct {
		field string // "": it fits
		c     spec.Container
	}{
		{"env[15] (V15)", spec.Container{Env: bomb}},
		{"envFrom[1] (twice)", spec.Container{EnvFrom: []spec.EnvFrom{prefixed, from("twice")}}},
		{"", spec.Container{EnvFrom: []spec.EnvFrom{from("large"), from("twice")}}}, // the same key
		{"env[2] (C)", spec.Container{Env: []spec.EnvVar{key("A"), key("B"), key("C")}}},
		{"", spec.Container{Env: []spec.EnvVar{key("A"), key("B"), key("A"), key("B")}}},
		{"args[1]", spec.Container{Env: []spec.EnvVar{key("A")}, Args: []string{"$(A)", "$(A)"}}},
		{"args[0]", spec.Container{Env: []spec.EnvVar{key("A")}, Command: []string{"$(A)"}, Args: []string{"$(A)"}}},
		{"command[0]", spec.Container{Env: []spec.EnvVar{key("A")}, Command: []string{strings.Repeat("$(A)", 1e5)}}},
	} {
		_, err := Resolve(&test.c, &Downward{Pod: &spec.Pod{}}, values)
		large, is := errors.AsType[*spec.TooLargeError](err)
		if is != (test.field != "") || is && large.Field != test.field {
			t.Errorf("got %v, want an error of field %q", err, test.field)
		}
	}
}
