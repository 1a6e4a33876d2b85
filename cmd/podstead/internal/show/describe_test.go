package show

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
)

var update = flag.Bool("update", false, "write the pages of testdata")

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// TestPages compares pages with those of testdata.
func TestPages(t *testing.T) {
	for name, in := range map[string]*Description{"crashing": crashing(t), "refused": refused(), "stopped": stopped(t)} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Describe(&b, in, now); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("go test ./cmd/podstead/internal/show -update writes the page; -want +got:\n%s", diff)
			}
		})
	}
}

// parsePod returns a pod as the API has it.
func parsePod(t *testing.T, text string) api.Pod {
	t.Helper()
	pod, problems := spec.Parse("web.toml", []byte(text))
	if pod == nil {
		t.Fatal(problems)
	}
	return api.Pod{
		Metadata: api.Metadata{
			Name: pod.Name, UID: "0b9c", Labels: pod.Labels, Annotations: pod.Annotations, CreationTimestamp: ago(time.Hour),
		},
		Spec: api.PodSpec{Pod: *pod},
	}
}

func ago(d time.Duration) time.Time { return now.Add(-d) }

// crashing is a pod whose app container restarts, with every kind of field.
func crashing(t *testing.T) *Description {
	t.Helper()
	p := parsePod(t, `
name = "web"
labels = { app = "shop", tier = "front" }
annotations.note = "a\u001b[2Jb\tc"
waitFor = ["pod:db:ready"]
runtimeClassName = "untrusted"
pidsLimit = 100
shmSize = "128Mi"
readinessGates = [{ conditionType = "example.com/warm" }]

[[volumes]]
name = "cache"
emptyDir = { medium = "Memory", sizeLimit = "64Mi" }

[[volumes]]
name = "data"
hostPath = { path = "/srv/shop" }

[[volumes]]
name = "keys"
secret = { secretName = "shop" }

[[initContainers]]
name = "prepare"
image = "busybox:1"
command = ["sh", "-c", "echo it's ready"]

[[containers]]
name = "app"
image = "shop:1"
args = ["--listen", ":80"]
ports = [{ name = "http", containerPort = 80, hostPort = 8080, hostIP = "127.0.0.1" }]
resources = { requests = { cpu = "250m" }, limits = { cpu = "1", memory = "64Mi" } }
ulimits = ["nofile=1024:65536", "core=-1"]
init = true
envFrom = [{ configMapRef = { name = "shop" } }, { secretRef = { name = "more" } }]
volumeMounts = [{ name = "data", mountPath = "/data", subPath = "web", readOnly = true }, { name = "cache", mountPath = "/cache" }]
startupProbe = { grpc = { port = 9000, service = "ready" } }
readinessProbe = { httpGet = { path = "/ready", port = "http" }, successThreshold = 2 }
livenessProbe = { exec = { command = ["test", "-f", "/tmp/alive"] }, initialDelaySeconds = 5, periodSeconds = 0.5 }

[[containers.env]]
name = "MODE"
value = "fast"

[[containers.env]]
name = "PASSWORD"
valueFrom = { secretKeyRef = { name = "shop", key = "password" } }

[[containers.env]]
name = "POD"
valueFrom = { fieldRef = { fieldPath = "metadata.name" } }
`)
	p.Status = api.PodStatus{
		Phase: api.PhaseRunning, QOSClass: "Burstable", PodIPs: []api.PodIP{{IP: "10.88.0.7"}},
		Conditions: []api.Condition{
			{Type: api.PodInitialized, Status: "True", LastTransitionTime: ago(50 * time.Minute)},
			{
				Type: api.PodReady, Status: "False", Reason: "ContainersNotReady", Message: "containers with unready status: [app]",
				LastTransitionTime: ago(time.Minute),
			},
		},
		InitContainerStatuses: []api.ContainerStatus{{
			Name: "prepare", Image: "docker.io/library/busybox:1", ImageID: "sha256:11", Ready: true,
			State: api.ContainerState{
				Terminated: &api.Terminated{Reason: "Completed", StartedAt: ago(time.Hour), FinishedAt: ago(50 * time.Minute)},
			},
		}},
		ContainerStatuses: []api.ContainerStatus{{
			Name: "app", Image: "docker.io/library/shop:1", ImageID: "sha256:22", ContainerID: "containerd://33", RestartCount: 4,
			State: api.ContainerState{
				Waiting: &api.Waiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"},
			},
			LastState: api.ContainerState{
				Terminated: &api.Terminated{
					ExitCode: 137, Reason: "Error", Message: "panic: no disk\n", StartedAt: ago(2 * time.Minute),
					FinishedAt: ago(time.Minute),
				},
			},
		}},
	}
	p.Status.Owner, p.Status.File = "daemon", "/etc/podstead/pods.d/web.toml"
	in := &Description{Pod: p, Why: &api.Explanation{
		Text: "web is in CrashLoopBackOff: app exited with code 137",
		Containers: []api.ExplainedContainer{{Name: "prepare"}, {Name: "app", Probes: []api.ProbeAnswer{
			{Probe: api.ProbeReadiness, Outcome: api.ProbeError, Time: ago(time.Minute)},
			{Probe: api.ProbeLiveness, Outcome: api.ProbeSuccess, Time: ago(time.Second)},
		}}},
	}}
	in.Stats = crashingStats()
	for i := range 19 {
		in.Events = append(in.Events,
			api.Event{
				Time: ago(time.Hour - time.Duration(i)*time.Minute), Level: "Normal", Reason: "Started", Pod: "web", Container: "app",
				Message: "Container started",
			})
	}
	probe := func(d time.Duration, kind api.EventKind, fields event.Fields) {
		e := event.New(kind, ago(d), "web", fields)
		in.Events = append(in.Events, api.Event{
			Time: e.Time, Level: e.Level, Kind: kind, Reason: e.Reason, Pod: e.Pod, Container: "app", Fields: fields, Message: e.Message,
		})
	}
	probe(3*time.Minute, api.EventProbeFailed, event.Fields{"probe": "Liveness", "output": "exit code 1"})
	probe(2*time.Minute, api.EventProbeFailed, event.Fields{"probe": "Liveness", "output": "exit code 2\x1b[2J"})
	probe(time.Minute, api.EventProbeErrored, event.Fields{"probe": "Readiness", "error": "timeout"})
	return in
}

