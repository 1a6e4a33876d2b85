package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

func waiting(reason api.Reason) api.ContainerStatus {
	return api.ContainerStatus{State: api.ContainerState{Waiting: &api.Waiting{Reason: reason}}}
}

func terminated(code int, reason api.Reason) api.ContainerStatus {
	return api.ContainerStatus{State: api.ContainerState{Terminated: &api.Terminated{ExitCode: code, Reason: reason}}}
}

func running(ready bool) api.ContainerStatus {
	return api.ContainerStatus{State: api.ContainerState{Running: &api.Running{}}, Ready: ready}
}

type statuses = []api.ContainerStatus

// TestStatus compares the column with kubectl's printPod.
func TestStatus(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name      string
		phase     api.Phase
		init, app statuses
		ready     bool
		deleted   bool
		want      string
	}{
		{"no reason", api.PhasePending, nil, statuses{waiting("")}, false, false, "Pending"},
		{"container is created", api.PhasePending, nil, statuses{waiting("ContainerCreating")}, false, false, "ContainerCreating"},
		{
			"first init container runs", api.PhasePending,
			statuses{running(false), waiting("PodInitializing")},
			statuses{waiting("PodInitializing")},
			false, false, "Init:0/2",
		},
		{
			"second init container waits", api.PhasePending,
			statuses{terminated(0, "Completed"), waiting("PodInitializing")},
			statuses{waiting("PodInitializing")},
			false, false, "Init:1/2",
		},
		{
			"init container failed", api.PhaseFailed,
			statuses{terminated(1, "Error")},
			statuses{waiting("PodInitializing")},
			false, false,
			"Init:Error",
		},
		{"init container failed without a reason", api.PhasePending, statuses{terminated(3, "")}, nil, false, false, "Init:ExitCode:3"},
		{"init container in back-off", api.PhasePending, statuses{waiting("CrashLoopBackOff")}, nil, false, false, "Init:CrashLoopBackOff"},
		{
			"all containers run", api.PhaseRunning,
			statuses{terminated(0, "Completed")},
			statuses{running(true), running(true)},
			true,
			false, "Running",
		},
		{
			"one container in back-off, another runs", api.PhaseRunning, nil,
			statuses{running(true), waiting("CrashLoopBackOff")},
			false,
			false, "CrashLoopBackOff",
		},
		{
			"first of two reasons", api.PhaseRunning, nil,
			statuses{waiting("ErrImagePull"), terminated(1, "Error")},
			false, false,
			"ErrImagePull",
		},
		{
			"one container completed, another runs, pod is ready", api.PhaseRunning, nil,
			statuses{terminated(0, "Completed"), running(true)},
			true, false, "Running",
		},
		{
			"one container completed, another runs, pod is not ready", api.PhaseRunning, nil,
			statuses{terminated(0, "Completed"), running(true)},
			false, false, "NotReady",
		},
		{
			"one container completed, another failed", api.PhaseFailed, nil,
			statuses{terminated(0, "Completed"), terminated(5, "Error")},
			false, false, "Error",
		},
		{
			"one container completed, another failed, a third runs", api.PhaseRunning, nil,
			statuses{terminated(0, "Completed"), running(true), terminated(5, "")},
			false, false, "ExitCode:5",
		},
		{"completed", api.PhaseSucceeded, nil, statuses{terminated(0, "Completed")}, false, false, "Completed"},
		{"failed without a reason", api.PhaseFailed, nil, statuses{terminated(7, "")}, false, false, "ExitCode:7"},
		{"pod is terminating", api.PhaseRunning, nil, statuses{running(true)}, true, true, "Terminating"},
		{"deleted pod has terminated", api.PhaseFailed, nil, statuses{terminated(137, "Error")}, false, true, "Error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := api.Pod{Status: api.PodStatus{Phase: c.phase, InitContainerStatuses: c.init, ContainerStatuses: c.app}}
			if c.ready {
				p.Status.Conditions = []api.Condition{{Type: "Ready", Status: "True"}}
			}
			if c.deleted {
				p.Metadata.DeletionTimestamp = &now
			}
			if got := view.Status(&p); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestRejected checks the columns of a pod that was rejected, which has no containers.
func TestRejected(t *testing.T) {
	p := api.Pod{Status: api.PodStatus{Phase: api.PhaseFailed, Reason: "SysctlForbidden"}}
	p.Spec.InitContainers = []spec.Container{{Name: "i"}, {Name: "side", RestartPolicy: spec.RestartAlways}}
	p.Spec.Containers = []spec.Container{{Name: "a"}, {Name: "b"}}
	if got := view.Ready(&p) + " " + view.Status(&p) + " " + view.Restarts(&p, time.Now()); got != "0/3 SysctlForbidden 0" {
		t.Error(got)
	}
}

// TestStatusOfWaitingPod checks the column of a pod that waits for conditions before it starts.
func TestStatusOfWaitingPod(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		init    statuses
		deleted *time.Time
		want    string
	}{
		{nil, nil, "Waiting"},
		{statuses{waiting("PodInitializing")}, nil, "Waiting"},
		{nil, &now, "Terminating"},
	} {
		p := api.Pod{Metadata: api.Metadata{DeletionTimestamp: c.deleted}, Status: api.PodStatus{
			Phase: api.PhasePending, Reason: api.ReasonWaitingFor, InitContainerStatuses: c.init,
			ContainerStatuses: statuses{waiting("ContainerCreating")},
		}}
		if got := view.Status(&p); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestSidecars checks the columns of a pod with a sidecar, which counts like an app container.
func TestSidecars(t *testing.T) {
	yes, no := true, false
	side := func(s api.ContainerStatus, started *bool, restarts int) api.ContainerStatus {
		s.Started, s.RestartCount = started, restarts
		return s
	}
	crashed := side(waiting("CrashLoopBackOff"), &no, 3)
	for _, c := range []struct {
		name        string
		side, setup api.ContainerStatus
		initialized string
		want        string
	}{
		{"sidecar is starting", side(running(false), &no, 0), waiting("PodInitializing"), "False", "Init:0/2 0/2 0"},
		{"sidecar has started", side(running(false), &yes, 0), running(false), "False", "Init:1/2 0/2 0"},
		{"sidecar is ready", side(running(true), &yes, 0), running(false), "False", "Init:1/2 1/2 0"},
		{"sidecar crashed before the app container started", crashed, waiting("PodInitializing"), "False", "Init:CrashLoopBackOff 0/2 3"},
		{"all containers run", side(running(true), &yes, 1), terminated(0, "Completed"), "True", "Running 2/2 1"},
		{"sidecar crashed while the app container runs", crashed, terminated(0, "Completed"), "True", "Init:CrashLoopBackOff 1/2 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p api.Pod
			p.Spec.InitContainers = []spec.Container{{Name: "side", RestartPolicy: spec.RestartAlways}, {Name: "setup"}}
			p.Status.Phase, p.Status.InitContainerStatuses = api.PhasePending, statuses{c.side, c.setup}
			p.Status.ContainerStatuses = statuses{waiting("PodInitializing")}
			p.Status.Conditions = []api.Condition{{Type: "Initialized", Status: c.initialized}}
			if c.initialized == "True" {
				p.Status.Phase, p.Status.ContainerStatuses = api.PhaseRunning, statuses{running(true)}
			}
			got := strings.Join([]string{view.Status(&p), view.Ready(&p), view.Restarts(&p, time.Now())}, " ")
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestColumnsOfInitContainers checks that, as in kubectl, init containers count up to the first one that has not completed or, for a
// sidecar, not started.
func TestColumnsOfInitContainers(t *testing.T) {
	yes, no := true, false
	restarted := func(s api.ContainerStatus, started *bool, restarts int) api.ContainerStatus {
		s.Started, s.RestartCount = started, restarts
		return s
	}
	for _, c := range []struct {
		name        string
		init        statuses // a sidecar, an init container, a sidecar
		app         api.ContainerStatus
		initialized string
		want        string
	}{
		{
			"init container in a crash loop",
			statuses{
				restarted(running(true), &yes, 1), restarted(waiting("CrashLoopBackOff"), &no, 2),
				restarted(waiting("PodInitializing"), &no, 4),
			},
			waiting("PodInitializing"), "False", "Init:CrashLoopBackOff 1/3 3",
		},
		{
			"last sidecar is starting",
			statuses{restarted(running(true), &yes, 1), restarted(terminated(0, "Completed"), &no, 2), restarted(running(false), &no, 4)},
			waiting("PodInitializing"), "False", "Init:2/3 1/3 7",
		},
		{
			"all containers run",
			statuses{restarted(running(true), &yes, 1), restarted(terminated(0, "Completed"), &no, 2), restarted(running(true), &yes, 4)},
			restarted(running(true), &yes, 8), "True", "Running 3/3 13",
		},
		{
			"first sidecar in a crash loop while the app container runs",
			statuses{
				restarted(waiting("CrashLoopBackOff"), &no, 1), restarted(terminated(0, "Completed"), &no, 2),
				restarted(running(true), &yes, 4),
			},
			restarted(running(true), &yes, 8), "True", "Init:CrashLoopBackOff 1/3 9",
		},
		{
			"last sidecar in a crash loop while the app container runs",
			statuses{
				restarted(running(true), &yes, 1), restarted(terminated(0, "Completed"), &no, 2),
				restarted(waiting("CrashLoopBackOff"), &no, 4),
			},
			restarted(running(true), &yes, 8), "True", "Init:CrashLoopBackOff 2/3 13",
		},
		{
			"sidecars have terminated with the pod",
			statuses{
				restarted(terminated(0, "Completed"), &no, 1), restarted(terminated(0, "Completed"), &no, 0),
				restarted(terminated(137, "Error"), &no, 0),
			},
			terminated(0, "Completed"), "True", "Completed 0/3 1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p api.Pod
			p.Spec.InitContainers = []spec.Container{
				{Name: "a", RestartPolicy: spec.RestartAlways}, {Name: "b"}, {Name: "c", RestartPolicy: spec.RestartAlways},
			}
			p.Status.Phase, p.Status.InitContainerStatuses, p.Status.ContainerStatuses = api.PhaseRunning, c.init, statuses{c.app}
			p.Status.Conditions = []api.Condition{{Type: "Initialized", Status: c.initialized}}
			got := strings.Join([]string{view.Status(&p), view.Ready(&p), view.Restarts(&p, time.Now())}, " ")
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestStatusAfterReboot checks that the init containers determine the status when they run again in a new pod sandbox.
func TestStatusAfterReboot(t *testing.T) {
	var p api.Pod
	p.Status.Phase, p.Status.Conditions = api.PhasePending, []api.Condition{{Type: "Initialized", Status: "True"}}
	p.Status.InitContainerStatuses, p.Status.ContainerStatuses = statuses{running(false)}, statuses{terminated(255, "Unknown")}
	if got, want := view.Status(&p), "Init:0/1"; got != want {
		t.Errorf("init container runs again: %q, want %q", got, want)
	}
	p.Status.ContainerStatuses = statuses{waiting("ImagePullBackOff"), terminated(255, "Unknown")}
	if got, want := view.Status(&p), "ImagePullBackOff"; got != want {
		t.Errorf("app container waits with a reason: %q, want %q", got, want)
	}
	p.Status.ContainerStatuses = statuses{terminated(255, "Unknown")}
	p.Status.Phase, p.Status.InitContainerStatuses = api.PhaseRunning, statuses{terminated(0, "Completed")}
	if got, want := view.Status(&p), "Unknown"; got != want {
		t.Errorf("init container completed: %q, want %q", got, want)
	}
}

func TestRestarts(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	restarted := running(true)
	restarted.RestartCount = 2
	restarted.LastState.Terminated = &api.Terminated{FinishedAt: now.Add(-90 * time.Second)}
	p := api.Pod{Status: api.PodStatus{ContainerStatuses: statuses{restarted, running(true)}}}
	if got, want := view.Restarts(&p, now), "2 (90s ago)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	failing := waiting("CrashLoopBackOff")
	failing.RestartCount = 5
	p.Status.InitContainerStatuses = statuses{failing}
	if got, want := view.Restarts(&p, now), "5"; got != want {
		t.Errorf("init container has not completed: %q, want %q", got, want)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour:                      "0s",
		119 * time.Second:               "119s",
		2 * time.Minute:                 "2m",
		3*time.Minute + 7*time.Second:   "3m7s",
		10*time.Minute + 59*time.Second: "10m",
		179 * time.Minute:               "179m",
		3*time.Hour + 5*time.Minute:     "3h5m",
		9 * time.Hour:                   "9h",
		50 * time.Hour:                  "2d2h",
		8*24*time.Hour + time.Hour:      "8d",
	} {
		if got := view.Age(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := api.Pod{
		Metadata: api.Metadata{Name: "web", UID: "u-1", CreationTimestamp: now.Add(-time.Hour)},
		Status: api.PodStatus{
			Owner: "podstead run", Phase: api.PhaseRunning, PodIP: "10.0.0.7", ContainerStatuses: statuses{running(true), running(false)},
		},
	}
	var b strings.Builder
	if err := view.Table(view.Screen{W: &b}, []api.Pod{p}, view.TableOptions{Wide: true}, now); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"NAME   READY   STATUS    RESTARTS   AGE   IP         UID   OWNER\n" +
		"web    1/2     Running   0          60m   10.0.0.7   u-1   podstead run\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func pod(name string, containers ...string) api.Pod {
	p := api.Pod{Metadata: api.Metadata{Name: name}}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, spec.Container{Name: c})
	}
	return p
}

func TestTextPrefixesLines(t *testing.T) {
	var out, err strings.Builder
	text := &view.Text{Out: &out, Err: &err}
	text.Pods([]api.Pod{pod("a", "x"), pod("b", "long")})
	text.Line("a", api.Line{Container: "x", Line: "one"})
	text.Line("b", api.Line{Container: "long", Line: "t\ufffdo", Raw: []byte("t\xffo")})
	text.Line("a", api.Line{Container: "debug", Line: "added"})
	text.Event(api.Event{Pod: "a", Container: "x", Kind: api.EventContainerCreated, Message: "Container created"})
	text.Event(api.Event{Pod: "a", Container: "x", Kind: api.EventImageError, Message: "Error: ErrImagePull"})
	text.Event(api.Event{Pod: "a", Container: "x", Level: api.EventWarning, Message: "a \x1b[2J message"})
	if got, want := out.String(), "a/x    | one\nb/long | t\xffo\ndebug | added\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if got := err.String(); !strings.HasSuffix(got, " a/x warning: a \\x1b[2J message\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("stderr %q, want one event with the control character replaced", got)
	}
}

func TestTextPrefix(t *testing.T) {
	for prefix, want := range map[view.Prefix]string{
		view.DefaultPrefix: "x | one\n", view.PodPrefix: "a/x | one\n", view.NoPrefix: "one\n",
	} {
		var out strings.Builder
		text := &view.Text{Out: &out, Prefix: prefix}
		text.Pods([]api.Pod{pod("a", "x")})
		text.Line("a", api.Line{Container: "x", Line: "one"})
		if got := out.String(); got != want {
			t.Errorf("prefix %d: %q, want %q", prefix, got, want)
		}
	}
}

// TestTextWithoutNewline checks a line without a newline, at the end of the output and before other lines.
func TestTextWithoutNewline(t *testing.T) {
	partial := api.Line{Container: "x", Stream: "stdout", Line: "no end", Partial: true}
	rest := api.Line{Container: "x", Stream: "stdout", Line: " but more"}
	next := api.Line{Container: "x", Stream: "stdout", Line: "next", Attempt: 1}
	for _, test := range []struct {
		text  *view.Text
		lines []api.Line
		want  string
	}{
		{&view.Text{Prefix: view.NoPrefix}, []api.Line{partial}, "no end"},
		{&view.Text{Prefix: view.NoPrefix}, []api.Line{partial, rest}, "no end but more\n"},
		{&view.Text{Prefix: view.NoPrefix}, []api.Line{partial, next}, "no end\nnext\n"},
		{&view.Text{Prefix: view.NoPrefix, Times: "2006"}, []api.Line{partial, rest, next}, "0001 no end but more\n0001 next\n"},
		{&view.Text{}, []api.Line{partial, next}, "x | no end\nx | next\n"},
	} {
		var out strings.Builder
		test.text.Out = &out
		test.text.Pods([]api.Pod{pod("a", "x")})
		for _, l := range test.lines {
			test.text.Line("a", l)
		}
		if got := out.String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestTextInColour(t *testing.T) {
	var out strings.Builder
	text := &view.Text{Out: &out, Colour: true}
	text.Pods([]api.Pod{pod("a", "x", "y")})
	text.Line("a", api.Line{Container: "x", Line: "one"})
	text.Line("a", api.Line{Container: "y", Line: "two"})
	if got, want := out.String(), "\x1b[36mx |\x1b[0m one\n\x1b[33my |\x1b[0m two\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestScheduleColumn(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		reason api.Reason
		status api.ScheduleStatus
		want   string
	}{
		{api.ReasonScheduled, api.ScheduleStatus{}, "Scheduled"},
		{api.ReasonScheduled, api.ScheduleStatus{NextScheduleTime: now.Add(15 * time.Hour)}, "Scheduled (next in 15h)"},
		{
			api.ReasonRunNotStarted,
			api.ScheduleStatus{NextScheduleTime: now.Add(15 * time.Hour)},
			"\x1b[31mRunNotStarted (next in 15h)\x1b[0m",
		},
		{
			api.ReasonScheduled,
			api.ScheduleStatus{LastScheduleTime: now.Add(-9 * time.Hour), NextScheduleTime: now.Add(15 * time.Hour)},
			"Scheduled (last 9h ago, next in 15h)",
		},
	} {
		p := api.Pod{Status: api.PodStatus{Phase: api.PhasePending, Reason: tc.reason, Schedule: &tc.status}}
		for _, wide := range []bool{false, true} {
			var b strings.Builder
			err := view.Table(view.Screen{W: &b, Colour: true}, []api.Pod{p}, view.TableOptions{Wide: wide, NoHeader: true}, now)
			if err != nil || !strings.Contains(b.String(), "   "+tc.want+"   ") {
				t.Errorf("%q, %v, want %q", b.String(), err, tc.want)
			}
		}
	}
}
