package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"github.com/containerd/ttrpc"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/cgroup"
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

func TestFail(t *testing.T) {
	given := lifecycle.Failure{Kind: lifecycle.FailureRefused, Reason: "R", Message: "m"}
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"nothing", nil, nil},
		{"an error", errors.New("e"), lifecycle.Failure{Kind: lifecycle.FailureGone, Reason: "X", Message: "e"}},
		{"classified before", fmt.Errorf("around: %w", given), given},
		{
			"the engine is away", fmt.Errorf("a: %w", errdefs.ErrUnavailable),
			lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "a: unavailable"},
		},
		{
			"the shim is away", errors.New("far: " + ttrpc.ErrClosed.Error()),
			lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "far: ttrpc: closed"},
		},
		{
			"the disk is full", fmt.Errorf("write /x: %w", unix.ENOSPC),
			lifecycle.Failure{Kind: lifecycle.FailureGone, Reason: "X", Message: "the disk is full: write /x: no space left on device"},
		},
		{
			"the layers of the engine",
			errors.New(`failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: ` +
				`unable to start container process: exec: "x": executable file not found in $PATH: unknown`),
			lifecycle.Failure{Kind: lifecycle.FailureGone, Reason: "X", Message: `exec: "x": executable file not found in $PATH`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, fail(t.Context(), lifecycle.FailureGone, "X", test.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := fail(ctx, lifecycle.FailureGone, "X", context.Canceled); !errors.Is(got, context.Canceled) {
		t.Errorf("a call that was given up: got %v, want its own error", got)
	}
	ctx, cancel = context.WithTimeout(t.Context(), -1)
	defer cancel()
	if _, ok := errors.AsType[lifecycle.Failure](fail(ctx, lifecycle.FailureGone, "X", ctx.Err())); !ok {
		t.Error("the end of a time limit is no failure")
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
	got, ok := exitOf(map[string]string{labelExit: string(text)})
	if diff := cmp.Diff(e, got); diff != "" || !ok {
		t.Errorf("read back: %v (-want +got):\n%s", ok, diff)
	}
	if got, ok := exitOf(map[string]string{labelExit: "{"}); !ok || got.Reason != lifecycle.ReasonUnknown || got.Code != 255 {
		t.Errorf("an exit that cannot be read: %+v, %v; want one that is not known", got, ok)
	}
	if _, ok := exitOf(nil); ok {
		t.Error("no label is no exit")
	}
}

func TestRecord(t *testing.T) {
	pod := &spec.Pod{Name: "web", Containers: []spec.Container{{Name: "app", Hash: "v1:x"}}}
	a := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "app", Round: 2, Attempt: 3}, Sandbox: 4, Restarts: 5}
	c := containers.Container{ID: "id", Image: "i", Labels: runLabels("u", pod, a, &pod.Containers[0])}
	c.Labels[labelImageID] = "sha256:1"
	got, err := runOf(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lifecycle.Run{StartContainer: a, ID: "id", Image: "i", ImageID: "sha256:1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Labels[labelAttempt] = "x"
	if _, err := runOf(c); err == nil {
		t.Error("a label that is no number is no error")
	}

	if err := withDefinition(pod)(t.Context(), nil, &c); err != nil {
		t.Fatal(err)
	}
	kept, err := definitionOf(c)
	if diff := cmp.Diff(pod, kept); diff != "" || err != nil {
		t.Errorf("definition: %v (-want +got):\n%s", err, diff)
	}
	if _, err := definitionOf(containers.Container{}); err == nil {
		t.Error("a missing definition is no error")
	}
}

func TestIDs(t *testing.T) {
	ref := lifecycle.Ref{Container: "c", Round: 1, Attempt: 11}
	ids := map[string]bool{
		containerID("u", ref): true, containerID("v", ref): true, sandboxID("u", 1): true, sandboxID("u", 11): true,
		containerID("u", lifecycle.Ref{Container: "c", Round: 11, Attempt: 1}): true,
		containerID("u", lifecycle.Ref{Container: "d", Round: 1, Attempt: 11}): true,
	}
	if len(ids) != 6 {
		t.Errorf("IDs %v are not one for each run", ids)
	}
	for _, uid := range []string{"", ".", "..", "a/b", "/a", "../a"} {
		if checkUID(uid) == nil {
			t.Errorf("UID %q was taken", uid)
		}
	}
	if err := checkUID("0c5e4b1e-1111"); err != nil {
		t.Error(err)
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

func TestCgroups(t *testing.T) {
	g, err := newCgroups(Options{CgroupDriver: CgroupFS, CgroupRoot: "/podstead"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if g.spec("u-1", "id") != "/podstead/u-1/id" || g.shim("u-1") != "/podstead/u-1-shim" || g.dir("u-1", "id") != "/podstead/u-1/id" {
		t.Errorf("cgroupfs: %s, %s, %s", g.spec("u-1", "id"), g.shim("u-1"), g.dir("u-1", "id"))
	}
	if g, err = newCgroups(Options{CgroupDriver: CgroupSystemd}, true); err != nil {
		t.Fatal(err)
	}
	if g.spec("u-1", "id") != "podstead-u_1.slice:podstead:id" || g.shim("u-1") != "" ||
		g.dir("u-1", "id") != "/podstead.slice/podstead-u_1.slice/podstead-id.scope" {
		t.Errorf("systemd: %s, %s, %s", g.spec("u-1", "id"), g.shim("u-1"), g.dir("u-1", "id"))
	}
	if _, err := newCgroups(Options{CgroupDriver: "none"}, true); err == nil {
		t.Error("a driver that there is not was taken")
	}
}

// TestSliceLimits: what systemd is told of a pod's limits.
func TestSliceLimits(t *testing.T) {
	const accounting = "CPUAccounting=true MemoryAccounting=true TasksAccounting=true "
	for _, test := range []struct {
		limits  cgroup.Limits
		unified bool
		want    string
	}{
		{cgroup.Limits{Shares: 1024, Quota: 50_000, Memory: 4096, Pids: 9}, true, "CPUQuotaPerSecUSec=@t 500000 TasksMax=@t 9 CPUWeight=@t 39 MemoryMax=@t 4096"},
		{cgroup.Limits{Shares: 1024, Quota: 50_000, Memory: 4096, Pids: 9}, false, "CPUQuotaPerSecUSec=@t 500000 TasksMax=@t 9 CPUShares=@t 1024 MemoryLimit=@t 4096"},
		{cgroup.Limits{Quota: 1001}, false, "CPUQuotaPerSecUSec=@t 20000 TasksMax=@t 18446744073709551615 CPUShares=@t 2 MemoryLimit=@t 18446744073709551615"},
		{cgroup.Limits{}, true, "CPUQuotaPerSecUSec=@t 18446744073709551615 TasksMax=@t 18446744073709551615 CPUWeight=@t 1 MemoryMax=@t 18446744073709551615"},
	} {
		var got []string
		for _, p := range sliceLimits(test.limits, test.unified) {
			got = append(got, p.Name+"="+p.Value.String())
		}
		if diff := cmp.Diff(accounting+test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.limits, diff)
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
