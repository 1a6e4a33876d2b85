package installed

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

// stormPods is the number of pods that change. Three more never change.
const stormPods = 5

// storm is a host whose pods change while its power is cut.
type storm struct {
	*Host
	r      *rand.Rand
	number int // of the last definition
	pods   map[string]stormPod
	uids   map[string]string // of all pods, after the last cut
	grades string            // of podstead doctor
	images string            // checksums of the files of images
}

// stormPod is a pod that changes. Two that are equal are in the same state.
type stormPod struct {
	file     int // number of the definition in its file; 0: it has none
	runs     int // number of the definition that it runs, or runs when it is started; 0: the pod does not exist
	previous int // number of the definition that rollout undo returns to; 0: none, or not known
	hostname int // a change restarts the pod in a new sandbox
	broken   bool
	stopped  bool
	edited   bool // the file was changed while the pod is stopped
}

// stormChange is a command for a pod.
type stormChange struct {
	pod, what, script string
	before, after     stormPod
	broken            int  // number of a definition that is rolled back; 0: none
	restarts          bool // the container of the pod may be started more than once
	keepsUID          bool
	waits             bool // the power is cut after the command has succeeded
	done              bool // the command had succeeded before the power was cut
	rolledBack        bool // the rollback had started before the power was cut
}

// Storm cuts the power at random moments, while pods start, restart, are updated, rolled back, stopped and deleted. Each cut comes at most
// the given time after the commands were started, or during the boot after another cut. After each boot every pod is in the state that the
// commands which had succeeded led to, and those that had not succeeded were carried out or not. Nothing is left of what was interrupted.
func (h *Host) Storm(r *rand.Rand, cuts int, within time.Duration) {
	h.Helper()
	s := &storm{Host: h, r: r, pods: map[string]stormPod{}}
	s.begin()
	for cut := 1; cut <= cuts; {
		changes := s.changes()
		start := time.Now()
		s.run(changes, s.moment(within))
		s.Cut()
		again := cut < cuts && r.IntN(4) == 0
		if again { // while it boots
			s.Sh(fmt.Sprintf("sleep %.3f", s.moment(within).Seconds()))
			s.Cut()
			cut++
		}
		booted := time.Now()
		s.check(changes)
		s.Logf("cut %d of %d (again during the boot: %t): changed and booted in %.0f s, checked in %.0f s", cut, cuts, again,
			booted.Sub(start).Seconds(), time.Since(booted).Seconds())
		cut++
		if s.Failed() {
			return
		}
	}
	s.end()
}

// moment returns a random time, which is more often short than long.
func (s *storm) moment(within time.Duration) time.Duration {
	x := s.r.Float64()
	return time.Duration(x * x * float64(within))
}

// fixed are pods that do not change.
var fixed = map[string]string{
	"job":   "restartPolicy = \"Never\"\n",
	"crash": "restartBackoff = { initialSeconds = 1, factor = 3600, maxSeconds = 3600 }\n",
	"waits": "waitFor = [\"path:/run/never\"]\n",
}

// begin creates the pods.
func (s *storm) begin() {
	s.Helper()
	s.Sh("mkdir -p /root/storm")
	for name, more := range fixed {
		exit := map[string]int{"crash": 3}[name]
		s.Copy(name,
			fmt.Sprintf("name = %q\nimageArchives = [%q]\n%svolumes = [{ name = \"data\", hostPath = { path = %q, type = "+
				"\"DirectoryOrCreate\" } }]\n",
				name, archive, more, data)+
				fmt.Sprintf("[[containers]]\nname = \"app\"\nimage = \"localhost/podstead/busybox:1\"\ncommand = [\"sh\", \"-c\", \"echo "+
					"%s-1 >> /data/begun; exit %d\"]\n",
					name, exit)+
				"volumeMounts = [{ name = \"data\", mountPath = \"/data\" }]\n")
	}
	for i := range stormPods {
		name := fmt.Sprint("p", i)
		change := s.update(name, stormPod{})
		s.Sh(change.script)
		s.pods[name] = change.after
	}
	s.Eventually("crash backs off", "podstead get crash > /tmp/get; cat /tmp/get; grep -q ' CrashLoopBackOff  *2 ' /tmp/get")
	s.settle(nil)
	s.grades, s.images = s.doctor(), s.checksums()
	s.remember()
}

