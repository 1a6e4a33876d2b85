package shim

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	eventsapi "github.com/containerd/containerd/api/events"
	sandboxapi "github.com/containerd/containerd/api/runtime/sandbox/v1"
	api "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/types/known/emptypb"
)

// recordingRunc records the requests it receives and fails the configured one.
type recordingRunc struct {
	*fakeRunc
	calls   []string
	fails   string
	stopped bool // its containers have exited
	root    []string
}

func (f *recordingRunc) call(name, id string) error {
	f.calls = append(f.calls, name+" "+id)
	if name == f.fails {
		return errgrpc.ToGRPC(errors.New("injected failure"))
	}
	return nil
}

func (f *recordingRunc) Create(_ context.Context, r *api.CreateTaskRequest) (*api.CreateTaskResponse, error) {
	for _, m := range r.Rootfs {
		f.root = append(f.root, m.Options...)
	}
	return &api.CreateTaskResponse{Pid: uint32(os.Getpid())}, f.call("create", r.ID)
}

func (f *recordingRunc) Start(_ context.Context, r *api.StartRequest) (*api.StartResponse, error) {
	return &api.StartResponse{}, f.call("start", r.ID)
}

func (f *recordingRunc) Kill(_ context.Context, r *api.KillRequest) (*emptypb.Empty, error) {
	name := "kill"
	if r.All {
		name = "kill all"
	}
	return &emptypb.Empty{}, f.call(name, r.ID)
}

func (f *recordingRunc) Wait(_ context.Context, r *api.WaitRequest) (*api.WaitResponse, error) {
	return &api.WaitResponse{}, f.call("wait", r.ID)
}

func (f *recordingRunc) Delete(_ context.Context, r *api.DeleteRequest) (*api.DeleteResponse, error) {
	if err := f.call("delete", r.ID); err != nil {
		return nil, errgrpc.ToGRPC(errdefs.ErrNotFound)
	}
	return &api.DeleteResponse{}, nil
}

func (f *recordingRunc) State(context.Context, *api.StateRequest) (*api.StateResponse, error) {
	if f.stopped {
		return &api.StateResponse{Status: task.Status_STOPPED}, nil
	}
	return &api.StateResponse{Status: task.Status_RUNNING}, nil
}

