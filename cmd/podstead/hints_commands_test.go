package main

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// recipe is how a command line of hints is followed if it takes more than values for its placeholders.
type recipe struct {
	before []string // arguments of the program before it
	as     string   // the command line with values, on real containers a line of a shell; "": the placeholders have [values]
	until  string   // a pattern of the output at which the command is interrupted; "": it exits
}

// recipes are those of the command lines in hints. [onContainers] are followed by TestHintsOnContainers.
var recipes = map[string]recipe{
	"apply -":                             {as: "podstead apply web.toml"}, // after a program that writes to it
	"apply X":                             {as: "podstead apply web.toml"},
	"events --follow":                     {until: "started"},
	"get --watch":                         {until: "web"},
	"help":                                {as: "podstead help all"},
	"logs X -c X":                         {as: "podstead logs web -c app"},
	"logs X -c X --since-time X --grep X": {as: "podstead logs web -c app --since-time 2026-01-02T15:04:05Z --grep x"},
	"plan X":                              {as: "podstead plan web.toml"},
	"run FILE":                            {as: "podstead run once.toml"},
	"run X":                               {as: "podstead run once.toml"},
	"start --all":                         {before: []string{"stop --all"}},
	"start POD":                           {before: []string{"stop web"}},
	"up FILE":                             {as: "podstead up once.toml"},
	"validate X":                          {as: "podstead validate web.toml"},
	"wait X --for=delete":                 {before: []string{"delete web --wait=false"}},

	"bundle create DIR -o FILE":  {as: "podstead bundle create pods -o web.bundle"},
	"cp POD:FILE FILE":           {as: "podstead cp web:/bin/busybox busybox"},
	"doctor --repair":            {before: []string{"daemon stop"}},
	"edit POD":                   {as: "VISUAL=true podstead edit web"},
	"edit X":                     {as: "VISUAL='sed -i 1d' podstead edit web"},
	"exec POD -- cat FILE":       {as: "podstead exec web -- cat /proc/self/status"},
	"exec POD -- kill -SIGNAL 1": {as: "podstead exec web -- kill -CONT 1"},
	"image export IMAGE -o FILE": {as: "podstead image export busybox -o busybox.tar"},
	"image import -":             {as: "podstead image import - <images/busybox.tar"}, // after a program that writes to it
	"image import FILE":          {as: "podstead image import images/busybox.tar"},
	"image rm IMAGE": {
		before: []string{"image import images/testserver.tar"}, as: "podstead image rm localhost/podstead/testserver:1",
	},
	"login REGISTRY":        {as: "printf 'alice\\nsecret\\n' | script -qec 'podstead login registry.example.com' /dev/null"},
	"login X":               {as: "printf 'alice\\nsecret\\n' | script -qec 'podstead login registry.example.com' /dev/null"},
	"port-forward POD PORT": {until: "Forwarding"},
	"rollout undo X --to-generation X": {
		before: []string{"delete web", "apply web.toml --wait", "apply changed.toml --wait"},
		as:     "podstead rollout undo web --to-generation 1",
	},
	"run X -- X":                   {as: "podstead run web -- ls -la"},
	"system prune":                 {as: "echo y | script -qec 'podstead system prune' /dev/null"},
	"system prune --volumes":       {as: "echo y | script -qec 'podstead system prune --volumes' /dev/null"},
	"top --watch":                  {until: "web"},
	"ui":                           {until: "#token="},
	"volume export VOLUME":         {as: "podstead volume export data | tar -t"},
	"volume export VOLUME -o FILE": {as: "podstead volume export data -o data.tar"},
	"volume import VOLUME FILE":    {before: []string{"volume export data -o v", "stop web"}, as: "podstead volume import data v"},
	"volume rm VOLUME":             {before: []string{"delete web"}},
	"volume rm X":                  {before: []string{"delete web"}, as: "podstead volume rm data"},
}

// onContainers are the commands that need real containers, images or volumes, a terminal, or a daemon of their own.
var onContainers = []string{
	"bundle", "cp", "daemon", "debug", "doctor", "edit", "exec", "image", "login", "port-forward", "rollout undo", "run X --", "system",
	"top", "volume",
}

// values are those of the placeholders in hints.
var values = map[string]string{
	"COMMAND": "env", "CONTAINER": "app", "DIR": "pods", "FILE": "web.toml", "IMAGE": "busybox", "POD": "web", "PORT": "8080",
	"REGISTRY": "registry.example.com", "SECONDS": "1", "UNIT": "web.container", "VOLUME": "data", data: "web",
}

// hintedCommands returns the distinct command lines of all hints in the sources, and which of them need real containers.
func hintedCommands(t *testing.T) (lines, real []string) {
	t.Helper()
	for _, h := range scanHints(t).hints {
		for _, words := range commandLines(h.text) {
			line := strings.Join(words[1:], " ")
			if slices.ContainsFunc(onContainers, func(c string) bool { return strings.HasPrefix(line+" ", c+" ") }) {
				real = append(real, line)
			} else {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	slices.Sort(real)
	return slices.Compact(lines), slices.Compact(real)
}

// recipeOf returns how a command line of hints is followed.
func recipeOf(line string) recipe {
	r := recipes[line]
	if r.as == "" {
		words := strings.Fields(line)
		for i, word := range words {
			if value, ok := values[word]; ok {
				words[i] = value
			}
		}
		r.as = "podstead " + strings.Join(words, " ")
	}
	return r
}

// TestHintedCommands runs each command line of the hints in the sources, on a host with pods: it succeeds.
func TestHintedCommands(t *testing.T) {
	lines, real := hintedCommands(t)
	for line := range recipes {
		if !slices.Contains(lines, line) && !slices.Contains(real, line) {
			t.Errorf("no hint has the command line %q", line)
		}
	}
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			h := newListed(t)
			for _, name := range []string{"once.toml", "pods/a.toml", "pods/b.toml"} {
				h.write(t, name, script("restartPolicy = \"Never\"", "exit 0"))
			}
			h.write(t, "web.container", "[Container]\nImage=busybox\n")
			t.Chdir(h.dir)
			r := recipeOf(line)
			for _, before := range r.before {
				if got := h.run(t, before); got.code != 0 {
					t.Fatalf("podstead %s: exit code %d, stderr %q", before, got.code, got.stderr)
				}
			}
			h.follow(t, r)
		})
	}
}

// follow executes the command line of a recipe. It succeeds, or prints what the recipe interrupts it at.
func (h *testHost) follow(t *testing.T, r recipe) {
	t.Helper()
	if r.until == "" {
		if got := h.run(t, strings.TrimPrefix(r.as, "podstead ")); got.code != 0 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", r.as, got.code, got.stdout, got.stderr)
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stdout := interrupting{until: regexp.MustCompile(r.until), interrupt: cancel}
	var stderr bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &stdout, err: &stderr}
	a.run(ctx, h.argumentsOf(strings.TrimPrefix(r.as, "podstead ")))
	if text := stdout.text.String(); !stdout.until.MatchString(text) {
		t.Errorf("%s does not print %s: stdout %q, stderr %q", r.as, r.until, text, &stderr)
	}
}

// interrupting is an output that interrupts its command.
type interrupting struct {
	until     *regexp.Regexp
	interrupt func()

	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the output.
func (w *interrupting) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if w.until.MatchString(w.text.String()) {
		w.interrupt()
	}
	return len(p), nil
}
