package installed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
)

// observed is what a host runs.
type observed struct {
	pods      map[string]api.Pod
	begun     map[string][]int // numbers of the definitions that were started since the boot, by pod
	processes map[string][]int // numbers of the definitions of processes, by pod
}

// names returns the names of all pods that can exist.
func (s *storm) names() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for i := range stormPods {
			if !yield(fmt.Sprint("p", i)) {
				return
			}
		}
		maps.Keys(fixed)(yield)
	})
}

// observe returns what the host runs at this moment.
func (s *storm) observe() (o observed, err error) {
	s.Helper()
	const next = "=== next ===\n"
	out := s.Sh(`podstead get -o json > /tmp/get; echo '` + strings.TrimSpace(next) + `'; cat ` + data + `/begun || true; echo '` +
		strings.TrimSpace(next) + `'; pgrep -a -x sh || true; echo '` +
		strings.TrimSpace(next) + `'; cat /tmp/get`)
	parts := strings.SplitN(out, next, 4)
	if len(parts) != 4 {
		return o, fmt.Errorf("unexpected output:\n%s", out)
	}
	var list api.PodList
	if err := json.Unmarshal([]byte(parts[3]), &list); err != nil {
		return o, fmt.Errorf("%w\n%s", err, out)
	}
	o.pods = map[string]api.Pod{}
	for _, pod := range list.Items {
		o.pods[pod.Metadata.Name] = pod
	}
	o.begun = numbers(`(?m)^([a-z]+\d*)-(\d+)$`, parts[1])
	o.processes = numbers(`(?m)^\d+ sh -c echo ([a-z]+\d*)-(\d+) >> `, parts[2])
	return o, nil
}

// numbers returns the matches of an expression for the name of a pod and a number, by pod.
func numbers(expression, text string) map[string][]int {
	found := map[string][]int{}
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(match[2]) // digits
		found[match[1]] = append(found[match[1]], n)
	}
	return found
}

// until repeats a check until it succeeds.
func (s *storm) until(what string, check func() error) {
	s.Helper()
	for end := time.Now().Add(s.options.Timeout); ; <-time.After(200 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("timed out waiting for: %s: %v", what, err)
		}
	}
}

