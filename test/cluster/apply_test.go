//go:build soak

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/quadlet"
)

// podFiles returns the files whose pods are applied: the examples, and those that other tests have.
func podFiles(t *testing.T) []spec.InputFile {
	t.Helper()
	var files []spec.InputFile
	for _, pattern := range []string{"../../examples/*.toml", "../../spec/testdata/good/*.*", "../../spec/testdata/several/*.*"} {
		for _, name := range glob(t, pattern) {
			files = append(files, spec.InputFile{Name: name, Text: read(t, name)})
		}
	}
	for _, f := range txtar.Parse(read(t, "../../spec/testdata/stream/manifests.txtar")).Files {
		text, _ := spec.Options{AllowLoss: true, Suffix: "abcde"}.Convert(f.Name, f.Data, false)
		if text != nil {
			files = append(files, spec.InputFile{Name: f.Name + ".toml", Text: text})
		}
	}
	for _, name := range glob(t, "../../supervisor/lifecycle/testdata/scenarios/*.txtar") {
		for _, f := range txtar.Parse(read(t, name)).Files {
			if f.Name == "pod.toml" {
				files = append(files, spec.InputFile{Name: filepath.Base(name) + ".toml", Text: f.Data})
			}
		}
	}
	return append(files, unitFiles(t)...)
}

// unitFiles returns the pod files of the units of Quadlet that the tests of package quadlet have.
func unitFiles(t *testing.T) []spec.InputFile {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse(read(t, "../../spec/quadlet/testdata/corpus.txtar")).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := quadlet.ThisHost()
	var files []spec.InputFile
	for _, project := range glob(t, dir+"/*") {
		pods, _ := quadlet.Convert([]string{project}, &host, spec.Options{AllowLoss: true}, false)
		for i := range pods {
			files = append(files, spec.InputFile{Name: filepath.Join(project, pods[i].Name+".toml"), Text: pods[i].Text})
		}
	}
	return files
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(names), err)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// resources are the kinds that are written, as in paths.
var resources = map[string]string{
	"ConfigMap": "configmaps", "CronJob": "cronjobs", "Job": "jobs", "PersistentVolumeClaim": "persistentvolumeclaims", "Pod": "pods",
	"Secret": "secrets", "Service": "services", "ServiceAccount": "serviceaccounts",
}

// TestApply applies the manifests that "podstead convert -o k8s" prints of pod files to a real API server, unchanged: server-side, with
// strict validation of fields. The pods that the API server then has are those of the file.
//
//	test/cluster/build .cache/cluster && go test -tags soak -timeout 0 -run TestApply ./test/cluster
func TestApply(t *testing.T) {
	s := startServer(t)
	o := spec.Options{AllowLoss: true, Suffix: "abcde"}
	applied, examples := 0, 0
	for i, f := range podFiles(t) {
		text, problems := o.Manifests([]spec.InputFile{f}, true)
		if text == nil {
			t.Logf("%s: not converted: %v", f.Name, problems.Errors())
			continue
		}
		namespace := fmt.Sprintf("file-%d", i)
		stored, err := s.apply(t.Context(), namespace, text)
		if err != nil {
			t.Errorf("%s: %v\n%s", f.Name, err, text)
			continue
		}
		applied++
		if strings.HasPrefix(f.Name, "../../examples/") {
			examples++
		}
		checkStored(t, f, stored)
	}
	if want := len(glob(t, "../../examples/*.toml")); examples != want {
		t.Errorf("%d examples of %d", examples, want)
	}
	t.Logf("%d files applied to %s, %d of them examples", applied, s.version(t), examples)
	if applied < 200 {
		t.Errorf("%d files, want at least 200", applied)
	}
}

