package main

import (
	"context"
	"testing"
)

// TestNothingIsAnError expects that a name that nothing has is an error, whatever command has it as an argument.
func TestNothingIsAnError(t *testing.T) {
	h := newListed(t)
	const missing = "podstead: no such pod \"nope\"\n"
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"events nope":                     {statusNotFound, missing},
		"events nope --since 1h -o json":  {statusNotFound, missing},
		"events --for pod/nope":           {statusNotFound, missing},
		"events nope --types Warning":     {statusNotFound, missing},
		"why nope":                        {statusNotFound, missing},
		"describe nope":                   {statusNotFound, missing},
		"get nope":                        {statusNotFound, missing},
		"inspect nope":                    {statusNotFound, missing},
		"notify test nope":                {statusNotFound, "podstead: notifier \"nope\": not found in the configuration\n"},
		"logs nope":                       {statusNotFound, missing},
		"top pods nope":                   {statusNotFound, missing},
		"rollout history nope":            {statusNotFound, "podstead: pod \"nope\" has no generations: it does not exist\n"},
		"stop nope":                       {statusNotFound, missing},
		"delete nope":                     {statusNotFound, missing},
		"wait nope --for condition=Ready": {statusNotFound, missing},
		"help frob":                       {statusUsage, "podstead: unknown command \"frob\" for \"podstead\"\n"},
		"help rollout frob":               {statusUsage, "podstead: unknown command \"frob\" for \"podstead rollout\"\n"},
		"help compose":                    {statusUsage, "podstead: unknown command \"compose\" for \"podstead\"\n"},
		"rollout frob":                    {statusUsage, "podstead: unknown command \"frob\" for \"podstead rollout\"\n"},
		"image frob":                      {statusUsage, "podstead: unknown command \"frob\" for \"podstead image\"\n"},
	} {
		if got := h.fails(t, line, want.code, want.text); got.stdout != "" {
			t.Errorf("podstead %s: stdout:\n%s", line, got.stdout)
		}
	}
	for line, want := range map[string]string{
		"events -l a=nope":                    "podstead: no pods with the labels a=nope\n",
		"events -l a=nope --since 1h -o json": "podstead: no pods with the labels a=nope\n",
		"events -l app=shop --since 1ns":      "",
	} {
		if got := h.want(t, line, ""); got.stderr != want {
			t.Errorf("podstead %s: stderr %q, want %q", line, got.stderr, want)
		}
	}
	for line, want := range map[string]string{
		"events nope -f":      "no such pod \"nope\", waiting for its events",
		"events -f -l a=nope": "no pods with the labels a=nope, waiting for their events",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, stderr, exit := h.start(ctx, line)
		stderr.await(t, "podstead: "+want+"\n")
		cancel()
		<-exit
	}
	for _, line := range []string{"help", "help events", "help image pull", "help exec web", "events web --since 1ns"} {
		if got := h.run(t, line); got.code != 0 || got.stderr != "" {
			t.Errorf("podstead %s: exit code %d, stderr:\n%s", line, got.code, got.stderr)
		}
	}
}
