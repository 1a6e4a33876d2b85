package wait_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
)

// daemon yields the changes of each watch. It ends all but the last as a daemon that exits. The last one continues without changes.
type daemon struct{ watches [][]api.PodChange }

func (d *daemon) Watch(ctx context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) {
		changes, last := d.watches[0], len(d.watches) == 1
		if !last {
			d.watches = d.watches[1:]
		}
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
		if last {
			<-ctx.Done()
			yield(api.PodChange{}, ctx.Err())
		} else {
			yield(api.PodChange{}, api.ErrUnavailable)
		}
	}
}

func (*daemon) Connect(context.Context) error { return nil }

// changes parses the changes of a watch: "+web.1 .. ~web.1:Ready -web.1" adds a pod with the UID 1, ends the list, makes it ready and
// deletes it. The word after the colon is a phase, a condition that is True, or Refused for a file without a pod.
func changes(text string) []api.PodChange {
	types := map[byte]string{'+': api.Added, '~': api.Modified, '-': api.Deleted, '.': api.Listed}
	var list []api.PodChange
	for word := range strings.FieldsSeq(text) {
		c := api.PodChange{Type: types[word[0]]}
		pod, state, _ := strings.Cut(word[1:], ":")
		c.Object.Metadata.Name, c.Object.Metadata.UID, _ = strings.Cut(pod, ".")
		c.Object.Metadata.Labels = map[string]string{"app": c.Object.Metadata.Name}
		status := &c.Object.Status
		switch status.Phase = api.PhaseRunning; state {
		case "Refused":
			status.Phase = api.PhaseFailed
		case "Undone", "UndoneByEarlierVersion":
			reason := api.ReasonRolloutUndone
			if state != "Undone" {
				reason = api.ReasonRolledBack
			}
			status.Conditions = []api.Condition{
				{Type: api.PodReady, Status: "True"},
				{
					Type: api.FileAccepted, Status: "False", Reason: reason,
					Message: "generation 1 runs instead, requested by uid 0; the file still has generation 2",
				},
			}
		case "RolledBack":
			status.Conditions = []api.Condition{
				{Type: api.PodReady, Status: "True"},
				{Type: api.FileAccepted, Status: "False", Reason: api.ReasonRolledBack, Message: "generation 2 failed"},
			}
		case "Remains":
			status.Phase = api.PhaseFailed
			status.Conditions = []api.Condition{
				{Type: api.RemovalFailed, Status: "True", Message: "input/output error"}, {Type: api.StateNotDurable, Status: "True"},
			}
		default:
			status.Conditions = []api.Condition{{Type: api.ConditionType(state), Status: "True"}}
		}
		list = append(list, c)
	}
	return list
}

