package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/test/fakeimages"
)

// TestFirstScreen checks that the help of podstead lists at most 20 commands, that each command is in one group, that help all lists all of
// them with their subcommands, and that a help shows only the flags of its command.
func TestFirstScreen(t *testing.T) {
	h := newTestHost(t, api.Version{})
	listed := map[string]int{} // name to the number of groups
	first := 0
	for _, g := range commandGroups {
		names := strings.Fields(g.names)
		for _, name := range names {
			listed[name]++
		}
		if g.first {
			first += len(names)
		}
	}
	if first > 20 {
		t.Errorf("the first screen lists %d commands, want at most 20", first)
	}
	want := map[string]int{"completion": 1, "help": 1}
	for _, c := range (&app{}).root().Commands() {
		if c.IsAvailableCommand() {
			want[c.Name()] = 1
		}
	}
	if !maps.Equal(listed, want) {
		t.Errorf("groups of each command: %v, want %v", listed, want)
	}
	screen := h.run(t, "--help").stdout
	if screen != h.run(t, "").stdout || screen != h.run(t, "help").stdout || screen != h.run(t, "-h").stdout {
		t.Error("podstead, podstead help and podstead --help differ")
	}
	all := h.run(t, "help all").stdout
	line := func(name string) *regexp.Regexp { return regexp.MustCompile(`(?m)^  ` + name + ` +[A-Z].*$`) }
	for _, g := range commandGroups {
		for name := range strings.FieldsSeq(g.names) {
			if got := line(name).MatchString(screen); got != g.first {
				t.Errorf("the first screen lists %s: %v, want %v", name, got, g.first)
			}
			if !line(name).MatchString(all) {
				t.Errorf("help all does not list %s", name)
			}
		}
	}
	for _, text := range []string{
		"  image            Manage images: export, history, import, inspect, ls, prune, pull, rm\n", "      --state-dir string ",
		"Examples:\n",
	} {
		if !strings.Contains(all, text) || strings.Contains(screen, text) {
			t.Errorf("only help all must have %q", text)
		}
	}
	if !strings.Contains(screen, `"podstead help all" for all commands`) || strings.Contains(screen+all, "--namespace") {
		t.Errorf("help:\n%s\nhelp all:\n%s", screen, all)
	}
	stop := h.run(t, "stop --help").stdout
	if !strings.Contains(stop, "--grace-period seconds ") || strings.Contains(stop, "--socket") ||
		!strings.Contains(stop, `Run "podstead help all" for the flags`) {
		t.Errorf("stop --help:\n%s", stop)
	}
	image := h.run(t, "image").stdout
	if !strings.Contains(image, "Usage:\n  podstead image COMMAND\n") || !strings.Contains(image, "\n  ls               List images\n") {
		t.Errorf("image:\n%s", image)
	}
	h.fails(t, "help all image", statusUsage, `unknown command "all"`)
	h.want(t, "__complete help al", "all\n:4\n")
}

// eachCommand calls a function for a command and all below it.
func eachCommand(cmd *cobra.Command, call func(*cobra.Command)) {
	call(cmd)
	for _, c := range cmd.Commands() {
		eachCommand(c, call)
	}
}

// TestOtherNames runs every command that the help does not list since another one does the same, and checks that its help names that one.
func TestOtherNames(t *testing.T) {
	h := newMeasured(t)
	images := &fakeimages.Images{}
	images.Add(api.Image{Name: "localhost/spare:1", Digest: "sha256:fedcba9876543210"})
	h.closeServer()
	h.options.Images = images
	h.serve(t)
	h.write(t, "new.toml", script("", runs))
	ran := map[string]bool{}
	for _, step := range []struct{ name, arguments, same, want string }{
		{"images", "-o json", "image ls -o json", ""},
		{"pull", "localhost/spare:1", "image pull localhost/spare:1", ""},
		{"pull", "a b", "", "podstead: pull requires one image, got 2 arguments\nhint: run podstead pull --help for usage\n"},
		{"load", "-i $DIR/none.tar", "image import $DIR/none.tar", ""},
		{"stats", "--no-stream db", "top --containers db", ""},
		{"top pods", "db", "top db", ""},
		{"top pods", "web --containers", "top --containers web", ""},
		{"top containers", "--sort-by cpu", "top --containers --sort-by cpu", ""},
		{"inspect", "db -o yaml", "", "podstead: unknown shorthand flag: 'o' in -o\nhint: run podstead inspect --help for usage\n"},
		{"rollout restart", "-l app=shop", "restart -l app=shop", ""},
		{"diff", "$DIR/web.toml $DIR/db.toml", "", ""},
		{"diff", "-f $DIR/new.toml", "plan $DIR/new.toml", ""},
		{"create", "-f $DIR/new.toml", "", "pod/new created\n"},
		{"kill", "new", "", "pod/new stopped\n"},
		{"rm", "new", "", "pod/new deleted (file /etc/podstead/pods.d/new.toml removed)\n"},
		{"up", "--wait", "", "podstead: --wait requires --detach: without it, podstead up waits until the pods terminate\n" +
			"hint: run podstead up --help for usage\n"},
		{"down", "$DIR/web.toml db", "", "pod/db deleted (file /etc/podstead/pods.d/db.toml removed)\n" +
			"pod/web deleted (file /etc/podstead/pods.d/web.toml removed)\n"},
	} {
		ran[step.name] = true
		got, want := h.run(t, step.name+" "+step.arguments), step.want
		if step.same != "" {
			same := h.run(t, step.same)
			got.stdout = withoutAges(got.stdout)
			want = withoutAges(same.stdout) + same.stderr
		}
		if lines := strings.SplitAfter(got.stdout, "\n"); step.name == "down" { // in the order in which they are deleted
			slices.Sort(lines)
			got.stdout = strings.Join(lines, "")
		}
		if text := got.stdout + got.stderr; text != want || step.same != "" && text == "" {
			t.Errorf("podstead %s %s:\n%swant:\n%s", step.name, step.arguments, text, want)
		}
	}
	root := (&app{}).root()
	eachCommand(root, func(cmd *cobra.Command) {
		same, found := strings.CutPrefix(cmd.Short, "As podstead ")
		if !found {
			return
		}
		name := commandName(cmd)
		if !ran[name] || !cmd.Hidden {
			t.Errorf("podstead %s: run %v, hidden %v", name, ran[name], cmd.Hidden)
		}
		if other, _, err := root.Find(strings.Fields(same)); err != nil || other == root || other.Hidden {
			t.Errorf("podstead %s is as podstead %s: %v", name, same, err)
		}
		if help := h.run(t, name+" --help").stdout; !strings.HasPrefix(help, cmd.Short+".\n\n") || strings.Contains(help, "%!") {
			t.Errorf("podstead %s --help:\n%s", name, help)
		}
		delete(ran, name)
	})
	if len(ran) > 0 {
		t.Errorf("the help lists %v", slices.Collect(maps.Keys(ran)))
	}
}