// crashingStats is what the pod of crashing uses. Its init container has only logs.
func crashingStats() *api.PodStats {
	disk := func(d time.Duration, bytes uint64) *api.FsStats { return &api.FsStats{Time: ago(d), UsedBytes: bytes} }
	cpu := &api.CPUStats{UsageNanoCores: new(uint64(12_000_000)), Throttling: &api.ThrottlingStats{Periods: 40, ThrottledPeriods: 7}}
	return &api.PodStats{
		CPU:          &api.CPUStats{UsageNanoCores: new(uint64(13_000_000)), Throttling: &api.ThrottlingStats{Periods: 40}},
		Memory:       &api.MemoryStats{WorkingSetBytes: 35 << 20},
		ProcessStats: &api.ProcessStats{ProcessCount: 3}, EphemeralStorage: disk(8*time.Second, 20<<10),
		Network: &api.NetworkStats{InterfaceStats: api.InterfaceStats{RxBytes: 2048, TxBytes: 1 << 30}},
		Containers: []api.ContainerStats{
			{Name: "prepare", Logs: disk(8*time.Second, 4<<10)},
			{
				Name: "app", CPU: cpu,
				Memory:       &api.MemoryStats{WorkingSetBytes: 34 << 20, LimitBytes: new(uint64(64 << 20)), OOMKills: new(uint64(2))},
				ProcessStats: &api.ProcessStats{ProcessCount: 2}, Rootfs: disk(8*time.Second, 12<<10), Logs: disk(8*time.Second, 4<<10),
			},
		},
	}
}

// refused is a file of the pods directory that defines no pod.
func refused() *Description {
	return &Description{Pod: api.Pod{
		Metadata: api.Metadata{Name: "broken"},
		Status: api.PodStatus{
			File: "/etc/podstead/pods.d/broken.toml", Reason: "InvalidFile",
			Message: "/etc/podstead/pods.d/broken.toml:1:1: image: required",
		},
	}}
}

// stopped is a pod that was stopped by a person.
func stopped(t *testing.T) *Description {
	t.Helper()
	p := parsePod(t, "name = \"db\"\n[[containers]]\nname = \"db\"\nimage = \"postgres:16\"\n")
	p.Status.StoppedAt, p.Status.StoppedBy = ago(time.Minute), "podstead stop, pid 7, uid 0"
	p.Metadata.DeletionTimestamp = new(now.Add(time.Minute))
	return &Description{Pod: p}
}

// TestWriteError: an output that cannot be written is an error.
func TestWriteError(t *testing.T) {
	if err := Describe(closed{}, refused(), now); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("error %v", err)
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }
