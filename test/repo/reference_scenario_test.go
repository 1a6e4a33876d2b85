package repo_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/simulate"
)

// Examples of docs/reference/scenario.md. scenarioPage simulates them.
const (
	scenarioPod = `name = "web"

[[containers]]
name = "server"
image = "server:1"
startupProbe = { httpGet = ":8080/healthz", periodSeconds = 5, failureThreshold = 12 }
readinessProbe = { httpGet = ":8080/readyz", periodSeconds = 5 }
`
	scenarioExample = `for = "10m"

[[containers]]
name = "server"
pullTakes = "20s"
runs = [
  { readyAfter = "30s", lasts = "3m", exitCode = 1 },
  { readyAfter = "30s" },
]

  [[containers.probes]]
  probe = "readiness"
  from = "5m"
  to = "6m"
  fails = true

[[events]]
at = "8m"
event = "restart"

[[assert]]
readyWithin = "1m"

[[assert]]
maxRestarts = 1
`
)

// scenarioPage lists the fields of a scenario file, from the types of package simulate and their comments.
func scenarioPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Scenario file\n\n```console\n$ podstead simulate web.toml --scenario scenario.toml\n" + simulateOutput(t) + "```\n\n" +
		"A scenario file has what happens to the pods of `podstead simulate`, and what must be true of them. This is `web.toml`:\n\n" +
		"```toml\n" + scenarioPod + "```\n\n" +
		"And this is `scenario.toml`:\n\n```toml\n" + scenarioExample + "```\n\n" +
		"All times are in virtual time, and are written like `40s`, `5m` or `1h30m`. Errors have the file, the line and the field, and\n" +
		"so do assertions that do not hold. `podstead simulate` exits with 1 then, and with 2 if the file is invalid.\n\n" +
		"Where a pod is not given, there must be only one. In a Go test, `simulate.Scenario` has the same fields. [Test your pod\n" +
		"files](../howto/test-your-pod-files.md) has more examples, and [Simulation of pods](../design/simulate.md) what is left out.\n\n" +
		"## Fields\n\nThis part is generated from the types of package `supervisor/simulate`.\n")
	p := &typePage{types: map[string]*ast.TypeSpec{}, docs: map[string]string{}, values: map[string][]string{}}
	for _, s := range goFiles(t) {
		if s.dir == "supervisor/simulate" && !s.isTest {
			p.collect(s.file)
		}
	}
	for _, name := range p.order("Scenario") {
		p.section(t, &b, name)
	}
	b.WriteString("\n## Events\n\n| `event` | What happens | Fields beside `at` |\n| --- | --- | --- |\n")
	for _, k := range simulate.EventKinds() {
		b.WriteString("| `" + k.Name + "` | " + k.Does + " | `" + strings.Join(k.Fields, "`, `") + "` |\n")
	}
	return b.String()
}

// simulateOutput returns what podstead simulate prints for the examples.
func simulateOutput(t *testing.T) string {
	t.Helper()
	pod, problems := spec.Parse("/pods/web.toml", []byte(scenarioPod))
	if pod == nil {
		t.Fatal(problems)
	}
	s, problems := simulate.Parse("scenario.toml", []byte(scenarioExample))
	if s == nil {
		t.Fatal(problems)
	}
	r, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{Scenario: s})
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Concat(r.Lines(), []string{""}, r.Summary())
	for _, f := range r.Failures {
		lines = append(lines, f.Problem().String())
	}
	return strings.Join(lines, "\n") + "\n"
}
