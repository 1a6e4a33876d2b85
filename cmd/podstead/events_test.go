package main

import (
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// TestEvents checks which events the flags of events select.
func TestEvents(t *testing.T) {
	h := newListed(t)
	pods := func(line string) string {
		t.Helper()
		got := h.run(t, line)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("podstead %s: exit code %d, stderr:\n%s", line, got.code, got.stderr)
		}
		found := ""
		for _, name := range []string{"db", "job", "web"} {
			if strings.Contains(got.stdout, " "+name+" ") || strings.Contains(got.stdout, `"pod":"`+name+`"`) {
				found += name + " "
			}
		}
		return found
	}
	past, future := time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339Nano)
	for line, want := range map[string]string{
		"events":                                              "db job web ",
		"events -o json":                                      "db job web ",
		"events -o wide --timestamps":                         "db job web ",
		"events --ages":                                       "db job web ",
		"events job":                                          "job ",
		"events -l app=shop":                                  "db web ",
		"events --selector app=shop,tier=front":               "web ",
		"events -l !app -o json":                              "job ",
		"events --since 1h":                                   "db job web ",
		"events --since 0":                                    "db job web ",
		"events --since 1ns":                                  "",
		"events --since-time " + past:                         "db job web ",
		"events --since-time " + past + " -l !app":            "job ",
		"events --since-time " + future:                       "",
		"events --since-time 2026-01-02T15:04:05Z":            "db job web ",
		"events --since-time=2026-01-02T15:04:05.5+02:00 web": "web ",
	} {
		if got := pods(line); got != want {
			t.Errorf("podstead %s: events of %q, want %q", line, got, want)
		}
	}
	if got := h.want(t, "events -l app=none", ""); got.stderr != "podstead: no pods with the labels app=none\n" {
		t.Errorf("events of no pod: stderr %q", got.stderr)
	}
	h.fails(t, "events pod/db -l app=shop", statusUsage, "podstead: pod names cannot be combined with --selector\n")
	followed, _, _ := h.background(t, "events --follow -l tier=front")
	followed.await(t, " web/app ")
	h.want(t, "stop web --grace-period 1", "pod/web stopped\n")
	followed.await(t, "Stopping")
	if text := followed.String(); strings.Contains(text, " db") || strings.Contains(text, " job") {
		t.Errorf("events of other pods:\n%s", text)
	}
}

func TestEventsUsage(t *testing.T) {
	h := newTestHost(t, api.Version{})
	for line, want := range map[string]string{
		"events --since 1h --since-time " +
			"2026-01-02T15:04:05Z": "podstead: --since and --since-time cannot be combined\nhint: run podstead events --help for usage\n",
		"events --since -1h":             "podstead: --since -1h0m0s: must not be negative\n",
		"events --since yesterday":       `podstead: --since "yesterday": must be a duration`,
		"events --since-time 2026-01-02": `podstead: --since-time "2026-01-02": must be a time, such as 2026-01-02T15:04:05Z`,
		"events -l a=b=c":                `podstead: --selector "a=b=c": `,
		"events web db":                  `podstead: events accepts at most one pod, got "web", "db"`,
		"events -o name":                 `output format "name" is not supported: must be one of wide, json, yaml`,
		"events --ages --timestamps":     "podstead: --ages and --timestamps cannot be combined",
	} {
		h.fails(t, line, statusUsage, want)
	}
}

// TestEventsAsYAML expects one document for each event.
func TestEventsAsYAML(t *testing.T) {
	h := newListed(t)
	got := h.run(t, "events job -o yaml")
	documents := strings.SplitSeq(strings.TrimPrefix(got.stdout, "---\n"), "---\n")
	for d := range documents {
		if got.code != 0 || !strings.Contains(d, "pod: job\n") || !strings.Contains(d, "reason: ") {
			t.Errorf("exit code %d, document:\n%s", got.code, d)
		}
	}
}
