package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/state"
)

func TestApply(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "pods/web.toml", script("", runs))
	h.write(t, "pods/db.yaml",
		"apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {containers: [{name: db, image: busybox, command: [sleep, '1000']}]}\n")
	h.write(t, "pods/notes.txt", "not a pod file")
	h.write(t, "pods/.hidden.toml", "not a pod file")
	h.want(t, "apply $DIR/pods --wait", "pod/db created\npod/web created\n")
	h.want(t, "apply $DIR/pods", "pod/db unchanged\npod/web unchanged\n")
	h.want(t, "apply -f $DIR/pods/web.toml", "pod/web unchanged\n")
	h.want(t, "run -d $DIR/pods/web.toml", "pod/web unchanged\n")
	h.write(t, "pods/web.toml", script("[labels]\na = \"b\"", runs))
	h.want(t, "apply -f $DIR/pods/web.toml $DIR/pods/db.yaml --wait", "pod/db unchanged\npod/web configured\n")
	h.stdin = script(`name = "in"`, runs)
	h.want(t, "apply -f -", "pod/in created\n")
	h.want(t, "get in -o name", "pod/in\n")
}

// TestRunOfAppliedPod follows the hint of a run whose pod is of the pods directory: the file stays, and the pod is changed.
func TestRunOfAppliedPod(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", runs))
	h.want(t, "apply $DIR/web.toml --wait", "pod/web created\n")
	h.write(t, "web.toml", script("[labels]\na = \"b\"", runs))
	got := h.fails(t, "run $DIR/web.toml", statusFailed, `pod "web" already exists: `)
	if want := "hint: change the pod with podstead apply FILE, or with podstead edit web\n"; !strings.Contains(got.stderr, want) ||
		strings.Contains(got.stderr, "podstead delete") {
		t.Errorf("stderr:\n%swant %s", got.stderr, want)
	}
	h.want(t, "apply $DIR/web.toml --wait", "pod/web configured\n")
}

// TestRunOfPodThatIsDeleted follows the hint of a run whose pod, of the pods directory, is being deleted.
func TestRunOfPodThatIsDeleted(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", "trap '' TERM; sleep 1000"))
	h.want(t, "apply $DIR/web.toml --wait", "pod/web created\n")
	h.run(t, "delete web --wait=false --grace-period 3600")
	h.write(t, "web.toml", script("restartPolicy = \"Never\"", "exit 0"))
	got := h.fails(t, "run $DIR/web.toml", statusFailed, `pod "web" already exists: it is being deleted, `)
	const command = "wait web --for=delete"
	if want := "hint: wait until the pod is deleted: podstead " + command + "\n"; !strings.HasSuffix(got.stderr, want) {
		t.Fatalf("stderr:\n%swant %s", got.stderr, want)
	}
	h.run(t, "delete web --force --wait=false")
	if got := h.run(t, command); got.code != 0 { // the output is empty if the pod is deleted before
		t.Errorf("podstead %s: exit code %d, stderr:\n%s", command, got.code, got.stderr)
	}
	h.run(t, "run $DIR/web.toml --quiet")
}

