package spec

import (
	"strings"
	"testing"
	"time"
)

func TestUpdateRule(t *testing.T) {
	for _, test := range []struct {
		name, lines string
		within      time.Duration
		minReady    time.Duration
		rollback    bool
	}{
		{"no table", "", 0, 5 * time.Second, false},
		{"empty table", "update = {}\n", 2 * time.Minute, 10 * time.Second, true},
		{"time", "update.readyWithinSeconds = 0.5\n", 500 * time.Millisecond, 10 * time.Second, true},
		{"longest time", "update.readyWithinSeconds = 86400\n", 24 * time.Hour, 10 * time.Second, true},
		{"keep", "update.onFailure = \"keep\"\n", 2 * time.Minute, 10 * time.Second, false},
		{"rollback", "[update]\nreadyWithinSeconds = 30\nminReadySeconds = 0\nonFailure = \"rollback\"\n", 30 * time.Second, 0, true},
	} {
		p := mustParse(t, "web.toml", test.lines+podTail)
		if within, minReady, rollback := p.UpdateRule(); within != test.within || minReady != test.minReady || rollback != test.rollback {
			t.Errorf("%s: got %v, %v, %v, want %v, %v, %v", test.name, within, minReady, rollback, test.within, test.minReady,
				test.rollback)
		}
	}
	manifest := mustParse(t, "web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: { name: web }\n"+
		"spec: { update: { readyWithinSeconds: 60 }, containers: [{ name: app, image: busybox }] }\n")
	if within, _, rollback := manifest.UpdateRule(); within != time.Minute || !rollback {
		t.Errorf("manifest: got %v, %v", within, rollback)
	}
	stored := Pod{Update: &Update{}}
	if within, _, rollback := stored.UpdateRule(); within != 2*time.Minute || !rollback {
		t.Errorf("a table without values: got %v, %v", within, rollback)
	}
}

func TestUpdatePositions(t *testing.T) {
	_, problems := Parse("web.toml", []byte("[update]\nreadyWithinSeconds = 86401\nonFailure = \"rolback\"\nreadyWithin = 1\n"+podTail))
	want := "web.toml:2:22: update.readyWithinSeconds: must be less than or equal to 86400\n" +
		"web.toml:3:13: update.onFailure: Unsupported value: \"rolback\": supported values: \"rollback\", \"keep\"\nhint: did you mean " +
		"\"rollback\"?\n" +
		"web.toml:4:1: update.readyWithin: unknown field"
	if got := strings.TrimSpace(report(problems)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