// changes returns changes of some pods, in the order in which their commands are started.
func (s *storm) changes() []*stormChange {
	var changes []*stormChange
	for _, i := range s.r.Perm(stormPods)[:3+s.r.IntN(stormPods-2)] {
		name := fmt.Sprint("p", i)
		c := s.change(name, s.pods[name])
		c.pod, c.before = name, s.pods[name]
		changes = append(changes, c)
	}
	return changes
}

// change returns a random change of a pod.
func (s *storm) change(name string, p stormPod) *stormChange {
	kind := s.r.IntN(12)
	switch {
	case p.runs == 0:
		return s.update(name, p)
	case p.stopped && kind < 6:
		keeps := !p.edited
		p.stopped, p.edited = false, false
		return &stormChange{what: "start", script: "podstead start " + name, after: p, keepsUID: keeps, restarts: true}
	case !p.stopped && kind < 2:
		p.stopped = true
		return &stormChange{what: "stop", script: "podstead stop " + name, after: p, keepsUID: true}
	case !p.stopped && kind == 2:
		return &stormChange{what: "restart", script: "podstead restart " + name, after: p, keepsUID: true, restarts: true}
	case !p.stopped && kind == 3 && p.previous != 0 && p.runs == p.file:
		p.runs, p.previous = p.previous, 0
		return &stormChange{what: "undo", script: "podstead rollout undo " + name, after: p, restarts: true, waits: true}
	case kind == 4:
		return &stormChange{what: "delete", script: "podstead delete " + name, restarts: true}
	case kind == 5:
		return &stormChange{what: "remove", script: "rm " + podsDir + "/" + name + ".toml; sync " + podsDir, restarts: true}
	case !p.stopped && kind < 9:
		return s.spoil(name, p)
	}
	return s.update(name, p)
}

// update returns a change to a definition that becomes ready.
func (s *storm) update(name string, p stormPod) *stormChange {
	after := s.next(p)
	after.runs, after.broken, after.edited = after.file, false, p.stopped
	after.previous = 0
	if p.runs == p.file && !p.stopped {
		after.previous = p.runs
	}
	what, script := s.write(name,
		s.definition(name, after, "trap 'exit 0' TERM; sleep 100000 & wait $!", "true", "localhost/podstead/busybox:1"))
	return &stormChange{what: what, script: script, after: after, restarts: true}
}

// spoil returns a change to a definition that fails.
func (s *storm) spoil(name string, p stormPod) *stormChange {
	after := s.next(p)
	after.broken, after.previous = true, 0
	script, probe, image := "trap 'exit 0' TERM; sleep 100000 & wait $!", "true", "localhost/podstead/busybox:1"
	how := []string{"start", "readiness", "image"}[s.r.IntN(3)]
	switch how {
	case "start":
		script = "exit 3"
	case "readiness":
		probe = "false"
	case "image":
		image = "registry.invalid/none:2"
	}
	what, command := s.write(name, s.definition(name, after, script, probe, image))
	c := &stormChange{what: what + " broken " + how, script: command, broken: after.file, restarts: true}
	after.hostname = p.hostname
	c.after = after
	return c
}

// next returns a pod with another file.
func (s *storm) next(p stormPod) stormPod {
	s.number++
	p.file = s.number
	if p.hostname == 0 || s.r.IntN(3) == 0 {
		p.hostname = s.number
	}
	return p
}

// definition returns a pod file.
func (s *storm) definition(name string, p stormPod, script, probe, image string) string {
	ready := 300
	if probe == "false" {
		ready = 10
	}
	text := fmt.Sprintf(`name = %q
imageArchives = [%q]
labels = { release = "%d" }
hostname = "h%d"
terminationGracePeriodSeconds = 2
restartBackoff = { initialSeconds = 0.1, factor = 1 }
update = { readyWithinSeconds = %d, minReadySeconds = 1 }
volumes = [{ name = "data", hostPath = { path = %q, type = "DirectoryOrCreate" } }]
`, name, archive, p.file, p.hostname, ready, data)
	if name == "p0" {
		text += "[[initContainers]]\nname = \"init\"\nimage = \"localhost/podstead/busybox:1\"\ncommand = [\"sleep\", \"1\"]\n"
	}
	text += fmt.Sprintf(`[[containers]]
name = "app"
image = %q
command = ["sh", "-c", "echo %s-%d >> /data/begun; %s"]
volumeMounts = [{ name = "data", mountPath = "/data" }]
readinessProbe = { exec = { command = [%q] }, periodSeconds = 1, timeoutSeconds = 60 }
`, image, name, p.file, script, probe)
	if name == "p1" {
		text += "lifecycle.preStop.exec.command = [\"sleep\", \"1\"]\n"
	}
	return text
}

