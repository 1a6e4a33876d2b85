//go:build e2e

package faults

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/test/internal/rig"
)

// burstLines is the number of lines that the pod burst writes at once: about as many as a file of its log has.
const burstLines = 5000

// steady are the pods that must not be affected by the death of the monitor. They run one container each.
var steady = map[string]string{
	"count": container("c", "i=0; while :; do seq $i $((i+9)); i=$((i+10)); sleep 0.1; done"),
	"burst": container("c", fmt.Sprintf("i=0; burst() { seq $i $((i+%d)); i=$((i+%d)); echo $i >>/marks/bursts; }; trap burst USR1; "+
		"echo up >>/marks/bursts; while :; do sleep 0.05; done", burstLines-1, burstLines)),
	"input": container("c", "echo up; while read line; do echo got $line; done") + "stdin = true\n",
	"tty": container("c", "(i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done) & while read line; do echo got $line; done") +
		"stdin = true\ntty = true\n",
	"probed": container("c", "trap 'exit 0' TERM; while :; do sleep 0.1; done") +
		"livenessProbe = { exec = { command = [\"true\"] }, periodSeconds = 1, timeoutSeconds = 60, failureThreshold = 1 }\n" +
		"readinessProbe = { exec = { command = [\"true\"] }, periodSeconds = 1, timeoutSeconds = 60, failureThreshold = 1 }\n",
}

// monitored is a host whose monitor is killed while pods are created, deleted and restarted, logs are rotated, commands run, and the
// program of the monitor is replaced.
type monitored struct {
	*fixture
	r     *rand.Rand
	marks string // directory in which containers write what they do
	// These are how often the container of the pod crash was told to exit with code 7, commands were run, the pod burst was told to write,
	// the pod churn was created, and the monitor was replaced.
	crashes, commands, bursts, creations, replacements int
	churns                                             bool // the pod churn exists
}

func newMonitored(t *testing.T) *monitored {
	t.Helper()
	m := &monitored{fixture: newFixture(t), r: rig.Seeded(t)}
	m.marks = filepath.Join(m.Dir, "marks")
	m.Check(os.Mkdir(m.marks, 0o755))
	m.Env = append(m.Env, "PODSTEAD_CONTAINER_LOG_MAX_SIZE=256Ki", "PODSTEAD_CONTAINER_LOG_MAX_FILES=1000")
	m.MustRun("get") // starts the daemon
	for name, text := range steady {
		m.MustCreate(name, backOff+text+m.mountMarks())
	}
	const crashes = "trap 'exit 7' USR1; trap 'exit 0' TERM; echo run >>/marks/crash; while :; do sleep 0.05; done"
	m.MustCreate("crash", backOff+container("c", crashes)+m.mountMarks())
	for name := range steady {
		m.Until(name, "ready", podReady)
	}
	m.Until("crash", "ready", podReady)
	m.marked("bursts", 1)
	m.marked("crash", 1)
	return m
}

// backOff makes pods stop and restart fast.
const backOff = "terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"

// mountMarks mounts the directory marks in the container that is listed last.
func (m *monitored) mountMarks() string {
	return fmt.Sprintf("volumeMounts = { marks = \"/marks\" }\n[[volumes]]\nname = \"marks\"\nhostPath = { path = %q }\n", m.marks)
}

// marked waits until containers have written a number of lines to a file, and returns how many there are.
func (m *monitored) marked(name string, want int) (lines int) {
	m.Helper()
	m.Await(func() error {
		if lines = len(m.lines(name)); lines < want {
			return fmt.Errorf("%d lines in the file %s, want %d", lines, name, want)
		}
		return nil
	})
	return lines
}

// kill kills the monitor, and the daemon with it if both is set. It returns when another one of each runs.
func (m *monitored) kill(both bool) {
	m.Helper()
	victims := []int{m.holder()}
	if both {
		daemon, err := m.DaemonPID(m.Ctx())
		m.Check(err)
		victims = append(victims, daemon)
	}
	for _, pid := range victims {
		m.Check(unix.Kill(pid, unix.SIGKILL))
	}
	for _, pid := range victims {
		m.ends(pid)
	}
	m.MustRun("get")
	m.holder()
}

// churn begins two things that the death of the monitor interrupts, and returns a function that waits until they are done, and checks
// them.
func (m *monitored) churn() (finish func()) {
	m.Helper()
	var finishes []func()
	for _, kind := range m.r.Perm(5)[:2] {
		switch {
		case kind == 0:
			finishes = append(finishes, m.command())
		case kind == 1:
			finishes = append(finishes, m.crash())
		case kind == 2:
			finishes = append(finishes, m.burst())
		case kind == 3:
			finishes = append(finishes, m.replace())
		case m.churns:
			finishes = append(finishes, m.delete())
		default:
			finishes = append(finishes, m.create())
		}
	}
	return func() {
		m.Helper()
		for _, finish := range finishes {
			finish()
		}
	}
}

