//go:build soak

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/internal/table"
)

const (
	workers     = 8
	defaultSeed = 30
	randomPods  = 10_000
)

// TestValidation holds Podstead's validation of pods against that of a real API server. PODSTEAD_SEED replaces the seed of the random pods;
// the page is that of the default seed.
//
//	test/cluster/build .cache/cluster && go test -tags soak -timeout 0 ./test/cluster -update
func TestValidation(t *testing.T) {
	s := startServer(t)
	all := fetchSchemas(t, s)
	sum := newSummary(t)

	leaves := all.leaves(all[podType], nil)
	pods := make([]object, len(leaves))
	for i, l := range leaves {
		pods[i] = base()
		all.set(pods[i], l.path, l.value)
		complete(pods[i])
	}
	results := judge(t, s, pods)
	sum.add("each field, with several values", results)
	var valid []leaf
	for i, r := range results {
		if len(r.kubernetes) == 0 && len(r.podstead) == 0 {
			valid = append(valid, leaves[i])
		}
	}
	for _, g := range groups() {
		sum.add("combinations: "+g.name, judge(t, s, all.combinations(t, g)))
	}
	sum.checkRows(t)
	seed := seedOf(t)
	sum.add("random pods", judge(t, s, all.random(t, seed, valid)))
	sum.checkUnknown(t)
	if seed == defaultSeed && !t.Failed() {
		table.CheckPage(t, "../../docs/validation.md", func(string) string { return sum.page(s.version(t)) })
	}
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(defaultSeed)
	if text := os.Getenv("PODSTEAD_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal("PODSTEAD_SEED: ", err)
		}
	}
	t.Logf("PODSTEAD_SEED=%d", seed)
	return seed
}

