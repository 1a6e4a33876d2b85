package simulate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// maxFor bounds the time that is simulated.
	maxFor = 366 * 24 * time.Hour
	// maxTimes bounds the number of equal runs.
	maxTimes = 10_000
)

// Parse reads a scenario file. It reports all of its problems, except for names of pods and containers that do not exist, which [Pods]
// reports. The scenario is nil if there is a problem.
func Parse(path string, data []byte) (*Scenario, spec.Problems) {
	s := &Scenario{path: path}
	s.file = spec.Decode(path, data, s)
	c := checker{scenario: s}
	c.check()
	if problems := append(s.file.Problems(), c.problems...); len(problems) > 0 {
		return nil, problems
	}
	return s, nil
}

// checker finds the problems of a scenario.
type checker struct {
	scenario *Scenario
	pods     []*spec.Pod // nil: they are not known yet
	problems spec.Problems
}

// bad adds a problem of a field, given as a pointer to it. The table is the place of the field if a file does not set it.
func (c *checker) bad(table, field any, message, hint string) {
	p := c.scenario.problem(field, message, hint)
	if p.Line == 0 {
		p = c.scenario.problem(table, message, hint)
	}
	c.problems = append(c.problems, p)
}

// problem returns a problem of a field, given as a pointer to it.
func (s *Scenario) problem(field any, message, hint string) spec.Problem {
	if s.file == nil {
		return spec.Problem{File: "scenario", Message: message, Hint: hint}
	}
	return s.file.ProblemOf(field, message, hint)
}

func (c *checker) duration(table any, d *Duration, atLeast time.Duration) {
	if *d == "" {
		return
	}
	v, err := time.ParseDuration(string(*d))
	switch {
	case err != nil:
		c.bad(table, d, fmt.Sprintf(`%q is no duration such as "40s", "5m" or "1h30m"`, string(*d)), "")
	case v < atLeast || v > maxFor:
		c.bad(table, d, fmt.Sprintf("must be between %v and %v", atLeast, maxFor), "")
	}
}

func (c *checker) required(table any, field *string, name string) {
	if *field == "" {
		c.bad(table, field, name+" is required", "")
	}
}

func (c *checker) check() {
	s := c.scenario
	c.duration(s, &s.For, time.Second)
	for i := range s.Containers {
		c.container(&s.Containers[i])
	}
	for i := range s.Conditions {
		o := &s.Conditions[i]
		c.required(o, &o.Condition, "condition")
		if spec.ParseWaitCondition(o.Condition).Kind == spec.WaitPod {
			c.bad(o, &o.Condition, "must not be about a pod: the status of the pod is used", "")
		}
		if o.MetAfter == "" {
			c.bad(o, &o.MetAfter, "metAfter is required", "")
		}
		c.duration(o, &o.MetAfter, 0)
	}
	for i := range s.Events {
		c.happening(&s.Events[i])
	}
	for i := range s.Assert {
		c.assertion(&s.Assert[i])
	}
}

func (c *checker) container(o *Container) {
	c.required(o, &o.Name, "name")
	c.duration(o, &o.PullTakes, 0)
	for i := range o.Runs {
		r := &o.Runs[i]
		if r.Times < 0 || r.Times > maxTimes {
			c.bad(r, &r.Times, fmt.Sprintf("must be between 1 and %d", maxTimes), "")
		}
		if r.ExitCode < 0 || r.ExitCode > 255 {
			c.bad(r, &r.ExitCode, "must be between 0 and 255", "")
		}
		if code := r.StopExitCode; code != nil && (*code < 0 || *code > 255) {
			c.bad(r, &r.StopExitCode, "must be between 0 and 255", "")
		}
		for _, d := range []*Duration{
			&r.StartTakes, &r.Lasts, &r.StopTakes, &r.ReadyAfter, &r.HangsAfter, &r.PostStartTakes, &r.PreStopTakes,
		} {
			c.duration(r, d, 0)
		}
		if r.HangsAfter != "" && r.HangsAfter.Duration() <= r.ReadyAfter.Duration() && r.HangsAfter.Duration() >= 0 {
			c.bad(r, &r.HangsAfter, "must be later than readyAfter", "")
		}
	}
	for i := range o.Probes {
		a := &o.Probes[i]
		if !slices.Contains(probeKinds, a.Probe) {
			c.bad(a, &a.Probe, "must be one of "+strings.Join(probeKinds, ", "), "")
		}
		for _, d := range []*Duration{&a.From, &a.To, &a.Latency} {
			c.duration(a, d, 0)
		}
		c.order(a, &a.From, &a.To)
	}
}

// order checks that a time with an end begins before it.
func (c *checker) order(table any, from, to *Duration) {
	if *to != "" && to.Duration() <= from.Duration() {
		c.bad(table, to, "must be later than from", "")
	}
}

var probeKinds = []string{string(lifecycle.ProbeStartup), string(lifecycle.ProbeLiveness), string(lifecycle.ProbeReadiness)}