// TestApplyNothing checks that nothing is applied if one file is invalid, and that all problems are printed.
func TestApplyNothing(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "good.toml", script("", runs))
	h.write(t, "bad.toml", script("restartPolici = 1", runs))
	h.write(t, "worse.toml", script("hostNetwor = true", runs))
	h.write(t, "other/good.toml", script("", runs))
	h.write(t, "empty/notes.txt", "")
	for _, command := range []string{"apply", "plan", "run -d"} {
		got := h.fails(t, command+" $DIR/good.toml $DIR/bad.toml $DIR/worse.toml", statusUsage, "$DIR/bad.toml:1:1: restartPolici: ")
		if !strings.Contains(got.stderr, "$DIR/worse.toml:1:1: hostNetwor: ") || got.stdout != "" {
			t.Errorf("%s: stdout %q, stderr:\n%swant the problems of all files", command, got.stdout, got.stderr)
		}
	}
	h.fails(t, "apply $DIR/good.toml $DIR/other/good.toml", statusUsage,
		`$DIR/other/good.toml: pod "good" is already defined in $DIR/good.toml`)
	h.fails(t, "apply $DIR/empty", statusUsage, "directory $DIR/empty contains no pod files (.toml, .yaml, .yml, .json)")
	h.fails(t, "apply", statusUsage, "apply requires a pod file")
	h.fails(t, "plan", statusUsage, "plan requires a pod file")
	h.fails(t, "apply busybox", statusUsage, "podstead runs pod files, not images")
	h.fails(t, "apply -f busybox", statusUsage, "no such file or directory")
	h.fails(t, "apply - -f -", statusUsage, "standard input can be read only once")
	h.fails(t, "run -d --rm=false $DIR/good.toml", statusUsage, "--rm cannot be combined with --detach")
	h.fails(t, "run -d --timeout 1m $DIR/good.toml", statusUsage, "--timeout with --detach requires --wait")
	h.fails(t, "run --wait $DIR/good.toml", statusUsage, "--wait requires --detach")
	h.fails(t, "apply --policy restricted $DIR/good.toml", statusUsage, "runAsNonRoot")
	if files := h.files.Files(); len(files) > 0 {
		t.Errorf("files were applied: %v", files)
	}
}

// TestApplyNameTaken checks that the pods of other files are applied.
func TestApplyNameTaken(t *testing.T) {
	h := newTestHost(t, api.Version{})
	pod, _ := spec.Parse("a.toml", []byte(script("", runs)))
	if _, err := h.pods.Add(pod, state.Owner{By: "podstead run, pid 7, uid 0"}); err != nil {
		t.Fatal(err)
	}
	h.write(t, "a.toml", script("", runs))
	h.write(t, "b.toml", script("", runs))
	got := h.fails(t, "apply $DIR/a.toml $DIR/b.toml", statusFailed,
		`podstead: apply pod "a": pod "a" already exists: podstead run, pid 7, uid 0`)
	if got.stdout != "pod/b created\n" {
		t.Errorf("stdout %q", got.stdout)
	}
}

// TestApplyWait checks that --wait explains pods that fail or do not become ready.
func TestApplyWait(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "job.toml", script(`restartPolicy = "Never"`, "exit 0"))
	h.want(t, "apply $DIR/job.toml --wait", "pod/job created\n")
	initFails := func(more, code string) string {
		return script(more+"\n[[initContainers]]\nname = \"init\"\nimage = \"busybox\"\ncommand = [\"sh\", \"-c\", \"exit "+code+"\"]\n",
			runs)
	}
	h.write(t, "fails.toml", initFails(`restartPolicy = "Never"`, "3"))
	got := h.fails(t, "apply $DIR/fails.toml $DIR/job.toml --wait", statusFailed,
		`podstead: wait for pod "fails": container "init" exited with code 3`)
	if !regexp.MustCompile(`(?m)^fails failed: .*exited with code 3`).MatchString(got.stderr) {
		t.Errorf("no explanation in stderr:\n%s", got.stderr)
	}
	h.write(t, "crash.toml", initFails("", "4"))
	h.want(t, "apply $DIR/crash.toml", "pod/crash created\n")
	h.await(t, "get crash", `Init:CrashLoopBackOff`)
	got = h.fails(t, "apply $DIR/crash.toml --wait", statusFailed,
		`podstead: wait for pod "crash": container "init" exited with code 4`)
	if !regexp.MustCompile(`(?m)^crash: .*exited with code 4`).MatchString(got.stderr) {
		t.Errorf("no explanation in stderr:\n%s", got.stderr)
	}
	h.write(t, "gate.toml", script("readinessGates = [{ conditionType = \"example.org/door\" }]\n", runs))
	got = h.fails(t, "apply $DIR/gate.toml --wait --timeout 10ms", statusTimeout, `podstead: wait for pod "gate": timed out after 10ms`)
	if !strings.Contains(got.stderr, "gate is not ready: ") && !strings.Contains(got.stderr, "gate is starting") {
		t.Errorf("no explanation in stderr:\n%s", got.stderr)
	}
	h.want(t, "stop job", "pod/job stopped\n")
	for _, command := range []string{"apply $DIR/job.toml", "start job", "restart job", "rollout restart job", "rollout undo job"} {
		h.fails(t, command+" --timeout 1m", statusUsage, "podstead: --timeout requires --wait")
	}
}