// bundle returns a directory with a specification.
func bundle(t *testing.T, s *specs.Spec) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPause(t *testing.T) {
	process := &specs.Process{Args: []string{"/pause"}}
	for _, test := range []struct {
		name  string
		spec  specs.Spec
		fails string
		err   string
		calls []string // in order
	}{
		{name: "none", calls: nil},
		{name: "one", spec: specs.Spec{Process: process}, calls: []string{"create s", "start s", "kill s", "wait s", "delete s"}},
		{
			name: "create fails", spec: specs.Spec{Process: process}, fails: "create", err: "create process of sandbox",
			calls: []string{"create s", "kill s", "wait s", "delete s"},
		},
		{
			name: "start fails", spec: specs.Spec{Process: process}, fails: "start", err: "start process of sandbox",
			calls: []string{"create s", "start s", "kill s", "wait s", "delete s"},
		},
		{
			name: "pinning the namespace fails", err: "pin PID namespace",
			spec:  specs.Spec{Process: process, Annotations: map[string]string{PIDAnnotation: "/no/such/dir/pid"}},
			calls: []string{"create s", "kill s", "wait s", "delete s"},
		},
		{
			name: "already deleted", spec: specs.Spec{Process: process}, fails: "delete",
			calls: []string{"create s", "start s", "kill s", "wait s", "delete s"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			svc, fake, _ := newTest(t)
			f := &recordingRunc{fakeRunc: fake, fails: test.fails}
			svc.TTRPCTaskService = f
			_, err := svc.sandbox.CreateSandbox(t.Context(),
				&sandboxapi.CreateSandboxRequest{SandboxID: "s", BundlePath: bundle(t, &test.spec)})
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("create: %v, want %q", err, test.err)
			}
			if svc.sandbox.exists() != (test.err == "") {
				t.Errorf("sandbox exists: %v", svc.sandbox.exists())
			}
			if test.err == "" || test.fails == "create" { // after another failure it was stopped at once
				if err := svc.stopPause(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(test.calls, f.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPauseCannotBeKilled(t *testing.T) {
	svc, fake, _ := newTest(t)
	svc.TTRPCTaskService = &recordingRunc{fakeRunc: fake, fails: "kill"}
	r := &sandboxapi.CreateSandboxRequest{SandboxID: "s", BundlePath: bundle(t, &specs.Spec{Process: &specs.Process{}})}
	if _, err := svc.sandbox.CreateSandbox(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := svc.stopPause(t.Context()); err == nil || !strings.Contains(err.Error(), "injected failure") {
		t.Errorf("end: %v", err)
	}
}

// Events of the pause process are not published, and its exit ends the sandbox.
func TestPauseEvents(t *testing.T) {
	for _, test := range []struct {
		name    string
		ending  bool
		running bool
		ends    bool
	}{
		{name: "dies", ends: true},
		{name: "dies under a running container", running: true},
		{name: "exit requested", ending: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			svc, fake, end := newTest(t)
			svc.TTRPCTaskService = &recordingRunc{fakeRunc: fake}
			r := &sandboxapi.CreateSandboxRequest{SandboxID: "s", BundlePath: bundle(t, &specs.Spec{Process: &specs.Process{}})}
			if _, err := svc.sandbox.CreateSandbox(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if test.running {
				svc.mustCreate(t, &api.CreateTaskRequest{ID: "a", Bundle: bundle(t, &specs.Spec{})})
			}
			if test.ending {
				if err := svc.stopPause(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range []any{&eventsapi.TaskStart{ContainerID: "s"}, &eventsapi.TaskExit{ContainerID: "s", ID: "s"}} {
				if err := fake.events.Publish(t.Context(), "/tasks", e); err != nil {
					t.Errorf("%T was published", e)
				}
			}
			if test.ends {
				<-end.Done()
			}
			if test.running {
				if ended(end) {
					t.Error("the shim shut down under a running container")
				}
				fake.exitAll(t)
				<-end.Done()
			}
			if test.ending && svc.terminating {
				t.Error("a requested exit ended the sandbox")
			}
		})
	}
}

// The root file system of a pause process in a user namespace belongs to that namespace's root.
func TestPauseRoot(t *testing.T) {
	svc, fake, _ := newTest(t)
	f := &recordingRunc{fakeRunc: fake}
	svc.TTRPCTaskService = f
	s := &specs.Spec{Process: &specs.Process{}, Linux: &specs.Linux{
		UIDMappings: []specs.LinuxIDMapping{{HostID: 65536, Size: 65536}},
		GIDMappings: []specs.LinuxIDMapping{{HostID: 131072, Size: 65536}},
	}}
	if _, err := svc.sandbox.CreateSandbox(t.Context(),
		&sandboxapi.CreateSandboxRequest{SandboxID: "s", BundlePath: bundle(t, s)}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(f.root, "uid=65536") || !slices.Contains(f.root, "gid=131072") {
		t.Errorf("options %q", f.root)
	}
}

// Remaining processes of a container in a shared PID namespace are killed if the first process exits before Start returns, and
// before the container is deleted.
func TestOrphansOfContainersAreKilled(t *testing.T) {
	own := specs.Spec{Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}}}}
	shared := specs.Spec{Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace, Path: "/ns/pid"}}}}
	for _, test := range []struct {
		name    string
		spec    specs.Spec
		stopped bool
		want    []string
	}{
		{"own namespace", own, true, []string{"create a", "start a", "delete a"}},
		{"the pod's", shared, true, []string{"create a", "start a", "kill all a", "kill all a", "delete a"}},
		{"host PID namespace", specs.Spec{}, true, []string{"create a", "start a", "kill all a", "kill all a", "delete a"}},
		{"running", shared, false, []string{"create a", "start a", "delete a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			svc, fake, _ := newTest(t)
			f := &recordingRunc{fakeRunc: fake, stopped: test.stopped}
			svc.TTRPCTaskService = f
			svc.mustCreate(t, &api.CreateTaskRequest{ID: "a", Bundle: bundle(t, &test.spec)})
			if _, err := svc.Start(t.Context(), &api.StartRequest{ID: "a"}); err != nil {
				t.Fatal(err)
			}
			if _, err := svc.Delete(t.Context(), &api.DeleteRequest{ID: "a"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, f.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvokedAsPause(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{[]string{"/pause"}, true},
		{[]string{"/pause", "pod"}, false},
		{[]string{"/usr/bin/podstead"}, false},
	} {
		if got := Invoked(test.args); got != test.want {
			t.Errorf("%q: %v", test.args, got)
		}
	}
}
