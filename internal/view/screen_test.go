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

// TestScreen checks the width and the colours of tables.
func TestScreen(t *testing.T) {
	rows := [][]string{
		{"NAME", "STATUS", "IMAGE", "LABELS"},
		{"a-name-that-is-kept", "CrashLoopBackOff", "registry.example.org/shop/web:1.27", "app=shop"},
		{"b", "Running", "é\x1b[2J\tc", "<none>"},
	}
	for _, c := range []struct {
		name   string
		screen view.Screen
		want   string
	}{
		{"no terminal", view.Screen{}, `
NAME                  STATUS             IMAGE                                LABELS
a-name-that-is-kept   CrashLoopBackOff   registry.example.org/shop/web:1.27   app=shop
b                     Running            é\x1b[2J c                           <none>
`},
		{"wide enough", view.Screen{Width: 86}, `
NAME                  STATUS             IMAGE                                LABELS
a-name-that-is-kept   CrashLoopBackOff   registry.example.org/shop/web:1.27   app=shop
b                     Running            é\x1b[2J c                           <none>
`},
		{"the widest column is shortened", view.Screen{Width: 70}, `
NAME                  STATUS             IMAGE                LABELS
a-name-that-is-kept   CrashLoopBackOff   registry.example.…   app=shop
b                     Running            é\x1b[2J c           <none>
`},
		{"all columns but the first are shortened, and not more", view.Screen{Width: 20}, `
NAME                  STATUS     IMAGE      LABELS
a-name-that-is-kept   CrashLo…   registr…   app=shop
b                     Running    é\x1b[2…   <none>
`},
		{"problems are red", view.Screen{Width: 60, Colour: true}, "\n" +
			"NAME                  STATUS         IMAGE          LABELS\n" +
			"a-name-that-is-kept   \x1b[31mCrashLoopBa…\x1b[0m   registry.ex…   app=shop\n" +
			"b                     Running        é\\x1b[2J c     <none>\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			c.screen.W = &b
			if err := c.screen.Table(rows); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, "\n"+b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLongNames checks that the first column is shortened last, in the middle, and that a name of 20 characters is kept.
func TestLongNames(t *testing.T) {
	for width, want := range map[int]string{
		42: "NAME                                 SIZE\nregistry.example.org/shop/web:1.27   2.0Mi\n",
		32: "NAME                       SIZE\nregistry.exa…op/web:1.27   2.0Mi\n",
		10: "NAME                   SIZE\nregistry.e…/web:1.27   2.0Mi\n",
	} {
		var b strings.Builder
		if err := (view.Screen{W: &b, Width: width}).Table([][]string{
			{"NAME", "SIZE"}, {"registry.example.org/shop/web:1.27", "2.0Mi"},
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
	}
}

// TestWatchFits checks that the rows of a watch fit the terminal, and that those of other outputs are not shortened.
func TestWatchFits(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := api.Pod{
		Metadata: api.Metadata{
			Name: "a-pod-with-a-name-that-is-long", Namespace: "default", UID: "8a5f7e52-9f9c-4b3e-8f5e-0c1c3a2b1d4e",
			CreationTimestamp: now.Add(-time.Hour), Labels: map[string]string{"app": strings.Repeat("shop", 20)},
		},
	}
	p.Status.Phase, p.Status.PodIP, p.Status.Owner = api.PhasePending, "10.77.64.2",
		"the pods directory (a-pod-with-a-name-that-is-long.toml)"
	for _, c := range []struct {
		name    string
		width   int
		options view.TableOptions
		want    string
	}{
		{"no terminal", 0, view.TableOptions{}, `
NAME                     READY   STATUS                   RESTARTS         AGE      IP
a-pod-with-a-name-that-is-long 0/0     Pending                  0                60m      10.77.64.2
`},
		{"a terminal", 80, view.TableOptions{}, `
NAME                     READY   STATUS       RESTARTS     AGE      IP
a-pod-with-a…hat-is-long 0/0     Pending      0            60m      10.77.64.2
`},
		{"all columns", 132, view.TableOptions{Wide: true, Labels: true, Namespace: true}, `
NAMESPACE  NAME           READY   STATUS         RESTARTS       AGE      IP             UID            OWNER          LABELS
default    a-pod-with-a-… 0/0     Pending        0              60m      10.77.64.2     8a5f7e52-9f9c… the pods dire… app=shopshops…
`},
	} {
		var b strings.Builder
		w := view.Watch{W: &b, Width: c.width, Options: c.options}
		if err := w.Print(&p, now); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, "\n"+b.String()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestProblems checks which cells are red.
func TestProblems(t *testing.T) {
	for cell, want := range map[string]bool{
		"Error": true, "Init:CrashLoopBackOff": true, "Error (1)": true, "ExitCode:3": true, "Init:ExitCode:3": true, "Rejected": true,
		"SysctlForbidden": true,
		"Running":         false, "Completed": false, "Init:0/2": false, "Stopped": false, "error-pages": false, "<none>": false,
	} {
		var b strings.Builder
		if err := (view.Screen{W: &b, Colour: true}).Table([][]string{{cell}}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "\x1b[31m"); got != want {
			t.Errorf("%q is red: %v, want %v", cell, got, want)
		}
	}
}

// TestContainers checks the table of containers.
func TestContainers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := api.Pod{Metadata: api.Metadata{Name: "web"}}
	p.Spec.Containers = []spec.Container{{Name: "app", Ports: []spec.ContainerPort{
		{ContainerPort: 80, HostPort: 8080, Protocol: spec.ProtocolTCP},
		{ContainerPort: 53, HostPort: 53, HostIP: "127.0.0.1", Protocol: spec.ProtocolUDP},
		{ContainerPort: 9000},
	}}}
	p.Status.InitContainerStatuses = []api.ContainerStatus{{Name: "prepare", Image: "busybox", State: api.ContainerState{
		Terminated: &api.Terminated{Reason: api.ReasonCompleted},
	}}}
	p.Status.ContainerStatuses = []api.ContainerStatus{
		{Name: "app", Image: "nginx", RestartCount: 2, State: api.ContainerState{Running: &api.Running{StartedAt: now.Add(-time.Minute)}}},
		{Name: "side", Image: "busybox", State: api.ContainerState{Waiting: &api.Waiting{Reason: "CrashLoopBackOff"}}},
		{Name: "new", Image: "busybox"},
	}
	for all, want := range map[bool]string{
		false: `
POD   CONTAINER   IMAGE   STATUS    RESTARTS   UP    PORTS
web   app         nginx   Running   2          60s   0.0.0.0:8080->80/tcp, 127.0.0.1:53->53/udp, 9000/tcp
`,
		true: `
POD   CONTAINER   IMAGE     STATUS             RESTARTS   UP       PORTS
web   prepare     busybox   Completed (0)      0          <none>   <none>
web   app         nginx     Running            2          60s      0.0.0.0:8080->80/tcp, 127.0.0.1:53->53/udp, 9000/tcp
web   side        busybox   CrashLoopBackOff   0          <none>   <none>
web   new         busybox   Waiting            0          <none>   <none>
`,
	} {
		var b strings.Builder
		if err := (view.Screen{W: &b}).Table(view.ContainerTable(view.Containers([]api.Pod{p}, all), now)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, "\n"+b.String()); diff != "" {
			t.Errorf("all %v: %s", all, diff)
		}
	}
}