// TestWaitMeansOne: each command with --wait fails, with the cause, if a container fails before the pod was ready for its minimum ready
// time. The wait for Ready takes the minimum ready time.
func TestWaitMeansOne(t *testing.T) {
	h := newParallelHost(t, api.Version{}, fakeruntime.Options{})
	h.closeServer()
	h.options.Restarter = h.pods
	h.serve(t)
	long := "update = { minReadySeconds = 3600, onFailure = \"keep\" }\n"
	h.write(t, "dies.toml", script(long, "sleep 0.1; exit 7"))
	const cause = `podstead: wait for pod "dies": container "app" exited with code 7`
	h.fails(t, "apply $DIR/dies.toml --wait", statusFailed, cause)
	h.fails(t, "apply $DIR/dies.toml --wait", statusFailed, cause) // unchanged
	h.fails(t, "run -d $DIR/dies.toml --wait", statusFailed, cause)
	h.fails(t, "run -d $DIR/dies.toml --wait --timeout 1m", statusFailed, cause)
	h.want(t, "stop dies", "pod/dies stopped\n")
	for _, command := range []string{"start dies", "restart dies", "restart dies -c app", "rollout restart dies"} {
		h.fails(t, command+" --wait", statusFailed, cause)
	}
	h.fails(t, "wait dies --for=condition=Ready --timeout 0", statusTimeout, "condition not met for pods/dies")
}

// TestApplyUnit: apply says that a systemd unit starts the pod of a file, and does not wait for it.
func TestApplyUnit(t *testing.T) {
	h := newParallelHost(t, api.Version{}, fakeruntime.Options{})
	const hint = "hint: run systemctl daemon-reload && systemctl start podstead@web.service\n"
	h.write(t, "web.toml", script("systemd.after = [\"a.service\"]", runs))
	if got := h.want(t, "apply $DIR/web.toml",
		"pod/web created\n"); got.stderr != "podstead: pod/web does not run this file yet: podstead@web.service starts the pod\n"+hint {
		t.Errorf("stderr %q", got.stderr)
	}
	got := h.fails(t, "apply $DIR/web.toml --wait", statusFailed, `podstead: wait for pod "web": podstead@web.service starts the pod`)
	if !strings.HasSuffix(got.stderr, hint) {
		t.Errorf("stderr %q", got.stderr)
	}
	h.fails(t, "why web", statusNotFound, `no such pod "web": started by podstead@web.service`)
	h.fails(t, "stop web", statusNotFound, `no such pod "web"`)
	var running api.Pod
	running.Metadata.Name, running.Spec.Hash = "web", "v1:a"
	if hint := hintUnit(&api.Applied{Pod: "web", Unit: "podstead@web.service", SpecHash: "v1:b"},
		[]api.Pod{running}); hint != "run systemctl daemon-reload && systemctl reload podstead@web.service" {
		t.Errorf("hint for a pod that runs another definition: %q", hint)
	}
	if hint := hintUnit(&api.Applied{Pod: "web", Unit: "podstead@web.service", SpecHash: "v1:a"}, []api.Pod{running}); hint != "" {
		t.Errorf("hint for a pod that runs its definition: %q", hint)
	}
}

