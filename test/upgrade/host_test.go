//go:build e2e

package upgrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/test/internal/rig"
)

const (
	deadline = 2 * time.Minute // for a loaded host
	busybox  = "localhost/podstead/busybox:1"
	counter  = `trap "exit 0" TERM; i=0; while :; do echo "line $i"; i=$((i+1)); sleep 0.1; done`
)

// host is a private Podstead whose programs are replaced, as by a package.
type host struct {
	*rig.Fixture
	bin string
}

func newHost(t *testing.T, first string) *host {
	t.Helper()
	h := &host{Fixture: rig.NewFixture(t, deadline, "busybox")}
	h.CheckLeftovers(deadline/4, "daemon", "stop")
	h.bin = filepath.Join(h.Dir, "bin")
	h.Check(os.Mkdir(h.bin, 0o755))
	h.Check(os.MkdirAll(h.podsDir(), 0o755))
	h.install(first)
	h.Program, h.Shim = filepath.Join(h.bin, programs[0]), filepath.Join(h.bin, programs[1])
	return h
}

func (h *host) podsDir() string { return filepath.Join(h.ConfigDir(), "pods.d") }

// install replaces the programs by those of a directory: new files take their names, and running programs keep the old ones.
func (h *host) install(dir string) {
	h.Helper()
	for _, name := range programs {
		data, err := os.ReadFile(filepath.Join(dir, name))
		path := filepath.Join(h.bin, name)
		if name == monitor.Name && errors.Is(err, fs.ErrNotExist) {
			h.Check(os.RemoveAll(path))
			continue
		}
		h.Check(err)
		h.Check(os.WriteFile(path+".new", data, 0o755))
		h.Check(os.Rename(path+".new", path))
	}
}

// upgrade installs other programs while the daemon runs, and restarts it.
func (h *host) upgrade(dir string) {
	h.Helper()
	h.install(dir)
	h.MustRun("daemon", "stop")
	h.MustRun("get")
}

// container returns a container that counts in its log.
func container(kind, name, more string) string {
	return fmt.Sprintf("[[%s]]\nname = %q\nimage = %q\ncommand = [\"sh\", \"-c\", %q]\n%s\n", kind, name, busybox, counter, more)
}

// create creates a pod that probes servers, and one with all kinds of containers. Their names have the prefix.
func (h *host) create(prefix string, s *servers) (names []string) {
	h.Helper()
	often := "periodSeconds = 1, failureThreshold = 1, timeoutSeconds = 20 }\n"
	probes := func(handler string) string {
		return "readinessProbe = { " + handler + ", " + often + "livenessProbe = { " + handler + ", " + often
	}
	pods := map[string]string{
		"probed": "hostNetwork = true\nterminationGracePeriodSeconds = 2\n" +
			container("containers", "exec",
				probes(`exec = { command = ["true"] }`)+`startupProbe = { exec = { command = ["true"] }, `+often) +
			container("containers", "http", probes(fmt.Sprintf("httpGet = { host = \"127.0.0.1\", port = %d }", port(s.web.Listener)))) +
			container("containers", "tcp", probes(fmt.Sprintf("tcpSocket = { host = \"127.0.0.1\", port = %d }", port(s.tcp)))) +
			container("containers", "grpc", probes(fmt.Sprintf("grpc = { port = %d }", port(s.rpc)))),
		"mixed": "terminationGracePeriodSeconds = 2\n[[volumes]]\nname = \"scratch\"\nemptyDir = {}\n" +
			fmt.Sprintf("[[initContainers]]\nname = \"first\"\nimage = %q\ncommand = [\"true\"]\n", busybox) +
			container("initContainers", "sidecar", "restartPolicy = \"Always\"\n") +
			container("containers", "main", "volumeMounts = { scratch = \"/scratch\" }\n"),
	}
	for name, text := range pods {
		h.MustCreate(prefix+name, text)
		names = append(names, prefix+name)
	}
	filed := prefix + "filed"
	h.Check(os.WriteFile(h.file(filed),
		[]byte(h.PodText(filed, "terminationGracePeriodSeconds = 2\n"+container("containers", "main", ""))), 0o600))
	names = append(names, filed)
	for _, name := range names {
		p := h.Until(name, "ready", ready)
		h.Saw(p.Metadata.UID)
	}
	return names
}

func (h *host) file(pod string) string { return filepath.Join(h.podsDir(), pod+".toml") }

func ready(p *api.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c api.Condition) bool { return c.Type == "Ready" && c.Status == "True" })
}

