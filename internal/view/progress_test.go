package view_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	width := 100
	text := view.Text{Out: &out, Err: &out, Width: func() int { return width }}
	text.Pods([]api.Pod{pod("web", "app", "side")})
	archive := api.Progress{Archive: "/srv/shop.tar", Done: 20 << 20, Total: 80 << 20}
	const importing = `Importing image archive "/srv/shop.tar": [=====               ] 20Mi of 80Mi (25%)`
	const pulling = `Pulling image "img:side"`
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
		{
			"unpacking", func() {
				text.Progress(fetching("other", map[string]api.Progress{"side": {Done: 1, Total: 2, Unpacking: true}}))
			},
			erase + `Unpacking image "img:side": [==========          ] 1B of 2B (50%)`,
		},
		{"image of an update", func() {
			text.Progress(fetching("other", map[string]api.Progress{"side": {Image: "img:next"}}))
		}, erase + `Pulling image "img:next"`},
		{"pull again", func() { text.Progress(fetching("other", map[string]api.Progress{"side": {}})) }, erase + pulling},
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

// TestSpeed checks the speed of a transfer and the time that is left, without the bar in a narrow terminal.
func TestSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		width := 80
		tr := view.Transfer{W: &out, Width: func() int { return width }}
		for _, step := range []struct {
			done, total int64
			want        string
		}{
			{0, 100 << 20, "Pulling: [                    ] 0B of 100Mi (0%)"},
			{10 << 20, 100 << 20, "Pulling: [==                  ] 10Mi of 100Mi (10%), 10Mi/s, 9s left"},
			{30 << 20, 100 << 20, "Pulling: [======              ] 30Mi of 100Mi (30%), 15Mi/s, 4s left"},
			{100 << 20, 100 << 20, "Pulling: [====================] 100Mi of 100Mi (100%), 33.3Mi/s"},
			{50 << 20, 0, "Pulling: 50Mi"}, // another transfer
			{52 << 20, 0, "Pulling: 52Mi, 2Mi/s"},
		} {
			out.Reset()
			tr.Bytes("Pulling", step.done, step.total)
			if got := strings.TrimPrefix(out.String(), "\r\x1b[K"); got != step.want {
				t.Errorf("%d of %d: %q, want %q", step.done, step.total, got, step.want)
			}
			time.Sleep(time.Second)
		}
		for n := range int64(20) { // the speed is that of the last seconds
			tr.Bytes("Pulling", 52<<20+n<<10, 0)
			time.Sleep(time.Second)
		}
		width = 60
		out.Reset()
		tr.Bytes("Importing", 52<<20+20<<10, 100<<20)
		if want := "Importing: 52.0Mi of 100Mi (52%), 1Ki/s, 13h left"; !strings.HasSuffix(out.String(), want) {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}
