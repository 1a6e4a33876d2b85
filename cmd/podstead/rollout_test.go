package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/state"
)

// newRollouts returns a host with the pod web, of which two generations were ready and the third is not yet.
func newRollouts(t *testing.T) *testHost {
	t.Helper()
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script("", runs))
	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	h.files.Judge("web", api.GenerationReady, "")
	h.files.Changes = []change.Change{
		{Path: "containers[0].image", Container: "app", Old: `"a"`, New: `"b"`, Effect: change.RestartContainer},
		{Path: "hostname", Container: "app", New: `"x"`},
		{Path: "hostname", Container: "b", New: `"x"`},
		{Path: "labels.a", New: `"b"`},
	}
	h.write(t, "web.toml", script("labels.a = \"b\"", runs))
	h.want(t, "apply $DIR/web.toml", "pod/web configured\n")
	h.files.Judge("web", api.GenerationReady, "")
	h.files.Changes = h.files.Changes[:1]
	h.write(t, "web.toml", script("labels.a = \"c\"", runs))
	h.want(t, "apply $DIR/web.toml", "pod/web configured\n")
	return h
}

func TestRolloutStatus(t *testing.T) {
	h := newRollouts(t)
	h.await(t, "get web", "web +1/1 +Running")
	h.want(t, "rollout status web --watch=false", "Waiting for pod \"web\" rollout to finish: generation 3 is not ready yet...\n")
	h.fails(t, "rollout status web --timeout 10ms", statusTimeout, `podstead: rollout of pod "web": timed out after 10ms`)
	done := make(chan output, 1)
	go func() { done <- h.run(t, "rollout status pod/web") }()
	h.files.Judge("web", api.GenerationReady, "")
	if got := <-done; got.code != 0 || !strings.HasSuffix(got.stdout, "pod \"web\" successfully rolled out\n") {
		t.Errorf("exit code %d, stdout:\n%sstderr:\n%s", got.code, got.stdout, got.stderr)
	}
	h.want(t, "rollout status pod web -w", "pod \"web\" successfully rolled out\n")
	h.files.Judge("web", api.GenerationFailed, "no memory")
	h.fails(t, "rollout status web", statusFailed, `podstead: rollout of pod "web": generation 3 failed: no memory`)
	h.files.Judge("web", api.GenerationRolledBack, "no memory")
	got := h.fails(t, "rollout status web", statusFailed,
		`podstead: rollout of pod "web": generation 3 was rolled back: no memory; generation 2 is being restored`)
	if !strings.HasPrefix(got.stderr,
		"web is running and ready. The newest version of its file is not running: generation 3 was rolled back") {
		t.Errorf("no explanation in stderr:\n%s", got.stderr)
	}
}

func TestRolloutHistory(t *testing.T) {
	h := newRollouts(t)
	const by = `podstead apply, pid \d+, uid \d+`
	h.await(t, "rollout history web", `^pod/web
CURRENT +GENERATION +AGE +OUTCOME +CHANGES +BY
 +1 +\d+s +Ready +<none> +`+by+`
 +2 +\d+s +Ready +containers\[0\]\.image, hostname and 1 more +`+by+`
\* +3 +\d+s +Progressing +containers\[0\]\.image +`+by+`
$`)
	h.files.Judge("web", api.GenerationRolledBack, "no memory")
	got := h.run(t, "rollout history web")
	if want := "podstead: the newest content of /etc/podstead/pods.d/web.toml does not run: generation 3 was rolled back: no memory; " +
		"generation 2 is being restored\n"; got.code != 0 ||
		got.stderr != want {
		t.Errorf("exit code %d, stderr %q, want %q", got.code, got.stderr, want)
	}
	detail := regexp.MustCompile(`^pod/web with generation #3
Time:     \d{4}-.*
By:       ` + by + `
Digest:   sha256:[0-9a-f]{64}
Outcome:  RolledBack
Message:  no memory
Changes:
  containers\[0\].image: "a" -> "b" \(restarts container app\)
$`)
	for _, line := range []string{
		"rollout history web --generation 3", "rollout history web --generation=3", "rollout history web --revision 3",
	} {
		if got := h.run(t, line); got.code != 0 || !detail.MatchString(got.stdout) {
			t.Errorf("%s: exit code %d, stdout:\n%swant:\n%v", line, got.code, got.stdout, detail)
		}
	}
	h.fails(t, "rollout history web --generation 9", statusNotFound, `podstead: pod "web" has no generation 9`)
	h.fails(t, "rollout history web --generation 0", statusUsage, "must be a number, at least 1")
	h.fails(t, "rollout history web -o wide", statusUsage, `output format "wide" is not supported`)
	var r api.Rollout
	if err := json.Unmarshal([]byte(h.run(t, "rollout history web -o json").stdout), &r); err != nil || len(r.Generations) != 3 ||
		r.Running != 2 {
		t.Errorf("history as JSON: %+v, %v", r, err)
	}
	var g api.Generation
	if err := json.Unmarshal([]byte(h.run(t, "rollout history web -o json --revision 3").stdout), &g); err != nil || g.Generation != 3 ||
		g.Message != "no memory" {
		t.Errorf("generation as JSON: %+v, %v", g, err)
	}
	h.await(t, "rollout history web -o yaml", `(?m)^running: 2$`)
}

