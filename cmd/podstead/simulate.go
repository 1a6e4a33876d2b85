package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/timeline"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/simulate"
)

// maxScenario bounds a scenario file, in bytes.
const maxScenario = 1 << 20

// simulateGCPercent lets the heap grow to five times what is in use before it is collected. A day of a pod with 20 containers, with their
// worst cases, takes three fifths of the CPU time that it takes with the default of 100.
const simulateGCPercent = 400

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	duration time.Duration
	scenario string
	from     string
	format   string
	spec     spec.Options
}

// simulated is what simulate prints.
type simulated struct {
	*simulate.Result
	limits []simulate.Limits
	pods   []*spec.Pod // of the files
	// recorded is what happened to the pod of --from; nil: there is no such flag.
	recorded *recordedPod
}

// recordedPod is a pod whose events the daemon keeps.
type recordedPod struct {
	name     string
	events   []api.Event
	from, to time.Time
	scenario *simulate.Scenario
	left     []string // what the scenario leaves out
}

func (a *app) simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate FILE|DIR|-...",
		Short: "Simulate what happens to pods",
		Long: `Simulate what happens to the pods of files, in virtual time: no container is started. Only --from needs the daemon. The
decisions and the events are those of the daemon. The timeline shows the events with the time since the start.

Without --scenario nothing fails: images are pulled and containers start without a delay, probes succeed, init containers
succeed after a second, and other containers run until they are stopped. Then the worst cases of each container are
printed:

  START-UP       time after which it is restarted if its probes never succeed
  UNREADY        time until it is not ready if it hangs
  RESTARTED      time until it is stopped and restarted if it hangs
  STOP           time until the pod has stopped if it ignores the stop signal
  OUTAGE         time from a crash until it is ready again, after many crashes
  RESTARTS/HOUR  restarts if it always crashes at once, in the first and in later hours

A scenario file has what happens: exit codes, probes that fail, slow pulls, reboots and others, and what must be true.
See docs/reference/scenario.md for its fields.

With --from, what happened to a pod of this host happens to the pod of the files, as far as the daemon keeps its events: exits,
out of memory, failed probes, slow pulls, requests, boots. So a changed file can be checked against a bad night. -o scenario
prints what happened as a scenario file.

-o svg draws the runs of the containers of each pod as a picture. -o html writes the pictures, the worst cases and the events
as one file.

Exit codes: 0 done, 1 an assertion of the scenario does not hold, 2 a file is invalid. With --from also: 1 no events of the pod
are stored, 3 no such pod, 4 the daemon is unavailable.`,
		Example: `  # Show how a pod starts, and its worst cases
  podstead simulate web.toml

  # Simulate a day of a pod
  podstead simulate web.toml --for 24h

  # Replay what happened to pod web with its changed file, and write it as a scenario file
  podstead simulate web.toml --from web
  podstead simulate web.toml --from web -o scenario > recorded.toml

  # Draw what happens in a scenario
  podstead simulate web.toml --scenario scenario.toml -o svg > web.svg

  # Check what a scenario asserts, as in CI
  podstead simulate web.toml --scenario scenario.toml`,
		Args:              fileArguments,
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.simulate(cmd, args, &f) },
	}
	cmd.Flags().DurationVar(&f.duration, "for", 0, "`time` to simulate (default that of the scenario, or 30m)")
	cmd.Flags().StringVar(&f.scenario, "scenario", "", "`file` with what happens, and what must be true")
	_ = cmd.RegisterFlagCompletionFunc("scenario", completeFiles)
	cmd.Flags().StringVar(&f.from, "from", "", "`pod` of this host whose recorded events happen again")
	_ = cmd.RegisterFlagCompletionFunc("from", a.completePods)
	lossFlags(cmd, &f.spec, "v")
	formats(cmd, &f.format, "json", "svg", "html", "scenario")
	a.addProjectFlags(cmd)
	return cmd
}

