package podfiles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// stream returns a file with several pods, given as NAME=IMAGE.
func stream(pods ...string) string {
	var b strings.Builder
	for _, p := range pods {
		name, image, _ := strings.Cut(p, "=")
		b.WriteString("---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\n" +
			"spec: {containers: [{name: app, image: " + image + "}]}\n")
	}
	return b.String()
}

// accept is that of a set with default options.
func accept(path string, text []byte) *content { return acceptWith(options(path, 0), path, text) }

// reasonsOf returns the reasons of the files by pod.
func (b *bench) reasonsOf() map[string]api.Reason {
	reasons := map[string]api.Reason{}
	for _, f := range b.set.Files() {
		reasons[f.Pod] = f.Reason
	}
	return reasons
}

// TestSeveralPods: a file defines several pods, each of which has its own state: a change, an error or the removal of one leaves the
// others.
func TestSeveralPods(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("shop.yaml", stream("web=a", "db=a"))
	b.run()
	b.untilPods(map[string]string{"web": "a", "db": "a"})
	db := b.uid("db")

	b.write("shop.yaml", stream("web=b", "db=a"))
	b.untilPods(map[string]string{"web": "b", "db": "a"})

	b.write("shop.yaml", stream("web=c", "db='!'", "cache=a"))
	b.untilPods(map[string]string{"web": "c", "db": "a", "cache": "a"})
	if got := b.reasonsOf(); got["db"] != api.ReasonInvalidFile || got["web"] != "" || got["cache"] != "" {
		t.Errorf("reasons %v, want that of db to be %s", got, api.ReasonInvalidFile)
	}

	b.write("shop.yaml", stream("web=c")+"---\nkind: [\n")
	b.until("each pod has the error of the file", func() bool {
		got := b.reasonsOf()
		return got["web"] == api.ReasonInvalidFile && got["db"] == api.ReasonInvalidFile && got["cache"] == api.ReasonInvalidFile
	})
	b.looks(3)
	b.untilPods(map[string]string{"web": "c", "db": "a", "cache": "a"})

	b.write("shop.yaml", stream("web=c", "db=a"))
	b.untilPods(map[string]string{"web": "c", "db": "a"})
	if b.uid("db") != db {
		t.Error("pod db was replaced")
	}
}

// TestSeveralPodsDivided: a client that deletes or changes one of the pods of a file touches no other one.
func TestSeveralPodsDivided(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	whole := "# The shop.\n" + stream("web=a", "db=a", "cache=a") + "# The cache needs little memory.\n"
	b.write("web.yaml", whole)
	b.run()
	b.untilPods(map[string]string{"web": "a", "db": "a", "cache": "a"})
	uids := map[string]string{"web": b.uid("web"), "cache": b.uid("cache")}

	if _, err := b.set.Remove(b.Context(), "db"); err != nil {
		t.Fatal(err)
	}
	b.untilPods(map[string]string{"web": "a", "cache": "a"})
	if got, want := b.names(), []string{"cache.yaml", "web.yaml", "web.yaml~"}; !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	if backup, err := os.ReadFile(filepath.Join(b.dir, "web.yaml~")); err != nil || string(backup) != whole {
		t.Errorf("backup %q, %v, want the file with its comments", backup, err)
	}

	b.write("shop.yaml", stream("x=a", "y=a"))
	b.untilPods(map[string]string{"web": "a", "cache": "a", "x": "a", "y": "a"})
	plan, err := b.apply("x", ".yaml", stream("x=b"), false)
	if err != nil || len(plan.Replaced) != 1 {
		t.Fatalf("apply: %+v, %v", plan, err)
	}
	b.untilPods(map[string]string{"web": "a", "cache": "a", "x": "b", "y": "a"})
	if got, want := b.names(), []string{"cache.yaml", "shop.yaml~", "web.yaml", "web.yaml~", "x.yaml", "y.yaml"}; !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	for name, uid := range uids {
		if b.uid(name) != uid {
			t.Errorf("pod %s was replaced", name)
		}
	}

	b.write("pair.yaml", stream("p=a", "q='!'"))
	b.untilPods(map[string]string{"web": "a", "cache": "a", "x": "b", "y": "a", "p": "a"})
	if _, err := b.set.Remove(b.Context(), "p"); err == nil || !strings.Contains(err.Error(), "defines several pods, and is invalid") {
		t.Errorf("remove p: %v, want that the file is invalid", err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "pair.yaml")); err != nil {
		t.Error(err)
	}
}

// TestSeveralPodsContested: a pod that two files define keeps running when a client removes another pod of the file that it follows.
func TestSeveralPodsContested(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("shop.yaml", stream("web=a", "db=a"))
	b.run()
	b.untilPods(map[string]string{"web": "a", "db": "a"})
	db := b.uid("db")
	b.write("other.yaml", stream("db=a"))
	b.until("two files define db", func() bool { return b.reasonsOf()["db"] == api.ReasonRejected })
	if _, err := b.set.Remove(b.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	b.untilPods(map[string]string{"db": "a"})
	b.looks(3)
	if got := b.uid("db"); got != db {
		t.Errorf("pod db has the UID %q, want %q", got, db)
	}
	b.must(os.Remove(filepath.Join(b.dir, "other.yaml")))
	b.until("db follows its own file", func() bool { return b.reasonsOf()["db"] == "" })
	b.looks(3)
	if got := b.uid("db"); got != db {
		t.Errorf("pod db has the UID %q, want %q", got, db)
	}
}

// TestSeveralPodsUndone: a rollback of one pod holds until its own definition changes.
func TestSeveralPodsUndone(t *testing.T) {
	t.Parallel()
	b := newRollback(t)
	b.becomes["b"], b.becomes["c"] = "ready", "ready"
	b.write("shop.yaml", updated(stream("web=a", "db=a")))
	b.run()
	b.untilOutcomes("1 Ready, runs 1")
	b.write("shop.yaml", updated(stream("web=b", "db=a")))
	b.untilOutcomes("1 Ready, 2 Ready, runs 2")
	_, err := b.set.Undo(b.Context(), "web", 1, "a test")
	b.must(err)
	b.untilPods(map[string]string{"web": "a", "db": "a"})
	b.write("shop.yaml", "# a comment\n"+updated(stream("web=b", "db=b")))
	b.untilPods(map[string]string{"web": "a", "db": "b"})
	b.looks(2)
	b.untilPods(map[string]string{"web": "a", "db": "b"})
	b.write("shop.yaml", updated(stream("web=c", "db=b")))
	b.untilPods(map[string]string{"web": "c", "db": "b"})
}

// updated returns a file with several pods that are ready at once.
func updated(text string) string {
	return strings.ReplaceAll(text, "spec: {", "spec: {update: {minReadySeconds: 0, readyWithinSeconds: 3600}, ")
}

// uid returns the UID of a pod; empty: it does not exist.
func (b *bench) uid(name string) string {
	for _, p := range b.Pods() {
		if p.Pod.Name == name {
			return p.Facts.UID
		}
	}
	return ""
}

// names returns the names of the files of the directory.
func (b *bench) names() (names []string) {
	b.Helper()
	list, err := os.ReadDir(b.dir)
	b.must(err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
