package podfiles

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const testDir = "/etc/podstead/pods.d"

// web is the text of a pod file.
func podText(image string) string {
	return fmt.Sprintf("[[containers]]\nname = \"app\"\nimage = %q\n", image)
}

func named(name, image string) string { return fmt.Sprintf("name = %q\n%s", name, podText(image)) }

// factsOf returns a world with files, by name, and pods. The definition of a pod is that of the image in from.
func factsOf(files map[string]string, pods ...pod) *facts {
	w := newFacts(testDir, times{removal: time.Second})
	w.now, w.listed, w.compare = time.Unix(1000, 0), time.Unix(1000, 0), change.Between
	w.between = func(p *pod, c *content) []change.Change { return change.Between(p.definition, c.pod) }
	for name, text := range files {
		path := testDir + "/" + name
		w.contents[path], w.present[path] = accept(path, []byte(text)), true
	}
	for _, p := range pods {
		w.pods[p.name] = p
	}
	w.findMissing(w.now.Add(-time.Hour))
	return &w
}

// running returns a pod that follows a file with an image.
func running(name, file, image string) pod {
	p := pod{name: name, uid: "uid-" + name, definition: accept(testDir+"/"+file, []byte(named(name, image))).pod}
	if strings.HasPrefix(file, name+".") {
		p.definition = accept(testDir+"/"+file, []byte(podText(image))).pod
	}
	p.file = testDir + "/" + file
	return p
}

func (p pod) with(set func(*pod)) pod {
	set(&p)
	return p
}

func effect(e change.Effect) func(*pod, *content) []change.Change {
	return func(p *pod, c *content) []change.Change {
		if p.definition.Containers[0].Image == c.pod.Containers[0].Image {
			return nil
		}
		return []change.Change{{Path: "containers[0].image", Effect: e}}
	}
}

