package spec

import (
	"slices"
	"testing"
)

func TestParseWaitCondition(t *testing.T) {
	for entry, want := range map[string]struct {
		condition WaitCondition
		text      string
	}{
		"pod:db.v1:ready":     {WaitCondition{Kind: WaitPod, Object: "db.v1", State: WaitReady}, "pod db.v1"},
		"path:/dev/a:b":       {WaitCondition{Kind: WaitPath, Object: "/dev/a:b"}, "path /dev/a:b"},
		"mount:/data":         {WaitCondition{Kind: WaitMount, Object: "/data"}, "mount /data"},
		"dns:registry.local":  {WaitCondition{Kind: WaitDNS, Object: "registry.local"}, "dns registry.local"},
		"network-online":      {WaitCondition{Kind: WaitNetworkOnline}, "network-online"},
		"time-synced":         {WaitCondition{Kind: WaitTimeSynced}, "time-synced"},
		"pod:migrate:succeed": {WaitCondition{Kind: WaitPod, Object: "migrate", State: "succeed"}, "pod migrate"},
	} {
		if got := ParseWaitCondition(entry); got != want.condition || got.String() != want.text {
			t.Errorf("%s: %+v, %q", entry, got, got)
		}
	}
	p := Pod{WaitFor: []string{"pod:b:ready", "path:/a", "pod:a:ready", "pod:b:succeeded"}}
	if got := p.WaitsForPods(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("pods: %v", got)
	}
}

// TestWaitForHints checks that a misspelled condition has a position and the nearest valid word.
func TestWaitForHints(t *testing.T) {
	_, problems := Parse("web.toml", []byte("waitFor = [\n  \"time-sync\",\n  \"pod:db:redy\",\n]\n"+podTail))
	want := []string{
		"web.toml:2:3: waitFor[0]: " +
			`Unsupported value: "time-sync": supported values: "pod", "path", "mount", "dns", "network-online", "time-synced"` +
			"\n" + `hint: did you mean "time-synced"?`,
		"web.toml:3:3: waitFor[1]: " + `Unsupported value: "redy": supported values: "ready", "succeeded"` + "\n" +
			`hint: did you mean "ready"?`,
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String()+"\nhint: "+p.Hint)
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems:\n%q\nwant:\n%q", got, want)
	}
}
