package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestParseSignal(t *testing.T) {
	for _, test := range []struct {
		in   string
		want syscall.Signal // 0: an error
	}{
		{"SIGTERM", unix.SIGTERM},
		{"TERM", unix.SIGTERM},
		{"sigquit", unix.SIGQUIT},
		{"15", unix.SIGTERM},
		{"SIGIOT", unix.SIGABRT},
		{"SIGCLD", unix.SIGCHLD},
		{"poll", unix.SIGIO},
		{"64", 64},
		{"SIGRTMIN", 34},
		{"SIGRTMIN+3", 37},
		{"RTMAX-1", 63},
		{"SIGRTMAX", 64},
		{"SIGRTMIN+40", 0},
		{"SIGRTMIN-1", 0},
		{"SIGRTMINx", 0},
		{"0", 0},
		{"65", 0},
		{"-1", 0},
		{"", 0},
		{"SIGNONE", 0},
	} {
		got, err := parseSignal(test.in)
		if got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("parseSignal(%q): got %d, %v; want %d", test.in, got, err, test.want)
		}
	}
}

func TestExitFrom(t *testing.T) {
	at := time.Now().Add(-time.Hour).Round(0)
	if diff := cmp.Diff(exit{lifecycle.Exit{Code: 0, Reason: lifecycle.ReasonCompleted}, at}, exitFrom(0, at)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e := exitFrom(143, at)
	if diff := cmp.Diff(exit{lifecycle.Exit{Code: 143, Reason: lifecycle.ReasonError}, at}, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := exitOf(map[string]string{record.LabelExit: string(text)})
	if diff := cmp.Diff(e, got); diff != "" || !ok {
		t.Errorf("read back: %v (-want +got):\n%s", ok, diff)
	}
	if got, ok := exitOf(map[string]string{record.LabelExit: "{"}); !ok || got.Reason != lifecycle.ReasonUnknown || got.Code != 255 {
		t.Errorf("an exit that cannot be read: %+v, %v; want one that is not known", got, ok)
	}
	if _, ok := exitOf(nil); ok {
		t.Error("no label is no exit")
	}
}

// Measuring what a pod takes on disk is left alone for longer the longer it takes.
func TestUsagePause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 2 * time.Second: 10 * time.Second, usageTimeout: 8 * time.Minute,
	} {
		if got := usagePause(10*time.Second, took); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
}

// TestExceeded: who takes too much disk, in the kubelet's order.
func TestExceeded(t *testing.T) {
	disk := func(limit string) spec.Resources {
		return spec.Resources{Limits: spec.ResourceList{spec.ResourceEphemeralStorage: resource.MustParse(limit)}}
	}
	pod := &spec.Pod{
		InitContainers: []spec.Container{{Name: "init", Resources: disk("1k")}},
		Containers:     []spec.Container{{Name: "a", Resources: disk("2k")}, {Name: "b"}},
	}
	for _, test := range []struct {
		volumes    int64
		containers map[string]int64
		want       string
	}{
		{0, nil, ""},
		{500, map[string]int64{"a": 1500}, ""},
		{501, map[string]int64{"a": 1500}, "Pod ephemeral local storage usage exceeds the total limit of containers 2k. "},
		{0, map[string]int64{"b": 2001}, "Pod ephemeral local storage usage exceeds the total limit of containers 2k. "},
		{0, map[string]int64{"init": 1001}, `Container init exceeded its local ephemeral storage limit "1k". `},
		{0, map[string]int64{"a": 2000, "init": 0}, ""},
	} {
		if got := exceeded(pod, []volume.Usage{{Bytes: test.volumes}}, test.containers); got != test.want {
			t.Errorf("%d in volumes, %v: %q, want %q", test.volumes, test.containers, got, test.want)
		}
	}
	limited := spec.Volume{Name: "v", EmptyDir: &spec.EmptyDirVolume{SizeLimit: &[]spec.Quantity{resource.MustParse("1k")}[0]}}
	for _, test := range []struct {
		pod  spec.Pod
		want bool
	}{
		{*pod, true},
		{spec.Pod{Containers: []spec.Container{{Name: "b"}}}, false},
		{spec.Pod{Volumes: []spec.Volume{limited}}, true},
	} {
		if got := boundsDisk(&test.pod); got != test.want {
			t.Errorf("%+v: %v", test.pod, got)
		}
	}
}

func TestWriteChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	for _, test := range []struct {
		name string
		make func() error
	}{
		{"nothing there", func() error { return nil }},
		{"the same there", func() error { return nil }},
		{"more there", func() error { return os.WriteFile(path, []byte("text\nand more\n"), 0o644) }},
		{"less there", func() error { return os.WriteFile(path, []byte("te"), 0o644) }},
		{"larger than any memory", func() error { return os.Truncate(path, 8<<40) }},
	} {
		if err := test.make(); err != nil {
			t.Fatal(err)
		}
		if err := writeChanged(path, "text\n"); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got, err := os.ReadFile(path); string(got) != "text\n" || err != nil {
			t.Errorf("%s: %d bytes, %v", test.name, len(got), err)
		}
	}
}

// A container that something else is done with has not failed.
func TestStartWaitsForItsTurn(t *testing.T) {
	var r Runtime
	release, err := r.locks.Lock(t.Context(), "u/c")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = r.StartContainer(ctx, "u", &spec.Pod{}, lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "c"}})
	if f, _ := errors.AsType[lifecycle.Failure](err); f.Kind != lifecycle.FailureUnavailable {
		t.Errorf("got %#v, want a failure of kind %s", err, lifecycle.FailureUnavailable)
	}
}