// TestPlan has one row per situation. States are "pod reason: message" of files that are not what runs.
func TestPlan(t *testing.T) {
	t.Parallel()
	a, b := podText("a"), podText("b")
	byRun := func(p *pod) { p.file, p.by = "", "created by podstead run, pid 4711, uid 0" }
	unowned := func(p *pod) { p.file, p.unowned = "", true }
	quarantined := func(p *pod) { p.held = "the daemon crashed" }
	lost := func(w *facts) { w.directory.lost = errNoFiles }
	for _, test := range []struct {
		name   string
		files  map[string]string
		pods   []pod
		effect change.Effect
		change func(*facts)
		steps  string
		states string
	}{
		{name: "new file", files: map[string]string{"web.toml": a}, steps: "add web"},
		{name: "unchanged file", files: map[string]string{"web.toml": a}, pods: []pod{running("web", "web.toml", "a")}},
		{
			name: "changed file", files: map[string]string{"web.toml": b}, pods: []pod{running("web", "web.toml", "a")},
			effect: change.RestartContainer, steps: "redefine web",
		},
		{
			name: "changed file of a pod that must be replaced", files: map[string]string{"web.toml": b},
			pods: []pod{running("web", "web.toml", "a")}, effect: change.ReplacePod, steps: "replace web",
		},
		{
			name: "changed file of a completed pod", files: map[string]string{"web.toml": b}, effect: change.RestartContainer,
			steps: "redefine web",
			pods:  []pod{running("web", "web.toml", "a").with(func(p *pod) { p.completed = true })},
		},
		{
			name: "changed file of a stopped pod", files: map[string]string{"web.toml": b}, effect: change.RestartContainer,
			steps: "redefine web",
			pods:  []pod{running("web", "web.toml", "a").with(func(p *pod) { p.stopped, p.completed = true, true })},
		},
		{
			name: "replacement of a stopped pod", files: map[string]string{"web.toml": b}, effect: change.ReplacePod,
			pods:   []pod{running("web", "web.toml", "a").with(func(p *pod) { p.stopped, p.completed = true, true })},
			states: "web : the pod is stopped, and is replaced after podstead start web",
		},
		{
			name: "pod that is being deleted", files: map[string]string{"web.toml": b}, effect: change.ReplacePod,
			pods: []pod{running("web", "web.toml", "a").with(func(p *pod) { p.deleting = true })},
		},
		{name: "invalid file without a pod", files: map[string]string{"web.toml": "x = 1"}, states: "web InvalidFile: "},
		{
			name: "invalid file with a pod", files: map[string]string{"web.toml": "x = 1"}, pods: []pod{running("web", "web.toml", "a")},
			states: "web InvalidFile: ",
		},
		{
			name: "two files with one pod name", files: map[string]string{"web.toml": a, "other.toml": named("web", "b")},
			pods: []pod{running("web", "web.toml", "a")},
			states: `web Rejected: pod "web" is defined by /etc/podstead/pods.d/other.toml and /etc/podstead/pods.d/web.toml; web ` +
				`Rejected: pod "web" is defined by /etc/podstead/pods.d/other.toml and /etc/podstead/pods.d/web.toml`,
		},
		{
			name: "name of a pod that a client has created", files: map[string]string{"web.toml": a},
			pods: []pod{running("web", "web.toml", "a").with(byRun)},
			states: `web Rejected: pod "web" already exists: created by podstead run, pid 4711, uid 0, so /etc/podstead/pods.d/web.toml ` +
				`is not used`,
		},
		{
			name: "file of a pod whose state was lost", files: map[string]string{"web.toml": a}, steps: "redefine web",
			pods: []pod{running("web", "web.toml", "a").with(unowned)},
		},
		{
			name: "changed file of a pod whose state was lost", files: map[string]string{"web.toml": b}, effect: change.ReplacePod,
			steps: "replace web",
			pods:  []pod{running("web", "web.toml", "a").with(unowned)},
		},
		{name: "pod whose state was lost, without a file", pods: []pod{running("web", "web.toml", "a").with(unowned)}},
		{
			name: "file of a pod whose state file is of a later version", files: map[string]string{"web.toml": a},
			pods: []pod{
				running("web", "web.toml", "a").with(unowned).with(func(p *pod) {
					p.held, p.by = "its state file is newer", "Pod is not supervised"
				}),
			},
			states: `web Rejected: pod "web" already exists: Pod is not supervised, so /etc/podstead/pods.d/web.toml is not used`,
		},
		{name: "pod of a client", pods: []pod{running("web", "web.toml", "a").with(byRun)}},
		{
			name: "renamed file", files: map[string]string{"site.toml": named("web", "a")}, pods: []pod{running("web", "web.toml", "a")},
			effect: change.InPlace, steps: "redefine web",
		},
		{name: "removed file", pods: []pod{running("web", "web.toml", "a")}, steps: "remove web"},
		{
			name: "removed file of a pod that is being deleted",
			pods: []pod{running("web", "web.toml", "a").with(func(p *pod) { p.deleting = true })},
		},
		{
			name: "removed file of a stopped pod", pods: []pod{running("web", "web.toml", "a").with(func(p *pod) { p.stopped = true })},
			steps: "remove web",
		},
		{
			name: "file removed a moment ago", pods: []pod{running("web", "web.toml", "a")},
			change: func(w *facts) { w.missing["web"] = absence{testDir + "/web.toml", w.now.Add(-time.Second / 2)} },
		},
		{name: "lost directory", pods: []pod{running("web", "web.toml", "a")}, change: lost},
		{
			name: "lost directory, removal confirmed", pods: []pod{running("web", "web.toml", "a"), running("db", "db.toml", "a")},
			steps:  "remove web",
			change: func(w *facts) { lost(w); w.confirmed[testDir+"/web.toml"] = true },
		},
		{
			name: "changed file of a pod that is not supervised", files: map[string]string{"web.toml": b}, effect: change.ReplacePod,
			pods: []pod{running("web", "web.toml", "a").with(quarantined)}, states: "web : the pod is not supervised: the daemon crashed",
		},
		{
			name: "small change of a file of a pod that is not supervised", files: map[string]string{"web.toml": b}, effect: change.InPlace,
			pods: []pod{running("web", "web.toml", "a").with(quarantined)}, states: "web : the pod is not supervised: the daemon crashed",
		},
		{
			name: "unchanged file of a pod that is not supervised", files: map[string]string{"web.toml": a},
			pods: []pod{running("web", "web.toml", "a").with(quarantined)},
		},
		{name: "removed file of a pod that is not supervised", pods: []pod{running("web", "web.toml", "a").with(quarantined)}},
		{
			name:   "removed file of a pod that is not supervised, removal confirmed",
			pods:   []pod{running("web", "web.toml", "a").with(quarantined)},
			change: func(w *facts) { w.confirmed[testDir+"/web.toml"] = true },
		},
		{
			name: "directory that is being restored", files: map[string]string{"db.toml": a},
			pods:   []pod{running("web", "web.toml", "a"), running("db", "db.toml", "a")},
			change: func(w *facts) { w.directory.settles = w.now.Add(time.Second) },
		},
		{
			name: "removed file, another one half-written", pods: []pod{running("web", "web.toml", "a")},
			change: func(w *facts) { w.settled = w.now.Add(time.Second) },
		},
		{
			name: "file with another pod name", files: map[string]string{"web.toml": named("site", "a")},
			pods: []pod{running("web", "web.toml", "a")}, steps: "add site, remove web",
		},
		{
			name: "file with another pod name since a moment ago", files: map[string]string{"web.toml": named("site", "a")},
			pods: []pod{running("web", "web.toml", "a")}, steps: "add site",
			change: func(w *facts) { w.missing["web"] = absence{testDir + "/web.toml", w.now.Add(-time.Second / 2)} },
		},
		{
			name:  "file with another pod name in a directory that is being restored",
			files: map[string]string{"web.toml": named("site", "a")}, pods: []pod{running("web", "web.toml", "a")}, steps: "add site",
			change: func(w *facts) { w.directory.settles = w.now.Add(time.Second) },
		},
		{
			name: "file with another pod name, another one half-written", files: map[string]string{"web.toml": named("site", "a")},
			pods: []pod{running("web", "web.toml", "a")}, steps: "add site", change: func(w *facts) { w.settled = w.now.Add(time.Second) },
		},
		{
			name: "pod that follows another missing file now", pods: []pod{running("web", "web.toml", "a")},
			change: func(w *facts) { w.missing["web"] = absence{testDir + "/site.toml", w.now.Add(-time.Hour)} },
		},
		{
			name: "file with the pod name of another file", files: map[string]string{"web.toml": named("db", "a"), "db.toml": a},
			pods: []pod{running("web", "web.toml", "a"), running("db", "db.toml", "a")},
			states: `db Rejected: pod "db" is defined by /etc/podstead/pods.d/db.toml and /etc/podstead/pods.d/web.toml; db Rejected: ` +
				`pod "db" is defined by /etc/podstead/pods.d/db.toml and /etc/podstead/pods.d/web.toml`,
		},
		{
			name: "pod of another directory",
			pods: []pod{running("web", "web.toml", "a").with(func(p *pod) { p.file = "/srv/pods.d/web.toml" })},
		},
		{
			name: "pod of another directory, removal confirmed", steps: "remove web",
			pods:   []pod{running("web", "web.toml", "a").with(func(p *pod) { p.file = "/srv/pods.d/web.toml" })},
			change: func(w *facts) { w.confirmed["/srv/pods.d/web.toml"] = true },
		},
		{
			name: "pod of another directory that a file defines", files: map[string]string{"web.toml": a}, steps: "redefine web",
			pods: []pod{running("web", "web.toml", "a").with(func(p *pod) { p.file = "/srv/pods.d/web.toml" })},
		},
		{
			name: "file that cannot be read", pods: []pod{running("web", "web.toml", "a")}, states: "web InvalidFile: permission denied",
			change: func(w *facts) {
				path := testDir + "/web.toml"
				w.present[path], w.contents[path] = true, unreadable(path, errors.New("permission denied"))
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := factsOf(test.files, test.pods...)
			w.between = effect(test.effect)
			if test.change != nil {
				test.change(w)
			}
			r := w.plan()
			if got := stepsOf(r.steps); got != test.steps {
				t.Errorf("steps %q, want %q", got, test.steps)
			}
			if got := statesOf(r.files); got != test.states {
				t.Errorf("states\n%s\nwant\n%s", got, test.states)
			}
		})
	}
}

