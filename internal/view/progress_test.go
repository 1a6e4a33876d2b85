package view_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/view"
)

// fetching returns a pod with the progress of its containers.
func fetching(name string, pulling map[string]api.Progress) *api.Pod {
	p := pod(name, "app", "side")
	p.Metadata.UID = name
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Image = "img:" + p.Spec.Containers[i].Name
	}
	p.Status.Pulling = pulling
	return &p
}

// TestProgressOnTerminal checks each write: the line of the progress is erased before other lines, and drawn again after them.
func TestProgressOnTerminal(t *testing.T) {
	const erase = "\r\x1b[K"
	var out strings.Builder
	width := 80
	text := view.Text{Out: &out, Err: &out, Width: func() int { return width }}
	text.Pods([]api.Pod{pod("web", "app", "side")})
	archive := api.Progress{Archive: "/srv/shop.tar", Done: 20 << 20, Total: 80 << 20}
	const importing, pulling = `Importing image archive "/srv/shop.tar": 20Mi of 80Mi (25%)`, `Pulling image "img:side"`
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"nothing to show", func() { text.Progress(fetching("web", nil)) }, ""},
		{"two containers wait for an archive", func() {
			text.Progress(fetching("web", map[string]api.Progress{"app": archive, "side": archive}))
		}, importing},
		{"same progress", func() { text.Progress(fetching("other", map[string]api.Progress{"app": archive})) }, ""},
		{"line of a container", func() { text.Line("web", api.Line{Container: "app", Line: "up"}) }, erase + "app  | up\n" + importing},
		{
			"event", func() { text.Event(api.Event{Kind: api.EventPodFailed, Pod: "web", Message: "Pod failed"}) },
			erase + "Pod failed\n" + importing,
		},
		{
			"pull beside it", func() { text.Progress(fetching("other", map[string]api.Progress{"side": {}})) },
			erase + importing + " and 1 more",
		},
		{"pull only", func() { text.Progress(fetching("web", nil)) }, erase + pulling},
		{"narrow terminal", func() { width = 11; text.Hint("a") }, erase + "hint: a\n" + pulling[:10]},
		{"end", func() { text.Progress(nil) }, erase},
		{"line after the end", func() { text.Notice("b") }, "podstead: b\n"},
	} {
		out.Reset()
		step.do()
		got := out.String()
		if i := strings.Index(got, "Pod failed"); i > 0 { // without the time, which depends on the time zone
			got = erase + got[i:]
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestNoProgressWithoutTerminal(t *testing.T) {
	var out strings.Builder
	text := view.Text{Out: &out, Err: &out}
	text.Progress(fetching("web", map[string]api.Progress{"app": {}}))
	text.Notice("a")
	if out.String() != "podstead: a\n" {
		t.Errorf("output %q", out.String())
	}
}
