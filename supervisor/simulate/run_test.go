package simulate_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/simulate"
)

var update = flag.Bool("update", false, "update the timelines in testdata")

// parse returns the pods of a file.
func parse(name string, text []byte) ([]*spec.Pod, error) {
	parts, problems := spec.Options{}.ParseParts("/pods/"+name, text)
	var pods []*spec.Pod
	for i := range parts {
		pods = append(pods, parts[i].Pod)
	}
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return pods, nil
}

// mustParse returns the pod of a file.
func mustParse(tb testing.TB, text string) *spec.Pod {
	tb.Helper()
	pods, err := parse("p.toml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return pods[0]
}

// simulated simulates the files of an archive, and returns the timeline, the summary and the failures.
func simulated(files map[string][]byte) (string, error) {
	pods, err := parse("pods.toml", files["pods.toml"])
	if err != nil {
		return "", err
	}
	s, problems := simulate.Parse("scenario.toml", files["scenario.toml"])
	if s == nil {
		return "", problems
	}
	r, err := simulate.Pods(pods, simulate.Options{Scenario: s, Read: func(path string) ([]*spec.Pod, error) {
		text, found := files[path]
		if !found {
			return nil, fs.ErrNotExist
		}
		return parse(path, text)
	}})
	if err != nil {
		return "", err
	}
	lines := slices.Concat(r.Lines(), []string{""}, r.Summary())
	for _, f := range r.Failures {
		lines = append(lines, f.Error())
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// TestScenarios compares the timelines of the scenarios in testdata. It runs each twice: the result does not depend on chance.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("scenarios: %v, %v", paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{}
			for _, f := range archive.Files {
				files[f.Name] = f.Data
			}
			got, err := simulated(files)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := simulated(files); again != got {
				t.Errorf("the second run differs: %v\n%s", err, cmp.Diff(got, again))
			}
			if last := &archive.Files[len(archive.Files)-1]; *update {
				last.Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(last.Data), got); diff != "" {
				t.Errorf("%s: run go test -run TestScenarios -update (-want +got):\n%s", path, diff)
			}
		})
	}
}

// crashLoop returns a pod with 20 containers, and a scenario in which they crash at once.
func crashLoop(tb testing.TB) (*spec.Pod, *simulate.Scenario) {
	tb.Helper()
	text, s := "name = \"p\"\n", &simulate.Scenario{}
	for i := range 20 {
		name := fmt.Sprintf("app-%02d", i)
		text += fmt.Sprintf("[[containers]]\nname = %q\nimage = \"localhost/app:1\"\n", name)
		s.Containers = append(s.Containers, simulate.Container{Name: name, Runs: []simulate.ContainerRun{{ExitCode: 1}}})
	}
	return mustParse(tb, text), s
}

// BenchmarkCrashLoop simulates a day of a crash loop of 20 containers.
func BenchmarkCrashLoop(b *testing.B) {
	pod, s := crashLoop(b)
	b.ReportAllocs()
	for b.Loop() {
		r, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{For: 24 * time.Hour, Scenario: s})
		if err != nil {
			b.Fatal(err)
		}
		if n := len(r.Pods[0].Restarts["app-19"]); n < 280 || n > 300 {
			b.Fatalf("%d restarts", n)
		}
	}
}

// TestAllocations bounds the allocations of a crash loop, most of what a simulation costs: those of a restart do not depend on how long the
// simulation is, and the facts are not copied.
func TestAllocations(t *testing.T) {
	pod, s := crashLoop(t)
	restarts := 0
	allocations := testing.AllocsPerRun(1, func() {
		r, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{For: 4 * time.Hour, Scenario: s})
		if err != nil {
			t.Fatal(err)
		}
		restarts = 0
		for _, times := range r.Pods[0].Restarts {
			restarts += len(times)
		}
	})
	if each := allocations / float64(restarts); each > 90 {
		t.Errorf("%.0f allocations for each of %d restarts", each, restarts)
	}
}

// TestMaxStarts checks that at most so many containers start at the same time.
func TestMaxStarts(t *testing.T) {
	pods := []*spec.Pod{}
	s := &simulate.Scenario{}
	for _, name := range []string{"a", "b", "c", "d"} {
		pods = append(pods, mustParse(t, "name = \""+name+"\"\n[[containers]]\nname = \"app\"\nimage = \"app:1\"\n"))
		s.Containers = append(s.Containers, simulate.Container{
			Pod: name, Name: "app", Runs: []simulate.ContainerRun{{StartTakes: "3s"}},
		})
	}
	for limit, want := range map[int]time.Duration{0: 3 * time.Second, 1: 12 * time.Second, 2: 6 * time.Second} {
		r, err := simulate.Pods(pods, simulate.Options{Scenario: s, MaxStarts: limit})
		if err != nil {
			t.Fatal(err)
		}
		last := time.Duration(0)
		for i := range r.Pods {
			last = max(last, r.Pods[i].Ready[0].From)
		}
		if last != want {
			t.Errorf("limit %d: the last pod is ready after %v, want %v", limit, last, want)
		}
	}
}

// TestNames checks that a scenario that does not fit the pods is an error with the place.
func TestNames(t *testing.T) {
	pods, err := parse("pods.toml", []byte("[[pods]]\nname = \"a\"\n[[pods.containers]]\nname = \"app\"\nimage = \"i:1\"\n"+
		"[[pods]]\nname = \"b\"\n[[pods.containers]]\nname = \"app\"\nimage = \"i:1\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"[[containers]]\nname = \"app\"\n":                       "s.toml:1:3: containers[0]: pod is required: there are a, b",
		"[[containers]]\npod = \"c\"\nname = \"app\"\n":          "s.toml:2:1: containers[0].pod: there is no pod \"c\"",
		"[[containers]]\npod = \"a\"\nname = \"web\"\n":          "s.toml:3:1: containers[0].name: there is no container \"web\"",
		"[[events]]\nevent = \"stop\"\n":                         "s.toml:1:3: events[0]: pod is required: there are a, b",
		"[[assert]]\npod = \"c\"\nphase = \"Running\"\n":         "s.toml:2:1: assert[0].pod: there is no pod \"c\"",
		"[[events]]\nevent = \"update\"\nfile = \"gone.toml\"\n": "s.toml:3:1: events[0].file: ",
		"[[conditions]]\ncondition = \"dns:db\"\nmetAfter = \"1s\"\n": "s.toml:2:1: conditions[0].condition: no pod has it in " +
			"waitFor",
	} {
		s, problems := simulate.Parse("s.toml", []byte(text))
		if s == nil {
			t.Fatal(problems)
		}
		_, err := simulate.Pods(pods, simulate.Options{Scenario: s})
		list, is := errors.AsType[spec.Problems](err)
		if !is || len(list) != 1 || !strings.HasPrefix(list[0].String(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
