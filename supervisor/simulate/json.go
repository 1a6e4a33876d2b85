package simulate

import (
	"encoding/json"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// MarshalJSON writes the result with times in the syntax of [time.ParseDuration].
func (r *Result) MarshalJSON() ([]byte, error) {
	type span struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	type pod struct {
		Name     string              `json:"name"`
		Phase    lifecycle.Phase     `json:"phase"`
		Ready    []span              `json:"ready"`
		Restarts map[string][]string `json:"restarts"`
	}
	type entry struct {
		At        string            `json:"at"`
		Pod       string            `json:"pod"`
		Container string            `json:"container,omitempty"`
		Type      api.EventLevel    `json:"type"`
		Kind      api.EventKind     `json:"kind,omitempty"`
		Reason    string            `json:"reason,omitempty"`
		Fields    map[string]string `json:"fields,omitempty"`
		Message   string            `json:"message"`
	}
	type failure struct {
		Assertion int    `json:"assertion"`
		Line      int    `json:"line,omitempty"`
		Message   string `json:"message"`
	}
	out := struct {
		For      string    `json:"for"`
		Pods     []pod     `json:"pods"`
		Timeline []entry   `json:"timeline"`
		Failures []failure `json:"failures"`
	}{r.For.String(), []pod{}, []entry{}, []failure{}}
	for i := range r.Pods {
		p := &r.Pods[i]
		one := pod{Name: p.Name, Phase: p.Status.Phase, Ready: []span{}, Restarts: map[string][]string{}}
		for _, s := range p.Ready {
			one.Ready = append(one.Ready, span{s.From.String(), s.To.String()})
		}
		for container, times := range p.Restarts {
			for _, at := range times {
				one.Restarts[container] = append(one.Restarts[container], at.String())
			}
		}
		out.Pods = append(out.Pods, one)
	}
	for i := range r.Timeline {
		e := &r.Timeline[i]
		level := api.EventNormal
		if e.Warning {
			level = api.EventWarning
		}
		out.Timeline = append(out.Timeline, entry{
			e.At.String(), e.Pod, e.Container, level, e.Kind, e.Reason, e.Fields, e.Message,
		})
	}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, failure{f.Assertion, f.problem.Line, f.Message})
	}
	return json.Marshal(out)
}

// MarshalJSON writes the limits as [Limits.Row] prints them.
func (l *Limits) MarshalJSON() ([]byte, error) {
	row := l.Row()
	return json.Marshal(struct {
		Pod       string `json:"pod"`
		Container string `json:"container"`
		StartUp   string `json:"startUp"`
		Unready   string `json:"unready"`
		Restarted string `json:"restarted"`
		Stop      string `json:"stop"`
		Outage    string `json:"outage"`
		FirstHour int    `json:"restartsInFirstHour"`
		EachHour  int    `json:"restartsInLaterHours"`
	}{l.Pod, l.Container, row[1], row[2], row[3], row[4], row[5], l.FirstHour, l.EachHour})
}