// random returns pods with random fields. Most of the values are valid by themselves, so that it is their combination that decides.
func (all schemas) random(t *testing.T, seed uint64, valid []leaf) []object {
	t.Helper()
	var dependent []leaf
	for _, g := range groups() {
		for _, a := range g.axes {
			for _, text := range a.values {
				dependent = append(dependent, leaf{strings.Split(a.path, "."), decoded(t, text)})
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	pods := make([]object, randomPods)
	for i := range pods {
		pods[i] = base()
		for range 1 + random.IntN(6) {
			l := valid[random.IntN(len(valid))]
			all.set(pods[i], l.path, l.value)
		}
		for range random.IntN(4) {
			l := dependent[random.IntN(len(dependent))]
			all.set(pods[i], l.path, l.value)
		}
		complete(pods[i])
	}
	return pods
}

// complete adds what fields of a pod require in other fields: volumes of mounts, and the restart policy of restart rules.
func complete(pod object) {
	spec, is := pod["spec"].(object)
	if !is {
		return
	}
	volumes, isList := spec["volumes"].([]any)
	names := map[string]bool{}
	for _, v := range tables(volumes) {
		name, _ := v["name"].(string)
		names[name] = true
	}
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := spec[key].([]any)
		for _, c := range tables(list) {
			if rules, _ := c["restartPolicyRules"].([]any); len(rules) > 0 && c["restartPolicy"] == nil && key == "containers" {
				c["restartPolicy"] = "Never"
			}
			mounts, _ := c["volumeMounts"].([]any)
			for _, m := range tables(mounts) {
				name, _ := m["name"].(string)
				if len(validation.IsDNS1123Label(name)) == 0 && !names[name] && (isList || spec["volumes"] == nil) {
					names[name] = true
					volumes = append(volumes, object{"name": name, "emptyDir": object{}})
				}
			}
		}
	}
	if len(volumes) > 0 {
		spec["volumes"] = volumes
	}
}

// tables returns the tables of a list.
func tables(list []any) []object {
	var found []object
	for _, item := range list {
		if o, is := item.(object); is {
			found = append(found, o)
		}
	}
	return found
}

// problem is an error of a pod.
type problem struct{ field, message string }

func (p problem) String() string { return strings.TrimPrefix(p.field+": "+p.message, ": ") }

var (
	index     = regexp.MustCompile(`\[[^\]]*\]`)
	container = regexp.MustCompile(`^spec\.initContainers\b`)
)

// general returns a field without indexes. Init containers become containers.
func general(field string) string {
	return container.ReplaceAllString(index.ReplaceAllString(field, ""), "spec.containers")
}

// result is what the programs say of a pod. Without problems, they accept it.
type result struct {
	pod                          object
	kubernetes, podstead, asTOML []problem
	hasTOML                      bool // it has a TOML form
}

// judge has both programs judge pods: Podstead reads them as YAML and, if they have a TOML form, as TOML.
func judge(t *testing.T, s *server, pods []object) []result {
	t.Helper()
	results := make([]result, len(pods))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(workers)
	for i, pod := range pods {
		group.Go(func() error {
			problems, err := s.judge(ctx, pod)
			if err != nil {
				return err
			}
			manifest, err := yaml.Marshal(pod)
			if err != nil {
				return err
			}
			r := result{pod: pod, kubernetes: problems, podstead: parse("p.yaml", manifest)}
			r.asTOML = r.podstead
			if form := tomlForm(pod); form != nil {
				var file bytes.Buffer
				if err := toml.NewEncoder(&file).Encode(form); err != nil {
					return fmt.Errorf("encode %v: %w", form, err)
				}
				r.asTOML, r.hasTOML = parse("p.toml", file.Bytes()), true
			}
			results[i] = r
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return results
}

// parse returns the errors that Podstead reports for a file.
func parse(file string, text []byte) []problem {
	_, found := spec.Parse(file, text)
	var problems []problem
	for _, p := range found.Errors() {
		problems = append(problems, problem{general(p.Path), p.Message})
	}
	return problems
}

// tomlForm returns the content of the pod file for a manifest, or nil if there is none: TOML has no null, and a pod file has only three
// fields of metadata.
func tomlForm(pod object) object {
	form := object{}
	metadata, isObject := pod["metadata"].(object)
	if !isObject || hasNull(pod) || pod["status"] != nil {
		return nil
	}
	for key, value := range metadata {
		if key != "name" && key != "labels" && key != "annotations" {
			return nil
		}
		form[key] = value
	}
	fields, isObject := pod["spec"].(object)
	if !isObject {
		return nil
	}
	for key, value := range fields {
		form[key] = value
	}
	return form
}

func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, hasNull)
	case object:
		for _, value := range v {
			if hasNull(value) {
				return true
			}
		}
	}
	return false
}

// row is a known difference, and the number of pods that have it.
type row struct {
	Difference
	message *regexp.Regexp
	fields  map[string]int // errors by each of Fields
	pods    int
}

// fits returns which of Fields a problem has, and whether it belongs to the row.
func (r *row) fits(by string, p problem) (string, bool) {
	if r.By != by || !r.message.MatchString(p.message) {
		return "", false
	}
	for field := range r.fields {
		prefix, isPrefix := strings.CutSuffix(field, "*")
		if p.field == field || isPrefix && strings.HasPrefix(p.field, prefix) {
			return field, true
		}
	}
	return "", false
}

// count counts pods by their results.
type count struct {
	name                                                             string
	pods, toml, bothAccept, bothRefuse, kubernetesOnly, podsteadOnly int
}

// row returns a row of the page.
func (c count) row() string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d |\n",
		c.name, c.pods, c.toml, c.bothAccept, c.bothRefuse, c.kubernetesOnly, c.podsteadOnly)
}

// unknown is a kind of differences that no row has.
type unknown struct {
	pods    int
	example object
}

type summary struct {
	rows    []row
	counts  []count
	unknown map[string]*unknown // by the error
}

func newSummary(t *testing.T) *summary {
	t.Helper()
	sum := &summary{unknown: map[string]*unknown{}}
	for _, d := range Differences() {
		message, err := regexp.Compile(d.Error)
		if err != nil {
			t.Fatal(err)
		}
		r := row{Difference: d, message: message, fields: map[string]int{}}
		for field := range strings.FieldsSeq(d.Fields) {
			r.fields[field] = 0
		}
		if d.Fields == "" { // an error without a field
			r.fields[""] = 0
		}
		sum.rows = append(sum.rows, r)
	}
	return sum
}

// add counts results. Those with the same name are counted together.
func (s *summary) add(name string, results []result) {
	if len(s.counts) == 0 || s.counts[len(s.counts)-1].name != name {
		s.counts = append(s.counts, count{name: name})
	}
	c := &s.counts[len(s.counts)-1]
	for _, r := range results {
		c.pods++
		if r.hasTOML {
			c.toml++
		}
		switch accepts, here := len(r.kubernetes) == 0, len(r.podstead) == 0; {
		case accepts && here:
			c.bothAccept++
		case accepts:
			c.kubernetesOnly++
			s.explain(r, Podstead, r.podstead)
		case here:
			c.podsteadOnly++
			s.explain(r, Kubernetes, r.kubernetes)
		default:
			c.bothRefuse++
		}
		if (len(r.asTOML) == 0) != (len(r.podstead) == 0) {
			by, problems := AsTOML, r.asTOML
			if len(problems) == 0 {
				by, problems = AsYAML, r.podstead
			}
			s.explain(r, by, problems)
		}
	}
}

