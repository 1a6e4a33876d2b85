package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestValidateWaits checks that validate does not warn of a pod of this host that has completed, nor of a missing one if not all pods of
// the host are known.
func TestValidateWaits(t *testing.T) {
	const (
		container = "[[containers]]\nname = \"c\"\nimage = \"busybox\"\ncommand = [\"sh\", \"-c\", \"exit 0\"]\n"
		missing   = `web.toml:1:12: waitFor[0]: there is no pod "migrate" in these files or on this host (warning: wait-unfulfilled)`
	)
	h := newTestHost(t, api.Version{})
	t.Setenv("PODSTEAD_STATE_DIR", filepath.Join(h.dir, "lib"))
	t.Setenv("PODSTEAD_CONFIG_DIR", filepath.Join(h.dir, "etc"))
	h.write(t, "web.toml", "waitFor = [\"pod:migrate:succeeded\"]\n"+container)
	h.write(t, "db.toml", container)
	check := func(what string, warns bool) {
		t.Helper()
		got := h.run(t, "validate $DIR/web.toml $DIR/db.toml")
		if got.code != 0 || strings.Contains(got.stderr, missing) != warns || !warns && got.stderr != "" {
			t.Errorf("%s: exit code %d, want 0, and a warning: %v; stderr:\n%s", what, got.code, warns, got.stderr)
		}
	}
	check("no pod", true)
	h.write(t, "migrate.toml", "restartPolicy = \"Never\"\n"+container)
	if got := h.run(t, "apply $DIR/migrate.toml"); got.code != 0 {
		t.Fatal(got.stderr)
	}
	h.await(t, "get migrate -o jsonpath={.status.phase}", "^Succeeded$")
	check("a pod that has succeeded", false)

	h.closeServer()
	check("no daemon, and no files of one", true)
	state := h.write(t, "lib/pods/migrate.json", "{}")
	check("no daemon, and the state of pods", false)
	t.Setenv("PODSTEAD_STATE_DIR", filepath.Dir(state)) // without pods
	h.write(t, "etc/pods.d/invalid.toml", "[[")
	check("no daemon, and an invalid file in its pods directory", false)
	h.write(t, "etc/pods.d/invalid.toml", container)
	check("no daemon, and a file of another pod in its pods directory", true)

	l, err := net.Listen("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"message": "internal error"}`, http.StatusInternalServerError)
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	check("a daemon that does not list its pods", false)
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// TestValidateProblems checks that each file that is invalid in the JSON output of validate has a problem.
func TestValidateProblems(t *testing.T) {
	const container = "[[containers]]\nname = \"c\"\nimage = \"busybox\"\n"
	h := newTestHost(t, api.Version{})
	h.write(t, "a.toml", "waitFor = [\"pod:b:ready\"]\n"+container)
	h.write(t, "b.toml", "restartPolicy = \"Never\"\nwaitFor = [\"pod:a:ready\"]\n"+container)
	h.write(t, "wild.toml", "restartPolicy = \"Never\"\n"+container+"securityContext.privileged = true\n")
	h.write(t, "wild.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: other\nspec:\n  hostPID: true\n  containers:\n  - name: c\n"+
		"    image: busybox\n    securityContext:\n      capabilities:\n        add:\n        - SYS_ADMIN\n")
	const cycle = "pods wait for each other: "
	const hint = "remove one of these pods from waitFor"
	for _, test := range []struct {
		line string
		want []api.Problem
	}{
		{"$DIR/nope.toml", []api.Problem{{
			File: "$DIR/nope.toml", Line: 1, Column: 1, Message: "read pod file: open $DIR/nope.toml: no such file or directory",
		}}},
		{"$DIR/a.toml $DIR/b.toml", []api.Problem{
			{File: "$DIR/a.toml", Line: 1, Column: 1, Path: "waitFor", Message: cycle + "a -> b -> a", Hint: hint},
			{File: "$DIR/b.toml", Line: 2, Column: 1, Path: "waitFor", Message: cycle + "a -> b -> a", Hint: hint},
		}},
		{"--policy baseline $DIR/wild.toml $DIR/wild.yaml", []api.Problem{
			{
				File: "$DIR/wild.toml", Line: 5, Column: 17, Path: "containers[0].securityContext.privileged",
				Message: `true: must be false or unset (violates "baseline:latest", Privileged Containers)`,
			},
			{
				File: "$DIR/wild.yaml", Line: 6, Column: 3, Path: "spec.hostPID",
				Message: `true: must be false or unset (violates "baseline:latest", Host Namespaces)`,
			},
			{
				File: "$DIR/wild.yaml", Line: 13, Column: 11, Path: "spec.containers[0].securityContext.capabilities.add[0]",
				Message: `"SYS_ADMIN": must be one of`,
			},
		}},
		{"--policy restricted $DIR/a.toml", []api.Problem{
			{File: "$DIR/a.toml", Line: 2, Column: 3, Path: "containers[0].securityContext.capabilities.drop"},
			{File: "$DIR/a.toml", Line: 2, Column: 3, Path: "containers[0].securityContext.seccompProfile"},
			{File: "$DIR/a.toml", Line: 2, Column: 3, Path: "containers[0].securityContext.allowPrivilegeEscalation"},
			{File: "$DIR/a.toml", Line: 2, Column: 3, Path: "containers[0].securityContext.runAsNonRoot"},
		}},
	} {
		got := h.run(t, "validate -o json "+test.line)
		var out struct{ Items []validated }
		if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || got.code != statusUsage {
			t.Errorf("%s: exit code %d, want %d, %v; stderr:\n%s", test.line, got.code, statusUsage, err, got.stderr)
		}
		var problems []api.Problem
		for _, file := range out.Items {
			if file.Valid || len(file.Problems) == 0 {
				t.Errorf("%s: %s: valid: %v, %d problems", test.line, file.File, file.Valid, len(file.Problems))
			}
			problems = append(problems, file.Problems...)
		}
		if !slices.EqualFunc(problems, test.want, func(got, want api.Problem) bool {
			is := strings.HasPrefix(got.Message, want.Message) && got.Message != ""
			got.Message = want.Message
			return is && got == want
		}) {
			t.Errorf("%s:\n%+v\nwant\n%+v", test.line, problems, test.want)
		}
		if strings.Contains(got.stderr, "violates") || strings.Contains(got.stderr, cycle) {
			t.Errorf("%s: stderr has the problems too:\n%s", test.line, got.stderr)
		}
	}
}

// TestValidatePrograms: validate looks for the programs of probes in the images of a daemon that runs.
func TestValidatePrograms(t *testing.T) {
	h, images := newImageHost(t)
	images.Add(api.Image{Name: "localhost/scoped:1", Archive: true})
	h.write(t, "probed.toml", `[[containers]]
name = "app"
image = "localhost/spare:1"
livenessProbe.exec = ["curl", "localhost"]
readinessProbe.exec = ["sh", "-c", "true"]
[[containers]]
name = "scoped"
image = "localhost/scoped:1"
livenessProbe.exec = ["curl", "localhost"]
[[containers]]
name = "none"
image = "localhost/none:1"
livenessProbe.exec = ["curl", "localhost"]
`)
	const warning = `$DIR/probed.toml:4:1: containers[0].livenessProbe: runs "curl", which image "localhost/spare:1", as it is on this ` +
		"host, does not have (warning: missing-program)\nhint: use httpGet, which needs no program in the image\n"
	if got := h.want(t, "validate $DIR/probed.toml", "$DIR/probed.toml: ok\n"); got.stderr != warning {
		t.Errorf("stderr:\n%swant:\n%s", got.stderr, warning)
	}
	h.closeServer()
	if got := h.want(t, "validate $DIR/probed.toml", "$DIR/probed.toml: ok\n"); got.stderr != "" {
		t.Errorf("without a daemon:\n%s", got.stderr)
	}
}
