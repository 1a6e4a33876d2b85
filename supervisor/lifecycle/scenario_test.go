package lifecycle_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/lifecycle/lifecycletest"
)

var update = flag.Bool("update", false, "update the timelines in testdata/scenarios")

// TestScenarios runs the pods of testdata/scenarios in simulated worlds and compares the timelines. [scenario.line] describes
// the language of the scripts.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("scenarios: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(data)
			next, last := "", len(archive.Files)-1
			switch {
			case last == 3 && archive.Files[2].Name == "next.toml":
				next = string(archive.Files[2].Data)
			case last != 2:
				t.Fatalf("%s: want pod.toml, world and timeline, and next.toml if the pod is redefined", file)
			}
			got := play(t, string(archive.Files[0].Data), string(archive.Files[1].Data), next)
			if *update {
				archive.Files[last].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(strings.Split(string(archive.Files[last].Data), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s: timeline (-want +got):\n%s", file, diff)
			}
		})
	}
}

// play runs a script and returns the timeline.
func play(t *testing.T, podfile, script, next string) string {
	t.Helper()
	pod, problems := spec.Parse("/pods/p.toml", []byte(podfile))
	if pod == nil {
		t.Fatalf("pod.toml: %v", problems)
	}
	to := pod
	if next != "" {
		if to, problems = spec.Parse("/pods/p.toml", []byte(next)); to == nil {
			t.Fatalf("next.toml: %v", problems)
		}
	}
	world := lifecycletest.New(pod, lifecycletest.Script{
		Pulls: map[string][]lifecycletest.Start{}, Runs: map[string][]lifecycletest.Run{},
	})
	timeline := lifecycletest.NewTimeline(pod)
	world.Observe = timeline.Observe
	s := scenario{World: world, next: to, until: time.Hour}
	for number, line := range strings.Split(script, "\n") {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			if err := s.line(words); err != nil {
				t.Fatalf("world, line %d: %q: %v", number+1, line, err)
			}
		}
	}
	if err := world.Run(s.until); err != nil {
		t.Error(err)
	}
	return timeline.String()
}

// scenario is a world with a script.
type scenario struct {
	*lifecycletest.World
	next  *spec.Pod
	until time.Duration
}

// line executes one line of a script:
//
//	until DURATION
//	CONTAINER run OPTION...      its next run: lasts=DURATION forever exit=CODE oom ignoreStop ignoreKills=N
//	                             stopTakes=DURATION takes=DURATION error=TEXT notCreated=TEXT
//	                             startup=RESULTS liveness=RESULTS readiness=RESULTS, as in [TestProbe]
//	                             postStart=DURATION preStop=DURATION hookError=TEXT (of its postStart hook)
//	CONTAINER pull OPTION...     its next pull: takes=DURATION error=TEXT reason=REASON
//	sandbox OPTION...            the next start of a sandbox: takes=DURATION error=TEXT reason=REASON
//	resize OPTION...             the next resize of the pod: takes=DURATION error=TEXT
//	at DURATION stop [grace=DURATION] [delete]
//	at DURATION evict | loseSandbox [kill] | unavailable | available
//	at DURATION crash off=DURATION | reboot off=DURATION | jumpClock by=DURATION
//	at DURATION exit container=NAME code=CODE
//	at DURATION addEphemeral container=NAME
//	at DURATION addImage container=NAME
//	at DURATION restart [container=NAME]
//	at DURATION redefine [container=NAME] [staged]     to next.toml, which restarts the container
//	at DURATION meet | lose condition=CONDITION
func (s *scenario) line(words []string) error {
	switch words[0] {
	case "until":
		o, err := parse([]string{"lasts=" + words[1]})
		s.until = o.run.Lasts
		return err
	case "at":
		at, err := time.ParseDuration(words[1])
		if err != nil {
			return err
		}
		o, err := parse(words[3:])
		if err != nil {
			return err
		}
		return s.schedule(at, words[2], o)
	case "sandbox":
		o, err := parse(words[1:])
		s.Script.Sandboxes = append(s.Script.Sandboxes, o.run.Start)
		return err
	case "resize":
		o, err := parse(words[1:])
		s.Script.Resizes = append(s.Script.Resizes, o.run.Start)
		return err
	}
	o, err := parse(words[2:])
	switch name := words[0]; words[1] {
	case "run":
		s.Script.Runs[name] = append(s.Script.Runs[name], o.run)
	case "pull":
		s.Script.Pulls[name] = append(s.Script.Pulls[name], o.run.Start)
	default:
		return fmt.Errorf("unknown line")
	}
	return err
}

