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
		rollback    bool
	}{
		{"no table", "", 2 * time.Minute, false},
		{"empty table", "update = {}\n", 2 * time.Minute, true},
		{"time", "update.readyWithinSeconds = 0.5\n", 500 * time.Millisecond, true},
		{"longest time", "update.readyWithinSeconds = 86400\n", 24 * time.Hour, true},
		{"keep", "update.onFailure = \"keep\"\n", 2 * time.Minute, false},
		{"rollback", "[update]\nreadyWithinSeconds = 30\nonFailure = \"rollback\"\n", 30 * time.Second, true},
	} {
		p := mustParse(t, "web.toml", test.lines+podTail)
		if within, rollback := p.UpdateRule(); within != test.within || rollback != test.rollback {
			t.Errorf("%s: got %v, %v, want %v, %v", test.name, within, rollback, test.within, test.rollback)
		}
	}
	manifest := mustParse(t, "web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: { name: web }\n"+
		"spec: { update: { readyWithinSeconds: 60 }, containers: [{ name: app, image: busybox }] }\n")
	if within, rollback := manifest.UpdateRule(); within != time.Minute || !rollback {
		t.Errorf("manifest: got %v, %v", within, rollback)
	}
	stored := Pod{Update: &Update{}}
	if within, rollback := stored.UpdateRule(); within != 2*time.Minute || !rollback {
		t.Errorf("a table without values: got %v, %v", within, rollback)
	}
}

func TestUpdatePositions(t *testing.T) {
	_, problems := Parse("web.toml", []byte("[update]\nreadyWithinSeconds = 86401\nonFailure = \"rolback\"\nreadyWithin = 1\n"+podTail))
	want := "web.toml:2:22: update.readyWithinSeconds: must be less than or equal to 86400\n" +
		"web.toml:3:13: update.onFailure: Unsupported value: \"rolback\": supported values: \"rollback\", \"keep\"\nhint: did you mean \"rollback\"?\n" +
		"web.toml:4:1: update.readyWithin: unknown field"
	if got := strings.TrimSpace(report(problems)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
