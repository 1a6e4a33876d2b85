package main

import (
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
)

const gated = "readinessGates = [{ conditionType = \"example.org/door\" }, { conditionType = \"example.org/window\" }]"

// TestWait checks the output of waits that need not wait, and the messages and exit codes of those that fail. They run at the same time.
func TestWait(t *testing.T) {
	h := newParallelHost(t, api.Version{}, fakeruntime.Options{}).list(t)
	var waits sync.WaitGroup
	for _, c := range []struct {
		line   string
		code   int
		stdout string
		stderr string
	}{
		{"wait web --for=condition=Ready", 0, "pod/web condition met\n", ""},
		{"wait web --for condition=ready=true", 0, "pod/web condition met\n", ""},
		{"wait pod/web pod/db web --for=condition=Ready", 0, "pod/db condition met\npod/web condition met\n", ""},
		{"wait pods web --for=phase=Running --timeout 1m", 0, "pod/web condition met\n", ""},
		{"wait pod job --for=phase=succeeded", 0, "pod/job condition met\n", ""},
		{"wait web --for=jsonpath={.status.containerStatuses[0].ready}=true", 0, "pod/web condition met\n", ""},
		{`wait web --for=jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`, 0, "pod/web condition met\n", ""},
		{"wait job --for=jsonpath=.status.containerStatuses[0].state.terminated.exitCode=0", 0, "pod/job condition met\n", ""},
		{"wait -l app=shop --for=condition=Ready", 0, "pod/db condition met\npod/web condition met\n", ""},
		{"wait pod -l app=shop,tier=front --for=create", 0, "pod/web condition met\n", ""},
		{"wait --all --for=create", 0, "pod/db condition met\npod/job condition met\npod/web condition met\n", ""},
		{"wait web --for=create --timeout 0", 0, "pod/web condition met\n", ""},
		{"wait none --for=delete", 0, "", ""},
		{"wait none --for=delete --timeout 0", 0, "", ""},
		{"wait -l app=none --for=delete", 0, "", ""},

		{
			"wait job --for=condition=Ready --timeout 8s", statusTimeout, "",
			"podstead: timed out waiting for the condition on pods/job\nhint: run podstead why job to see what the pod waits for\n",
		},
		{
			"wait --all --for=phase=Failed --timeout 8s", statusTimeout, "",
			"podstead: timed out waiting for the condition on pods/db; timed out waiting for the condition on pods/job; " +
				"timed out waiting for the condition on pods/web\nhint: run podstead why db to see what the pod waits for\n",
		},
		{"wait web none --for=delete --timeout 8s", statusTimeout, "", "podstead: timed out waiting for the condition on pods/web\n"},
		{
			"wait web none --for=create --timeout 8s", statusTimeout, "pod/web condition met\n",
			"podstead: timed out waiting for the condition on pods/none\n",
		},
		{"wait -l app=none --for=create --timeout 8s", statusTimeout, "", "podstead: timed out waiting for the condition\n"},
		{
			"wait web job --for=condition=Ready --timeout 0", statusTimeout, "pod/web condition met\n",
			"podstead: condition not met for pods/job\nhint: run podstead why job to see what the pod waits for\n",
		},
		{"wait web --for=delete --timeout 0", statusTimeout, "", "podstead: condition not met for pods/web\n"},
		{"wait none --for=create --timeout 0", statusTimeout, "", "podstead: condition not met for pods/none\n"},
		{"wait -l app=none --for=create --timeout 0", statusTimeout, "", "podstead: condition not met\n"},

		{"wait web db --for=condition=Ready -o name", 0, "pod/db\npod/web\n", ""},
		{"wait web --for=condition=Ready -o jsonpath={.metadata.name}", 0, "web", ""},
		{"wait web --for=condition=Ready --timeout 0 -o go-template={{.kind}}", 0, "Pod", ""},
		{"wait none web --for=condition=Ready", statusNotFound, "pod/web condition met\n", "podstead: no such pod \"none\"\n"},
		{"wait none --for=phase=Running --timeout 0", statusNotFound, "", "podstead: no such pod \"none\"\n"},
		{"wait -l app=none --for=condition=Ready", statusNotFound, "", "podstead: no matching resources found\n"},
		{"wait -l app=none --for=condition=Ready --timeout 0", statusNotFound, "", "podstead: no matching resources found\n"},
		{
			"wait web --for=jsonpath={.status.conditions[*].type}=Ready", statusFailed, "",
			"podstead: pod \"web\": expression \"{.status.conditions[*].type}\": matches more than one value\n",
		},
	} {
		waits.Go(func() {
			if got := h.run(t, c.line); got != (output{c.code, c.stdout, c.stderr}) {
				t.Errorf("podstead %s: exit code %d, stdout:\n%sstderr:\n%swant %d, stdout:\n%sstderr:\n%s", c.line, got.code, got.stdout,
					got.stderr, c.code, c.stdout, c.stderr)
			}
		})
	}
	waits.Wait()
}

