//go:build vm

package vm_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/installed"
)

// lib is shared by the scripts of containers. They record that they started, and wait for files, in a directory that a boot clears.
const lib = `begin() { echo $1 >> /data/begun; }
await() { until [ -e /data/$1 ]; do sleep 0.2; done; }
serve() { trap 'exit 0' TERM; while :; do sleep 1 & wait; done; }
`

// podFile returns a pod file.
func podFile(name, more string, containers ...string) string {
	return fmt.Sprintf("name = %q\nimageArchives = [%q]\n%s\n", name, payload+"/busybox.tar", more) + strings.Join(containers, "")
}

// container returns one of a pod's "containers" or "initContainers". It records its name when it starts.
func container(list, name, script, more string) string {
	return fmt.Sprintf(`[[%s]]
name = %q
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", %q]
%s
[[%[1]s.volumeMounts]]
name = "data"
mountPath = "/data"
`, list, name, lib+"begin "+name+"; "+script, more)
}

const data = `volumes = [{ name = "data", hostPath = { path = "/run/data", type = "DirectoryOrCreate" } }, { name = "scratch", emptyDir = {} }, { name = "memory", emptyDir = { medium = "Memory" } }]
`

// volumes are mounts of an init container, which are checked after the boot.
const volumes = `[[initContainers.volumeMounts]]
name = "scratch"
mountPath = "/scratch"
[[initContainers.volumeMounts]]
name = "memory"
mountPath = "/memory"`

// rebooted are the pods that are running when the power is cut, each in another state.
var rebooted = map[string]string{
	// running, after init containers and a sidecar
	"order": podFile("order", data+`restartPolicy = "Always"`+"\nterminationGracePeriodSeconds = 1",
		container("initContainers", "one", "await one", ""),
		container("initContainers", "two",
			"for v in scratch memory; do [ ! -e /$v/mark ] || begin $v; echo kept | dd of=/$v/mark conv=fsync; done", volumes),
		container("initContainers", "side", "await side; touch /up; serve", `restartPolicy = "Always"
startupProbe = { exec = { command = ["test", "-e", "/up"] }, periodSeconds = 1, timeoutSeconds = 60, failureThreshold = 1000 }`),
		container("initContainers", "three", "", ""),
		container("containers", "app", "exec httpd -f -p 80",
			`readinessProbe = { tcpSocket = { port = 80 }, periodSeconds = 1, timeoutSeconds = 60 }`),
		container("containers", "aide", "serve", "")),
	// one of two containers has completed
	"batch": podFile("batch", data+`restartPolicy = "OnFailure"`+"\nterminationGracePeriodSeconds = 1",
		container("containers", "done", "", ""), container("containers", "works", "serve", "")),
	// must not run twice
	"once": podFile("once", data+`restartPolicy = "Never"`, container("containers", "only", "serve", "")),
	// backs off for an hour before its fourth run
	"crash": podFile("crash", data+"restartBackoff = { initialSeconds = 1, factor = 3600, maxSeconds = 3600 }",
		container("containers", "fails", "exit 1", "")),
	// being deleted
	"leaving": podFile("leaving", data+"terminationGracePeriodSeconds = 600",
		container("containers", "leaves", "serve", `lifecycle.preStop.exec.command = ["sh", "-c", "echo hook >> /data/begun; sleep 600"]`)),
}

// begins are what these containers write when they have started.
var begins = map[string][]string{
	"once":    {"only"},
	"leaving": {"leaves"},
	"batch":   {"done", "works"},
	"order":   {"one", "two", "side", "three", "aide"},
	"crash":   {"fails.*fails.*fails"},
}

// TestPowerLossRestartsPods cuts the power and boots again. Everything starts again in order; what has completed or must not run twice
// does not; state and events are kept. Then it cuts the power while a definition is rolled back, and during the boot afterwards.
func TestPowerLossRestartsPods(t *testing.T) {
	h := &power{newInstalled(t, need(t, "keep", keep))}
	h.settle()
	before, doctor, store := h.pods(), h.doctor(), h.store()
	h.Cut()

	h.begun("works", "one")
	h.Eventually("the first init container runs", `podstead get order > /tmp/get; cat /tmp/get; grep -q ' Init:0/4 ' /tmp/get`)
	checkInit(t, h.pods())
	h.open("one")
	h.begun("two", "side")
	h.open("side")
	h.begun("three", "aide")
	h.Eventually("all pods that restart are running", running+"! grep -q ^leaving /tmp/get")
	after := h.pods()
	h.checkBegun()
	checkOrder(t, before["order"], after["order"])
	checkOthers(t, before, after)
	h.checkWords()
	if diff := cmp.Diff(doctor, h.doctor()); diff != "" {
		t.Errorf("doctor (-before the cut +after it):\n%s", diff)
	}
	if diff := cmp.Diff(store, h.store()); diff != "" {
		t.Errorf("files of images (-before the cut +after it):\n%s", diff)
	}
	h.checkEnd()
	h.Rollback(installed.BrokenStart, deadline, installed.Cuts{Rollback: true, Boot: true})
}