// write returns a script that puts a pod file into the pods directory.
func (s *storm) write(name, text string) (what, script string) {
	source, target, hidden := "/root/storm/"+name+".toml", podsDir+"/"+name+".toml", podsDir+"/."+name
	script = "cat > " + source + " <<'E'\n" + text + "E\n"
	if s.r.IntN(2) == 0 {
		return "apply", script + "podstead apply " + source
	}
	return "rename", script + fmt.Sprintf("cp %s %s; sync %[2]s; mv %[2]s %s; sync %s", source, hidden, target, podsDir)
}

// run starts the commands of changes at the same time, and returns some time later.
func (s *storm) run(changes []*stormChange, after time.Duration) {
	s.Helper()
	started := s.rollbacks()
	var script strings.Builder
	script.WriteString("rm -rf /run/storm; mkdir /run/storm; cd /run/storm\n")
	for _, c := range changes {
		fmt.Fprintf(&script,
			"cat > %s.sh <<'STORM'\n%s\nSTORM\n{ sh -e %[1]s.sh && touch %[1]s.done || touch %[1]s.failed; } > %[1]s.log 2>&1 &\n", c.pod,
			c.script)
	}
	for _, c := range changes {
		if c.waits {
			fmt.Fprintf(&script, "until [ -e %[1]s.done -o -e %[1]s.failed ]; do sleep 0.1; done\n", c.pod)
		}
	}
	fmt.Fprintf(&script, "sleep %.3f; for f in *.failed; do [ ! -e $f ] || cat $f ${f%%failed}log; done; ls", after.Seconds())
	out := s.Sh(script.String())
	if strings.Contains(out, ".failed") {
		s.Errorf("a command failed:\n%s", out)
	}
	now := s.rollbacks()
	var lines []string
	for _, c := range changes {
		c.done = slices.Contains(strings.Fields(out), c.pod+".done")
		c.rolledBack = now[c.pod] > started[c.pod]
		lines = append(lines, fmt.Sprintf("%s %s (done: %t, rolled back: %t) %+v", c.what, c.pod, c.done, c.rolledBack, c.before))
	}
	s.Logf("%.1f s after:\n  %s", after.Seconds(), strings.Join(lines, "\n  "))
}

// rollbacks returns how many rollbacks have started, by pod. A rollback is on the disk before its event is emitted.
func (s *storm) rollbacks() map[string]int {
	s.Helper()
	started := map[string]int{}
	for _, e := range s.events() {
		if e.Kind == api.EventRollbackStarted {
			started[e.Pod]++
		}
	}
	return started
}

// files returns the numbers of the definitions in files, by pod.
func (s *storm) files() map[string]int {
	s.Helper()
	files := map[string]int{}
	out := s.Sh("cd " + podsDir + "; for f in p*.toml; do [ ! -e $f ] || { echo \"file $f\"; cat $f; }; done")
	for _, match := range regexp.MustCompile(`(?s)file (p\d+)\.toml.*?release = "(\d+)"`).FindAllStringSubmatch(out, -1) {
		files[match[1]], _ = strconv.Atoi(match[2]) // digits
	}
	return files
}

// resolve sets what the pods have to be after a boot. Each file has the content from before or after its change, as the disk.
func (s *storm) resolve(changes []*stormChange) {
	s.Helper()
	files := s.files()
	for _, c := range changes {
		is := files[c.pod]
		switch {
		case is == c.after.file && (c.done || c.before.file != c.after.file):
			s.pods[c.pod] = c.after
		case is != c.before.file && is != c.after.file, c.done:
			s.Errorf("%s of %s (done: %t): the file has definition %d, want %d or, if it is not done, %d", c.what, c.pod, c.done, is,
				c.after.file, c.before.file)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, known := s.pods[name]; !known {
			s.Errorf("unknown file of %s", name)
		}
	}
}