func (a *app) simulate(cmd *cobra.Command, paths []string, f *simulateFlags) error {
	// Most of what a simulation allocates is garbage at once, and the process exits soon.
	defer debug.SetGCPercent(debug.SetGCPercent(simulateGCPercent))
	if f.duration < 0 || cmd.Flags().Changed("for") && f.duration == 0 {
		return usage(cmd, "--for %v: must be greater than 0", f.duration)
	}
	switch {
	case f.from != "" && f.scenario != "":
		return usage(cmd, "--from and --scenario cannot be combined")
	case f.from == "" && f.format == "scenario":
		return usage(cmd, "-o scenario requires --from")
	}
	pods, err := a.readSimulated(cmd, paths, f.spec)
	if err != nil {
		return err
	}
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	o := simulate.Options{
		For: f.duration, MaxStarts: int(c.Pods.MaxParallelStarts),
		Read: func(path string) ([]*spec.Pod, error) { return a.podsOf(cmd.Context(), path, f.spec) },
	}
	if f.scenario != "" {
		if o.Scenario, err = readScenario(f.scenario); err != nil {
			return err
		}
	}
	out := simulated{pods: pods}
	if f.from != "" {
		if out.recorded, err = a.recordedPod(cmd, f.from, pods); err != nil {
			return err
		}
		o.Scenario = out.recorded.scenario
		for _, left := range out.recorded.left {
			a.note("not in the scenario: %s", left)
		}
		if f.format == "scenario" {
			_, err := a.out.Write(o.Scenario.TOML())
			return err
		}
	}
	result, err := simulate.Pods(pods, o)
	if _, invalid := errors.AsType[spec.Problems](err); invalid {
		return &failure{status: statusUsage, err: err}
	}
	if err != nil {
		return err
	}
	out.Result = result
	if o.Scenario == nil {
		for _, pod := range pods {
			limits, err := simulate.WorstCases(pod)
			if err != nil {
				return err
			}
			out.limits = append(out.limits, limits...)
		}
	}
	if err := a.printSimulated(f.format, &out); err != nil {
		return err
	}
	var failed spec.Problems
	for _, f := range result.Failures {
		failed = append(failed, f.Problem())
	}
	if len(failed) > 0 {
		return failed
	}
	return nil
}

// recordedPod reads what happened to a pod, as a scenario for the pod of its name in the files, or for the only one.
func (a *app) recordedPod(cmd *cobra.Command, name string, pods []*spec.Pod) (*recordedPod, error) {
	pod := pods[0]
	if i := slices.IndexFunc(pods, func(p *spec.Pod) bool { return p.Name == name }); i >= 0 {
		pod = pods[i]
	} else if len(pods) > 1 {
		return nil, usage(cmd, "--from %s: the files define several pods, but none of this name", name)
	}
	c, err := a.client(cmd)
	if err != nil {
		return nil, err
	}
	e, err := c.Why(cmd.Context(), name, 0)
	if err != nil {
		return nil, err
	}
	events, err := eventsOf(cmd.Context(), c, &e)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, fmt.Errorf("simulate: no events of pod %q are stored", name)
	}
	p, _ := view.Explained(&e, events, 0, time.Now())
	r := recordedPod{name: name, events: events, from: p.From, to: p.To}
	r.scenario, r.left = simulate.Recorded(pod, events, p.To)
	return &r, nil
}

func readScenario(path string) (*simulate.Scenario, error) {
	text, _, err := spec.ReadFile(path, maxScenario)
	if err != nil {
		return nil, argumentError(fmt.Errorf("read scenario: %w", err))
	}
	s, problems := simulate.Parse(path, text)
	if s == nil {
		return nil, &failure{status: statusUsage, err: problems}
	}
	return s, nil
}

// readSimulated reads pod files and directories.
func (a *app) readSimulated(cmd *cobra.Command, paths []string, o spec.Options) (pods []*spec.Pod, err error) {
	if paths, err = a.expand(paths); err != nil {
		return nil, err
	}
	if o.MaxReplicas, err = a.maxReplicas(cmd); err != nil {
		return nil, err
	}
	o.Others = others(paths)
	var list []readPod
	err = readEach(paths, func(path, _ string) (names []string, err error) {
		found, err := a.podsOf(cmd.Context(), path, o)
		for _, pod := range found {
			pods, list, names = append(pods, pod), append(list, readPod{path, pod}), append(names, pod.Name)
		}
		return names, err
	})
	switch {
	case err != nil:
	case len(a.cyclesAmong(list, nil)) > 0:
		err = invalidFiles(nil)
	case len(pods) == 0:
		err = &failure{status: statusUsage, err: errors.New("the files define no pod")}
	}
	return pods, err
}

// podsOf reads the pods of a file.
func (a *app) podsOf(ctx context.Context, path string, o spec.Options) (pods []*spec.Pod, err error) {
	parts, err := a.readParts(ctx, path, o, "")
	for i := range parts {
		pods = append(pods, parts[i].Pod)
	}
	return pods, err
}