func stepsOf(steps []step) string {
	var list []string
	for _, s := range steps {
		list = append(list, string(s.kind)+" "+s.pod)
	}
	return strings.Join(list, ", ")
}

func statesOf(files []File) string {
	var list []string
	for _, f := range files {
		if f.Reason != "" || f.Refused != nil {
			list = append(list, f.Pod+" "+string(f.Reason)+": "+text(f.Refused))
		}
	}
	return strings.Join(list, "; ")
}

// TestStaleListing: a pod ends only if a listing finds its file missing after the delay of the removal. Other passes do not list.
func TestStaleListing(t *testing.T) {
	t.Parallel()
	w := factsOf(nil, running("web", "web.toml", "a"))
	w.missing["web"] = absence{testDir + "/web.toml", w.listed}
	due := w.listed.Add(w.times.removal)
	w.now = due.Add(time.Minute) // such as after a change of another pod
	if r := w.plan(); len(r.steps) != 0 || r.again != due {
		t.Errorf("with an older listing: steps %v, again at %v", stepsOf(r.steps), r.again)
	}
	w.listed = due
	if r := w.plan(); stepsOf(r.steps) != "remove web" {
		t.Errorf("with a newer listing: steps %q", stepsOf(r.steps))
	}
	delete(w.missing, "web") // a pod that has appeared since the listing
	if r := w.plan(); len(r.steps) != 0 || !r.again.After(w.listed) {
		t.Errorf("with a new pod: steps %q, again at %v", stepsOf(r.steps), r.again)
	}
}

