package simulate_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/simulate"
)

// TestProblems checks the problems of scenario files.
func TestProblems(t *testing.T) {
	for _, row := range [][2]string{
		{"for = \"soon\"", `s.toml:1:1: for: "soon" is no duration`},
		{"for = \"0s\"", "s.toml:1:1: for: must be between 1s and 8784h0m0s"},
		{"fro = \"1h\"", "s.toml:1:1: fro: unknown field"},
		{"[[containers]]", "s.toml:1:3: containers[0]: name is required"},
		{"[[containers]]\nname = \"a\"\npullTakes = \"-1s\"", "s.toml:3:1: containers[0].pullTakes: must be between"},
		{"[[containers]]\nname = \"a\"\nruns = [{ exitCode = 256 }]", "runs[0].exitCode: must be between 0 and 255"},
		{"[[containers]]\nname = \"a\"\nruns = [{ times = -1 }]", "runs[0].times: must be between 1 and 10000"},
		{
			"[[containers]]\nname = \"a\"\nruns = [{ readyAfter = \"9s\", hangsAfter = \"9s\" }]",
			"hangsAfter: must be later than readyAfter",
		},
		{"[[containers]]\nname = \"a\"\nprobes = [{ probe = \"live\" }]", "probe: must be one of startup, liveness, readiness"},
		{
			"[[containers]]\nname = \"a\"\nprobes = [{ probe = \"startup\", from = \"9s\", to = \"1s\" }]",
			"to: must be later than from",
		},
		{"[[conditions]]\ncondition = \"network-online\"", "conditions[0]: metAfter is required"},
		{"[[conditions]]\ncondition = \"pod:a:ready\"\nmetAfter = \"1s\"", "conditions[0].condition: must not be about a pod"},
		{"[[events]]\nevent = \"explode\"", "events[0].event: must be one of stop, start"},
		{"[[events]]\nevent = \"reboot\"\ngrace = \"1s\"", "events[0].grace: is not used by the event reboot"},
		{"[[events]]\nevent = \"update\"", "events[0]: file is required"},
		{"[[events]]\nevent = \"oomKill\"", "events[0]: container is required"},
		{"[[events]]\nevent = \"clockLeap\"", "events[0]: by is required"},
		{"[[events]]\nevent = \"unplug\"", "events[0]: device is required"},
		{"[[assert]]", "assert[0]: exactly one of readyWithin"},
		{"[[assert]]\nphase = \"Running\"\nmaxRestarts = 1", "assert[0]: exactly one of readyWithin"},
		{"[[assert]]\nphase = \"Fine\"", "assert[0].phase: must be one of Pending"},
		{"[[assert]]\nmaxRestarts = -1", "assert[0].maxRestarts: must not be negative"},
		{"[[assert]]\nevent = \"Exploded\"", "assert[0].event: there is no event with the reason"},
		{"[[assert]]\nphase = \"Running\"\nin = \"1h\"", "assert[0].in: is used with maxRestarts only"},
		{"[[assert]]\nphase = \"Running\"\nnever = true", "assert[0].never: is used with event only"},
	} {
		text, want := row[0], row[1]
		s, problems := simulate.Parse("s.toml", []byte(text))
		if s != nil || len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: %v, want %s", text, problems, want)
		}
	}
}

// fieldPod is the pod of [TestFieldsHaveEffects].
const fieldPod = `[[pods]]
name = "web"
waitFor = ["network-online"]
[[pods.containers]]
name = "app"
image = "app:1"
livenessProbe = { exec = ["live"], timeoutSeconds = 2 }
readinessProbe = { exec = ["ready"] }
lifecycle.postStart = { exec = { command = ["a"] } }
lifecycle.preStop = { exec = { command = ["b"] } }
[[pods.containers]]
name = "proxy"
image = "proxy:1"
devices = ["/dev/a"]
[[pods]]
name = "db"
[[pods.containers]]
name = "postgres"
image = "postgres:17"
`

// TestFieldsHaveEffects sets each field of a scenario: the result differs from that without it. The list has all fields.
func TestFieldsHaveEffects(t *testing.T) {
	const app = "[[containers]]\nname = \"app\"\n"
	unplugged := "[[events]]\nat = \"2m\"\nevent = \"unplug\"\ndevice = \"/dev/a\"\n"
	stopped := "[[events]]\nat = \"2m\"\nevent = \"stop\"\npod = \"web\"\n"
	crash := app + "[[containers.runs]]\nexitCode = 1\n"
	probed := app + "[[containers.probes]]\nprobe = \"readiness\"\n"
	fails := probed + "fails = true\n"
	updated := "[[events]]\nat = \"1m\"\nevent = \"update\"\n"
	rows := map[string]struct{ without, with string }{
		"for":                     {"", "for = \"10m\"\n"},
		"containers.pod":          {"", "[[containers]]\npod = \"web\"\nname = \"app\"\nruns = [{ exitCode = 1 }]\n"},
		"containers.name":         {"", "[[containers]]\nname = \"proxy\"\nruns = [{ exitCode = 1 }]\n"},
		"containers.imagePresent": {app + "pullTakes = \"5s\"\n", app + "pullTakes = \"5s\"\nimagePresent = true\n"},
		"containers.pullTakes":    {app, app + "pullTakes = \"5s\"\n"},
		"containers.runs":         {app, crash},
		"containers.probes":       {app, fails},
		"runs.times":              {crash + "[[containers.runs]]\n", crash + "times = 3\n[[containers.runs]]\n"},
		"runs.startTakes":         {crash, crash + "startTakes = \"2s\"\n"},
		"runs.startError":         {crash, crash + "startError = \"no such file\"\n"},
		"runs.lasts":              {crash, crash + "lasts = \"7s\"\n"},
		"runs.exitCode":           {app, crash},
		"runs.oomKilled":          {crash, crash + "oomKilled = true\n"},
		"runs.ignoresStop":        {stopped, app + "[[containers.runs]]\nignoresStop = true\n" + stopped},
		"runs.stopTakes":          {stopped, app + "[[containers.runs]]\nstopTakes = \"4s\"\n" + stopped},
		"runs.stopExitCode":       {stopped, app + "[[containers.runs]]\nstopExitCode = 0\n" + stopped},
		"runs.readyAfter":         {app, app + "[[containers.runs]]\nreadyAfter = \"4s\"\n"},
		"runs.hangsAfter":         {app, app + "[[containers.runs]]\nhangsAfter = \"40s\"\n"},
		"runs.postStartTakes":     {app, app + "[[containers.runs]]\npostStartTakes = \"4s\"\n"},
		"runs.preStopTakes":       {stopped, app + "[[containers.runs]]\npreStopTakes = \"4s\"\n" + stopped},
		"probes.probe":            {fails, strings.ReplaceAll(fails, "readiness", "liveness")},
		"probes.from":             {fails, fails + "from = \"5m\"\n"},
		"probes.to":               {fails, fails + "to = \"5m\"\n"},
		"probes.fails":            {probed, fails},
		"probes.latency":          {probed, probed + "latency = \"3s\"\n"},
		"conditions.condition":    {"", "[[conditions]]\ncondition = \"network-online\"\nmetAfter = \"1m\"\n"},
		"conditions.metAfter":     {"", "[[conditions]]\ncondition = \"network-online\"\nmetAfter = \"2m\"\n"},
		"events.at":               {strings.Replace(stopped, "2m", "3m", 1), stopped},
		"events.event":            {stopped, strings.Replace(stopped, "stop", "restart", 1)},
		"events.pod":              {stopped, strings.Replace(stopped, "web", "db", 1)},
		"events.container": {
			strings.Replace(stopped, "stop", "restart", 1),
			strings.Replace(stopped, "stop", "restart", 1) + "container = \"app\"\n",
		},
		"events.device": {unplugged, strings.Replace(unplugged, "/dev/a", "/dev/b", 1)},
		"events.grace": {
			app + "runs = [{ ignoresStop = true }]\n" + stopped,
			app + "runs = [{ ignoresStop = true }]\n" + stopped + "grace = \"3s\"\n",
		},
		"events.file": {updated + "file = \"same.toml\"\n", updated + "file = \"other.toml\"\n"},
		"events.by": {
			"[[events]]\nevent = \"clockLeap\"\nby = \"0s\"\n",
			"[[events]]\nat = \"5m\"\nevent = \"clockLeap\"\nby = \"2h\"\n",
		},
		"events.for": {
			"[[events]]\nat = \"5m\"\nevent = \"reboot\"\n",
			"[[events]]\nat = \"5m\"\nevent = \"reboot\"\nfor = \"2m\"\n",
		},
		"assert.pod": {
			"[[assert]]\npod = \"web\"\nevent = \"WaitingFor\"\n",
			"[[assert]]\npod = \"db\"\nevent = \"WaitingFor\"\n",
		},
		"assert.container": {
			crash + "[[assert]]\npod = \"web\"\nmaxRestarts = 0\n",
			crash + "[[assert]]\npod = \"web\"\nmaxRestarts = 0\ncontainer = \"proxy\"\n",
		},
		"assert.readyWithin": {
			probed + "fails = true\nto = \"1m\"\n",
			probed + "fails = true\nto = \"1m\"\n[[assert]]\npod = \"web\"\nreadyWithin = \"9s\"\n",
		},
		"assert.maxRestarts": {crash, crash + "[[assert]]\npod = \"web\"\nmaxRestarts = 2\n"},
		"assert.in": {
			crash + "[[assert]]\npod = \"web\"\nmaxRestarts = 4\n",
			crash + "[[assert]]\npod = \"web\"\nmaxRestarts = 4\nin = \"1m\"\n",
		},
		"assert.maxUnready": {
			probed + "fails = true\nfrom = \"5m\"\n",
			probed + "fails = true\nfrom = \"5m\"\n[[assert]]\npod = \"web\"\nmaxUnready = \"1m\"\n",
		},
		"assert.phase": {stopped, stopped + "[[assert]]\npod = \"web\"\nphase = \"Running\"\n"},
		"assert.at": {
			stopped + "[[assert]]\npod = \"web\"\nphase = \"Running\"\n",
			stopped + "[[assert]]\npod = \"web\"\nphase = \"Running\"\nat = \"1m\"\n",
		},
		"assert.event": {"", "[[assert]]\npod = \"web\"\nevent = \"BackOff\"\n"},
		"assert.never": {
			crash + "[[assert]]\npod = \"web\"\nevent = \"BackOff\"\n",
			crash + "[[assert]]\npod = \"web\"\nevent = \"BackOff\"\nnever = true\n",
		},
		"assert.from": {
			"[[assert]]\npod = \"web\"\nevent = \"Started\"\n",
			"[[assert]]\npod = \"web\"\nevent = \"Started\"\nfrom = \"5m\"\n",
		},
		"assert.to": {
			stopped + "[[assert]]\npod = \"web\"\nevent = \"Killing\"\n",
			stopped + "[[assert]]\npod = \"web\"\nevent = \"Killing\"\nto = \"1m\"\n",
		},
	}
	var fields []string
	for prefix, v := range map[string]any{
		"": simulate.Scenario{}, "containers.": simulate.Container{}, "runs.": simulate.ContainerRun{}, "probes.": simulate.ProbeAnswer{},
		"conditions.": simulate.Condition{}, "events.": simulate.Happening{}, "assert.": simulate.Assertion{},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			isTable := prefix == "" && f.Type.Kind() == reflect.Slice // its fields are listed
			if f.IsExported() && !isTable {
				fields = append(fields, prefix+name)
			}
		}
	}
	slices.Sort(fields)
	if listed := slices.Sorted(maps.Keys(rows)); !slices.Equal(fields, listed) {
		t.Errorf("fields %v, listed %v", fields, listed)
	}
	result := func(scenario string) string {
		got, err := simulated(map[string][]byte{
			"pods.toml": []byte(fieldPod), "scenario.toml": []byte(scenario), "same.toml": []byte(fieldPod),
			"other.toml": []byte(strings.Replace(fieldPod, "app:1", "app:2", 1)),
		})
		if err != nil {
			t.Fatalf("%s\n%v", scenario, err)
		}
		return got
	}
	for field, row := range rows {
		if field == "events.by" {
			continue // only the times of events on the wall clock show it: TestClockLeap
		}
		if got := result(row.with); got == result(row.without) {
			t.Errorf("%s has no effect:\n%s\n%s", field, row.with, got)
		}
	}
}