// TestUntil checks what a wait reports for the changes of one or several watches, which are separated by |.
func TestUntil(t *testing.T) {
	const rolledBack = `pod "web": RolledBack: generation 2 failed;`
	for name, tt := range map[string]struct {
		condition string
		names     string // none: all pods but "other"
		watches   string
		want      string
	}{
		"pod is ready":           {"condition=Ready", "web", "+web.1:Ready ..", "met web;"},
		"pod becomes ready":      {"condition=Ready", "web", "+web.1 .. ~web.1 ~web.1:Ready", "met web;"},
		"both pods":              {"condition=Ready", "web db", "+db.2:Ready +web.1 .. ~web.1:Ready", "met db; met web;"},
		"one of two pods":        {"condition=Ready", "web db", "+db.2 +web.1 .. ~web.1:Ready", "met web; unmet db;"},
		"missing pod":            {"condition=Ready", "web none", "+web.1 .. +none.3:Ready ~web.1:Ready", "met web; missing none;"},
		"new pod of the name":    {"condition=Ready", "web", "+web.1 .. -web.1 +web.2:Ready", "met web;"},
		"deleted pod":            {"condition=Ready", "web", "+web.1 .. -web.1", "unmet web;"},
		"daemon restarts":        {"condition=Ready", "web", "+web.1 .. | +web.1 .. | +web.1 .. ~web.1:Ready", "met web;"},
		"missing after restart":  {"condition=Ready", "web", "+web.1 .. | .. +web.2:Ready", "met web;"},
		"daemon exits in a list": {"condition=Ready", "web", "+db.2 | +db.2 +web.1:Ready ..", "met web;"},
		"no list in time":        {"condition=Ready", "web", "+db.2", "unmet web; not listed;"},
		"refused file corrected": {"condition=Ready", "web", "+web.:Refused .. -web. +web.1:Ready", "met web;"},
		"refused file":           {"phase=Failed", "web", "+web.:Refused ..", "met web;"},

		"rolled back":                      {"condition=Ready", "web", "+web.1 .. ~web.1:RolledBack", rolledBack},
		"rolled back as another pod":       {"condition=ready=TRUE", "web", "+web.1 .. -web.1 +web.2:RolledBack", rolledBack},
		"undone by a user":                 {"condition=Ready", "web", "+web.1 .. ~web.1:Undone", "met web;"},
		"undone, earlier version":          {"condition=Ready", "web", "+web.1 .. ~web.1:UndoneByEarlierVersion", "met web;"},
		"rolled back before":               {"condition=Ready", "web", "+web.1:RolledBack ..", "met web;"},
		"rolled back, not to become ready": {"jsonpath={.metadata.uid}=2", "web", "+web.1 .. ~web.2:RolledBack", "met web;"},

		"selected pods":                {"condition=Ready", "", "+db.2:Ready +other.3 +web.1 .. +late.4 ~web.1:Ready", "met db; met web;"},
		"no pod is selected":           {"condition=Ready", "", "+other.3 .. +web.1:Ready", "none;"},
		"refused file is not selected": {"condition=Ready", "", "+web.:Refused ..", "none;"},
		"pod selected before the list": {"condition=Ready", "", "+web.1:Ready | +web.1 ..", "met web;"},

		"deleted":                       {"delete", "web db", "+db.2 +web.1 .. -web.1 -db.2", "met web; met db;"},
		"deleted before the wait":       {"delete", "web", "+db.2 ..", ""},
		"deleted and created":           {"delete", "web", "+web.1 .. -web.1 +web.2", "met web;"},
		"other pod of the name deleted": {"delete", "web", "+web.1 .. -web.2", "unmet web;"},
		"not deleted":                   {"delete", "web", "+web.1 .. ~web.1", "unmet web;"},
		"deleted without the daemon":    {"delete", "web", "+web.1 .. | +db.2 ..", "met web;"},
		"created without the daemon":    {"delete", "web", "+web.1 .. | +web.2 ..", "met web;"},
		"deleted while listed":          {"delete", "web", "+web.1 | ..", "met web;"},
		"all deleted":                   {"delete", "", "+web.1 +db.2 +other.3 .. -db.2 -web.1", "met db; met web;"},
		"none to delete":                {"delete", "", "+other.3 ..", "none;"},
		"file to delete":                {"delete", "web", "+web.:Refused ..", ""},
		"cannot be removed": {
			"delete", "web db", "+db.2 +web.1 .. ~web.1:Remains -db.2",
			`met db; pod "web": its containers are stopped, but it could not be removed: input/output error;`,
		},

		"created before the wait": {"create", "web", "+web.1 ..", "met web;"},
		"created":                 {"create", "web db", "+web.1 .. +other.3 +db.2", "met web; met db;"},
		"not created":             {"create", "web", "+web.:Refused .. | ..", "unmet web;"},
		"created after restart":   {"create", "web", ".. | .. | +web.1 ..", "met web;"},
		"first selected pod":      {"create", "", "+other.3 .. | +other.3 .. +db.2 +web.1", "met db;"},
		"no pod of the selection": {"create", "", "+other.3 .. | +other.3 ..", "none;"},
		"selected pods exist":     {"create", "", "+db.2 +other.3 +web.1 .. +late.4", "met db; met web;"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d daemon
				for text := range strings.SplitSeq(tt.watches, "|") {
					d.watches = append(d.watches, changes(text))
				}
				c, err := wait.ParseCondition(tt.condition)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				w := wait.Pods{
					For: c, Names: strings.Fields(tt.names),
					Selected: func(p *api.Pod) bool { return p.Metadata.Labels["app"] != "other" },
					Met: func(p *api.Pod) error {
						got = append(got, "met "+p.Metadata.Name)
						return nil
					},
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				outcome, err := w.Until(ctx, &d)
				got = append(got, describe(&outcome)...)
				var want []string
				for text := range strings.SplitSeq(tt.want, ";") {
					if text = strings.TrimSpace(text); text != "" {
						want = append(want, text)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
				if timedOut := ctx.Err() != nil; timedOut != (len(outcome.Unmet) > 0 || outcome.None && tt.condition == "create") {
					t.Errorf("timed out: %v, outcome %+v", timedOut, outcome)
				}
			})
		})
	}
}

func describe(o *wait.Outcome) []string {
	var list []string
	for _, name := range o.Missing {
		list = append(list, "missing "+name)
	}
	for _, name := range o.Unmet {
		list = append(list, "unmet "+name)
	}
	for _, err := range o.Errors {
		list = append(list, err.Error())
	}
	if !o.Listed {
		list = append(list, "not listed")
	}
	if o.None {
		list = append(list, "none")
	}
	return list
}

// broken is a daemon that rejects watches.
type broken struct{ daemon }

var errRejected = errors.New("rejected")

func (*broken) Watch(context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) {
		yield(api.PodChange{}, fmt.Errorf("watch: %w", errRejected))
	}
}

// TestUntilError checks that an error other than a lost connection ends the wait.
func TestUntilError(t *testing.T) {
	c, err := wait.ParseCondition("create")
	if err != nil {
		t.Fatal(err)
	}
	w := wait.Pods{For: c, Names: []string{"web"}}
	if _, err := w.Until(t.Context(), &broken{}); !errors.Is(err, errRejected) {
		t.Errorf("%v, want %v", err, errRejected)
	}
}
