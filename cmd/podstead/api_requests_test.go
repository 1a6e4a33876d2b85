package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/server"
)

// apiRequests is the page that TestAPIRequests runs.
const apiRequests = "../../docs/reference/api-requests.md"

// TestEndpointsHaveRequests checks that the page has a section with a request for each endpoint, and for nothing else.
func TestEndpointsHaveRequests(t *testing.T) {
	text, err := os.ReadFile(apiRequests)
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")[1:]
	var titles []string
	for _, section := range sections {
		title, rest, _ := strings.Cut(section, "\n")
		titles = append(titles, title)
		method, path, _ := strings.Cut(title, " ")
		pattern := regexp.MustCompile(`(?m)^\$ .*curl .*http://podstead` +
			regexp.MustCompile(`\\\{[a-z]+(?:\\.\\.\\.)?\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/ ?']+`) + `([ ?']|$)`)
		request := pattern.FindString(rest)
		if explicit := "-X " + method + " "; request == "" ||
			method != "GET" && method != "POST" && !strings.Contains(request, explicit) && !strings.Contains(request, " -T ") {
			t.Errorf("section %s has no request: %q", title, request)
		}
	}
	var want []string
	for _, e := range server.Endpoints() {
		want = append(want, e.Pattern())
	}
	slices.Sort(titles)
	slices.Sort(want)
	if !slices.Equal(titles, want) {
		t.Errorf("sections %q, want %q", titles, want)
	}
}