// TestClockLeap checks that the wall clock is set, and that nothing else changes.
func TestClockLeap(t *testing.T) {
	w := simulate.New()
	p := w.Add(mustParse(t, "name = \"p\"\n[[containers]]\nname = \"app\"\nimage = \"i:1\"\n"), simulate.Script{})
	before := w.Now()
	w.At(time.Minute, func() { w.JumpClock(2 * time.Hour) })
	if err := w.Run(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if step := w.Now().Step(before); step != 2*time.Hour {
		t.Errorf("the clock was set by %v", step)
	}
	if got := p.Facts.Accepted.Wall.Sub(before.Wall); got != 2*time.Hour {
		t.Errorf("the pod was accepted %v later than it seemed, want 2h", got)
	}
}

// TestWorstCases compares the limits of containers with the arithmetic of their fields.
func TestWorstCases(t *testing.T) {
	pod := mustParse(t, `name = "web"
terminationGracePeriodSeconds = 20
[[containers]]
name = "server"
image = "server:1"
startupProbe = { exec = ["a"], periodSeconds = 5, failureThreshold = 6 }
livenessProbe = { exec = ["b"], periodSeconds = 10, failureThreshold = 3, timeoutSeconds = 2 }
readinessProbe = { exec = ["c"], periodSeconds = 5, failureThreshold = 2 }
[[containers]]
name = "plain"
image = "plain:1"
lifecycle.preStop = { exec = { command = ["d"] } }
[[containers]]
name = "once"
image = "once:1"
restartPolicy = "Never"
`)
	got, err := simulate.WorstCases(pod)
	if err != nil {
		t.Fatal(err)
	}
	want := []simulate.Limits{
		{ // startup: 6 probes in 5 periods. hang: a period after a success, 2 more, and the timeout
			Pod: "web", Container: "server", StartUp: 25 * time.Second, Hang: 32 * time.Second, Unready: 11 * time.Second,
			Stop: 20 * time.Second, Outage: 5 * time.Minute, FirstHour: 16, EachHour: 12,
		},
		{ // the preStop hook takes the grace period, and the stop signal has two seconds
			Pod: "web", Container: "plain", StartUp: simulate.Never, Hang: simulate.Never, Unready: simulate.Never,
			Stop: 22 * time.Second, Outage: 5 * time.Minute, FirstHour: 16, EachHour: 12,
		},
		{
			Pod: "web", Container: "once", StartUp: simulate.Never, Hang: simulate.Never, Unready: simulate.Never, Stop: 20 * time.Second,
			Outage: simulate.Never,
		},
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v\nwant %+v", got[i], want[i])
		}
	}
}

