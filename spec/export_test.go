package spec

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kubernetesyaml "sigs.k8s.io/yaml"
)

// exported returns the objects of a file for a cluster, with their secrets.
func exported(t *testing.T, o Options, file string, text []byte) ([]byte, Problems) {
	t.Helper()
	out, problems := o.Manifests([]InputFile{{file, text}}, true)
	if (out == nil) != (len(problems.Errors()) > 0) {
		t.Fatalf("%s: text %q with problems %v", file, out, problems)
	}
	return out, problems
}

// used returns a pod with the config maps and secrets that it refers to: those of a stream are its own only then.
func used(p *Part) *Pod {
	names := map[bool][]string{}
	for _, list := range []string{"initContainers", "containers", "volumes", "imagePullSecrets"} {
		for config, n := range references(p.root.child(list)) {
			names[config] = append(names[config], textOf(n))
		}
	}
	c := *p.Pod
	c.ConfigMaps = slices.DeleteFunc(slices.Clone(c.ConfigMaps), func(m ConfigMap) bool {
		return !slices.Contains(names[true], m.Name)
	})
	c.Secrets = slices.DeleteFunc(slices.Clone(c.Secrets), func(s Secret) bool {
		return !slices.Contains(names[false], s.Name) || s.Credential != ""
	})
	return &c
}

// withoutLosses returns a pod without what a cluster has no equivalent for.
func withoutLosses(p *Pod) *Pod {
	c := *p
	c.Job, c.WaitFor, c.Update, c.Systemd, c.RestartBackoff, c.ImageArchives = nil, nil, nil, nil, nil, nil
	if c.Schedule != nil {
		schedule := *c.Schedule
		schedule.JitterSeconds = 0
		c.Schedule = &schedule
	}
	c.OnUnhealthy, c.UnhealthyAfterSeconds = "", 0
	for _, list := range []*[]Container{&c.InitContainers, &c.Containers} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].RestartBackoff, (*list)[i].Devices, (*list)[i].MaxRestarts = nil, nil, nil
		}
	}
	return &c
}

// checkRoundTrip checks that the pods of a file are the same after they were written for a cluster and read again. The hashes are equal if
// nothing is lost.
func checkRoundTrip(t *testing.T, file string, text []byte, more ...cmp.Option) {
	t.Helper()
	o := Options{AllowLoss: true, Suffix: "abcde"}
	o.read = readEnvFile
	before, problems := o.ParseParts(file, text)
	if len(problems.Errors()) > 0 || len(before) == 0 {
		return
	}
	out, problems := exported(t, o, file, text)
	if out == nil {
		if more == nil {
			t.Errorf("%s: %v", file, problems)
		}
		return
	}
	if more == nil {
		checkObjects(t, file, out)
	}
	whole := func(s Seconds) Seconds { return Seconds(math.Ceil(float64(s))) }
	ignore := cmp.Options{
		cmp.Options(more), cmp.Transformer("whole", whole), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(ConfigMap{}, "EnvFile"),
		cmpopts.IgnoreFields(Secret{}, "EnvFile"),
	}
	isLoss := func(p Problem) bool { return strings.HasPrefix(p.Message, lost) }
	if slices.ContainsFunc(problems, isLoss) {
		ignore = append(ignore, cmpopts.IgnoreFields(Pod{}, "Hash"), cmpopts.IgnoreFields(Container{}, "Hash"))
	}
	for name, text := range map[string][]byte{"out.yaml": out, "out.json": asKubernetes(t, out)} {
		strict := o
		strict.AllowLoss = false
		after, again := strict.ParseParts(filepath.Join(filepath.Dir(file), name), text)
		if len(again.Errors()) > 0 || len(after) != len(before) {
			t.Errorf("%s: %d pods instead of %d: %v\n%s", file, len(after), len(before), again, text)
			return
		}
		for i := range before {
			want, got := used(&before[i]), after[i].Pod
			if slices.ContainsFunc(problems, isLoss) {
				want = withoutLosses(want)
			}
			if diff := cmp.Diff(want, got, ignore); diff != "" {
				t.Errorf("%s: pod %s (-want +got):\n%s\n%s", file, want.Name, diff, text)
			}
		}
	}
}

