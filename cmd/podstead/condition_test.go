package main

import (
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestConditionSet checks that conditions are set with their reason and message, and decide whether the pod is ready.
func TestConditionSet(t *testing.T) {
	h := newTestHost(t, api.Version{})
	h.write(t, "web.toml", script(gated, runs))
	h.want(t, "apply $DIR/web.toml", "pod/web created\n")
	h.want(t, "wait web --for=condition=ContainersReady --timeout 1m", "pod/web condition met\n")
	h.want(t, "condition set web example.org/door=True", "pod/web condition example.org/door set to True\n")
	h.want(t, "condition set pod/web example.org/window=true", "pod/web condition example.org/window set to True\n")
	h.want(t, "wait web --for=condition=Ready --timeout 1m", "pod/web condition met\n")

	got := h.arguments(t, "condition", "set", "pod", "web", "example.org/door=false", "--reason", "Maintenance", "--message",
		"the lock is changed")
	if want := (output{0, "pod/web condition example.org/door set to False\n", ""}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	h.want(t, "wait web --for=condition=Ready=False --timeout 1m", "pod/web condition met\n")
	const door = `jsonpath={.status.conditions[?(@.type=="example.org/door")].`
	got = h.arguments(t, "get", "web", "-o",
		door+"status} "+strings.TrimPrefix(door, "jsonpath=")+"reason} "+strings.TrimPrefix(door, "jsonpath=")+"message}")
	if got.stdout != "False Maintenance the lock is changed" {
		t.Errorf("%+v", got)
	}
	h.want(t, "condition set web example.org/door=Unknown", "pod/web condition example.org/door set to Unknown\n")
	h.await(t, "events web", `Condition example.org/door set to Unknown, requested by podstead condition set, pid [0-9]+, uid [0-9]+\n`)
}

func TestConditionSetErrors(t *testing.T) {
	h := newListed(t)
	h.write(t, "gated.toml", script(gated, runs))
	h.want(t, "apply $DIR/gated.toml", "pod/gated created\n")
	for line, want := range map[string]string{
		"condition set": "podstead: condition set requires a pod and TYPE=STATUS\nhint: run podstead condition set --help " +
			"for usage\n",
		"condition set web":           `podstead: "web": must be TYPE=STATUS with one of the statuses True, False, Unknown`,
		"condition set web a":         `podstead: "a": must be TYPE=STATUS with one of the statuses True, False, Unknown`,
		"condition set web a=yes":     `podstead: "a=yes": must be TYPE=STATUS with one of the statuses True, False, Unknown`,
		"condition set web =True":     `podstead: "=True": must be TYPE=STATUS with one of the statuses True, False, Unknown`,
		"condition set a=True":        "podstead: condition set requires a pod\n",
		"condition set web db a=True": `podstead: condition set accepts at most one pod, got "web", "db"`,
		"condition get web":           `podstead: unknown command "get" for "podstead condition"`,
		"condition set gated example.org/door=True --message " +
			strings.Repeat("a", 5000): "reason and message: must be at most 4096 bytes of UTF-8",
	} {
		h.fails(t, line, statusUsage, want)
	}
	for line, want := range map[string]string{
		"condition set none a=True":    "podstead: no such pod \"none\"\n",
		"condition set web Ready=True": "podstead: pod \"web\" has no readiness gate \"Ready\"\n",
		"condition set gated " +
			"../../v1/daemon=True": "podstead: pod \"gated\" has no readiness gate \"../../v1/daemon\"\nhint: set one of its readiness " +
			"gates: example.org/door, example.org/window\n",
		"condition set gated " +
			"example.org/window2=True": "has no readiness gate \"example.org/window2\"\nhint: set one of its readiness gates: " +
			"example.org/door, example.org/window\n",
	} {
		h.fails(t, line, statusNotFound, want)
	}
	if got := h.want(t, "condition", h.run(t, "condition --help").stdout); got.stdout == "" {
		t.Error("condition prints no help")
	}
}
