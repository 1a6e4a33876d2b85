package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the reference page")

const (
	page      = "../../../docs/reference/metrics.md"
	rules     = "../../../packaging/prometheus/podstead.rules.yml"
	ruleTests = "../../../packaging/prometheus/podstead.rules.test.yml"
	dashboard = "../../../packaging/grafana/podstead.json"
)

const introduction = `# Metrics

` + "```console" + `
$ podstead metrics | grep '^podstead_pods'
podstead_pods{phase="Failed"} 0
podstead_pods{phase="Pending"} 0
podstead_pods{phase="Running"} 1
podstead_pods{phase="Succeeded"} 0
podstead_pods{phase="Unknown"} 0
` + "```" + `

This page lists all metrics of the daemon. It is generated from the catalogue of the code by
` + "`go test ./internal/daemon/metrics -run TestReference -update`" +
	`. [Watch pods with Prometheus](../howto/watch-with-prometheus.md) describes how to get them.

Metrics of the kubelet, cAdvisor and kube-state-metrics have their names and labels. The namespace is always ` + "`default`" +
	`. Series with an empty label
` + "`container`" + ` are those of a pod: the sum of its containers and its sandbox.

- Counters that count what happens, such as ` + "`podstead_container_restarts_total` and `prober_probe_total`" +
	`, begin with 0 when the daemon starts. ` + "`rate` and `increase`" + ` of
  Prometheus handle that. ` + "`kube_pod_container_status_restarts_total`" + ` is the restart count of the status, which is saved.
- A series without an event is absent: there is no ` + "`kubelet_runtime_operations_errors_total`" + ` before the first error.
- A figure that the host does not have, or that cannot be read in time, is absent: for example the traffic of block devices without the cgroup controller io (blkio).
- The series of a deleted pod disappear with it.
- Disk usage of containers is measured in the background when it is requested, at most every 10 seconds, and less often if that takes long.
- The labels contain names of pods, containers and images, and no values of environment variables or secrets.
`

// referencePage returns the page.
func referencePage() string {
	var b strings.Builder
	b.WriteString(introduction)
	source := Source("")
	for _, m := range catalogue() {
		if m.Source != source {
			source = m.Source
			fmt.Fprintf(&b, "\n## %s\n\n| Name | Type | Labels | Description |\n| --- | --- | --- | --- |\n", source)
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "` `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels, strings.ReplaceAll(m.Help, "|", `\|`))
	}
	return b.String()
}

// TestReference compares the reference page with the catalogue. With -update it writes the page.
func TestReference(t *testing.T) {
	want := referencePage()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, page); got != want {
		t.Errorf("%s differs from the catalogue: run the test with -update", page)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// used matches the names of metrics in expressions.
var used = regexp.MustCompile(`\b(?:kube|kubelet|container|prober|podstead|process|machine|go)_[a-z0-9_]+`)

// metricsOf returns the names of the metrics in an expression.
func metricsOf(expression string) (names []string) {
	expression = regexp.MustCompile(`by \([^)]*\)|on \([^)]*\)|\{\{[^}]*\}\}`).ReplaceAllString(expression, "")
	for _, name := range used.FindAllString(expression, -1) {
		names = append(names, regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, ""))
	}
	return names
}

// TestUsedMetricsExist: the metrics in the dashboard, in the alerts and in their tests exist.
func TestUsedMetricsExist(t *testing.T) {
	known := map[string]bool{}
	for _, m := range catalogue() {
		known[m.Name] = true
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &d); err != nil {
		t.Fatal(err)
	}
	expressions := map[string]string{}
	for _, p := range d.Panels {
		for i, target := range p.Targets {
			expressions[fmt.Sprintf("panel %s, target %d", p.Title, i)] = target.Expr
		}
	}
	for _, v := range d.Templating.List {
		expressions["variable "+v.Name] = regexp.MustCompile(`\$\w+`).ReplaceAllString(fmt.Sprint(v.Query), "")
	}
	text := read(t, rules)
	for _, rule := range strings.Split(text, "- alert: ")[1:] {
		name, body, _ := strings.Cut(rule, "\n")
		expr, _, _ := strings.Cut(body, "labels:")
		expressions["alert "+name] = expr
		if !strings.Contains(read(t, ruleTests), `alertname="`+name+`"`) {
			t.Errorf("alert %s has no test", name)
		}
		for _, annotation := range []string{"summary:", "description:", "runbook:"} {
			if !strings.Contains(body, annotation) {
				t.Errorf("alert %s has no %s", name, annotation)
			}
		}
	}
	expressions["tests of alerts"] = read(t, ruleTests)
	found := 0
	for where, expression := range expressions {
		for _, name := range metricsOf(expression) {
			found++
			if !known[name] {
				t.Errorf("%s: %s does not exist", where, name)
			}
		}
	}
	if found < 60 {
		t.Errorf("found %d names of metrics", found)
	}
}
