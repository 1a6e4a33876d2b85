package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestCommandHints checks that hints name only commands that exist, and that no hint replaces a command.
func TestCommandHints(t *testing.T) {
	exists := func(name string) bool {
		return slices.ContainsFunc((&app{}).root().Commands(), func(c *cobra.Command) bool { return (c.Name() == name || c.HasAlias(name)) && !c.Hidden })
	}
	command := regexp.MustCompile(`podstead ([a-z-]+)`)
	var hints []string
	for _, h := range slices.Concat(commandHints, createHints, imageHints, volumeHints, systemHints) {
		hints = append(hints, h.hint)
	}
	for i, h := range flagHints {
		if h.hint != imageHint {
			hints = append(hints, h.hint)
		}
		for _, name := range h.commands {
			cmd, _, err := (&app{}).root().Find([]string{name})
			if err != nil {
				t.Errorf("flag hint %d: %v", i, err)
				continue
			}
			for _, flag := range h.flags {
				if cmd.Flags().Lookup(flag) != nil || len(flag) == 1 && cmd.Flags().ShorthandLookup(flag) != nil {
					t.Errorf("podstead %s has the flag %s, and a hint for it", name, flag)
				}
			}
		}
	}
	for _, hint := range hints {
		for _, match := range command.FindAllStringSubmatch(hint, -1) {
			if !exists(match[1]) {
				t.Errorf("hint %q: there is no command %s", hint, match[1])
			}
		}
	}
	for _, hint := range hints {
		for _, line := range hintLines.FindAllString(hint, -1) {
			if problem := follow(line); problem != "" {
				t.Errorf("hint %q: %s: %s", hint, line, problem)
			}
		}
	}
	for _, h := range commandHints {
		if i := slices.IndexFunc(h.names, exists); i >= 0 {
			t.Errorf("%s is a command and has a hint", h.names[i])
		}
	}
}

// hintLines matches the command lines in hints: words of commands, arguments in capitals, flags and their values.
var hintLines = regexp.MustCompile(`podstead( ([a-z-]+|[A-Z]+|-[a-z]+|--[a-z-]+|pods\b|--( [a-z]+)?))+`)

// follow parses a command line of a hint as the program would, and returns what is wrong with it. Text may follow the command line.
func follow(line string) string {
	words := strings.Fields(line)[1:]
	cmd, rest, err := (&app{}).root().Find(words)
	switch {
	case err != nil:
		return err.Error()
	case cmd.Hidden || !cmd.HasParent():
		return "no such command"
	case cmd.HasSubCommands() && cmd.Name() != "create" && len(rest) > 0 && !strings.HasPrefix(rest[0], "-"):
		return "no such subcommand " + rest[0]
	}
	for _, word := range rest {
		name, long := strings.CutPrefix(word, "--")
		switch {
		case word == "--":
			return ""
		case long && cmd.Flag(name) == nil:
			return "no such flag " + word
		case !long && strings.HasPrefix(word, "-"):
			for _, letter := range word[1:] {
				if cmd.Flags().ShorthandLookup(string(letter)) == nil {
					return "no such flag -" + string(letter)
				}
			}
		}
	}
	return ""
}

// TestFollow checks that a wrong command line of a hint is found.
func TestFollow(t *testing.T) {
	for _, line := range []string{
		"podstead frob", "podstead ls", "podstead get --frob", "podstead exec -Z POD",
		"podstead volume frob VOLUME", "podstead image pulll IMAGE",
	} {
		if follow(line) == "" {
			t.Errorf("%s is accepted", line)
		}
	}
}

// TestHintsForCommandLines checks that commands of other tools that are not supported, with their flags, fail with a hint.
func TestHintsForCommandLines(t *testing.T) {
	h := newListed(t)
	for line, hint := range map[string]string{
		"create configmap c --from-literal=a=b":      "write a table [[configMaps]] with name and data in the pod file",
		"create secret generic s --from-literal=a=b": "write a table [[secrets]] with name and data in the pod file",
		"create deployment web --image=busybox":      "create the pod with podstead create -f FILE",
		"create job j --image=busybox -- date":       "create the pod with podstead create -f FILE",
		"create service clusterip web --tcp=80":      "forward it with podstead port-forward POD PORT",
		"create sa robot":                            "group podstead-ro may read",
		"create quota q --hard=cpu=1":                "resources.limits",
		"create pdb p --min-available=1":             "does not preempt pods",
		"run nginx --image=nginx":                    imageHint,
		"run --image nginx web":                      imageHint,
		"run -d -p 80:80 nginx":                      imageHint,
		"run nginx":                                  imageHint,
		"explain pod.spec":                           "docs/reference/pod-file.md",
		"ui":                                         "podstead get --watch",
		"tui":                                        "podstead top pods --watch",
		"init web":                                   "podstead validate FILE",
		"auto-update":                                "imagePullPolicy to Always",
		"backup":                                     "podstead volume export VOLUME -o FILE",
		"volume load x":                              "podstead volume import VOLUME FILE",
		"volume exprot x":                            "did you mean export?",
		"gt":                                         "did you mean get?\n",
		"man":                                        "run podstead help for a list of commands",
		"proxy --port=8080":                          "podstead port-forward POD PORT",
		"container ls -a":                            "podstead ps",
		"network ls":                                 "podstead get",
		"generate systemd web":                       "docs/howto/pods-as-systemd-units.md",
		"sh web":                                     "podstead exec -it POD -- sh",
		"image tag a b":                              "podstead image import FILE",
		"image save -o x a":                          "podstead image export IMAGE -o FILE",
		"volume create x":                            "podstead apply FILE",
		"volume prune -f":                            "podstead system prune --volumes",
		"system info":                                "podstead doctor",
		"top nodes":                                  "podstead top pods",
		"get pods -L app":                            "--show-labels",
		"get --raw /healthz":                         "docs/reference/api.md",
		"--kubeconfig x get pods":                    "--socket",
		"apply -f x --dry-run=client":                "podstead plan FILE",
		"apply -k overlays":                          "pod files",
		"up -d --wait web.toml":                      "podstead apply FILE --wait",
		"down -v web.toml":                           "podstead volume rm VOLUME",
		"stop -t 5 web":                              "podstead stop POD --grace-period SECONDS",
		"kill -s HUP web":                            "kill -HUP 1",
		"exec -u 0 web id":                           "podstead exec POD -- env A=1 COMMAND",
		"ps --format json":                           "podstead get -o json",
		"inspect --format {{.State}} web":            "-o go-template=",
		"get --no-such-flag":                         "run podstead get --help for usage",
		"create namespace n":                         "all pods of a host are in the namespace default",
		"scale --replicas=3 deployment/web":          "podstead apply DIR",
		"label pods web a=b":                         "podstead edit POD",
		"patch pod web -p {}":                        "podstead edit POD",
		"drain node":                                 "podstead stop --all",
		"build -t web .":                             "podstead image import FILE",
	} {
		got := h.run(t, line)
		if got.code != statusUsage || !strings.Contains(got.stderr, "hint: ") || !strings.Contains(got.stderr, hint) || got.stdout != "" {
			t.Errorf("%s: exit code %d, stderr %q", line, got.code, got.stderr)
		}
	}
}