func (s *scenario) schedule(at time.Duration, what string, o options) error {
	do, known := map[string]func(){
		"stop":         func() { s.Stop(o.grace, o.set["delete"]) },
		"loseSandbox":  func() { s.LoseSandbox(o.set["kill"]) },
		"unavailable":  func() { s.SetUnavailable(true) },
		"available":    func() { s.SetUnavailable(false) },
		"crash":        func() { s.Crash(o.off) },
		"reboot":       func() { s.Reboot(o.off) },
		"jumpClock":    func() { s.JumpClock(o.off) },
		"evict":        func() { s.Evict() },
		"addEphemeral": func() { s.AddEphemeral(o.container) },
		"addImage":     func() { s.AddImage(o.container) },
		"restart": func() {
			if o.container != "" {
				s.RestartContainer(o.container)
				return
			}
			s.Restart()
		},
		"redefine": func() { s.Redefine(s.next, o.set["staged"], o.container) },
		"meet":     func() { s.SetCondition(o.condition, true) },
		"lose":     func() { s.SetCondition(o.condition, false) },
		"exit":     func() { s.Exit(o.container, o.run.Exit) },
	}[what]
	if !known {
		return fmt.Errorf("unknown event %q", what)
	}
	s.At(at, do)
	return nil
}

// options are the options of a line.
type options struct {
	run       lifecycletest.Run
	grace     *time.Duration
	off       time.Duration
	container string
	condition string // that the pod waits for
	set       map[string]bool
}

func (o *options) probe(kind lifecycle.ProbeKind, letters string) error {
	if o.run.Probes == nil {
		o.run.Probes = map[lifecycle.ProbeKind][]lifecycle.ProbeOutcome{}
	}
	for _, letter := range letters {
		outcome, known := results[letter]
		if !known {
			return fmt.Errorf("unknown result %q", letter)
		}
		o.run.Probes[kind] = append(o.run.Probes[kind], outcome)
	}
	return nil
}

func parse(words []string) (options, error) {
	o := options{set: map[string]bool{}}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "lasts":
			o.run.Lasts, err = time.ParseDuration(value)
		case "startup", "liveness", "readiness":
			err = o.probe(lifecycle.ProbeKind(key), value)
		case "postStart":
			o.run.PostStart.Takes, err = time.ParseDuration(value)
		case "preStop":
			o.run.PreStop.Takes, err = time.ParseDuration(value)
		case "hookError":
			o.run.PostStart.Failure = &lifecycle.Failure{Message: value}
		case "takes":
			o.run.Takes, err = time.ParseDuration(value)
		case "stopTakes":
			o.run.StopTakes, err = time.ParseDuration(value)
		case "off", "by":
			o.off, err = time.ParseDuration(value)
		case "grace":
			var d time.Duration
			d, err = time.ParseDuration(value)
			o.grace = &d
		case "exit", "code":
			o.run.Exit.Code, err = strconv.Atoi(value)
		case "ignoreKills":
			o.run.IgnoresKills, err = strconv.Atoi(value)
		case "oom":
			o.run.Exit.Reason = lifecycle.ReasonOOMKilled
		case "forever":
			o.run.Forever = true
		case "ignoreStop":
			o.run.IgnoresStop = true
		case "container":
			o.container = value
		case "condition":
			o.condition = value
		case "error":
			o.run.Failure = &lifecycle.Failure{Message: value}
		case "reason":
			o.run.Failure.Reason = lifecycle.Reason(value)
		case "notCreated":
			o.run.Failure = &lifecycle.Failure{
				Kind: lifecycle.FailureNotCreated, Reason: lifecycle.ReasonCreateContainerError, Message: value,
			}
		case "delete", "kill", "staged":
			o.set[key] = true
		default:
			err = fmt.Errorf("unknown option %q", key)
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}
