package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestHabits checks the commands of docker, podman and docker compose.
func TestHabits(t *testing.T) {
	h := newListed(t)
	h.await(t, "ps",
		`(?s)^POD +CONTAINER +IMAGE +STATUS +RESTARTS +UP +PORTS\ndb +app +busybox +Running .*\nweb +app +busybox +Running .*\n$`)
	h.await(t, "ps --all", `(?m)^job +app +busybox +Completed \(0\) +0 +<none> +<none>$`)
	h.want(t, "ps -q", "db/app\nweb/app\n")
	h.want(t, "ps -aq", "db/app\njob/app\nweb/app\n")
	h.fails(t, "ps web", statusUsage, `ps accepts no arguments, got "web"`)

	h.want(t, "stats --no-stream", h.run(t, "top containers").stdout)
	h.fails(t, "stats none --no-stream", statusNotFound, `no such pod "none"`)

	var pods []api.Pod
	got := h.run(t, "inspect job web")
	if err := json.Unmarshal([]byte(got.stdout), &pods); err != nil || len(pods) != 2 || pods[1].Metadata.Name != "web" {
		t.Errorf("inspect: %v, %d pods, stdout:\n%s", err, len(pods), got.stdout)
	}

	refused := h.fails(t, "rm web job", statusFailed, `rm pod "web": the pod is running`)
	if refused.stdout != "pod/job deleted (file /etc/podstead/pods.d/job.toml removed)\n" ||
		!strings.Contains(refused.stderr,
			"hint: stop it with podstead stop web, or kill and delete it with podstead delete web --force\n") {
		t.Errorf("rm: stdout %q, stderr %q", refused.stdout, refused.stderr)
	}
	h.want(t, "kill web", "pod/web stopped\n")
	h.await(t, "get web", `web +0/1 +Stopped`)
	h.want(t, "rm web", "pod/web deleted (file /etc/podstead/pods.d/web.toml removed)\n")
	h.want(t, "rm -f db", "pod/db deleted (file /etc/podstead/pods.d/db.toml removed)\n")
	if got := h.want(t, "ps", ""); got.stderr != "podstead: no containers\n" {
		t.Errorf("ps: stderr %q", got.stderr)
	}
}

// TestFilesSelectPods checks the commands that select pods by files.
func TestFilesSelectPods(t *testing.T) {
	h := newListed(t)
	h.want(t, "get -o name -f $DIR/web.toml -f $DIR/db.toml", "pod/db\npod/web\n")
	h.want(t, "get -o name job -f $DIR/web.toml", "pod/job\npod/web\n")
	h.want(t, "wait --for=phase=Running -f $DIR/web.toml", "pod/web condition met\n")
	h.await(t, "describe -f $DIR/job.toml", `(?m)^Name: +job$`)
	h.fails(t, "delete -f $DIR/none.toml", statusUsage, "none.toml: no such file or directory")
	h.write(t, "bad.toml", "name = \"bad\"\nnone = 1\n")
	h.fails(t, "delete -f $DIR/bad.toml", statusUsage, "$DIR/bad.toml:2:1: none: ")
	h.fails(t, "get -f - -f -", statusUsage, "get: standard input can be read only once")
	h.fails(t, "get -l app=shop -f $DIR/web.toml", statusUsage, "pod names cannot be combined with --selector")
	h.want(t, "delete -f $DIR/job.toml", "pod/job deleted (file /etc/podstead/pods.d/job.toml removed)\n")
	h.fails(t, "delete -f $DIR/job.toml", statusNotFound, `no such pod "job"`)
	h.stdin = "name = \"db\"\n[[containers]]\nname = \"app\"\nimage = \"busybox\"\n"
	h.want(t, "delete -f -", "pod/db deleted (file /etc/podstead/pods.d/db.toml removed)\n")
	h.want(t, "down $DIR/web.toml", "pod/web deleted (file /etc/podstead/pods.d/web.toml removed)\n")
	h.want(t, "up -d --filename $DIR/web.toml", "pod/web created\n")
	h.want(t, "down web --grace-period 1", "pod/web deleted (file /etc/podstead/pods.d/web.toml removed)\n")
	h.fails(t, "up", statusUsage, "up requires pod files: the current directory has no compose.yaml")
	h.fails(t, "down", statusUsage, "down requires pod files: the current directory has no compose.yaml")
}