// withoutAges returns a text without its ages and the widths of its columns, which a second between two commands may change.
func withoutAges(text string) string {
	text = regexp.MustCompile(`\b(\d+[dhms])+\b`).ReplaceAllString(text, "AGE")
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}

// TestOtherFlags checks that a test uses each flag that the help does not list.
func TestOtherFlags(t *testing.T) {
	h := newListed(t)
	for line, want := range map[string]string{
		"plan -f $DIR/web.toml":                          "plan $DIR/web.toml",
		"logs web --all-containers":                      "logs web",
		"describe --all-namespaces -l tier=front":        "describe web",
		"run --detach $DIR/web.toml":                     "apply $DIR/web.toml",
		"events --for web":                               "events web",
		"events -A --since 1h":                           "events --since 1h",
		"bundle create -f $DIR/none.toml -o $DIR/x":      "bundle create $DIR/none.toml -o $DIR/x",
		"--namespace default get web -o name":            "get web -o name",
		"get --all-namespaces -l tier=front -o name":     "get web -o name",
		"delete --now -A -l app=none --ignore-not-found": "delete -l app=none",
	} {
		got, same := h.run(t, line), h.run(t, want)
		got.stdout, same.stdout = withoutAges(got.stdout), withoutAges(same.stdout)
		if got != same {
			t.Errorf("podstead %s: %+v\npodstead %s: %+v", line, got, want, same)
		}
	}
	if got := h.run(t, "--version").stdout; got != "podstead "+version+"\n" {
		t.Errorf("--version: %q", got)
	}
	tests := filesOf(t, "*_test.go")[""] + filesOf(t, "testdata/*/*.txtar")[""]
	eachCommand((&app{}).root(), func(cmd *cobra.Command) {
		if cmd.Name() == "daemon" { // TestSettingFlags
			return
		}
		for _, f := range visited(cmd.LocalFlags().VisitAll) {
			pattern := "--" + f.Name
			if f.Shorthand != "" {
				pattern = "(--" + f.Name + "|-" + f.Shorthand + ")"
			}
			name := commandName(cmd)
			if cmd == cmd.Root() {
				name = ""
			}
			if f.Hidden && !regexp.MustCompile(`(?m)\b`+name+`\b(.* |"| )?`+pattern+`\b`).MatchString(tests) {
				t.Errorf("no test uses --%s of podstead %s", f.Name, name)
			}
		}
	})
}

// visited returns what a function visits.
func visited[T any](visit func(func(T))) (all []T) {
	visit(func(v T) { all = append(all, v) })
	return all
}

// TestSettingFlags checks that podstead daemon has a flag for each key of the configuration, which its help does not list.
func TestSettingFlags(t *testing.T) {
	daemon := findCommand(t, (&app{}).root(), "daemon")
	for _, s := range config.Settings() {
		if s.Global {
			continue
		}
		if err := daemon.ParseFlags([]string{"--" + s.Flag + "=text"}); err != nil {
			t.Error(err)
			continue
		}
		if f := daemon.Flags().Lookup(s.Flag); f.Value.String() != "text" || !f.Hidden {
			t.Errorf("--%s has the value %q, hidden %v", s.Flag, f.Value, f.Hidden)
		}
	}
}