func TestWaitUsage(t *testing.T) {
	h := newTestHost(t, api.Version{})
	for line, want := range map[string]string{
		"wait web":                         "podstead: wait requires --for\nhint: run podstead wait --help for usage\n",
		"wait --for=delete":                "podstead: wait requires pod names, --selector or --all\n",
		"wait pod --for=delete":            "podstead: wait requires pod names, --selector or --all\n",
		"wait web --all --for=delete":      "podstead: --all cannot be combined with pod names or --selector\n",
		"wait deployment/web --for=delete": `resource type "deployment" is not supported: must be pod`,
		"wait web --for=Ready": `podstead: unrecognized condition: "Ready": must be condition=NAME, ` +
			`condition=NAME=VALUE, phase=PHASE, jsonpath=EXPRESSION, `,
		"wait web --for=phase=Ready": `podstead: unrecognized condition: "phase=Ready": the phase must be one of Pending, `,
		"wait web --for=jsonpath={.a}=": `podstead: unrecognized condition: "jsonpath={.a}=": must have a value after the ` +
			`equals sign`,
		"wait web --for=delete --timeout soon":   `podstead: --timeout "soon": must be a duration`,
		"wait -l a=b=c --for=condition=Ready":    `podstead: --selector "a=b=c": `,
		"wait web --for=condition=Ready -o wide": `output format "wide" is not supported: must be one of json, yaml, name, jsonpath=, `,
		"wait web --for=delete -o jsonpath={.a":  "podstead: --output jsonpath: ",
	} {
		h.fails(t, line, statusUsage, want)
	}
}

// awaitExit waits until a command that was started exits, and compares its output.
func awaitExit(t *testing.T, line string, exit <-chan int, stdout, stderr *lines, want string) {
	t.Helper()
	select {
	case code := <-exit:
		if code != 0 || stdout.String() != want {
			t.Errorf("podstead %s: exit code %d, stdout:\n%swant:\n%sstderr:\n%s", line, code, stdout, want, stderr)
		}
	case <-time.After(time.Minute):
		t.Fatalf("podstead %s does not exit: stdout:\n%sstderr:\n%s", line, stdout, stderr)
	}
}

// TestWaitForChange checks waits that end when a pod changes, is created or is deleted.
func TestWaitForChange(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script(gated, runs))
	h.write(t, "db.toml", script("labels.app = \"shop\"", runs))
	const created, ready = "wait db --for=create --timeout -1s", "wait db web --for=condition=Ready --timeout 1m"
	stdout, stderr, exit := h.start(t.Context(), created)
	selected, selectedErr, selectedExit := h.start(t.Context(), "wait -l app=shop --for=create --timeout 1m")
	h.want(t, "apply $DIR/db.toml", "pod/db created\n")
	awaitExit(t, created, exit, stdout, stderr, "pod/db condition met\n")
	awaitExit(t, "wait -l", selectedExit, selected, selectedErr, "pod/db condition met\n")

	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	stdout, stderr, exit = h.start(t.Context(), ready)
	stdout.await(t, "pod/db condition met\n")
	h.want(t, "condition set web example.org/window=True", "pod/web condition example.org/window set to True\n")
	h.want(t, "condition set web example.org/door=True", "pod/web condition example.org/door set to True\n")
	awaitExit(t, ready, exit, stdout, stderr, "pod/db condition met\npod/web condition met\n")
}

// TestWaitForDeletion repeats a deletion until it was requested after the wait had started: a wait for a pod that does not exist prints
// nothing.
func TestWaitForDeletion(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", runs))
	const line = "wait web --for=delete --timeout 1m"
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		h.want(t, "apply $DIR/web.toml --wait", "pod/web created\n")
		stdout, stderr, exit := h.start(t.Context(), line)
		h.want(t, "delete web --grace-period 1", "pod/web deleted (file /etc/podstead/pods.d/web.toml removed)\n")
		select {
		case code := <-exit:
			if code != 0 || stderr.String() != "" {
				t.Fatalf("exit code %d, stderr:\n%s", code, stderr)
			}
		case <-time.After(time.Minute):
			t.Fatalf("podstead %s does not exit: stdout:\n%sstderr:\n%s", line, stdout, stderr)
		}
		if stdout.String() == "pod/web condition met\n" {
			return
		}
	}
	t.Error("no wait has printed that the pod was deleted")
}

// TestWaitOverRestarts checks that a wait continues when the daemon restarts, and reports once that the daemon was stopped.
func TestWaitOverRestarts(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script(gated, runs))
	h.write(t, "db.toml", script("", runs))
	h.want(t, "apply $DIR/web.toml $DIR/db.toml", "pod/web created\npod/db created\n")
	const line = "wait web db --for=condition=Ready --timeout 1m"
	stdout, stderr, exit := h.start(t.Context(), line)
	stdout.await(t, "pod/db condition met\n") // it watches

	if err := api.RecordStop(h.socket, 2); err != nil {
		t.Fatal(err)
	}
	h.closeServer()
	stderr.await(t, "podstead: the daemon was stopped, its containers keep running; waiting until another command starts the daemon\n")
	if err := h.pods.Stop(t.Context(), "db", supervisor.StopOptions{Grace: new(time.Duration)}); err != nil {
		t.Fatal(err)
	}
	h.options.Version.Instance = "two"
	h.serve(t)
	for _, gate := range []string{"door", "window"} {
		h.want(t, "condition set web example.org/"+gate+"=True", "pod/web condition example.org/"+gate+" set to True\n")
	}
	awaitExit(t, line, exit, stdout, stderr, "pod/db condition met\npod/web condition met\n")
}
