package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
)

// figures is a source of statistics by the name of a pod.
type figures map[string]api.PodStats

func (f figures) Stats(_ context.Context, pods []supervisor.Snapshot) []api.PodStats {
	var list []api.PodStats
	for i := range pods {
		s := f[pods[i].Pod.Name]
		s.PodRef = api.PodReference{Name: pods[i].Pod.Name, Namespace: "default", UID: pods[i].Facts.UID}
		list = append(list, s)
	}
	return list
}

// newMeasured returns the host of newListed whose pods db and web have figures.
func newMeasured(t *testing.T) *testHost {
	t.Helper()
	h := newListed(t)
	usage := func(cpu, memory uint64, disk time.Time) api.PodStats {
		c := &api.CPUStats{UsageNanoCores: &cpu}
		m := &api.MemoryStats{WorkingSetBytes: memory << 20, LimitBytes: new(uint64(64 << 20))}
		return api.PodStats{
			CPU: c, Memory: m, EphemeralStorage: &api.FsStats{Time: disk},
			Network: &api.NetworkStats{InterfaceStats: api.InterfaceStats{Name: "eth0", RxBytes: 1 << 10, TxBytes: 2 << 10}},
			Containers: []api.ContainerStats{
				{
					Name: "app", CPU: c, Memory: m, Rootfs: &api.FsStats{Time: disk, UsedBytes: 4 << 10},
					Logs: &api.FsStats{Time: disk, UsedBytes: 10},
				},
			},
		}
	}
	h.closeServer()
	h.options.Stats = figures{"db": usage(12_000_000, 34, time.Now()), "web": usage(300_000_000, 5, time.Now().Add(-3*time.Hour))}
	h.serve(t)
	return h
}

const (
	topHead = "NAME   CPU(cores)   MEMORY(bytes)   LIMIT   DISK   LOGS   RX    TX\n"
	topDB   = "db     12m          34Mi            64Mi    4Ki    10B    1Ki   2Ki\n"
	topJob  = "job    -            -               -       -      -      -     -\n"
	topWeb  = "web    300m         5Mi             64Mi    4Ki    10B    1Ki   2Ki\n"
)

func TestTop(t *testing.T) {
	h := newMeasured(t)
	for line, want := range map[string]string{
		"top":                              topHead + topDB + topJob + topWeb,
		"top db":                           topHead + topDB,
		"top --containers db --no-headers": "db   app   12m   34Mi   64Mi   4Ki   10B\n",
		"top pods":                         topHead + topDB + topJob + topWeb,
		"top pod db":                       topHead + topDB,
		"top po pod/web":                   topHead + topWeb,
		"top pods -l app=shop":             topHead + topDB + topWeb,
		"top pods --sort-by=cpu":           topHead + topWeb + topDB + topJob,
		"top pods --sort-by=memory":        topHead + topDB + topWeb + topJob,
		"top pods db --no-headers":         "db   12m   34Mi   64Mi   4Ki   10B   1Ki   2Ki\n",
		"top pods db --containers": "POD   NAME   CPU(cores)   MEMORY(bytes)   LIMIT   DISK   LOGS\ndb    app    12m    " +
			"      34Mi            64Mi    4Ki    10B\n",
		"top containers " +
			"--sort-by=cpu": "POD   NAME   CPU(cores)   MEMORY(bytes)   LIMIT   DISK   LOGS\nweb   app    300m         5Mi             " +
			"64Mi    4Ki    10B\ndb    app    12m          34Mi            64Mi    4Ki    10B\n",
		"top container db --no-headers":             "db   app   12m   34Mi   64Mi   4Ki   10B\n",
		"top pods -l app=none":                      "",
		"top pods -l app=none -o json":              "{\n    \"pods\": []\n}\n",
		"top containers -l tier=front --no-headers": "web   app   300m   5Mi   64Mi   4Ki   10B\n",
	} {
		h.want(t, line, want)
	}
	for line, want := range map[string]string{
		"top pods":             "podstead: disk usage was measured up to 3h ago\n",
		"top pods db":          "",
		"top pods -l app=none": "podstead: no pods\n",
	} {
		if got := h.run(t, line); got.stderr != want {
			t.Errorf("%s: stderr %q, want %q", line, got.stderr, want)
		}
	}
	var s api.StatsSummary
	got := h.run(t, "top pods db -o json")
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || len(s.Pods) != 1 || s.Pods[0].PodRef.Name != "db" ||
		s.Pods[0].Memory.WorkingSetBytes != 34<<20 {
		t.Errorf("top -o json: %v\n%s%s", err, got.stdout, got.stderr)
	}
	if got := h.fails(t, "top pods db none", statusNotFound, `no such pod "none"`); got.stdout != topHead+topDB {
		t.Errorf("the pod that exists is missing:\n%s", got.stdout)
	}
	h.fails(t, "top containers none", statusNotFound, `no such pod "none"`)
}