// power is a virtual machine whose power is cut.
type power struct{ *installed.Host }

// running is a script that succeeds when the pods are in their expected state.
const running = `podstead get > /tmp/get; cat /tmp/get
grep -q '^order  *3/3  *Running ' /tmp/get; grep -q '^batch .*Completed\|^batch  *1/2 ' /tmp/get
grep -q '^crash .* CrashLoopBackOff ' /tmp/get
`

// settle brings the pods into the state in which the power is cut. They start one after the other: a loaded host emulates so slowly that
// starts of ten containers at once time out, and "once" starts only once.
func (h *power) settle() {
	h.Helper()
	h.Sh("mkdir -p /run/data; touch /run/data/one /run/data/side")
	for _, name := range []string{"once", "leaving", "batch", "order", "crash"} {
		file := "/root/" + name + ".toml"
		h.Sh("cat > " + file + " <<'E'\n" + rebooted[name] + "E\n" + payload + "/keep " + file)
		h.begun(begins[name]...)
	}
	h.Eventually("the pods are up", running+`grep -q '^once  *1/1  *Running ' /tmp/get; grep -q '^leaving  *1/1  *Running ' /tmp/get
		grep -q '^crash .* CrashLoopBackOff  *2 ' /tmp/get`)
	h.Sh("podstead delete --wait=false leaving")
	h.begun("hook")
}

// begun waits until each of these, which are regular expressions, has started since the boot. Each has the whole timeout.
func (h *power) begun(names ...string) {
	h.Helper()
	for _, name := range names {
		h.Eventually(name+" begins", `begun=$(tr '\n' ' ' < /run/data/begun); echo "$begun"; echo "$begun" | grep -qw '`+name+"'")
	}
}

// open lets the container pass that waits for this gate.
func (h *power) open(gate string) {
	h.Helper()
	h.Sh("echo open_" + gate + " >> /run/data/begun; touch /run/data/" + gate)
}

// pods returns all pods, by name.
func (h *power) pods() map[string]api.Pod {
	h.Helper()
	text := h.Sh("podstead get -o json")
	var list api.PodList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		h.Fatalf("%v\n%s", err, text)
	}
	pods := map[string]api.Pod{}
	for _, pod := range list.Items {
		pods[pod.Metadata.Name] = pod
	}
	return pods
}

// doctor returns the grades of `podstead doctor`.
func (h *power) doctor() map[string]string {
	h.Helper()
	text := h.Sh("podstead doctor -o json")
	var findings []struct{ Check, Grade string }
	if err := json.Unmarshal([]byte(text), &findings); err != nil {
		h.Fatalf("%v\n%s", err, text)
	}
	grades := map[string]string{}
	for _, f := range findings {
		grades[f.Check] = f.Grade
	}
	return grades
}

// store lists the files of images with their checksums: blobs, and the snapshots that they were unpacked to.
func (h *power) store() []string {
	h.Helper()
	lines := strings.Split(h.Sh(`cd /var/lib/podstead/engine; find io.containerd.content.v1.content/blobs `+
		`io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs -type f | sort | xargs sha256sum`),
		"\n")
	for _, line := range lines {
		if sum, path, _ := strings.Cut(line, "  "); strings.Contains(path, "/blobs/") && filepath.Base(path) != sum {
			h.Errorf("checksum of %s: %s", path, sum)
		}
	}
	return lines
}

// checkInit checks the pods while the first init container of one runs again.
func checkInit(t *testing.T, pods map[string]api.Pod) {
	t.Helper()
	status := pods["order"].Status
	if status.Phase != api.PhasePending {
		t.Errorf("phase %s while an init container runs, want Pending", status.Phase)
	}
	var conditions []string
	for _, c := range status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s %s", c.Type, c.Status))
	}
	// As with the kubelet, a pod stays initialized once a regular container has run.
	want := []string{"PodScheduled True", "PodReadyToStartContainers True", "Initialized True", "ContainersReady False", "Ready False"}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("conditions while an init container runs (-want +got):\n%s", diff)
	}
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		want := "PodInitializing"
		switch c.Name {
		case "one":
			want = "running"
		case "app", "aide":
			want = "Unknown 255"
		}
		if got := stateOf(c); got != want {
			t.Errorf("while the first init container runs again: %s is %q, want %q", c.Name, got, want)
		}
	}
}

// stateOf returns the state of a container in a few words.
func stateOf(c api.ContainerStatus) string {
	switch {
	case c.State.Running != nil:
		return "running"
	case c.State.Terminated != nil:
		return endOf(c.State)
	case c.State.Waiting != nil && c.State.Waiting.Message != "":
		return fmt.Sprintf("%s (%s)", c.State.Waiting.Reason, c.State.Waiting.Message)
	case c.State.Waiting != nil:
		return string(c.State.Waiting.Reason)
	}
	return "nothing"
}

func endOf(s api.ContainerState) string {
	if s.Terminated == nil {
		return "none"
	}
	return fmt.Sprintf("%s %d", s.Terminated.Reason, s.Terminated.ExitCode)
}