// explain finds the rows of the errors of a pod that one program refuses and the other one accepts.
func (s *summary) explain(r result, by string, problems []problem) {
	counted := map[int]bool{}
	for _, p := range problems {
		i := slices.IndexFunc(s.rows, func(r row) bool {
			field, fits := r.fits(by, p)
			if fits {
				r.fields[field]++
			}
			return fits
		})
		if i >= 0 {
			if !counted[i] {
				s.rows[i].pods++
			}
			counted[i] = true
			continue
		}
		key := "refused by " + by + " only: " + p.String()
		if s.unknown[key] == nil {
			s.unknown[key] = &unknown{example: r.pod}
		}
		s.unknown[key].pods++
	}
}

// checkRows fails the test for rows that do not occur.
func (s *summary) checkRows(t *testing.T) {
	t.Helper()
	for _, r := range s.rows {
		for field, pods := range r.fields {
			if pods == 0 {
				t.Errorf("remove the field from its row: no pod is refused by %s only with an error of %q like %q", r.By, field, r.Error)
			}
		}
	}
}

// checkUnknown fails the test for differences that no row has.
func (s *summary) checkUnknown(t *testing.T) {
	t.Helper()
	for _, c := range s.counts {
		t.Logf("%s: %d pods, both accept %d, both refuse %d, only Kubernetes accepts %d, only Podstead accepts %d",
			c.name, c.pods, c.bothAccept, c.bothRefuse, c.kubernetesOnly, c.podsteadOnly)
	}
	keys := make([]string, 0, len(s.unknown))
	for key := range s.unknown {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		u := s.unknown[key]
		example, err := json.Marshal(u.example)
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s (%d pods)\n  %s", key, u.pods, example)
	}
}

func (s *summary) page(version string) string {
	var b strings.Builder
	b.WriteString(`# Validation beside Kubernetes

Compare the validation of pods with that of a real API server:

    test/cluster/build .cache/cluster    # kube-apiserver and etcd from public Go modules, half an hour once
    go test -tags soak -timeout 0 ./test/cluster

` + "`make soak`" +
		` does both. The test starts the API server on loopback, and has both programs judge the same pods. The API server gets them
as a dry run with strict validation of fields. Podstead reads them as YAML and, if they have a TOML form, as TOML. The test fails for each
difference that is not listed below, and for each field of a row that has none. The page is generated by the test from
[test/cluster/differences.go](../test/cluster/differences.go), with ` + "`-update`" + `.

## Result

`)
	fmt.Fprintf(&b, "The API server is kube-apiserver %s. The seed of the random pods is %d.\n\n", version, defaultSeed)
	b.WriteString("| pods | number | also as TOML | accepted by both | refused by both ")
	b.WriteString("| only Kubernetes accepts | only Podstead accepts |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	total := count{name: "all"}
	for _, c := range s.counts {
		b.WriteString(c.row())
		total.pods += c.pods
		total.toml += c.toml
		total.bothAccept += c.bothAccept
		total.bothRefuse += c.bothRefuse
		total.kubernetesOnly += c.kubernetesOnly
		total.podsteadOnly += c.podsteadOnly
	}
	b.WriteString(total.row())
	for _, by := range []string{Podstead, Kubernetes, AsYAML, AsTOML} {
		if !slices.ContainsFunc(s.rows, func(r row) bool { return r.By == by }) {
			fmt.Fprintf(&b, "\n## Refused by %s only\n\nNone.\n", by)
			continue
		}
		fmt.Fprintf(&b, "\n## Refused by %s only\n\n| field | error | reason | pods |\n| --- | --- | --- | ---: |\n", by)
		for _, r := range s.rows {
			if r.By != by {
				continue
			}
			fields := "any"
			if r.Fields != "" {
				fields = "`" + strings.Join(strings.Fields(r.Fields), "`, `") + "`"
			}
			message := "any"
			if r.Error != "" {
				message = "`" + strings.ReplaceAll(r.Error, "|", `\|`) + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", fields, message, r.Reason, r.pods)
		}
	}
	return b.String()
}
