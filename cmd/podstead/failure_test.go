package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// TestReportOfJoinedErrors: everything of joined errors is printed, and the exit code is that of the first.
func TestReportOfJoinedErrors(t *testing.T) {
	refusal := func(message, hint string) api.Refusal {
		return api.Refusal{Reason: "NodePorts", Message: message, Hint: hint}
	}
	missing := &api.Error{Status: http.StatusNotFound, Message: `no such pod "a"`, Hint: "first hint"}
	rejected := &api.Error{Status: http.StatusConflict, Message: `pod "b" rejected for 2 reasons`, Refusals: []api.Refusal{
		refusal("port 80", "another port"), refusal("port 81", "another port"),
	}}
	invalid := &api.Error{Status: http.StatusBadRequest, Message: "the pod file is invalid", Problems: []api.Problem{
		{File: "c.toml", Line: 1, Column: 2, Path: "image", Message: "Required value", Hint: "set image"},
	}}
	own := &failure{status: statusTimeout, err: errors.New("timed out"), hints: []string{"last hint"}}
	problems := spec.Problems{{File: "d.toml", Line: 3, Column: 4, Path: "name", Message: "Invalid value"}}
	for _, row := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"nothing", nil, 0, ""},
		{"one", missing, statusNotFound, "podstead: no such pod \"a\"\nhint: first hint\n"},
		{"problems alone", problems, statusFailed, "d.toml:3:4: name: Invalid value\n"},
		{
			"errors of the daemon",
			errors.Join(fmt.Errorf("apply a: %w", missing), fmt.Errorf("apply b: %w", rejected), invalid), statusNotFound,
			"podstead: apply a: no such pod \"a\"; apply b: pod \"b\" rejected for 2 reasons; the pod file is invalid\n" +
				"c.toml:1:2: image: Required value\nhint: set image\nNodePorts: port 80\nNodePorts: port 81\n" +
				"hint: first hint\nhint: another port\n",
		},
		{
			"the first sets the exit code", errors.Join(rejected, missing), statusFailed,
			"podstead: pod \"b\" rejected for 2 reasons; no such pod \"a\"\n" +
				"NodePorts: port 80\nNodePorts: port 81\nhint: another port\nhint: first hint\n",
		},
		{
			"errors of the command", errors.Join(problems, own, missing), statusNotFound,
			"podstead: timed out; no such pod \"a\"\nd.toml:3:4: name: Invalid value\nhint: last hint\nhint: first hint\n",
		},
	} {
		var b bytes.Buffer
		a := &app{err: &b}
		if status := a.report(row.err); status != row.status {
			t.Errorf("%s: exit code %d, want %d", row.name, status, row.status)
		}
		if b.String() != row.want {
			t.Errorf("%s:\n%swant\n%s", row.name, b.String(), row.want)
		}
	}
}