// checkBegun checks what started after the boot, and in which order.
func (h *power) checkBegun() {
	h.Helper()
	begun := strings.Fields(h.Sh("cat /run/data/begun"))
	for _, name := range []string{"done", "only", "fails", "leaves", "hook", "memory"} {
		if slices.Contains(begun, name) {
			h.Errorf("%s started again after the boot", name)
		}
	}
	begun = slices.DeleteFunc(begun, func(name string) bool { return name == "works" }) // of another pod
	want := []string{"one", "open_one", "two", "scratch", "side", "open_side", "three", "app", "aide"}
	if diff := cmp.Diff(want, begun); diff != "" {
		h.Errorf("containers started after the boot (-want +got):\n%s", diff)
	}
}

// checkOrder checks the pod that runs as before.
func checkOrder(t *testing.T, before, after api.Pod) {
	t.Helper()
	if before.Metadata.UID != after.Metadata.UID {
		t.Errorf("pod UID was %s, is %s", before.Metadata.UID, after.Metadata.UID)
	}
	if !before.Status.StartTime.Equal(after.Status.StartTime) {
		t.Errorf("start time was %s, is %s", before.Status.StartTime, after.Status.StartTime)
	}
	var got []string
	for _, c := range slices.Concat(after.Status.InitContainerStatuses, after.Status.ContainerStatuses) {
		got = append(got, fmt.Sprintf("%s: %s, restarts %d, last %s", c.Name, stateOf(c), c.RestartCount, endOf(c.LastState)))
	}
	want := []string{
		"one: Completed 0, restarts 1, last Completed 0", "two: Completed 0, restarts 1, last Completed 0",
		"side: running, restarts 1, last Unknown 255", "three: Completed 0, restarts 1, last Completed 0",
		"aide: running, restarts 1, last Unknown 255", "app: running, restarts 1, last Unknown 255",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

// checkOthers checks the pods that do not restart as a whole.
func checkOthers(t *testing.T, before, after map[string]api.Pod) {
	t.Helper()
	if _, there := after["leaving"]; there {
		t.Error("a pod that was being deleted still exists")
	}
	describe := func(pod api.Pod) []string {
		lines := []string{pod.Metadata.UID, string(pod.Status.Phase)}
		for _, c := range pod.Status.ContainerStatuses {
			lines = append(lines, fmt.Sprintf("%s: %s, restarts %d", c.Name, stateOf(c), c.RestartCount))
		}
		return lines
	}
	uid := func(name string) string { return before[name].Metadata.UID }
	waits := "CrashLoopBackOff (back-off 1h0m0s restarting failed container=fails pod=crash_default(" + uid("crash") + "))"
	for name, want := range map[string][]string{
		"batch": {uid("batch"), "Running", "done: Completed 0, restarts 0", "works: running, restarts 1"},
		"once":  {uid("once"), "Failed", "only: Unknown 255, restarts 0"},
		"crash": {uid("crash"), "Running", "fails: " + waits + ", restarts 2"},
	} {
		if diff := cmp.Diff(want, describe(after[name])); diff != "" {
			t.Errorf("pod %s (-want +got):\n%s", name, diff)
		}
	}
}

// checkWords checks that `podstead why` names the reboot.
func (h *power) checkWords() {
	h.Helper()
	for _, pod := range []string{"order", "batch", "once", "crash", "leaving"} {
		if said, want := h.Sh("podstead why "+pod), "Host has been rebooted"; !strings.Contains(said, want) {
			h.Errorf("podstead why %s does not contain %q:\n%s", pod, want, said)
		}
	}
	h.Sh("podstead logs once")
}

// checkEnd deletes the pods and checks that nothing is left, also of the time before the cut.
func (h *power) checkEnd() {
	h.Helper()
	h.Sh("podstead delete --all --force")
	h.Eventually("nothing is left of the pods",
		`left=$(systemctl list-units --all --plain --no-legend 'podstead-*.slice' 'podstead-*.scope' |
			grep -v '^podstead-monitor-[0-9]*\.scope ' || true; systemctl --failed --no-legend
		cd /var/lib/podstead; ls -d pods/* engine/tmpmounts/* engine/io.containerd.*/podstead/* engine/io.containerd.content.v1.content/ingest/* \
			engine/io.containerd.snapshotter.v1.overlayfs/snapshots/[!1]* engine/io.containerd.snapshotter.v1.overlayfs/snapshots/1?* \
			/var/log/podstead/* /run/podstead/ns/* /run/podstead/pods/* /run/podstead/volumes/* /run/podstead/process/* \
			/run/podstead/engine/bundles/* /run/podstead/engine/monitor/containers/* /run/podstead/engine/monitor/sandboxes/* 2>/dev/null || true
		find /var/lib/podstead -name '.podstead-tmp-*' -o -name '*.unreadable'
		grep -o ' /run/podstead/[^ ]*' /proc/self/mountinfo | grep -vE '/(engine|files|ns|images|rootfs|volumes)$' || true); echo "$left"; [ -z "$left" ]`)
}