// settle waits until each pod is in its state. A pod whose stop or start was interrupted is in the state before or after that.
func (s *storm) settle(changes []*stormChange) {
	s.Helper()
	s.until("the pods are in their states", func() error {
		o, err := s.observe()
		if err != nil {
			return err
		}
		var errs []error
		for _, name := range s.names() {
			if _, never := fixed[name]; never {
				errs = append(errs, o.checkFixed(name))
				continue
			}
			err := o.checkPod(name, s.pods[name])
			for _, c := range changes {
				if c.pod == name && err != nil && !c.done && c.before.file == c.after.file && o.checkPod(name, c.after) == nil {
					s.pods[name], err = c.after, nil
				}
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	s.until("updates are complete", func() error {
		var errs []error
		for _, name := range s.names() {
			if p := s.pods[name]; p.runs != 0 && !p.stopped {
				errs = append(errs, s.checkRollout(name, p))
			}
		}
		return errors.Join(errs...)
	})
}

// checkPod checks what a pod runs.
func (o observed) checkPod(name string, p stormPod) error {
	pod, exists := o.pods[name]
	at, processes := pod.Status.StoppedAt, o.processes[name]
	switch {
	case p.runs == 0 && (exists || len(processes) > 0):
		return fmt.Errorf("%s exists: %t, with processes of definitions %v, want none", name, exists, processes)
	case p.runs == 0:
	case p.stopped && (!exists || at.IsZero() || len(processes) > 0):
		return fmt.Errorf("%s exists: %t, stopped at %v, with processes of definitions %v, want it to be stopped", name, exists, at,
			processes)
	case p.stopped:
	default:
		release, refused := pod.Metadata.Labels["release"], condition(pod, api.FileAccepted) == "False"
		if !at.IsZero() || release != strconv.Itoa(p.runs) || !slices.Equal(processes, []int{p.runs}) ||
			condition(pod, api.PodReady) != "True" || p.broken && !refused || !p.broken && refused && p.runs == p.file {
			return fmt.Errorf("%s stopped at %v, has definition %q, processes of definitions %v, file refused: %t, conditions "+
				"%+v, want %+v",
				name, at, release, processes, refused, pod.Status.Conditions, p)
		}
	}
	return nil
}

func condition(pod api.Pod, kind api.ConditionType) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// checkFixed checks a pod that does not change.
func (o observed) checkFixed(name string) error {
	pod := o.pods[name]
	good := false
	switch status := pod.Status; name {
	case "job":
		good = status.Phase == api.PhaseSucceeded
	case "crash":
		good = len(status.ContainerStatuses) == 1 && status.ContainerStatuses[0].RestartCount == 2 &&
			status.ContainerStatuses[0].State.Waiting != nil
	case "waits":
		good = status.Phase == api.PhasePending && pod.Metadata.UID != ""
	}
	if !good {
		return fmt.Errorf("pod %s: %+v", name, pod.Status)
	}
	return nil
}

// checkRollout checks that the definition that a pod runs has been ready.
func (s *storm) checkRollout(name string, p stormPod) error {
	s.Helper()
	text := s.Sh("podstead rollout history " + name + " -o json")
	var r api.Rollout
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	if g := r.Find(r.Running); g == nil || g.Outcome != api.GenerationReady || p.broken != (r.State != api.RolloutComplete) {
		return fmt.Errorf("%s, which is %+v: %s", name, p, text)
	}
	return nil
}

// check checks everything after a boot. It can be the second one after the changes.
func (s *storm) check(changes []*stormChange) {
	s.Helper()
	s.resolve(changes)
	s.settle(changes)
	o, err := s.observe()
	if err != nil {
		s.Fatal(err)
	}
	changed := map[string]*stormChange{}
	for _, c := range changes {
		changed[c.pod] = c
	}
	for _, name := range s.names() {
		s.checkBegun(name, o.begun[name], changed[name])
		if c, uid := changed[name], o.pods[name].Metadata.UID; uid != s.uids[name] && (c == nil || c.keepsUID) {
			s.Errorf("the UID of %s was %s, is %s", name, s.uids[name], uid)
		}
	}
	s.checkDoctor()
	if diff := cmp.Diff(s.images, s.checksums()); diff != "" {
		s.Errorf("files of images (-before +after):\n%s", diff)
	}
	s.checkEvents()
	s.checkOrphans()
	s.remember()
}

// checkBegun checks what a pod has started since the boot.
func (s *storm) checkBegun(name string, begun []int, c *stormChange) {
	s.Helper()
	p := s.pods[name]
	want := []int{}
	if p.runs != 0 && !p.stopped {
		want = append(want, p.runs)
	}
	good := slices.Equal(begun, want)
	if c != nil && c.restarts {
		allowed := []int{c.before.runs, p.runs}
		if !c.rolledBack {
			allowed = append(allowed, c.broken)
		}
		good = !slices.ContainsFunc(begun, func(n int) bool { return !slices.Contains(allowed, n) })
		good = good && (len(want) == 0 || len(begun) > 0 && begun[len(begun)-1] == p.runs)
	}
	if !good {
		s.Errorf("%s has started the definitions %v since the boot, want %v; change: %+v", name, begun, want, c)
	}
}

// gradesTimeout bounds the wait for the grades: a check that gets no answer of a busy daemon in time is a warning.
const gradesTimeout = time.Minute

// checkDoctor checks that doctor finds what it has found before the cut.
func (s *storm) checkDoctor() {
	s.Helper()
	for end := time.Now().Add(gradesTimeout); ; <-time.After(time.Second) {
		diff := cmp.Diff(s.grades, s.doctor())
		if diff == "" {
			return
		}
		if time.Now().After(end) {
			s.Errorf("doctor (-before +after):\n%s\n%s", diff, s.Sh("podstead doctor || true"))
			return
		}
	}
}

// doctor returns the grades of podstead doctor, which cannot be good in every machine, without that of broken pod files.
func (s *storm) doctor() string {
	s.Helper()
	text := s.Sh("podstead doctor -o json 2>/dev/null || true")
	var findings []struct{ Check, Grade string }
	if err := json.Unmarshal([]byte(text), &findings); err != nil {
		s.Fatalf("%v\n%s", err, text)
	}
	return fmt.Sprint(slices.DeleteFunc(findings, func(f struct{ Check, Grade string }) bool { return f.Check == "pods directory" }))
}

// checksums returns the checksums of the files of images: blobs, and the layer that they were unpacked to.
func (s *storm) checksums() string {
	s.Helper()
	out := s.Sh(`cd /var/lib/podstead/engine; find io.containerd.content.v1.content/blobs ` +
		`io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs -type f | sort | xargs sha256sum`)
	for line := range strings.Lines(out) {
		if sum, path, _ := strings.Cut(strings.TrimSpace(line), "  "); strings.Contains(path, "/blobs/") && filepath.Base(path) != sum {
			s.Errorf("checksum of %s: %s", path, sum)
		}
	}
	return out
}

// events returns all events.
func (s *storm) events() (events []api.Event) {
	s.Helper()
	for line := range strings.Lines(s.Sh("podstead events -o json")) {
		var e api.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.Fatalf("%v\n%s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// damages are the kinds of events that a power cut must not lead to.
var damages = []api.EventKind{
	api.EventStateLost, api.EventStateUnsupported, api.EventOrphanFound, api.EventEngineDamaged, api.EventInternalError,
	api.EventPodQuarantined, api.EventStateNotDurable,
	api.EventJournalNotDurable, api.EventFileInvalid, api.EventPodsDirLost, api.EventPodEvicted,
}

// isDamage reports whether a power cut must not lead to an event. A disk that answers late is one of a loaded host.
func isDamage(e api.Event) bool {
	late := strings.HasPrefix(e.Fields["error"], "no answer from the disk within ")
	return slices.Contains(damages, e.Kind) && !late
}

// checkEvents checks the order of the events, and that nothing was damaged. The last events before a cut may be lost.
func (s *storm) checkEvents() {
	s.Helper()
	last := map[string]uint64{}
	for _, e := range s.events() {
		if e.Seq <= last[e.Pod] {
			s.Errorf("event %d of pod %s after event %d", e.Seq, e.Pod, last[e.Pod])
		}
		last[e.Pod] = e.Seq
		if isDamage(e) {
			s.Errorf("unexpected event: %+v", e)
		}
	}
}

var uid = regexp.MustCompile(`[0-9a-f]{8}([-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}`)

// checkOrphans waits until everything that exists belongs to a pod: directories, mounts, cgroups, interfaces, sandboxes, containers.
func (s *storm) checkOrphans() {
	s.Helper()
	s.until("nothing is orphaned", func() error {
		o, err := s.observe()
		if err != nil {
			return err
		}
		uids, running := map[string]bool{}, 0
		for _, pod := range o.pods {
			uids[pod.Metadata.UID] = true
			for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
				if c.State.Running != nil {
					running++
				}
			}
		}
		out := s.Sh(`cd /run/podstead; for d in ns/* volumes/* pods/* /var/lib/podstead/pods/*/ /var/log/podstead/*; do echo $d; done
			find /sys/fs/cgroup -type d -name '*podstead-*'; cat /proc/self/mountinfo; ip -o link`)
		for _, match := range uid.FindAllString(out, -1) {
			if !uids[strings.ReplaceAll(match, "_", "-")] {
				err = errors.Join(err, fmt.Errorf("left of the pod with the UID %s", match))
			}
		}
		count := strings.Fields(s.Sh(`cd /run/podstead; count() { ls -d $1 2>/dev/null | wc -l; }
			count 'ns/*/*'; count 'engine/monitor/sandboxes/*'
			count 'engine/monitor/containers/*'; count 'engine/runc/podstead/*'`))
		if count[0] != count[1] || count[2] != strconv.Itoa(running) || count[3] != count[2] {
			err = errors.Join(err, fmt.Errorf("namespaces, sandboxes, containers of the monitor and of runc: %v, want as many sandboxes "+
				"as namespaces, and %d of each other", count, running))
		}
		return err
	})
}

// remember notes the UIDs of all pods.
func (s *storm) remember() {
	s.Helper()
	s.uids = map[string]string{}
	for name, seen := range s.Look() {
		s.uids[name] = seen.UID
	}
}

// end deletes the pods and checks that nothing is left.
func (s *storm) end() {
	s.Helper()
	s.Sh("podstead delete --all --force; test -z \"$(ls " + podsDir + ")\"")
	s.Eventually("nothing is left of the pods",
		`left=$(systemctl list-units --all --plain --no-legend 'podstead-*.slice' 'podstead-*.scope' |
			grep -v '^podstead-monitor-[0-9]*\.scope ' || true; systemctl --failed --no-legend; pgrep -x containerd-shim || true
		cd /var/lib/podstead; ls -d pods/* generations/* quarantine/* engine/damaged/* engine/tmpmounts/* engine/io.containerd.*/podstead/* engine/io.containerd.content.v1.content/ingest/* \
			engine/io.containerd.snapshotter.v1.overlayfs/snapshots/[!1]* engine/io.containerd.snapshotter.v1.overlayfs/snapshots/1?* \
			/var/log/podstead/* /run/podstead/ns/* /run/podstead/pods/* /run/podstead/volumes/* /run/podstead/process/* /run/podstead/engine/bundles/* /run/podstead/engine/monitor/containers/* /run/podstead/engine/monitor/sandboxes/* 2>/dev/null || true
		find /var/lib/podstead -name '.podstead-tmp-*' -o -name '*.unreadable' -o -name '*.damaged'
		grep -o ' /run/podstead/[^ ]*' /proc/self/mountinfo | grep -vE '/(engine|files|ns|images|rootfs|volumes)$' || true); echo "$left"; [ -z "$left" ]`)
}
