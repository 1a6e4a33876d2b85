//go:build e2e

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/transcript"
)

// TestAPIRequests runs the page with a request for each endpoint against a daemon with real containers, and compares the responses with
// those of the page. With -update, it writes them to the page.
func TestAPIRequests(t *testing.T) {
	text, err := os.ReadFile(apiRequests)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := transcript.Parse(string(text), "podstead")
	if err != nil {
		t.Fatal(err)
	}
	shell := newPageHost(t)
	lines := strings.Split(string(text), "\n")
	moved := 0 // by this many lines, since outputs before changed
	for i := range steps {
		step := steps[i]
		step.Command = strings.ReplaceAll(step.Command, "/run/podstead/podstead.sock", "$TESTDIR/r/podstead.sock")
		if step.File != "" || !*update {
			if err := shell.Run(t.Context(), &step); err != nil {
				t.Errorf("%s:%d: %s: %v", apiRequests, step.Line, step.Command, err)
			}
			continue
		}
		var shown []string
		for line := range strings.Lines(mustRun(t, shell, step.Command)) {
			shown = append(shown, shortened(strings.TrimSuffix(line, "\n")))
		}
		at := step.Line + moved
		lines = slices.Replace(lines, at, at+len(step.Output), shown...)
		moved += len(shown) - len(step.Output)
	}
	if *update {
		if err := os.WriteFile(apiRequests, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// maxShown is the length of a line above which a page shows only its start.
const maxShown = 400

// variableFields start the part of a JSON object that depends on the host or on the time.
var variableFields = regexp.MustCompile(`,"(size|annotations|state|cpu)":.*`)

// shortened cuts a JSON object between two fields, if it is long or the rest is variable.
func shortened(line string) string {
	line = variableFields.ReplaceAllString(line, " ...")
	if len(line) <= maxShown {
		return line
	}
	if cut := strings.LastIndex(line[:maxShown], `,"`); cut > 0 {
		return line[:cut] + " ..."
	}
	return line
}