// TestRetry: a step that failed is repeated after a delay, and at once if its file changes. Its error stays visible.
func TestRetry(t *testing.T) {
	t.Parallel()
	w := factsOf(map[string]string{"web.toml": podText("b")}, running("web", "web.toml", "a"))
	w.between = effect(change.RestartContainer)
	step := w.plan().steps[0]
	w.attempts["web"] = attempt{key: step.key(), err: errors.New("no route to host"), next: w.now.Add(10 * time.Second)}
	r := w.plan()
	if len(r.steps) != 0 || r.again != w.now.Add(10*time.Second) {
		t.Errorf("steps %v, again at %v", r.steps, r.again)
	}
	if want := "web : update waits: no route to host"; statesOf(r.files) != want {
		t.Errorf("state %q, want %q", statesOf(r.files), want)
	}
	w.now = w.now.Add(10 * time.Second)
	w.working["web"] = progress{text: "update is being prepared"}
	if r = w.plan(); len(r.steps) != 1 || statesOf(r.files) != "web : update waits: no route to host" {
		t.Errorf("after the delay: steps %v, state %q", r.steps, statesOf(r.files))
	}
	w.now = time.Unix(1000, 0)
	path := testDir + "/web.toml"
	w.contents[path] = accept(path, []byte(podText("c")))
	if r = w.plan(); len(r.steps) != 1 || statesOf(r.files) != "web : update is being prepared" {
		t.Errorf("after an edit: steps %v, state %q", r.steps, statesOf(r.files))
	}
}

// TestFileOfUpdate checks what a file reports while its pod is updated.
func TestFileOfUpdate(t *testing.T) {
	t.Parallel()
	w := factsOf(map[string]string{"web.toml": podText("b")}, running("web", "web.toml", "a"))
	w.between = effect(change.RestartContainer)
	pulling := worker{step: step{kind: redefine}}
	pulling.pulling.Store(new("app"))
	for _, c := range []struct {
		w         *worker
		preparing bool
	}{
		{&worker{step: step{kind: redefine}}, true},
		{&worker{step: step{kind: replace}}, false},
		{&pulling, false},
	} {
		w.working["web"] = c.w.progress()
		f := w.plan().files[0]
		if hash := w.contents[f.Path].pod.Hash; f.Preparing != c.preparing || f.Refused == nil || f.SpecHash != hash || hash == "" {
			t.Errorf("%+v: %+v", c.w.progress(), f)
		}
	}
}

// TestRetryOfRejected: a pod that was rejected because of other pods is tried again when these change.
func TestRetryOfRejected(t *testing.T) {
	t.Parallel()
	w := factsOf(map[string]string{"web.toml": podText("a")}, running("db", "db.toml", "a"))
	w.present[testDir+"/db.toml"] = true
	refused := &supervisor.RefusedError{Pod: "web", Refusals: []lifecycle.Refusal{{Message: "host port 80/TCP is in use"}}}
	w.attempts["web"] = attempt{key: w.plan().steps[0].key(), err: refused, next: w.now.Add(time.Hour), pods: w.fingerprint()}
	r := w.plan()
	if len(r.steps) != 0 || !strings.HasPrefix(statesOf(r.files), "web Rejected: ") {
		t.Errorf("steps %v, state %q", r.steps, statesOf(r.files))
	}
	delete(w.pods, "db")
	if r = w.plan(); stepsOf(r.steps) != "add web" {
		t.Errorf("without the other pod: steps %v", r.steps)
	}
	before := w.attempts["web"]
	before.changed = w.now.Add(time.Second)
	w.attempts["web"] = before
	if r = w.plan(); len(r.steps) != 0 || r.again != before.changed {
		t.Errorf("a moment after the refusal: steps %v, again at %v", r.steps, r.again)
	}
}

// TestReplaceAfterError: a pod that cannot be redefined is replaced.
func TestReplaceAfterError(t *testing.T) {
	t.Parallel()
	w := factsOf(map[string]string{"web.toml": podText("b")}, running("web", "web.toml", "a"))
	w.between = effect(change.RestartContainer)
	w.attempts["web"] = attempt{key: w.plan().steps[0].key(), replace: true}
	for range 2 {
		r := w.plan()
		if stepsOf(r.steps) != "replace web" {
			t.Fatalf("steps %v, want a replacement", r.steps)
		}
		w.attempts["web"] = attempt{key: r.steps[0].key(), replace: true, err: errors.New("x")}
	}
}

// TestGeneratedName: a file with generateName defines a pod of the same name each time.
func TestGeneratedName(t *testing.T) {
	t.Parallel()
	text := []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: web-\nspec:\n  containers:\n  - name: app\n    image: a\n")
	first, second := accept(testDir+"/a.yaml", text), accept(testDir+"/a.yaml", text)
	if first.pod == nil || !strings.HasPrefix(first.pod.Name, "web-") {
		t.Fatalf("problems: %v", first.problems)
	}
	if diff := cmp.Diff(first.pod.Name, second.pod.Name); diff != "" {
		t.Errorf("names differ: %s", diff)
	}
	if other := accept(testDir+"/b.yaml", text); other.pod.Name == first.pod.Name {
		t.Errorf("files with different names define the same pod %s", other.pod.Name)
	}
}
