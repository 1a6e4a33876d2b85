package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestDescribe: a page for each selected pod, with its status, containers and events. Pods that are missing are named after the pages.
func TestDescribe(t *testing.T) {
	h := newListed(t)
	web := h.run(t, "describe web")
	for _, want := range []string{
		`(?m)^Name: +web$`, `(?m)^Status: +Running$`, `(?m)^Labels: +app=shop$`, `(?m)^ +tier=front$`,
		`(?m)^File: +/etc/podstead/pods.d/web.toml$`,
		`(?m)^Containers:\n  app:\n    State: +Running since .* ago\)$`, `(?m)^    Image: +busybox$`, `(?m)^    Command: +sh -c `,
		`(?m)^  Ready +True `, `(?m)^  \S+ +Normal +Started +app +Container started$`,
	} {
		if !regexp.MustCompile(want).MatchString(web.stdout) {
			t.Errorf("no %s in:\n%s%s", want, web.stdout, web.stderr)
		}
	}
	if web.code != 0 || web.stderr != "" {
		t.Errorf("describe web: exit code %d, stderr %q", web.code, web.stderr)
	}
	names := regexp.MustCompile(`(?m)^Name: +(\S+)$`)
	for args, want := range map[string]string{
		"describe": "db job web", "describe -l app=shop": "db web", "describe pod/job web": "job web", "describe -l app=none": "",
	} {
		var got []string
		for _, match := range names.FindAllStringSubmatch(h.run(t, args).stdout, -1) {
			got = append(got, match[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: pods %q, want %q", args, got, want)
		}
	}
	if got := h.fails(t, "describe web other", statusNotFound, `podstead: no such pod "other"`); !names.MatchString(got.stdout) {
		t.Errorf("the page of the pod that exists is missing:\n%s", got.stdout)
	}
	h.fails(t, "describe -l a=(", statusUsage, "--selector")
	if got := h.run(t, "describe -l app=none"); !strings.Contains(got.stderr, "no pods") {
		t.Errorf("without a pod: %q", got.stderr)
	}
	// A value from a container or a file cannot change the terminal or the columns.
	if db := h.run(t, "describe db"); !strings.Contains(db.stdout, `note=a\x1b[2Jb\tc`) {
		t.Errorf("annotation is not escaped:\n%s", db.stdout)
	}
}

// TestDescribeWithoutSecrets: the page has what the pod uses, and no values of secrets in messages and events.
func TestDescribeWithoutSecrets(t *testing.T) {
	h := newMeasured(t)
	h.closeServer()
	h.options.Secrets = configsource.Source{}
	h.serve(t)
	h.write(t, "leaky.toml", `restartPolicy = "Never"
terminationGracePeriodSeconds = 1
[[secrets]]
name = "login"
data.password = "planted-value"
`+script("", runs)+`env.PASSWORD.secretKeyRef = { name = "login", key = "password" }
`)
	h.want(t, "apply $DIR/leaky.toml", "pod/leaky created\n")
	h.await(t, "get leaky", `1/1 +Running`)
	pod, _ := h.pods.Pod("leaky")
	h.engine.Crash(pod.Facts.UID, "app", lifecycle.Exit{Code: 3, Message: "login with planted-value failed"})
	h.await(t, "get leaky", `Error`)
	page := h.run(t, "describe leaky")
	if page.code != 0 || strings.Contains(page.stdout, "planted") ||
		!regexp.MustCompile(`(?m)^ +Message: +login with \[redacted\] failed$`).MatchString(page.stdout) {
		t.Errorf("exit code %d\n%s%s", page.code, page.stdout, page.stderr)
	}
	if web := h.run(t, "describe web"); !regexp.MustCompile(`(?m)^Uses: +CPU 300m$`).MatchString(web.stdout) ||
		!strings.Contains(web.stdout, "memory 5Mi of 64Mi") {
		t.Errorf("what the pod uses is missing:\n%s%s", web.stdout, web.stderr)
	}
}