// FuzzParse checks that a scenario file is rejected with a place, or can be simulated.
func FuzzParse(f *testing.F) {
	f.Add("for = \"10m\"\n[[containers]]\nname = \"app\"\npullTakes = \"5s\"\n" +
		"runs = [{ readyAfter = \"3s\", lasts = \"1m\", exitCode = 1 }]\n" +
		"[[containers.probes]]\nprobe = \"readiness\"\nfrom = \"1m\"\nto = \"2m\"\nlatency = \"9s\"\n")
	f.Add("[[events]]\nat = \"1m\"\nevent = \"reboot\"\nfor = \"10s\"\n[[events]]\nat = \"2m\"\nevent = \"powerCut\"\n" +
		"[[events]]\nat = \"3m\"\nevent = \"diskFull\"\nfor = \"1m\"\n[[events]]\nat = \"5m\"\nevent = \"stop\"\ngrace = \"0s\"\n")
	f.Add("[[assert]]\nreadyWithin = \"40s\"\n[[assert]]\nmaxRestarts = 3\nin = \"1h\"\n[[assert]]\nevent = \"BackOff\"\nnever = true\n")
	pod := mustParse(f, "name = \"web\"\n[[containers]]\nname = \"app\"\nimage = \"app:1\"\nreadinessProbe.exec = [\"a\"]\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, problems := simulate.Parse("s.toml", []byte(text))
		if s == nil {
			if len(problems) == 0 {
				t.Fatal("rejected without a problem")
			}
			return
		}
		r, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{For: 10 * time.Minute, Scenario: s})
		if err != nil {
			if !strings.Contains(err.Error(), "s.toml:") && !strings.Contains(err.Error(), "simulate less time") {
				t.Fatal(err)
			}
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

// TestImageOfUpdate: a scenario may have the image of a container that an update adds.
func TestImageOfUpdate(t *testing.T) {
	const first = "name = \"web\"\n[[containers]]\nname = \"app\"\nimage = \"app:1\"\n"
	scenario, problems := simulate.Parse("s.toml", []byte(
		"[[containers]]\nname = \"side\"\nimagePresent = true\n[[events]]\nat = \"1m\"\nevent = \"update\"\nfile = \"second.toml\"\n"))
	if scenario == nil {
		t.Fatal(problems)
	}
	r, err := simulate.Pods([]*spec.Pod{mustParse(t, first)}, simulate.Options{
		Scenario: scenario, Read: func(string) ([]*spec.Pod, error) {
			return []*spec.Pod{mustParse(t, first+"[[containers]]\nname = \"side\"\nimage = \"side:1\"\n")}, nil
		},
	})
	if err != nil || !slices.ContainsFunc(r.Timeline, func(e simulate.Entry) bool { return e.Container == "side" }) {
		t.Errorf("the container was not added: %v", err)
	}
}