// seen is what must not change when the version changes.
type seen struct {
	Processes []string          // of containers, shims and the monitor, with their start times
	Pods      map[string]string // UID, conditions and containers
}

func (h *host) look(names []string) seen {
	h.Helper()
	s := seen{Pods: map[string]string{}}
	all, err := h.Processes()
	h.Check(err)
	holders, err := h.Holders()
	h.Check(err)
	add := func(pid int) {
		_, started := stat(pid)
		s.Processes = append(s.Processes, fmt.Sprintf("%d started at %s", pid, started))
	}
	for _, holder := range holders { // not what they have forked for a moment
		for _, p := range all {
			if parent, _ := stat(p.PID); parent == fmt.Sprint(holder.PID) && strings.Contains(p.Command, "line $i") {
				add(p.PID)
				add(holder.PID) // a monitor without containers may be another one
			}
		}
	}
	slices.Sort(s.Processes)
	s.Processes = slices.Compact(s.Processes)
	if len(s.Processes) == 0 {
		h.Fatal("no processes of containers")
	}
	for _, name := range names {
		p, err := h.Client().Pod(h.Ctx(), name)
		h.Check(err)
		// of the file, not of the pod
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c api.Condition) bool { return c.Type == "FileAccepted" })
		for _, list := range [][]api.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
			for i := range list { // the previous version does not report them
				list[i].Resources, list[i].AllocatedResources = nil, nil
			}
		}
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].ObservedGeneration = 0
		}
		text, err := json.MarshalIndent([]any{
			p.Metadata.UID, p.Status.Phase, p.Status.PodIP, p.Status.Conditions, p.Status.ContainerStatuses, p.Status.InitContainerStatuses,
		}, "", " ")
		h.Check(err)
		s.Pods[name] = string(text)
	}
	return s
}

// stat returns the parent of a process, and its start time in ticks since the boot.
func stat(pid int) (parent, started string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, found := strings.Cut(string(text), ") ")
	if fields := strings.Fields(after); err == nil && found && len(fields) > 19 {
		return fields[1], fields[19]
	}
	return "", ""
}

// events returns the events of the journal of pods.
func (h *host) events(names []string) (list []string) {
	h.Helper()
	kept := map[api.EventKind]bool{}
	for _, e := range api.EventEntries() {
		kept[e.Kind] = e.Kept
	}
	for _, name := range names {
		for line := range strings.Lines(h.MustRun("events", name, "-o", "json")) {
			var e api.Event
			h.Check(json.Unmarshal([]byte(line), &e))
			// an invalid file does not affect its pod
			if kept[e.Kind] && e.Kind != api.EventPodRecovered && e.Kind != api.EventFileInvalid {
				list = append(list, fmt.Sprintf("%s %d %s %s", name, e.Seq, e.Kind, e.Message))
			}
		}
	}
	return list
}

// unchanged fails if something but the logs of the pods has changed.
func (h *host) unchanged(what string, names []string, was seen, events []string) {
	h.Helper()
	if diff := cmp.Diff(was, h.look(names)); diff != "" {
		h.Errorf("%s: pods (-before +after):\n%s", what, diff)
	}
	if diff := cmp.Diff(events, h.events(names)); diff != "" {
		h.Errorf("%s: events (-before +after):\n%s", what, diff)
	}
}

// counted checks that the log of a container has each line once, waits for 10 more lines than before, and returns their number.
func (h *host) counted(pod, container string, before int) (n int) {
	h.Helper()
	h.Await(func() error {
		n = 0
		for line := range strings.Lines(h.MustRun("logs", pod, "-c", container)) {
			if want := fmt.Sprintf("line %d\n", n); line != want {
				h.Fatalf("log of %s/%s: line %q, want %q", pod, container, line, want)
			}
			n++
		}
		if n < before+10 {
			return fmt.Errorf("%s/%s has written %d lines, %d before", pod, container, n, before)
		}
		return nil
	})
	return n
}

// logs are the numbers of lines of containers.
type logs map[string]int

// check calls counted for each container that counts.
func (h *host) check(l logs, names []string) {
	h.Helper()
	for _, pod := range names {
		containers := []string{"main"}
		switch {
		case strings.HasSuffix(pod, "probed"):
			containers = []string{"exec", "http", "tcp", "grpc"}
		case strings.HasSuffix(pod, "mixed"):
			containers = []string{"main", "sidecar"}
		}
		for _, c := range containers {
			l[pod+"/"+c] = h.counted(pod, c, l[pod+"/"+c])
		}
	}
}