func TestRolloutUndo(t *testing.T) {
	h := newRollouts(t)
	h.await(t, "get web", "web +1/1 +Running")
	undone := h.want(t, "rollout undo web", "pod/web rolled back to generation 2\n")
	want := "podstead: /etc/podstead/pods.d/web.toml still has generation 3: it is carried out when the file is changed or applied\n" +
		"hint: change the file with podstead edit web to keep generation 2; " +
		"podstead plan /etc/podstead/pods.d/web.toml shows what of the file does not run\n"
	if undone.stderr != want {
		t.Errorf("stderr %q, want %q", undone.stderr, want)
	}
	h.want(t, "rollout undo pod/web --to-generation 1", "pod/web rolled back to generation 1\n")
	h.want(t, "rollout undo web --to-revision 2", "pod/web rolled back to generation 2\n")
	h.fails(t, "rollout undo web --to-generation 2", statusFailed, `generation 2 of pod "web" runs already`)
	h.fails(t, "rollout undo web --to-generation x", statusUsage, "must be a number, at least 1")
	h.files.Returned("web")
	h.await(t, "get web", `web +1/1 +Running \(RolloutUndone\)`)
	h.want(t, "rollout status web", "pod \"web\" successfully rolled out\n")
	got := h.run(t, "rollout history web")
	if want := "podstead: the newest content of /etc/podstead/pods.d/web.toml does not run: generation 2 was " +
		"requested\n"; got.stderr != want {
		t.Errorf("stderr %q, want %q", got.stderr, want)
	}
	h.await(t, "get web -o yaml", `message: generation 2 runs instead, requested by [^;]*;\s+the file still has\s+generation 3`)
	h.write(t, "web.toml", script("labels.a = \"d\"", runs))
	ends := regexp.MustCompile(`^podstead: pod/web: this file replaces generation 2, requested by podstead rollout undo, pid \d+, uid \d+
$`)
	for _, command := range []string{"plan", "apply"} {
		if got := h.run(t, command+" $DIR/web.toml"); got.code != 0 || !ends.MatchString(got.stderr) {
			t.Errorf("%s: exit code %d, stderr %q, want %v", command, got.code, got.stderr, ends)
		}
	}
}

// TestUndoneImage: after an undo of an image, the hint is about the image, since the file has no mistake.
func TestUndoneImage(t *testing.T) {
	var text bytes.Buffer
	r := api.Rollout{
		File: "/w.toml", Running: 1, FileGeneration: 2,
		Generations: []api.Generation{{Generation: 1, Digest: "a"}, {Generation: 2, Digest: "a"}},
	}
	(&app{err: &text}).noteFile("web", &r)
	const want = "podstead: /w.toml still has generation 2: it is carried out when the file is changed or applied\n" +
		"hint: replace the newer image with podstead image import FILE, or its archive, to keep generation 1; " +
		"podstead plan /w.toml shows what of the file does not run\n"
	if text.String() != want {
		t.Errorf("got %q, want %q", &text, want)
	}
}

// TestWaitDuringTrial: a command with --wait that changes nothing waits for the update that is on trial, and fails when that is rolled
// back.
func TestWaitDuringTrial(t *testing.T) {
	h := newRollouts(t)
	h.files.Judge("web", api.GenerationReady, "")
	h.write(t, "web.toml", script("update = { minReadySeconds = 3600 }", runs))
	h.want(t, "apply $DIR/web.toml", "pod/web configured\n")
	exits := map[string]<-chan int{}
	texts := map[string]*lines{}
	for command, word := range map[string]string{"apply $DIR/web.toml": "unchanged", "start web": "started"} {
		stdout, stderr, exit := h.start(t.Context(), command+" --wait")
		stdout.await(t, "pod/web "+word+"\n")
		exits[command], texts[command] = exit, stderr
	}
	h.files.Judge("web", api.GenerationRolledBack, "no memory")
	for command, exit := range exits {
		const want = `podstead: wait for pod "web": RolledBack: generation 4 was rolled back: no memory; generation 3 runs`
		if code := <-exit; code != statusFailed || !strings.Contains(texts[command].String(), want) {
			t.Errorf("podstead %s --wait: exit code %d, stderr:\n%s\nwant %s", command, code, texts[command], want)
		}
	}
}