// apply applies the objects of a stream in a new namespace, and returns the pods that the server has
// stored, and what creates pods.
func (s *server) apply(ctx context.Context, namespace string, stream []byte) ([]object, error) {
	body, err := json.Marshal(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}})
	if err != nil {
		return nil, err
	}
	if code, text, err := s.request(ctx, http.MethodPost, "/api/v1/namespaces", body); err != nil || code != http.StatusCreated {
		return nil, fmt.Errorf("create a namespace: %d %s %w", code, text, err)
	}
	var pods []object
	for document := range bytes.SplitSeq(stream, []byte("\n---\n")) {
		document = append(slices.Clone(document), '\n')
		var x struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := yaml.Unmarshal(document, &x); err != nil {
			return nil, err
		}
		group := "/api/"
		if strings.Contains(x.APIVersion, "/") {
			group = "/apis/"
		}
		path := group + x.APIVersion + "/namespaces/" + namespace + "/" + resources[x.Kind] + "/" + x.Metadata.Name +
			"?fieldManager=test&fieldValidation=Strict"
		code, text, err := s.requestAs(ctx, http.MethodPatch, path, "application/apply-patch+yaml", document)
		if err != nil || code != http.StatusCreated {
			return nil, fmt.Errorf("apply %s %s: %d %s %w", x.Kind, x.Metadata.Name, code, text, err)
		}
		if x.Kind == "Pod" || x.Kind == "Job" || x.Kind == "CronJob" {
			var pod object
			if err := json.Unmarshal(text, &pod); err != nil {
				return nil, err
			}
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// checkStored checks that the API server has the pods of a file: none of their fields was dropped or changed.
func checkStored(t *testing.T, f spec.InputFile, stored []object) {
	t.Helper()
	parts, problems := spec.Options{Suffix: "abcde"}.ParseParts(f.Name, f.Text)
	if len(problems.Errors()) > 0 || len(parts) != len(stored) {
		t.Errorf("%s: %d pods, the API server has %d: %v", f.Name, len(parts), len(stored), problems.Errors())
		return
	}
	// What a cluster has no equivalent for, and where defaults are filled in.
	ignored := cmp.Options{
		cmpopts.IgnoreFields(spec.Pod{}, "Hash", "Dir", "WaitFor", "Update", "Systemd", "OnUnhealthy", "UnhealthyAfterSeconds",
			"RestartBackoff", "ImageArchives", "ConfigMaps", "Secrets"),
		cmpopts.IgnoreFields(spec.Container{}, "Hash", "RestartBackoff", "ImagePullPolicy"),
		cmpopts.IgnoreFields(spec.ImageVolume{}, "PullPolicy"), cmpopts.IgnoreFields(spec.FieldRef{}, "APIVersion"),
		cmpopts.IgnoreMapEntries(func(key, _ string) bool { return key == "podstead.io/pod" || key == "podstead.io/subdomain" }),
		cmpopts.IgnoreFields(spec.Schedule{}, "JitterSeconds"),
		cmp.Transformer("whole", func(s spec.Seconds) spec.Seconds { return spec.Seconds(math.Ceil(float64(s))) }),
		cmpopts.EquateEmpty(),
	}
	for i := range parts {
		text, err := json.Marshal(stored[i])
		if err != nil {
			t.Fatal(err)
		}
		again, problems := spec.Options{}.ParseParts(filepath.Join(filepath.Dir(f.Name), "stored.json"), text)
		if len(again) != 1 || again[0].Pod == nil {
			t.Errorf("%s: the pod of the API server is refused: %v\n%s", f.Name, problems.Errors(), text)
			continue
		}
		if diff := cmp.Diff(normal(parts[i].Pod), normal(again[0].Pod), ignored); diff != "" {
			t.Errorf("%s: pod %s of the API server differs (-want +got):\n%s", f.Name, parts[i].Name, diff)
		}
	}
}

// normal returns a pod without empty security contexts and labels of a Job, which the API server adds, and with the defaults
// of a CronJob. The pod is changed.
func normal(p *spec.Pod) *spec.Pod {
	for _, label := range []string{"job-name", "controller-uid"} {
		delete(p.Labels, label)
		delete(p.Labels, "batch.kubernetes.io/"+label)
	}
	if s := p.Schedule; s != nil {
		if p.BackoffLimit == nil && p.RestartPolicy == spec.RestartNever {
			p.BackoffLimit = new(int32) // a Job has a limit
		}
		successful, failed := s.History()
		s.ConcurrencyPolicy, s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = s.Policy(), new(int32(successful)), new(int32(failed))
	}
	if p.SecurityContext != nil && reflect.DeepEqual(*p.SecurityContext, spec.PodSecurityContext{}) {
		p.SecurityContext = nil
	}
	for _, list := range [][]spec.Container{p.InitContainers, p.Containers} {
		for i := range list {
			if c := &list[i]; c.SecurityContext != nil && reflect.DeepEqual(*c.SecurityContext, spec.SecurityContext{}) {
				c.SecurityContext = nil
			}
		}
	}
	return p
}
