package exit

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestFromStatus(t *testing.T) {
	at := time.Now().Add(-time.Hour).Round(0)
	if diff := cmp.Diff(Exit{lifecycle.Exit{Code: 0, Reason: lifecycle.ReasonCompleted}, at}, FromStatus(0, at)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e := FromStatus(143, at)
	if diff := cmp.Diff(Exit{lifecycle.Exit{Code: 143, Reason: lifecycle.ReasonError}, at}, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := FromLabels(map[string]string{record.LabelExit: string(text)})
	if diff := cmp.Diff(e, got); diff != "" || !ok {
		t.Errorf("after a round trip: %v (-want +got):\n%s", ok, diff)
	}
	if got, ok := FromLabels(map[string]string{record.LabelExit: "{"}); !ok || got.Reason != lifecycle.ReasonUnknown || got.Code != 255 {
		t.Errorf("unreadable label: %+v, %v; want reason Unknown and code 255", got, ok)
	}
	if _, ok := FromLabels(nil); ok {
		t.Error("an exit was read from no label")
	}
}

func TestLost(t *testing.T) {
	r := &Recorder{bootID: "this"}
	if e := r.lost(map[string]string{record.LabelBoot: "this"}); e.Code != 137 || e.Reason != lifecycle.ReasonError {
		t.Errorf("in this boot: %+v, want code 137 and reason Error", e)
	}
	if e := r.lost(map[string]string{record.LabelBoot: "earlier"}); e.Code != 255 || e.Reason != lifecycle.ReasonUnknown {
		t.Errorf("in an earlier boot: %+v, want code 255 and reason Unknown", e)
	}
}