// TestApplyAtBoot checks that apply prints whether the pods start at boot, if the daemon was started on demand.
func TestApplyAtBoot(t *testing.T) {
	const unit, link = "usr/lib/systemd/system/podstead.service", "etc/systemd/system/multi-user.target.wants/podstead.service"
	for name, test := range map[string]struct {
		service bool
		files   []string
		want    string
	}{
		"service runs": {true, nil, ""},
		"unit missing": {
			false, nil,
			"podstead: pods do not start at boot: install the service as described in " +
				"https://github.com/podstead/podstead/blob/main/docs/howto/run-pods-at-boot.md\n",
		},
		"unit not enabled": {
			false, []string{unit}, "podstead: pods do not start at boot: enable the service with systemctl enable --now podstead\n",
		},
		"unit enabled":      {false, []string{unit, link}, ""},
		"file is unchanged": {true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestHost(t, api.Version{OnDemand: !test.service})
			h.hostRoot = filepath.Join(h.dir, "root")
			for _, file := range test.files {
				h.write(t, filepath.Join("root", file), "")
			}
			h.write(t, "web.toml", script("", runs))
			if got := h.want(t, "apply $DIR/web.toml", "pod/web created\n"); got.stderr != test.want {
				t.Errorf("stderr %q, want %q", got.stderr, test.want)
			}
			if got := h.want(t, "apply $DIR/web.toml", "pod/web unchanged\n"); got.stderr != "" {
				t.Errorf("unchanged file: stderr %q", got.stderr)
			}
			h.write(t, "db.toml", script("", runs))
			if got := h.want(t, "apply $DIR/db.toml", "pod/db created\n"); got.stderr != "" {
				t.Errorf("second pod: stderr %q", got.stderr)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", runs))
	h.want(t, "plan $DIR/web.toml", "pod/web would be created\n")
	h.fails(t, "plan $DIR/web.toml --exit-code", statusChanges, "")
	h.want(t, "get", "")
	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	h.want(t, "plan $DIR/web.toml --exit-code", "pod/web unchanged\n")

	h.files.Changes = []change.Change{
		{Path: "containers[0].image", Container: "app", Old: `"a"`, New: `"b"`, Effect: change.RestartContainer},
		{Path: "labels.app", New: `"web"`, Effect: change.InPlace},
	}
	h.write(t, "web.toml", script("labels.app = \"web\"", runs))
	got := h.run(t, "plan $DIR/web.toml --exit-code")
	want := "pod/web would be configured:\n"
	for _, c := range h.files.Changes {
		want += "  " + fmt.Sprint(c) + "\n"
	}
	if got.code != statusChanges || got.stdout != want || got.stderr != "" {
		t.Errorf("exit code %d, stdout:\n%swant:\n%sstderr:\n%s", got.code, got.stdout, want, got.stderr)
	}
	var list api.AppliedList
	if err := json.Unmarshal([]byte(h.run(t, "plan $DIR/web.toml -o json").stdout), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	changes := []api.Change{
		{Path: "containers[0].image", Container: "app", Old: `"a"`, New: `"b"`, Effect: api.EffectRestartContainer},
		{Path: "labels.app", New: `"web"`, Effect: api.EffectInPlace},
	}
	if p := list.Items[0]; p.Pod != "web" || p.Outcome != "configured" || !slices.Equal(p.Changes, changes) {
		t.Errorf("plan as JSON: %+v", p)
	}
	h.fails(t, "plan $DIR/web.toml -o xml", statusUsage, `output format "xml" is not supported`)
}

// TestCreateAndDiff: create does not change a pod that exists, and diff has the exit codes of kubectl.
func TestCreateAndDiff(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", runs))
	h.write(t, "db.toml", script("", runs))
	h.fails(t, "diff -f $DIR/web.toml", statusFailed, "")
	h.want(t, "create -f $DIR/web.toml --wait", "pod/web created\n")
	h.want(t, "diff -f $DIR/web.toml", "")
	h.write(t, "web.toml", script("labels.app = \"web\"", runs))
	if got := h.run(t,
		"diff $DIR/web.toml $DIR/db.toml"); got != (output{statusFailed, "pod/web would be configured\npod/db would be created\n", ""}) {
		t.Errorf("diff: %+v", got)
	}
	want := output{
		statusFailed, "pod/db created\n",
		"podstead: create pod \"web\": pod \"web\" already exists\nhint: update it with podstead apply FILE\n",
	}
	if got := h.run(t, "create -f $DIR/web.toml -f $DIR/db.toml"); got != want {
		t.Errorf("create: %+v, want %+v", got, want)
	}
	if got := h.want(t, "get web -o jsonpath={.metadata.labels.app}", ""); got.stderr != "" {
		t.Error(got.stderr)
	}
	for line, message := range map[string]string{
		"create": "create requires a pod file", "diff": "diff requires a pod file", "diff $DIR/none.toml": "no such file",
		"create nginx:1.27": "podstead runs pod files",
	} {
		h.fails(t, line, statusUsage, message)
	}
	h.write(t, "run.toml", script("", runs))
	_, stderr, exit := h.start(t.Context(), "run $DIR/run.toml")
	stderr.await(t, "Container started")
	h.fails(t, "diff $DIR/run.toml", statusUsage, `pod "run" already exists`)
	h.want(t, "delete run --force", "pod/run deleted\n")
	<-exit
}

func TestPrune(t *testing.T) {
	h := newTestHost(t, api.Version{})
	for _, name := range []string{"a", "b", "c"} {
		h.write(t, name+".toml", script("", runs))
	}
	h.want(t, "apply $DIR/a.toml $DIR/b.toml $DIR/c.toml --wait", "pod/a created\npod/b created\npod/c created\n")
	h.want(t, "plan $DIR/a.toml $DIR/b.toml --prune", "pod/a unchanged\npod/b unchanged\npod/c would be pruned\n")
	h.want(t, "apply $DIR/a.toml $DIR/b.toml --prune", "pod/a unchanged\npod/b unchanged\npod/c pruned\n")
	h.want(t, "plan --prune --exit-code", "")
	h.want(t, "apply --prune", "")
	h.files.Lose()
	h.want(t, "plan --prune", "pod/a would be pruned\npod/b would be pruned\n")
	h.fails(t, "plan --prune --exit-code", statusChanges, "")
	h.want(t, "apply --prune", "pod/a pruned\npod/b pruned\n")
}

// TestPartialFailure checks that delete and apply --prune report the pods that they have deleted, although one cannot be deleted.
func TestPartialFailure(t *testing.T) {
	h := newTestHost(t, api.Version{})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		h.write(t, name+".toml", script("", runs))
		h.want(t, "apply $DIR/"+name+".toml --wait", "pod/"+name+" created\n")
	}
	h.files.OnRemove = func(pod string) error {
		if pod == "b" {
			return errors.New("read-only file system")
		}
		return nil
	}
	got := h.fails(t, "delete b c none", statusNotFound, `podstead: delete pod "b": read-only file system; no such pod "none"`)
	if want := "pod/c deleted (file /etc/podstead/pods.d/c.toml removed)\n"; got.stdout != want {
		t.Errorf("delete: stdout %q, want %q", got.stdout, want)
	}
	got = h.fails(t, "apply $DIR/a.toml --prune", statusFailed, "podstead: read-only file system")
	if want := "pod/a unchanged\npod/d pruned\npod/e pruned\n"; got.stdout != want {
		t.Errorf("prune: stdout %q, want %q", got.stdout, want)
	}
}

func TestRefusedFiles(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", runs))
	h.want(t, "apply $DIR/web.toml --wait", "pod/web created\n")
	h.files.Refuse(podfiles.File{
		Path: "/etc/podstead/pods.d/bad.toml", Pod: "bad", Reason: api.ReasonInvalidFile,
		Problems: spec.Problems{{File: "/etc/podstead/pods.d/bad.toml", Line: 3, Column: 5, Message: "unknown field"}},
	})
	h.files.Refuse(podfiles.File{Path: "/w.toml", Pod: "web", Reason: api.ReasonRejected, Refused: errors.New("two files define it")})
	table := h.run(t, "get -o wide").stdout
	for _, row := range []string{`bad +0/0 +InvalidFile +0 +<unknown> +<none> +<none>\s*$`, `web +1/1 +Running \(Rejected\) +0 +\S+ `} {
		if !regexp.MustCompile(`(?m)^` + row).MatchString(table) {
			t.Errorf("no row %s in\n%s", row, table)
		}
	}
	h.fails(t, "stop bad", statusFailed, "/etc/podstead/pods.d/bad.toml:3:5: unknown field")
	why := h.run(t, "why")
	if !strings.Contains(why.stdout, "bad was rejected: /etc/podstead/pods.d/bad.toml:3:5: unknown field") {
		t.Errorf("why: %s%s", why.stdout, why.stderr)
	}
	h.want(t, "stop --all", "pod/web stopped\n")
	h.files.Refuse(podfiles.File{Path: "/etc/podstead/pods.d/other.toml", Pod: "other", Reason: api.ReasonInvalidFile})
	h.want(t, "delete -l env!=prod", "pod/web deleted (file /w.toml removed)\n")
	h.want(t, "delete --all", "")
	h.want(t, "get -o name", "pod/bad\npod/other\n")
	h.want(t, "delete bad", "pod/bad deleted (file /etc/podstead/pods.d/bad.toml removed)\n")
	h.want(t, "get -o name", "pod/other\n")
}

// TestRejectedRow: a pod that was rejected has the row that the kubelet gives it.
func TestRejectedRow(t *testing.T) {
	h := newTestHost(t, api.Version{})
	const file = "/etc/podstead/pods.d/web.toml"
	pod, problems := spec.Parse(file, []byte(script("", runs)+strings.Replace(script("", runs), `"app"`, `"other"`, 1)))
	if pod == nil {
		t.Fatal(problems)
	}
	h.files.Refuse(podfiles.File{
		Path: file, Pod: "web", Reason: api.ReasonRejected, Definition: pod,
		Refused: &supervisor.RefusedError{Pod: "web", Refusals: []lifecycle.Refusal{
			{Reason: lifecycle.ReasonSysctlForbidden, Message: "forbidden sysctl"},
		}},
	})
	if table := h.run(t, "get").stdout; !regexp.MustCompile(`(?m)^web +0/2 +SysctlForbidden +0 `).MatchString(table) {
		t.Errorf("no row 0/2 SysctlForbidden in\n%s", table)
	}
}

func TestStopStartRestart(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("labels.app = \"shop\"", runs))
	h.write(t, "db.toml", script("", runs))
	h.want(t, "apply $DIR/web.toml $DIR/db.toml --wait", "pod/web created\npod/db created\n")
	h.want(t, "stop -l app=shop", "pod/web stopped\n")
	if row := h.run(t,
		"get web -o wide").stdout; !regexp.MustCompile(`(?m)^web +0/1 +Stopped \(by uid [0-9]+, [0-9]+s ago\) `).MatchString(row) {
		t.Errorf("get -o wide:\n%s", row)
	}
	if row := h.run(t, "get web").stdout; !regexp.MustCompile(`(?m)^web +0/1 +Stopped +0 `).MatchString(row) {
		t.Errorf("get:\n%s", row)
	}
	h.fails(t, "apply $DIR/web.toml --wait", statusFailed, "the pod is stopped: start it with podstead start web")
	h.want(t, "stop db --wait=false --grace-period 5", "pod/db stopping\n")
	h.want(t, "start web", "pod/web started\n")
	h.want(t, "restart web -c app", "pod/web restarted (container app)\n")
	if got, want := h.restarts.all(), []string{"restart web app", "start web"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	h.run(t, "restart --all")
	if got, want := h.restarts.all(), []string{"restart db", "restart web"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	for _, command := range []string{"stop", "start", "restart"} {
		h.fails(t, command, statusUsage, command+" requires pod names, --selector or --all")
		h.fails(t, command+" --all web", statusUsage, "--all cannot be combined with pod names or --selector")
		h.fails(t, command+" none", statusNotFound, `no such pod "none"`)
	}
	h.want(t, "delete web", "pod/web deleted (file /etc/podstead/pods.d/web.toml removed)\n")
}

func TestPendingUpdate(t *testing.T) {
	accepted := api.Condition{Type: api.FileAccepted, Status: "True", Message: "accepted"}
	rejected := api.Condition{Type: api.FileAccepted, Status: "False", Reason: api.ReasonRolledBack, Message: "rolled back"}
	pending := api.Condition{Type: api.FileAccepted, Status: "False", Reason: api.ReasonUpdatePending, Message: "update waits: no image"}
	for want, list := range map[string][]api.Condition{
		"": {accepted, rejected}, "update waits: no image": {{Type: api.PodReady, Status: "False"}, pending},
	} {
		if got := pendingUpdate(&api.Pod{Status: api.PodStatus{Conditions: list}}); got != want {
			t.Errorf("%+v: %q, want %q", list, got, want)
		}
	}
}
