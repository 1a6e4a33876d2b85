package main

import (
	"context"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/podstead/podstead/api"
)

// fakeSystem records what it is asked to remove.
type fakeSystem struct{ asked []api.SystemPrune }

func (*fakeSystem) DiskUsage(context.Context) (api.DiskUsage, error) {
	return api.DiskUsage{
		Filesystem: api.Filesystem{Path: "/var/lib/podstead", Size: 20 << 30, Used: 5<<30 + 300<<20, HighPercent: 85, LowPercent: 80},
		Items: []api.DiskUsageItem{
			{Type: "images", Total: 2, Active: 1, Size: 3<<30 + 512<<20, Reclaimable: 70<<20 + 300<<10},
			{Type: "journal", Size: 20 << 10},
		},
	}, nil
}

func (s *fakeSystem) Prune(_ context.Context, q api.SystemPrune) (api.SystemPruned, error) {
	s.asked = append(s.asked, q)
	return api.SystemPruned{Items: []api.PrunedItem{{Type: "volume", Name: "data", Bytes: 1536 << 20}}, Freed: 1536 << 20}, nil
}

func newSystemHost(t *testing.T) (*testHost, *fakeSystem) {
	t.Helper()
	h, system := newTestHost(t, api.Version{}), &fakeSystem{}
	h.closeServer()
	h.options.System = system
	h.serve(t)
	return h, system
}

// TestSystemUsage: sizes have the unit in which they are short.
func TestSystemUsage(t *testing.T) {
	h, _ := newSystemHost(t)
	got := h.run(t, "system df")
	for _, want := range []string{"3.5Gi", "70.3Mi", "20Ki", "5.3Gi of 20Gi used"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %s in %+v", want, got)
		}
	}
}

// TestSystemPruneQuestion types an answer on a terminal.
func TestSystemPruneQuestion(t *testing.T) {
	const removed = "volume/data removed, 1.5Gi\n1.5Gi freed\n"
	for _, c := range []struct {
		args, answer string
		question     []string // parts of it; nil: there is none
		prunes       bool
	}{
		{
			"", "y\n",
			[]string{
				"This removes permanently:\n", "finished pods\n", "except those that were pulled or imported by hand\n", "Continue? [y/N] ",
			},
			true,
		},
		{"--all --volumes", "YES\n", []string{"images that nothing uses\n", "persistent volumes that no pod uses, and their data\n"}, true},
		{"--older-than 48h", "yes\n", []string{"if it was not used for 2d.\n"}, true},
		{"", "n\n", []string{"Continue?"}, false},
		{"", "\n", []string{"Continue?"}, false},
		{"", "yep\n", []string{"Continue?"}, false},
		{"", "\x04", []string{"Continue?"}, false}, // end of file
		{"--yes", "", nil, true},
		{"--dry-run", "", nil, true},
	} {
		t.Run(c.args+" "+c.answer, func(t *testing.T) {
			h, system := newSystemHost(t)
			terminal, tty, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = terminal.Close(); _ = tty.Close() })
			if _, err := terminal.WriteString(c.answer); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr strings.Builder
			a := &app{in: tty, out: &stdout, err: &stderr, hostRoot: h.hostRoot}
			if code := a.run(t.Context(), append([]string{"system", "prune"}, strings.Fields(c.args)...)); code != 0 {
				t.Errorf("exit code %d, stderr %q", code, &stderr)
			}
			for _, part := range c.question {
				if !strings.Contains(stderr.String(), part) {
					t.Errorf("question %q, want %q in it", &stderr, part)
				}
			}
			if c.question == nil && stderr.Len() > 0 {
				t.Errorf("stderr %q, want no question", &stderr)
			}
			if prunes := len(system.asked) == 1; prunes != c.prunes {
				t.Errorf("asked to remove %v, want %v", system.asked, c.prunes)
			}
			if !c.prunes && stdout.Len() > 0 || c.prunes && c.args != "--dry-run" && stdout.String() != removed {
				t.Errorf("stdout %q", &stdout)
			}
		})
	}
}

// TestSystemPruneWithoutTerminal: a script is not asked.
func TestSystemPruneWithoutTerminal(t *testing.T) {
	h, system := newSystemHost(t)
	h.want(t, "system prune --volumes", "volume/data removed, 1.5Gi\n1.5Gi freed\n")
	h.want(t, "system prune --dry-run", "volume/data removed (dry run), 1.5Gi\n1.5Gi would be freed\n")
	if len(system.asked) != 2 || !system.asked[0].Volumes || system.asked[0].DryRun || !system.asked[1].DryRun {
		t.Errorf("asked to remove %v", system.asked)
	}
}
