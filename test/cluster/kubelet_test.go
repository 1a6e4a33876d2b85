//go:build soak && vm

package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/internal/table"
)

// runExamples are the examples whose images are built here, and that need no DNS, no persistent volume and no user namespace, which the
// node does not have. The probes of two others have timeouts of a second, which the emulated processor does not meet.
var runExamples = []string{"crash", "hello", "job", "limits", "web"}

// quiet is how long all pods stay in the states that they have settled in. The back-off of a container that fails becomes longer than that.
const quiet = 20 * time.Second

// settleTimeout is for all pods to be in their last state. The kubelet increases a back-off from 10 s to 20 s, then to 40 s.
const settleTimeout = 30 * time.Minute

// otherConditions are those that only Podstead has.
var otherConditions = []api.ConditionType{api.FileAccepted, api.PodWaitedFor, api.VolumesNotUpdated}

// TestKubelet runs pods with Podstead, and then, from the manifests that "podstead convert -o k8s" prints of their files, with a scheduler
// and a kubelet, in one virtual machine with cgroup v2. They have the same phases and conditions. -update writes the page of the result.
//
//	sudo make kubelet TESTFLAGS=-update
func TestKubelet(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range runExamples {
		files[name+".toml"] = read(t, "../../examples/"+name+".toml")
	}
	for _, f := range txtar.Parse(read(t, "testdata/pods.txtar")).Files {
		files[f.Name] = f.Data
	}
	s := startServer(t)
	startScheduler(t, s)
	n := newNode(t, s, files)
	here := n.runPodstead(len(files))
	n.startKubelet(s)
	o := spec.Options{AllowLoss: true, Suffix: "abcde"}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, problems := o.Manifests([]spec.InputFile{{Name: filepath.Join("../../examples", name), Text: files[name]}}, true)
		if text == nil {
			t.Fatalf("%s: %v", name, problems.Errors())
		}
		if _, err := s.apply(t.Context(), strings.TrimSuffix(name, ".toml"), text); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
	}
	there := n.runKubelet(s, here)
	for name, state := range here {
		if there[name] != state {
			t.Errorf("pod %s:\n  Podstead %s\n  kubelet  %s", name, state, there[name])
		}
	}
	if !t.Failed() {
		table.CheckPage(t, "../../docs/design/pods-on-a-kubelet.md", func(string) string { return page(here, s.version(t)) })
	}
}

type condition struct{ Type, Status string }

// podList is the part of a list of pods that Podstead and the API server both have.
type podList struct {
	Items []struct {
		Metadata struct{ Name string }
		Status   struct {
			Phase      string
			Conditions []condition
		}
	}
}

// podState is the phase, and the conditions, sorted.
type podState struct{ phase, conditions string }

func (s podState) String() string { return cmp.Or(s.phase, "no pod") + ": " + s.conditions }

func (l podList) states() map[string]podState {
	states := map[string]podState{}
	for _, p := range l.Items {
		var conditions []string
		for _, c := range p.Status.Conditions {
			if !slices.Contains(otherConditions, api.ConditionType(c.Type)) {
				conditions = append(conditions, c.Type+" "+c.Status)
			}
		}
		slices.Sort(conditions)
		states[p.Metadata.Name] = podState{p.Status.Phase, strings.Join(conditions, ", ")}
	}
	return states
}

// runPodstead runs the pods with Podstead until none of them changes any more, and deletes them.
func (n *node) runPodstead(pods int) map[string]podState {
	n.Helper()
	n.sh(`systemctl start podstead; podstead apply ` + payload + `/pods/*.toml`)
	var last map[string]podState
	since := time.Now()
	n.await("the pods of Podstead have settled", func() error {
		var list podList
		if err := json.Unmarshal([]byte(n.sh(`podstead get -o json`)), &list); err != nil {
			return err
		}
		if states := list.states(); !maps.Equal(last, states) {
			last, since = states, time.Now()
		}
		if len(last) != pods || time.Since(since) < quiet {
			return fmt.Errorf("%d pods of %d, for %v: %v", len(last), pods, time.Since(since), last)
		}
		return nil
	})
	n.Logf("pods of Podstead:\n%s", n.sh("podstead get"))
	n.sh(`podstead delete --all --force; systemctl stop podstead.socket podstead-ro.socket podstead`)
	return last
}

// runKubelet waits until all pods are in their states, each for some time. It returns the states, which are others if that does not happen.
func (n *node) runKubelet(s *server, want map[string]podState) map[string]podState {
	n.Helper()
	states, since := map[string]podState{}, map[string]time.Time{}
	for end := time.Now().Add(settleTimeout); time.Now().Before(end); <-time.After(time.Second) {
		var list podList
		if err := s.get(n.Context(), "/api/v1/pods", &list); err != nil {
			n.Fatal(err)
		}
		same := 0
		for name, state := range list.states() {
			if states[name] != state {
				n.Logf("kubelet: %s: %s", name, state)
				states[name], since[name] = state, time.Now()
			}
			if state == want[name] && time.Since(since[name]) >= quiet {
				same++
			}
		}
		if same == len(want) {
			break
		}
	}
	return states
}

// page is the page of the result.
func page(states map[string]podState, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Pods on a kubelet

Run pods with Podstead and with a kubelet, and compare them:

    sudo make kubelet

The test boots a virtual machine with cgroup v2. It runs the pods with Podstead until they do not change any more. Then it applies the
manifests that `+"`podstead convert -o k8s`"+` prints of their files to a real API server (%s), unchanged. A scheduler and a
kubelet of the same version run them, with Debian's containerd in the same virtual machine. API server and scheduler run on its host. The
pods are examples, and those of [test/cluster/testdata/pods.txtar](../../test/cluster/testdata/pods.txtar).

Each of these %d pods has the same phase and the same conditions in both, for at least %.0f seconds. The page is generated by the test, with
`+"`TESTFLAGS=-update`"+`.

| pod | phase | conditions that are True | that are False |
| --- | --- | --- | --- |
`, version, len(states), quiet.Seconds())
	for _, name := range slices.Sorted(maps.Keys(states)) {
		var is, not []string
		for c := range strings.SplitSeq(states[name].conditions, ", ") {
			kind, status, _ := strings.Cut(c, " ")
			if status == "True" {
				is = append(is, kind)
			} else {
				not = append(not, kind)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, states[name].phase, cmp.Or(strings.Join(is, ", "), "-"),
			cmp.Or(strings.Join(not, ", "), "-"))
	}
	return b.String()
}