// asKubernetes returns a stream as a list in JSON, as Kubernetes reads it: its YAML is that of version 1.1.
func asKubernetes(t *testing.T, stream []byte) []byte {
	t.Helper()
	var list [][]byte
	for _, document := range documents(t, stream) {
		object, err := kubernetesyaml.YAMLToJSONStrict(document)
		if err != nil {
			t.Errorf("%v\n%s", err, document)
		}
		list = append(list, object)
	}
	return slices.Concat([]byte(`{"apiVersion": "v1", "kind": "List", "items": [`), bytes.Join(list, []byte(", ")), []byte("]}"))
}

// FuzzManifests checks that the pods of a valid file are the same after they were written for a cluster and read again, whatever its
// strings, comments and keys are.
func FuzzManifests(f *testing.F) {
	addFiles(f, func(name string, data []byte) {
		f.Add(data, strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".json"))
	})
	f.Add([]byte("# a\u2028kind: Secret\n[[containers]] # \u0085b: c\nname = \"a\" # d\nimage = 'b' # e\n"+
		"command = [\n # f\n \"\u202e\", # g\n]\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, manifest bool) {
		file := "/a/web.toml"
		if manifest {
			file = "/a/web.yaml"
		}
		if bytes.Contains(data, []byte("envFile")) {
			return // a file of the host
		}
		// Hashes have the order of config maps, and the values that are written although they are the default.
		checkRoundTrip(t, file, data, cmpopts.IgnoreFields(Pod{}, "Hash"), cmpopts.IgnoreFields(Container{}, "Hash"),
			cmpopts.SortSlices(func(a, b ConfigMap) bool { return a.Name < b.Name }),
			cmpopts.SortSlices(func(a, b Secret) bool { return a.Name < b.Name }))
	})
}

// TestManifestsRoundTrip: manifests that become pod files, and those that are written of them, define the same pods.
func TestManifestsRoundTrip(t *testing.T) {
	t.Parallel()
	pods := 0
	for _, f := range manifests(t) {
		o := Options{AllowLoss: true, Suffix: "abcde"}
		for _, short := range []bool{false, true} {
			text, _ := o.Convert(f.Name, f.Data, short)
			if text == nil {
				continue
			}
			pods++
			checkRoundTrip(t, strings.TrimSuffix(f.Name, filepath.Ext(f.Name))+".toml", text)
		}
		checkRoundTrip(t, f.Name, f.Data)
	}
	if pods < 130 {
		t.Errorf("%d pod files, want at least 130", pods)
	}
}

// TestManifestsOfScenarios does the same with the pods of the tests of the lifecycle.
func TestManifestsOfScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../supervisor/lifecycle/testdata/scenarios/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name == "pod.toml" {
				checkRoundTrip(t, file+".toml", f.Data)
			}
		}
	}
}

// TestManifestsOfPodFiles: pod files are the same pods after they were written for a cluster, and every object is one of the API.
func TestManifestsOfPodFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/good/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"testdata/several/*.toml", "../examples/*.toml"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(more), err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, file, text)
		out, _ := exported(t, Options{AllowLoss: true}, file, text)
		if out != nil { // otherwise an env file does not exist
			checkObjects(t, file, out)
		}
	}
}

// checkObjects checks that each document is an object of the API, without unknown fields.
func checkObjects(t *testing.T, file string, text []byte) {
	t.Helper()
	types := map[string]func() any{
		"ConfigMap":             func() any { return &corev1.ConfigMap{} },
		"CronJob":               func() any { return &batchv1.CronJob{} },
		"Job":                   func() any { return &batchv1.Job{} },
		"PersistentVolumeClaim": func() any { return &corev1.PersistentVolumeClaim{} },
		"Pod":                   func() any { return &corev1.Pod{} }, "Secret": func() any { return &corev1.Secret{} },
		"Service": func() any { return &corev1.Service{} }, "ServiceAccount": func() any { return &corev1.ServiceAccount{} },
	}
	for _, document := range documents(t, text) {
		var x struct{ Kind string }
		if err := kubernetesyaml.Unmarshal(document, &x); err != nil || types[x.Kind] == nil {
			t.Errorf("%s: kind %q: %v\n%s", file, x.Kind, err, document)
			continue
		}
		if err := kubernetesyaml.UnmarshalStrict(document, types[x.Kind]()); err != nil {
			t.Errorf("%s: %v\n%s", file, err, document)
		}
	}
}

// documents returns the documents of a stream.
func documents(t *testing.T, text []byte) [][]byte {
	t.Helper()
	var all [][]byte
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		document = append(slices.Clone(document), '\n')
		if err := yaml.Unmarshal(document, &yaml.Node{}); err != nil {
			t.Errorf("%v\n%s", err, document)
		}
		all = append(all, document)
	}
	return all
}