// burst makes the container of the pod burst write as many lines as a file of its log has, so that the log is rotated.
func (m *monitored) burst() (finish func()) {
	m.Helper()
	m.bursts++
	m.signalContainer("burst", unix.SIGUSR1)
	return func() {
		m.Helper()
		m.marked("bursts", 1+m.bursts)
	}
}

// replace replaces the monitor in place by its program. It is repeated if the monitor is killed meanwhile.
func (m *monitored) replace() (finish func()) {
	ctx := m.Ctx()
	replace := func() error {
		c, err := monitor.Dial(ctx, engine.MonitorDir(filepath.Join(m.RunDir(), "engine")))
		if err != nil {
			return err
		}
		return errors.Join(c.Replace(ctx, m.Monitor), c.Close())
	}
	done := make(chan error, 1)
	go func() { done <- replace() }()
	return func() {
		m.Helper()
		err := <-done
		m.Await(func() error {
			if errdefs.IsUnavailable(err) { // it was killed, or waits for a disk
				err = replace()
			}
			if err != nil && !errdefs.IsUnavailable(err) {
				m.Fatal(err)
			}
			return err
		})
		m.replacements++
	}
}

// command runs a command that writes its number, prints it, and exits with code 5.
func (m *monitored) command() (finish func()) {
	m.Helper()
	m.commands++
	number := strconv.Itoa(m.commands)
	cmd := m.Command(m.Ctx(), "exec", "count", "--", "sh", "-c", "echo "+number+" >>/marks/commands; sleep 0.05; echo "+number+"; exit 5")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	m.Check(cmd.Start())
	return func() {
		m.Helper()
		_ = cmd.Wait() // the exit code is checked
		code := cmd.ProcessState.ExitCode()
		ran := count(m.lines("commands"), number)
		complete := code == 5 && stdout.String() == number+"\n" && ran == 1
		interrupted := code != 0 && code != 5 && stderr.Len() > 0 && ran <= 1
		if !complete && !interrupted {
			m.Errorf("command %s ran %d times, exited with %d: %q, %q", number, ran, code, &stdout, &stderr)
		}
	}
}

func count(lines []string, line string) (n int) {
	for _, each := range lines {
		if each == line {
			n++
		}
	}
	return n
}

// lines are those of a file that containers write.
func (m *monitored) lines(name string) []string {
	m.Helper()
	text, err := os.ReadFile(filepath.Join(m.marks, name))
	if !errors.Is(err, os.ErrNotExist) {
		m.Check(err)
	}
	return strings.Fields(string(text))
}

// crash makes the container of the pod crash exit with code 7.
func (m *monitored) crash() (finish func()) {
	m.Helper()
	m.crashes++
	m.signalContainer("crash", unix.SIGUSR1)
	return func() {
		m.Helper()
		p := m.Until("crash", fmt.Sprintf("running after %d restarts", m.crashes), func(p *api.Pod) bool {
			c := p.Status.ContainerStatuses[0]
			return c.State.Running != nil && c.RestartCount >= m.crashes && len(m.lines("crash")) > m.crashes
		})
		c := p.Status.ContainerStatuses[0]
		if runs := len(m.lines("crash")); c.RestartCount != m.crashes || runs != m.crashes+1 || c.LastState.Terminated.ExitCode != 7 {
			m.Fatalf("after %d exits with code 7: %d runs, status %+v\n%s", m.crashes, runs, c, m.MustRun("events", "crash"))
		}
	}
}

// create creates the pod churn, which is ready as soon as a command in it succeeds.
func (m *monitored) create() (finish func()) {
	m.Helper()
	m.creations++
	text := m.PodText("churn", "terminationGracePeriodSeconds = 20\n"+
		container("c", "trap 'exit 0' TERM; echo up; echo run >>/marks/churn; while :; do sleep 0.05; done")+
		"readinessProbe = { exec = { command = [\"true\"] }, periodSeconds = 1, timeoutSeconds = 60 }\n"+m.mountMarks())
	done := make(chan error, 1)
	go func() {
		_, err := m.Create(m.Ctx(), "churn", text)
		done <- err
	}()
	return func() {
		m.Helper()
		err := <-done
		m.Await(func() error { // a daemon that was killed may have accepted it
			if _, missing := m.Client().Pod(m.Ctx(), "churn"); missing != nil {
				_, err = m.Create(m.Ctx(), "churn", text)
				return err
			}
			return nil
		})
		p := m.Until("churn", "ready", podReady)
		if c := p.Status.ContainerStatuses[0]; c.RestartCount != 0 {
			m.Errorf("the container of a new pod was restarted: %+v\n%s", c, m.MustRun("events", "churn"))
		}
		if runs := m.marked("churn", m.creations); runs != m.creations {
			m.Fatalf("%d runs of %d new pods\n%s", runs, m.creations, m.MustRun("events", "churn"))
		}
		var log string
		m.Await(func() error {
			if log = m.MustRun("logs", "churn"); log == "" {
				return errors.New("the log of a new pod is empty")
			}
			return nil
		})
		if log != "up\n" {
			m.Errorf("log of a new pod: %q", log)
		}
		m.churns = true
	}
}