// TestTopOfSchedule checks that top of a pod that is started by its schedule fails with a hint, and that it is left out of all pods.
func TestTopOfSchedule(t *testing.T) {
	t.Parallel()
	pods := []api.Pod{{Metadata: api.Metadata{Name: "web"}}, {Metadata: api.Metadata{Name: "night"}}}
	pods[1].Status.Schedule = &api.ScheduleStatus{}
	if err := scheduledError(pods, nil); err != nil {
		t.Errorf("all pods: %v", err)
	}
	if err := scheduledError(pods, []string{"web"}); err != nil {
		t.Errorf("another pod: %v", err)
	}
	f, _ := errors.AsType[*failure](scheduledError(pods, []string{"web", "night"}))
	if f == nil || f.Error() != `pod "night" is started by its schedule, and does not run itself` ||
		!slices.Equal(f.hints, []string{"show what its runs use with podstead top -l podstead.io/schedule=night"}) {
		t.Errorf("%+v", f)
	}
}

func TestTopErrors(t *testing.T) {
	h := newTestHost(t, api.Version{})
	for line, want := range map[string]string{
		"top nodes":                       "hint: show what the pods of the host use with podstead top,",
		"top pods --sort-by=disk":         `--sort-by "disk": must be one of cpu, memory`,
		"top pods --interval 5s":          "--interval requires --watch",
		"top pods --watch --interval 1ms": "--interval 1ms: must be at least 500ms",
		"top pods web -l app=shop":        "pod names cannot be combined with --selector",
		"top containers -l a=(":           "--selector",
		"top containers -o yaml":          `output format "yaml" is not supported: must be one of json`,
		"top pods service/web":            `resource type "service" is not supported`,
	} {
		h.fails(t, line, statusUsage, want)
	}
	h.closeServer()
	t.Setenv("PODSTEAD_SOCKET", h.write(t, "no-socket", "")+"/s")
	if got := h.run(t, "top pods"); got.code != statusUnavailable {
		t.Errorf("without a daemon: exit code %d, %s", got.code, got.stderr)
	}
}

// TestTopWatch: one table for each interval, until the command is interrupted.
func TestTopWatch(t *testing.T) {
	h := newMeasured(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, stderr := newLines(), &bytes.Buffer{}
	done := make(chan int, 1)
	go func() {
		a := &app{in: strings.NewReader(""), out: out, err: stderr}
		done <- a.run(ctx, []string{"top", "pods", "db", "--watch", "--interval", "500ms"})
	}()
	out.await(t, topHead+topDB+"\n"+topHead+topDB)
	cancel()
	if code := <-done; code != statusFailed || !strings.Contains(stderr.String(), context.Canceled.Error()) {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	if !regexp.MustCompile(`^(NAME .*\ndb .*\n\n?)+$`).MatchString(out.String()) {
		t.Errorf("output:\n%s", out)
	}
	// The pod is deleted.
	h.want(t, "delete db --force", "pod/db deleted (file /etc/podstead/pods.d/db.toml removed)\n")
	h.fails(t, "top pods db --watch", statusNotFound, `no such pod "db"`)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	a := &app{in: strings.NewReader(""), out: full, err: stderr}
	if code := a.run(t.Context(), []string{"top", "pods", "web"}); code != statusFailed {
		t.Errorf("full output: exit code %d, %v", code, errors.New(stderr.String()))
	}
}