func (c *checker) happening(h *Happening) {
	c.duration(h, &h.At, 0)
	c.duration(h, &h.Grace, 0)
	c.duration(h, &h.For, time.Millisecond)
	c.duration(h, &h.By, -maxFor)
	kind := h.kind()
	if kind == nil {
		var names []string
		for _, k := range eventKinds {
			names = append(names, k.Name)
		}
		c.bad(h, &h.Event, "must be one of "+strings.Join(names, ", "), "")
		return
	}
	for name, field := range map[string]any{
		"pod": &h.Pod, "container": &h.Container, "grace": &h.Grace, "file": &h.File, "by": &h.By, "for": &h.For, "device": &h.Device,
	} {
		if !slices.Contains(kind.Fields, name) && !isEmpty(field) {
			c.bad(h, field, "is not used by the event "+h.Event, "remove it")
		}
	}
	switch {
	case h.Event == "update" && h.File == "":
		c.bad(h, &h.File, "file is required", "")
	case h.Event == "oomKill" && h.Container == "":
		c.bad(h, &h.Container, "container is required", "")
	case h.Event == "unplug" && h.Device == "":
		c.bad(h, &h.Device, "device is required", "")
	case h.Event == "clockLeap" && h.By == "":
		c.bad(h, &h.By, "by is required", "")
	}
}

// isEmpty reports whether a field, given as a pointer to it, is not set.
func isEmpty(field any) bool {
	switch f := field.(type) {
	case *string:
		return *f == ""
	case *Duration:
		return *f == ""
	case *bool:
		return !*f
	}
	return true
}

var phases = []string{
	string(lifecycle.PhasePending), string(lifecycle.PhaseRunning), string(lifecycle.PhaseSucceeded), string(lifecycle.PhaseFailed),
}

func (c *checker) assertion(a *Assertion) {
	for _, d := range []*Duration{&a.ReadyWithin, &a.In, &a.MaxUnready, &a.At, &a.From, &a.To} {
		c.duration(a, d, 0)
	}
	c.order(a, &a.From, &a.To)
	kinds := 0
	for _, set := range []bool{a.ReadyWithin != "", a.MaxRestarts != nil, a.MaxUnready != "", a.Phase != "", a.Event != ""} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		c.bad(a, a, "exactly one of readyWithin, maxRestarts, maxUnready, phase and event is required", "")
		return
	}
	unused := func(field any, used bool, of string) {
		if !isEmpty(field) && !used {
			c.bad(a, field, "is used with "+of+" only", "remove it")
		}
	}
	unused(&a.Container, a.MaxRestarts != nil || a.Event != "", "maxRestarts and event")
	unused(&a.In, a.MaxRestarts != nil, "maxRestarts")
	unused(&a.At, a.Phase != "", "phase")
	unused(&a.Never, a.Event != "", "event")
	unused(&a.From, a.Phase == "", "readyWithin, maxRestarts, maxUnready and event")
	unused(&a.To, a.Phase == "" && a.ReadyWithin == "", "maxRestarts, maxUnready and event")
	if a.MaxRestarts != nil && *a.MaxRestarts < 0 {
		c.bad(a, a.MaxRestarts, "must not be negative", "")
	}
	if a.Phase != "" && !slices.Contains(phases, a.Phase) {
		c.bad(a, &a.Phase, "must be one of "+strings.Join(phases, ", "), "")
	}
	if a.Event != "" && !isEvent(a.Event) {
		c.bad(a, &a.Event, fmt.Sprintf("there is no event with the reason or the kind %q", a.Event), "see docs/reference/events.md")
	}
}

// names checks the names of pods and containers. It returns the pods of tables, given as pointers to them.
func (c *checker) names() (podOf map[any]string) {
	s := c.scenario
	podOf = map[any]string{}
	for i := range s.Containers {
		o := &s.Containers[i]
		podOf[o] = c.pod(o, &o.Pod, &o.Name)
	}
	for i := range s.Events {
		h := &s.Events[i]
		if slices.Contains(h.kind().Fields, "pod") {
			podOf[h] = c.pod(h, &h.Pod, &h.Container)
		}
	}
	for i := range s.Assert {
		a := &s.Assert[i]
		podOf[a] = c.pod(a, &a.Pod, &a.Container)
	}
	waited := map[string]bool{}
	for _, pod := range c.pods {
		for _, condition := range pod.WaitFor {
			waited[condition] = true
		}
	}
	for i := range s.Conditions {
		if o := &s.Conditions[i]; !waited[o.Condition] {
			c.bad(o, &o.Condition, "no pod has it in waitFor", "")
		}
	}
	return podOf
}

// pod checks the names of a pod and of a container, which may be empty, and returns the pod.
func (c *checker) pod(table any, name, container *string) string {
	var found []string
	for _, pod := range c.pods {
		matches := (*name == "" || pod.Name == *name) && (*container == "" || pod.Container(*container) != nil)
		if matches && !slices.Contains(found, pod.Name) {
			found = append(found, pod.Name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0]
	case len(found) > 1:
		c.bad(table, name, "pod is required: there are "+strings.Join(found, ", "), "")
	case *name != "" && !slices.ContainsFunc(c.pods, func(p *spec.Pod) bool { return p.Name == *name }):
		c.bad(table, name, fmt.Sprintf("there is no pod %q", *name), "")
	case *container != "":
		c.bad(table, container, fmt.Sprintf("there is no container %q", *container), "")
	}
	return ""
}

// filePath returns the path of a file that an event names.
func (s *Scenario) filePath(file string) string {
	if filepath.IsAbs(file) || s.path == "" || s.path == spec.Stdin {
		return file
	}
	return filepath.Join(filepath.Dir(s.path), file)
}