// delete deletes the pod churn, whose container exits with code 0.
func (m *monitored) delete() (finish func()) {
	m.Helper()
	cmd := m.Command(m.Ctx(), "delete", "churn")
	m.Check(cmd.Start())
	return func() {
		m.Helper()
		_ = cmd.Wait() // it is repeated
		for e, err := range m.Client().Events(m.Ctx(), &client.EventQuery{Pod: "churn"}) {
			m.Check(err)
			if e.Kind == api.EventContainerFailed || e.Kind == api.EventContainerKilled {
				m.Errorf("a container that exits with 0 did not: %+v", e)
			}
		}
		m.Await(func() error {
			_, err := m.Client().Pod(m.Ctx(), "churn")
			if answer, is := errors.AsType[*api.Error](err); is && answer.Status == 404 {
				return nil
			}
			_, err = m.Podstead(m.Ctx(), "delete", "churn")
			return errors.Join(errors.New("pod churn exists"), err)
		})
		m.churns = false
	}
}

// TestMonitorKilled kills the monitor 20 times, and the monitor and the daemon together 10 times, while pods are created, deleted and
// restarted, commands run, logs are rotated, and the monitor is replaced. No container is killed by it, none is doubled, no restart count,
// line of a log or exit code is wrong. make soak does that 500 and 200 times.
func TestMonitorKilled(t *testing.T) {
	alone, together := 20, 10
	if factor := rig.Times(t); factor > 1 {
		alone, together = 50*factor, 20*factor
	}
	m := newMonitored(t)
	m.Timeout = deadline + time.Duration(alone+together)*deadline/10
	was, pids := map[string][]string{}, map[string]int{}
	for name := range steady {
		was[name], pids[name] = m.running(name), m.initOf(name)
	}
	begun := time.Now()
	for n, i := range m.r.Perm(alone + together) {
		finish := m.churn()
		<-time.After(time.Duration(m.r.IntN(300*(1+m.r.IntN(3)))) * time.Millisecond)
		m.kill(i < together)
		finish()
		if t.Failed() {
			t.Fatalf("failed after %d kills", n+1)
		}
	}
	t.Logf("%d kills of the monitor and %d of both in %v, with %d commands, %d exits, %d bursts of lines, %d creations, %d replacements",
		alone, together, time.Since(begun).Round(time.Second), m.commands, m.crashes, m.bursts, m.creations, m.replacements)
	for name := range steady {
		if diff := cmp.Diff(was[name], m.running(name)); diff != "" || m.initOf(name) != pids[name] {
			t.Errorf("the container of %s has process %d, had %d: %s", name, m.initOf(name), pids[name], diff)
		}
		m.checkSteady(name)
	}
	checkNumbers(t, strings.Fields(m.MustRun("logs", "count")))
	checkNumbers(t, strings.Fields(m.MustRun("logs", "tty")))
	m.checkBursts()
	for _, name := range []string{"input", "tty"} {
		m.answers(name)
	}
	m.MustRun("delete", "--all", "--force")
}

// checkBursts checks the log of the pod burst, which was rotated.
func (m *monitored) checkBursts() {
	m.Helper()
	var lines []string
	m.Await(func() error {
		if lines = strings.Fields(m.MustRun("logs", "burst")); len(lines) < m.bursts*burstLines {
			return fmt.Errorf("%d lines of %d", len(lines), m.bursts*burstLines)
		}
		return nil
	})
	checkNumbers(m.T, lines)
	if len(lines) != m.bursts*burstLines {
		m.Errorf("%d lines of %d bursts", len(lines), m.bursts)
	}
	files, err := filepath.Glob(filepath.Join(m.LogDir(), "burst_*", "c", "*"))
	if err != nil || len(files) <= m.bursts/2 {
		m.Errorf("log files %v after %d bursts, %v: the log was not rotated", files, m.bursts, err)
	}
}