// TestApplyRolledBack checks that apply and plan report a file that was rolled back, and how to try it again.
func TestApplyRolledBack(t *testing.T) {
	h := newRollouts(t)
	h.await(t, "get web", "web +1/1 +Running")
	h.files.Judge("web", api.GenerationRolledBack, "no memory")
	h.await(t, "get web -o wide", `web +1/1 +Running \(RolledBack\)`)
	const cause = "generation 3 was rolled back: no memory; generation 2 runs\n"
	const hint = "hint: change the file, or try it again with podstead rollout undo web --to-generation 3\n"
	for _, command := range []string{"apply", "plan --exit-code", "run -d"} {
		got := h.want(t, command+" $DIR/web.toml", "pod/web unchanged\n")
		if want := "podstead: pod/web does not run this file: " + cause + hint; got.stderr != want {
			t.Errorf("%s: stderr:\n%swant:\n%s", command, got.stderr, want)
		}
	}
	got := h.fails(t, "apply $DIR/web.toml --wait", statusFailed, `podstead: wait for pod "web": `+cause+hint)
	if !strings.HasPrefix(got.stderr, "web is running and ready. The newest version of its file is not running: ") {
		t.Errorf("no explanation in stderr:\n%s", got.stderr)
	}
	h.want(t, "rollout undo web --to-generation 3", "pod/web rolled out again\n")
}

func TestRolloutRestart(t *testing.T) {
	h := newRollouts(t)
	h.want(t, "rollout restart pod/web", "pod/web restarted\n")
	if got := h.restarts.all(); len(got) != 1 || got[0] != "restart web" {
		t.Errorf("calls %v", got)
	}
	h.fails(t, "rollout restart", statusUsage, "rollout restart requires pod names")
	h.fails(t, "rollout restart none", statusNotFound, `no such pod "none"`)
}

func TestRolloutErrors(t *testing.T) {
	h := newTestHost(t, api.Version{})
	pod, _ := spec.Parse("run.toml", []byte(script("", runs)))
	if _, err := h.pods.Add(pod, state.Owner{By: "podstead run, pid 7, uid 0"}); err != nil {
		t.Fatal(err)
	}
	h.files.Refuse(podfiles.File{Path: "/w.toml", Pod: "bad", Reason: api.ReasonRejected, Refused: errors.New("two files define it")})
	const hint = "hint: apply the file of the pod with podstead apply FILE: pods of the pods directory have generations\n"
	for _, command := range []string{"status", "history", "undo"} {
		h.fails(t, "rollout "+command, statusUsage, "rollout "+command+" requires a pod")
		h.fails(t, "rollout "+command+" a b", statusUsage, "rollout "+command+` accepts at most one pod, got "a", "b"`)
		h.fails(t, "rollout "+command+" deployment/web", statusUsage, `resource type "deployment" is not supported: must be pod`)
		h.fails(t, "rollout "+command+" none", statusNotFound, `podstead: pod "none" has no generations: it does not exist`+"\n"+hint)
		h.fails(t, "rollout "+command+" run", statusNotFound,
			`podstead: pod "run" has no generations: it has no file in the pods directory`+"\n"+hint)
	}
	h.fails(t, "rollout status bad", statusFailed, `podstead: rollout of pod "bad": two files define it`)
	for _, command := range []string{"pause", "resume"} {
		h.fails(t, "rollout "+command+" web", statusUsage, "podstead: rollout "+command+" is not supported: a pod has one instance")
	}
	h.fails(t, "rollout none", statusUsage, `unknown command "none" for "podstead rollout"`)
	h.await(t, "rollout", "podstead rollout status web")
}

func TestRolloutCompletion(t *testing.T) {
	h := newRollouts(t)
	const none = ":4\n"
	for line, want := range map[string]string{
		"__complete rollout status w":                         "web\n" + none,
		"__complete rollout undo web w":                       none,
		"__complete rollout restart w":                        "web\n" + none,
		"__complete rollout history web --generation=":        "1\n2\n3\n" + none,
		"__complete rollout history web --generation=2":       "2\n" + none,
		"__complete rollout undo pod/web --to-generation=":    "1\n2\n3\n" + none,
		"__complete rollout undo deployment/web --generation": none,
	} {
		t.Run(line, func(t *testing.T) { h.want(t, line, want) })
	}
}