func (a *app) printSimulated(format string, s *simulated) error {
	switch format {
	case "svg":
		_, err := a.out.Write(timeline.SVG(s.pictures()))
		return err
	case "html":
		_, err := a.out.Write(s.page().HTML())
		return err
	case "json":
		return a.encode(format, struct {
			Simulation *simulate.Result  `json:"simulation"`
			WorstCases []simulate.Limits `json:"worstCases,omitempty"`
		}{s.Result, s.limits})
	}
	for _, line := range s.Lines() {
		fmt.Fprintln(a.out, plain.Text(line))
	}
	fmt.Fprintln(a.out)
	for _, line := range s.Summary() {
		fmt.Fprintln(a.out, plain.Text(line))
	}
	if s.recorded != nil {
		fmt.Fprintln(a.out, plain.Text(s.recorded.summary()))
	}
	if len(s.limits) == 0 {
		return nil
	}
	fmt.Fprintln(a.out, "\nWorst cases:")
	return a.screen().Table(s.worst())
}

// summary is what happened to the pod, in the form of [simulate.Result.Summary].
func (r *recordedPod) summary() string {
	starts := map[string]int{}
	for i := range r.events {
		if r.events[i].Kind == api.EventContainerStarted {
			starts[r.events[i].Container]++
		}
	}
	restarts := 0
	for _, n := range starts {
		restarts += n - 1
	}
	word := "restarts"
	if restarts == 1 {
		word = "restart"
	}
	return fmt.Sprintf("%s as recorded in %v: %d %s", r.name, r.to.Sub(r.from).Round(time.Second), restarts, word)
}

// worst is the table of the worst cases.
func (s *simulated) worst() [][]string {
	rows := [][]string{simulate.LimitsHeader()}
	for i := range s.limits {
		rows = append(rows, s.limits[i].Row())
	}
	return rows
}

// page is what simulate -o html prints.
func (s *simulated) page() *timeline.Page {
	page := timeline.Page{
		Title: "Simulation", Pictures: s.pictures(),
		Tables: []timeline.Table{
			{Title: "Worst cases", Rows: s.worst()},
			{Title: "Events", Rows: append([][]string{{"TIME", "OBJECT", "EVENT"}}, s.Rows()...)},
		},
	}
	for _, f := range s.Failures {
		page.Text += f.Error() + "\n"
	}
	return &page
}

// pictures are the timelines of the pods.
func (s *simulated) pictures() []timeline.Picture {
	start := time.Unix(0, 0).UTC()
	spans := func(list []simulate.Span) []timeline.Span {
		out := []timeline.Span{}
		for _, span := range list {
			out = append(out, timeline.Span{From: start.Add(span.From), To: start.Add(span.To)})
		}
		return out
	}
	events, ofHost := map[string][]api.Event{}, []timeline.Mark{}
	for i := range s.Timeline {
		e := &s.Timeline[i]
		ev := api.Event{
			Time: start.Add(e.At), Level: api.EventNormal, Kind: e.Kind, Reason: e.Reason, Pod: e.Pod, Container: e.Container,
			Fields: e.Fields, Message: e.Message,
		}
		if e.Warning {
			ev.Level = api.EventWarning
		}
		events[e.Pod] = append(events[e.Pod], ev)
		if e.Pod == "" {
			ofHost = append(ofHost, timeline.Mark{At: ev.Time, Kind: timeline.Host, Label: e.Message, Text: e.Message})
		}
	}
	summary := s.Summary()
	var pictures []timeline.Picture
	if r := s.recorded; r != nil {
		pictures = append(pictures, view.Timeline(timeline.Picture{
			Title: r.name + " as recorded", Summary: r.summary(), From: r.from, To: r.to, Elapsed: true,
		}, nil, r.events))
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		var containers []string
		for _, pod := range s.pods {
			if pod.Name == p.Name {
				for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
					containers = append(containers, c.Name)
				}
			}
		}
		pictures = append(pictures, view.Timeline(timeline.Picture{
			Title: p.Name, Summary: summary[i], From: start, To: start.Add(s.For), Elapsed: true,
			Ready: spans(p.Ready), Off: spans(s.Off), Marks: slices.Clone(ofHost),
		}, containers, events[p.Name]))
	}
	return pictures
}