// initOf returns PID 1 of the container of a pod.
func (m *monitored) initOf(name string) (pid int) {
	m.Helper()
	uid := m.get(name).Metadata.UID
	m.Await(func() error {
		all, err := m.Processes()
		if err != nil {
			return err
		}
		for _, p := range all {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
			if err == nil && strings.Contains(string(text), uid) && isInit(p.PID) {
				pid = p.PID
				return nil
			}
		}
		return errors.New("no process of pod " + name)
	})
	return pid
}

// checkSteady checks that the events of a pod have no trace of a restart. A probe that was interrupted is no failure.
func (m *monitored) checkSteady(name string) {
	m.Helper()
	for e, err := range m.Client().Events(m.Ctx(), &client.EventQuery{Pod: name}) {
		m.Check(err)
		if e.Level == api.EventWarning && e.Kind != api.EventProbeErrored || e.Attempt > 1 {
			m.Errorf("event of %s: %+v", name, e)
		}
	}
}

// answers checks that a container reads its input and writes its output.
func (m *monitored) answers(name string) {
	m.Helper()
	input, line, err := os.Pipe()
	m.Check(err)
	defer input.Close()
	cmd := m.Command(m.Ctx(), "attach", "-i", name)
	cmd.Stdin = input
	m.Check(cmd.Start())
	_, err = line.WriteString("hello\n")
	m.Check(err)
	m.Await(func() error {
		if log := m.MustRun("logs", name); !strings.Contains(log, "got hello") {
			return fmt.Errorf("log of %s: %q", name, log)
		}
		return nil
	})
	m.Check(cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	m.Check(line.Close())
}

// replaceTime is the time in which the daemon replaces a monitor that does not respond, on a loaded host. It is 20 s otherwise.
const replaceTime = time.Minute

// TestHungMonitor: a monitor that does not respond is replaced. No container ends, an exit meanwhile is reported with its code, and a pod
// can be deleted by force meanwhile.
func TestHungMonitor(t *testing.T) {
	f := newFixture(t)
	f.create("runs", "exits", "deleted")
	was, pid, deleted := f.running("runs"), f.containerPID("runs"), f.containerPID("deleted")
	monitor := f.freeze()
	frozen := time.Now()
	f.signalContainer("exits", unix.SIGUSR1)
	f.MustRun("delete", "--force", "deleted")
	f.ends(deleted)
	f.ends(monitor)
	if took := time.Since(frozen); took > replaceTime {
		t.Errorf("the monitor was replaced after %v, want at most %v", took, replaceTime)
	}
	p := f.Until("exits", "running after a restart", func(p *api.Pod) bool {
		c := p.Status.ContainerStatuses[0]
		return c.RestartCount == 1 && c.State.Running != nil
	})
	if last := p.Status.ContainerStatuses[0].LastState.Terminated; last == nil || last.ExitCode != 3 {
		t.Errorf("last termination %+v, want exit code 3", last)
	}
	if diff := cmp.Diff(was, f.running("runs")); diff != "" || f.containerPID("runs") != pid {
		t.Errorf("the container has process %d, had %d: %s", f.containerPID("runs"), pid, diff)
	}
	f.restart("runs", 1)
	f.MustRun("delete", "runs", "exits")
}

// TestMonitorMissing: a daemon without the program of the monitor does not start, whose error says what to do. Containers keep running, and
// the next daemon takes them over.
func TestMonitorMissing(t *testing.T) {
	f := newFixture(t)
	f.create("web")
	was, pid, program := f.running("web"), f.containerPID("web"), f.Program
	text, err := os.ReadFile(program)
	f.Check(err)
	f.MustRun("daemon", "stop")
	f.Program = filepath.Join(f.Dir, "podstead")
	f.Check(os.WriteFile(f.Program, text, 0o755))
	for _, want := range []string{"start engine: the program podstead-monitor is not installed", "hint: install podstead-monitor"} {
		if out, err := f.Podstead(f.Ctx(), "get"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("get: %q, %v; want %q", out, err, want)
		}
	}
	out, err := f.Podstead(f.Ctx(), "doctor")
	want := regexp.MustCompile(`(?m)^fail +monitor +the program podstead-monitor is not installed`)
	if err == nil || !want.MatchString(out) {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	f.Program = program
	f.MustRun("get")
	if diff := cmp.Diff(was, f.running("web")); diff != "" || f.containerPID("web") != pid {
		t.Errorf("the container has process %d, had %d: %s", f.containerPID("web"), pid, diff)
	}
	f.MustRun("delete", "web")
}
