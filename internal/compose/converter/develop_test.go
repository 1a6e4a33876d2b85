package converter

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/internal/compose"
)

// TestTriggers: restarts are taken, also those of files that are mounted where Compose copies them. Others are reported with their reason.
func TestTriggers(t *testing.T) {
	dir := writeFiles(t, txtar.Parse([]byte(`
-- src/main.py --
-- compose.yaml --
services:
  web_app:
    image: busybox
    scale: 2
    volumes: ["./src:/app"]
    develop:
      watch:
        - {action: restart, path: ./src, ignore: ["*.pyc"], include: ["*.py"]}
        - {action: sync+restart, path: ./src/main.py, target: /app/main.py}
        - {action: sync, path: ./src, target: /app/, initial_sync: true}
        - {action: sync, path: ./src, target: /other}
        - {action: sync+restart, path: ./lib, target: /app}
        - {action: rebuild, path: Dockerfile}
        - {action: sync+exec, path: ./src, target: /app, exec: {command: make}}
`)).Files)
	r := Convert(t.Context(), request(dir))
	want := []compose.Trigger{
		{
			Pods: []string{"web-app-0", "web-app-1"}, Container: "web-app", Path: filepath.Join(dir, "src"),
			Include: []string{"*.py"}, Ignore: []string{"*.pyc"},
		},
		{Pods: []string{"web-app-0", "web-app-1"}, Container: "web-app", Path: filepath.Join(dir, "src/main.py")},
	}
	if diff := cmp.Diff(want, r.Triggers); diff != "" {
		t.Error(diff)
	}
	var got strings.Builder
	for _, p := range r.Problems {
		if !p.Warning {
			t.Errorf("%v is an error", p)
		}
		if strings.Contains(p.Path, "develop") {
			got.WriteString(p.String() + "\n" + strings.ReplaceAll(p.Hint, dir, "DIR") + "\n")
		}
	}
	text := got.String()
	for _, want := range []string{
		"compose.yaml:11:11: services.web_app.develop.watch.3: ignored: action sync: files are not copied to containers\n" +
			"mount the files with volumes: [\"DIR/src:/other\"]\n",
		"compose.yaml:12:11: services.web_app.develop.watch.4: ignored: action sync+restart: files are not copied to containers\n",
		"compose.yaml:13:11: services.web_app.develop.watch.5: ignored: action rebuild: images are not built\n",
		"services.web_app.develop.watch.6.exec: ignored: commands are not run in containers when files change\nuse the action restart\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no problem %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "ignored"); n != 4 {
		t.Errorf("%d problems, want 4:\n%s", n, text)
	}
}

// TestFiles: the files of a project are known, also those that do not exist, and those that an invalid project names.
func TestFiles(t *testing.T) {
	dir := writeFiles(t, txtar.Parse([]byte(`
-- .env --
DB=db
-- compose.yaml --
include: ["${DB}/compose.yaml", {path: [cache/a.yaml, cache/b.yaml], project_directory: cache, env_file: [cache.env]}]
services:
  web:
    extends: {file: base.yaml, service: web}
    env_file: [web.env, {path: optional.env, required: false}]
    label_file: [web.labels]
    secrets: [token]
    configs: [site]
secrets: {token: {file: token.txt}}
configs: {site: {file: site.conf}}
-- base.yaml --
services:
  web:
    extends: {file: common/base.yaml, service: web}
-- common/base.yaml --
services: {web: {extends: {file: deep/base.yaml, service: web}}}
-- common/deep/base.yaml --
services: {web: {image: busybox}}
-- db/compose.yaml --
include: [more.yaml]
services: {db: {image: busybox}}
-- db/more.yaml --
services: {more: {image: busybox}}
-- cache/a.yaml --
services: {cache: {image: busybox}}
-- cache/b.yaml --
services: {cache: {command: cat}}
-- cache.env --
-- web.env --
-- web.labels --
-- token.txt --
t
-- site.conf --
s
`)).Files)
	q := request(dir)
	r := Convert(t.Context(), q)
	if errs := r.Problems.Errors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	named := []string{
		".env", "base.yaml", "cache.env", "cache/a.yaml", "cache/b.yaml", "common/base.yaml", "common/deep/base.yaml", "compose.yaml",
		"db/.env", "db/compose.yaml", "db/more.yaml",
	}
	check := func(r *compose.Result, want []string) {
		t.Helper()
		var got []string
		for _, path := range r.Files {
			relative, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, relative)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	check(r, append(slices.Clone(named), "optional.env", "site.conf", "token.txt", "web.env", "web.labels"))
	q.Project = "Not a name"
	if r = Convert(t.Context(), q); len(r.Problems.Errors()) == 0 {
		t.Fatal("an invalid project has no problems")
	}
	check(r, slices.DeleteFunc(named, func(name string) bool { return strings.HasPrefix(name, "db/") })) // what variables name is unknown
}
