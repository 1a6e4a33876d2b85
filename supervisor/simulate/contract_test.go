package simulate_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/simulate"
)

// TestContract simulates the rows of the tables in testdata/contract. A row is a pod file, a scenario with assertions, and an outcome. The
// outcome is written by hand from the contract: a line for each subject that the row is about, see [outcomeOf].
func TestContract(t *testing.T) {
	paths, err := filepath.Glob("testdata/contract/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("tables: %v, %v", paths, err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]map[string]string{}
		for _, f := range archive.Files {
			row, file, _ := strings.Cut(f.Name, "/")
			if rows[row] == nil {
				rows[row] = map[string]string{}
			}
			if _, twice := rows[row][file]; twice {
				t.Errorf("%s: %s is there twice", path, f.Name)
			}
			rows[row][file] = string(f.Data)
		}
		table := strings.TrimSuffix(filepath.Base(path), ".txtar")
		for name, files := range rows {
			t.Run(table+"/"+name, func(t *testing.T) { testRow(t, files) })
		}
	}
}

// testRow simulates a row of a table, given by the texts of its files.
func testRow(t *testing.T, files map[string]string) {
	pod := mustParse(t, files["pods.toml"])
	s, problems := simulate.Parse("scenario.toml", []byte(files["scenario.toml"]))
	if s == nil {
		t.Fatal(problems)
	}
	r, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{Scenario: s, Read: func(path string) ([]*spec.Pod, error) {
		text, found := files[path]
		if !found {
			return nil, fs.ErrNotExist
		}
		return parse(path, []byte(text))
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Error(f)
	}
	var got []string
	want := strings.Split(strings.TrimSuffix(files["outcome"], "\n"), "\n")
	for _, line := range want {
		subject, _, _ := strings.Cut(line, ":")
		got = append(got, strings.TrimSpace(subject+": "+outcomeOf(t, r, pod, subject)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if t.Failed() {
		t.Log(strings.Join(r.Lines(), "\n"))
	}
}

// outcomeOf returns the outcome of a subject:
//
//	app started         the times at which its runs started
//	app exited          the times at which they exited, with exit code and reason
//	app status          its state, its last state and its restarts, at the end
//	ready               the times in which the pod was ready
//	condition Ready     a condition of the pod at the end, with its reason
func outcomeOf(t *testing.T, r *simulate.Result, pod *spec.Pod, subject string) string {
	t.Helper()
	name, what, _ := strings.Cut(subject, " ")
	switch {
	case subject == "ready":
		var spans []string
		for _, s := range r.Pods[0].Ready {
			spans = append(spans, short(s.From)+"-"+short(s.To))
		}
		return strings.Join(spans, " ")
	case name == "condition":
		return conditionText(r.Pods[0].Status.Conditions, what)
	case pod.Container(name) == nil:
	case what == "started":
		return times(r, name, func(e *simulate.Entry) (string, bool) { return "", e.Kind == api.EventContainerStarted })
	case what == "exited":
		return times(r, name, func(e *simulate.Entry) (string, bool) {
			switch e.Kind { //nolint:exhaustive // the others are no exits
			case api.EventContainerSucceeded:
				return " (0 Completed)", true
			case api.EventContainerFailed:
				return fmt.Sprintf(" (%s %s)", e.Fields["code"], e.Fields["reason"]), true
			}
			return "", false
		})
	case what == "status":
		status := &r.Pods[0].Status
		for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
			if c.Name == name {
				return statusText(&c)
			}
		}
	}
	t.Fatalf("outcome: unknown subject %q", subject)
	return ""
}

// times returns the times of the events of a container that match, each with a text.
func times(r *simulate.Result, container string, matches func(*simulate.Entry) (text string, is bool)) string {
	var list []string
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if text, is := matches(e); is && e.Container == container {
			list = append(list, short(e.At)+text)
		}
	}
	return strings.Join(list, " ")
}

// short is a time since the start, such as 1m10s.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range [][2]string{{"m0s", "m"}, {"h0m", "h"}} {
		if rest, ends := strings.CutSuffix(text, zero[0]); ends {
			text = rest + zero[1]
		}
	}
	return text
}

func conditionText(list []lifecycle.Condition, kind string) string {
	for _, c := range list {
		switch {
		case string(c.Type) != kind:
		case c.Reason == "":
			return c.Status
		default:
			return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
		}
	}
	return "none"
}

func statusText(s *lifecycle.ContainerStatus) string {
	text := "none"
	switch {
	case s.State.Waiting != nil:
		text = fmt.Sprintf("Waiting (%s)", s.State.Waiting.Reason)
	case s.State.Running != nil:
		text = "Running"
	case s.State.Terminated != nil:
		text = fmt.Sprintf("Terminated (%d %s)", s.State.Terminated.ExitCode, s.State.Terminated.Reason)
	}
	if last := s.LastState.Terminated; last != nil {
		text += fmt.Sprintf(", last (%d %s)", last.ExitCode, last.Reason)
	}
	if s.RestartCount == 1 {
		return text + ", 1 restart"
	}
	return fmt.Sprintf("%s, %d restarts", text, s.RestartCount)
}
