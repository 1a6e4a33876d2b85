package lifecycle_test

import (
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestRecordOnly(t *testing.T) {
	recordOnly := []lifecycle.Action{
		lifecycle.StartRound{},
		lifecycle.FailPod{},
		lifecycle.WaitForTurn{Ref: run("app", 1)},
		lifecycle.StartAgain{},
		lifecycle.ForgetContainer{Container: "app"},
		lifecycle.StartWait{Wait: 1},
	}
	for _, a := range recordOnly {
		if !lifecycle.RecordOnly(a) {
			t.Errorf("%T is not RecordOnly", a)
		}
		before := fold(history{running("app", 1)})
		if after := before.Apply(lifecycle.ActionFailed{Action: a, Failure: oops, At: at(2)}); text(after) != text(before) {
			t.Errorf("%T changes facts when it fails: %s", a, text(after))
		}
	}
	if lifecycle.RecordOnly(lifecycle.RemovePod{}) {
		t.Error("RemovePod is RecordOnly")
	}
}

func TestFailureIsAnError(t *testing.T) {
	for want, f := range map[string]lifecycle.Failure{
		"no such image":               {Message: "no such image"},
		"ErrImagePull: no such image": {Reason: lifecycle.ReasonErrImagePull, Message: "no such image"},
	} {
		if got := f.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
