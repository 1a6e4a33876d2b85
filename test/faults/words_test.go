//go:build e2e

package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// wordsOf are what a pod shows of itself: the STATUS column, the states of its containers, and its explanation.
type wordsOf struct{ status, states, explanation string }

func (f *fixture) words(name string) wordsOf {
	f.Helper()
	var states []string
	p := f.get(name)
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch s := c.State; {
		case s.Waiting != nil:
			states = append(states, c.Name+" "+string(s.Waiting.Reason)+": "+s.Waiting.Message)
		case s.Terminated != nil:
			states = append(states, fmt.Sprintf("%s %s %d", c.Name, s.Terminated.Reason, s.Terminated.ExitCode))
		default:
			states = append(states, c.Name+" Running")
		}
	}
	row := strings.Fields(strings.Split(f.MustRun("get", name), "\n")[1])
	return wordsOf{row[2], strings.Join(states, "; "), f.MustRun("why", name)}
}

// lacks is what of the words that are wanted is not there.
func (w wordsOf) lacks(want wordsOf) error {
	for part, got := range map[string][2]string{
		"status": {w.status, want.status}, "states": {w.states, want.states}, "explanation": {w.explanation, want.explanation},
	} {
		if !strings.Contains(got[0], got[1]) {
			return fmt.Errorf("the %s is %q, and not yet %q", part, got[0], got[1])
		}
	}
	return nil
}

// told reports what of the wanted events of a pod, each a reason and the beginning of a message, was not told. A wanted text that
// ends with a new line is the whole message.
func (f *fixture) told(name string, want []string) error {
	f.Helper()
	var told []string
	for e, err := range f.Client().Events(f.Ctx(), &client.EventQuery{Pod: name}) {
		if err != nil {
			return err
		}
		told = append(told, e.Reason+": "+e.Message+"\n")
	}
	for _, text := range want {
		if !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, text) }) {
			return fmt.Errorf("without %q the events are %q", text, told)
		}
	}
	return nil
}

// TestWords: what a person reads of pods that cannot begin, fail, or come back is what the kubelet and kubectl say, and true.
func TestWords(t *testing.T) {
	f := newFixture(t)
	init := func(text string) string { return strings.Replace(text, "[[containers]]", "[[initContainers]]", 1) }
	const always, never, nowhere = "restartPolicy = \"Always\"\n", "restartPolicy = \"Never\"\n", "127.0.0.1:1/none:1"
	const slow = "restartBackoff = { initialSeconds = 300 }\n"
	until := func(code int) string { return fmt.Sprintf("trap 'exit %d' TERM; while :; do sleep 0.1; done", code) }
	// up has what follows wait until a container has its trap.
	const up = "startupProbe = { exec = { command = [\"test\", \"-e\", \"/up\"] }, periodSeconds = 0.3, failureThreshold = 10000, " +
		"timeoutSeconds = 100 }\n"
	away := strings.Replace(container("app", until(0)), busybox, nowhere, 1)
	pods := []struct {
		name, text string
		want       wordsOf
		events     []string
	}{
		{
			"no-image", always + away,
			wordsOf{"ImagePull", "ErrImagePull: failed to resolve reference \"" + nowhere + "\"", "next attempt at "},
			[]string{
				"Pulling: Pulling image \"" + nowhere + "\"\n", "Failed: Failed to pull image \"" + nowhere + "\": ",
				"Failed: Error: ErrImagePull\n",
				"BackOff: Back-off pulling image \"" + nowhere + "\"", "Failed: Error: ImagePullBackOff\n",
			},
		},
		{
			"never-pulled", always + away + "imagePullPolicy = \"Never\"\n",
			wordsOf{
				"ErrImageNeverPull", "app ErrImageNeverPull: Container image \"" + nowhere + "\" is not present with pull policy of Never",
				"the pull policy is Never",
			},
			[]string{
				"ErrImageNeverPull: Container image \"" + nowhere + "\" is not present with pull policy of Never\n",
				"Failed: Error: ErrImageNeverPull\n",
			},
		},
		{
			"no-config", always + container("app", until(0)) + "env.X.configMapKeyRef = { name = \"nowhere\", key = \"k\" }\n",
			wordsOf{
				"CreateContainerConfigError", "app CreateContainerConfigError: configmap \"nowhere\" not found",
				"cannot be created: configmap \"nowhere\" not found. Next attempt in ",
			},
			[]string{"Failed: Error: configmap \"nowhere\" not found\n"},
		},
		{
			"half", never + container("done", "exit 0") + container("fails", "exit 5"),
			wordsOf{"Error", "done Completed 0; fails Error 5", "half failed: container \"fails\" exited with code 5"},
			[]string{"Pulled: ", "Created: Container created\n", "Started: Container started\n"},
		},
		{
			"init-fails",
			never + init(container("side", "trap 'exit 143' TERM; touch /up; while :; do sleep 0.1; done")+always+up) +
				init(container("prepare", "exit 4")) + container("app", until(0)),
			wordsOf{
				"Init:Error", "side Error 143; prepare Error 4; app PodInitializing: ",
				"init-fails failed: init container \"prepare\" exited with code 4",
			},
			[]string{"Killing: Stopping container side"},
		},
		{
			"init-loops", always + slow + init(container("prepare", "echo said; exit 4")) + container("app", until(0)),
			wordsOf{
				"Init:CrashLoopBackOff",
				"prepare CrashLoopBackOff: back-off 5m0s restarting failed container=prepare pod=init-loops_default(",
				"Init container \"prepare\" has not completed yet",
			},
			[]string{"BackOff: Back-off restarting failed container prepare in pod init-loops_default("},
		},
		{
			"not-alive",
			never + container("app", "trap 'exit 7' TERM; touch /up; while :; do sleep 0.1; done") +
				"livenessProbe = { exec = { command = [\"test\", \"!\", \"-e\", \"/up\"] }, failureThreshold = 1, timeoutSeconds = 100 }\n",
			wordsOf{"Error", "app Error 7", "the liveness probe of container \"app\" failed"},
			[]string{"Unhealthy: Liveness probe failed: ", "Killing: Container app failed liveness probe\n"},
		},
	}
	for _, p := range pods {
		f.start("--rm=false", f.PodFile(p.name, p.text)).event(api.EventPodAccepted)
	}
	for _, p := range pods {
		f.Await(func() error { return f.words(p.name).lacks(p.want) })
		if err := f.told(p.name, p.events); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
	if got := f.MustRun("logs", "init-loops", "-c", "prepare", "--previous"); got != "said\n" {
		t.Errorf("the output of the run before the next one is %q", got)
	}
	for _, p := range pods {
		f.MustRun("delete", p.name, "--force")
	}
}
