package fakeruntime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

var _ supervisor.Runtime = (*Runtime)(nil)

func TestRead(t *testing.T) {
	ignored := Term{Ignored: true}
	for _, test := range []struct {
		argv []string
		want Program
	}{
		{nil, Program{Runs: Forever}},
		{[]string{"true"}, Program{Term: ignored}},
		{[]string{"false"}, Program{Term: ignored, Exit: lifecycle.Exit{Code: 1}}},
		{[]string{"sleep", "1.5"}, Program{Term: ignored, Runs: 1500 * time.Millisecond}},
		{[]string{"sh", "-c", "echo a b; sleep 2; echo 'c' >&2; exit 7; echo no"}, Program{
			Term: ignored, Runs: 2 * time.Second, Exit: lifecycle.Exit{Code: 7},
			Output: []Line{{Text: "a b"}, {After: 2 * time.Second, Stderr: true, Text: "c"}},
		}},
		{[]string{"sh", "-c", "trap 'exit 3' TERM; sleep 9 & wait"}, Program{Term: Term{Code: 3}, Runs: 9 * time.Second}},
		{[]string{"sh", "-c", "trap '' TERM\nsleep 9"}, Program{Term: ignored, Runs: 9 * time.Second}},
		{[]string{"/no/such"}, Program{StartError: `exec: "/no/such": executable file not found in $PATH`}},
	} {
		if diff := cmp.Diff(test.want, Read(test.argv)); diff != "" {
			t.Errorf("Read(%q) (-want +got):\n%s", test.argv, diff)
		}
	}
}

func TestVirtualTimeAndHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := &spec.Pod{Name: "p", Containers: []spec.Container{{Name: "c", Image: "i", Command: []string{"sleep", "86400"}}}}
		hang, lost := true, lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "connection lost"}
		r := New(Options{
			Images: []string{"i"},
			Before: func(ctx context.Context, c Call) error {
				if c.Method == "StartSandbox" && hang {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			},
			After: func(_ context.Context, c Call) error {
				if c.Method == "StartContainer" && !hang {
					return lost
				}
				return nil
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := r.StartSandbox(ctx, "u", pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1}); err == nil {
			t.Error("the call returned before its hook")
		}
		hang = false
		if _, err := r.StartSandbox(t.Context(), "u", pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1}); err != nil {
			t.Error(err)
		}
		ref := lifecycle.Ref{Container: "c", Round: 1, Attempt: 1}
		begin := time.Now()
		if _, err := r.StartContainer(t.Context(), "u", pod, lifecycle.StartContainer{Ref: ref, Sandbox: 1}); !errors.Is(err, lost) {
			t.Errorf("start container: %v, want the hook's error", err)
		}
		exit, at, err := r.WaitContainer(t.Context(), "u", ref)
		if err != nil || exit.Code != 0 || at.Sub(begin) != 24*time.Hour || time.Since(begin) != 24*time.Hour {
			t.Errorf("exit %+v after %v (now %v), %v; want 0 after a day", exit, at.Sub(begin), time.Since(begin), err)
		}
	})
}
