package repo_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// phrase is a phrase that texts for users must not contain, with its replacement.
type phrase struct {
	// pattern is a regular expression without case. A space matches any white space, also a line break.
	pattern string
	use     string
	// bad is a text that the pattern must find.
	bad string
}

// phrases are the phrases that the manuals of Kubernetes, containerd and systemd do not use, or use with another meaning.
var phrases = []phrase{
	{`\bfolders?\b`, "directory", "the folder of the pod"},
	{`\bexit status(es)?\b`, "exit code", "Exit status: 0 done"},
	{`\b(begins?|begun|began) again\b`, "restart, start again", "All containers begin again"},
	{`\b(takes?|taken|took|taking) (\w+ ){0,2}?away\b`, "delete, remove", "takes the network away"},
	{`\b(to|of|reached) (its|their) end\b`, "stop, terminate, complete", "run to its end"},
	{`\bits end\b`, "stop, terminate, complete", "waits for its end"},
	{`\b(is|are) to end\b`, "stop", "Pod is to end within 30s"},
	{`\b(is|are|was|were|been|be) gone\b`, "deleted, removed", "the pod is gone"},
	{`\b(has|have|had) ended\b`, "exited, terminated, completed", "It has ended, with 0"},
	{`\b(is|are) over\b`, "terminated, completed", "the run is over"},
	{`\bpatience\b`, "timeout", "above the patience"},
	{`\btime limits?\b`, "timeout, deadline", "A time limit ends the pods"},
	{`\b(pod|container|machine|host|daemon|kubelet)('s|s') own\b`, "of the pod, of the host", "the pod's own address"},
	{`\bagain and again\b`, "repeatedly, back-off", "it ends again and again"},
	{`\bwant of memory\b`, "out of memory, OOM-killed", "killed for want of memory"},
	{`\basked (for )?by\b`, "requested by", "asked by uid 0"},
	{`\bis asked again\b`, "retry", "it is asked again"},
	{`\b(some|any|no)body\b`, "name the user, the client or the process", "because somebody asked"},
	{`\bwho(m|so)?ever\b`, "name the user, the client or the process", "whoever follows"},
	{`\benvelopes?\b`, "state file", "the envelope of the pod"},
	{`\b(story|stories|tales?)\b`, "explanation, timeline", "the story of a pod"},
	{`\b(tells?|told|telling)\b`, "report, emit, print", "what is told of it"},
	{`\b(says?|said|saying)\b`, "report, emit, print", "the error says who has it"},
	{`\bspeaks?\b`, "report, use", "speaks HTTP"},
	{`\b(is|are|was|went) away\b`, "unavailable", "The container engine is away"},
	{`\b(mends?|mended|mending)\b`, "hint, fix", "mend: install runc"},
	{`\b(cures?|cured)\b`, "hint, fix", "the cure is"},
	{`\bto be had\b`, "cannot, is not available", "cannot be had, or is not to be had"},
	{`\b(can|cannot|could|may) be had\b`, "cannot, is not available", "cannot be had again"},
	{`\bmeans? nothing\b`, "is not supported", "it means nothing here"},
	{`\b(is|are|was|were) (not )?there\b`, "exists, is missing", "a file that is not there"},
	{`\boveruse\b`, "eviction", "the overuse of disk"},
	{`\bpolicy of (this|the) (machine|host)\b`, "admission", "the policy of this machine"},
	{`\b(lives|lived|living)\b`, "runs, is running", "the daemon lives without clients"},
	{`\b(goes|go|went|going) on\b`, "continue", "go on and show"},
	{`\b(is|are|not) well\b`, "healthy, running", "All is well"},
	{`\b(the|this|each|every|another|which) machine('s)?\b`, "the host", "this machine"},
	{`\bno more than the\b`, "at most", "no more than the third"},
	{`\b(one|a) (shim|line|process|file) a (pod|container|row)\b`, "for each", "one shim a pod"},
	{`\bof which\b`, "a sentence of its own", "the containers, of which one runs"},
	{`\bas it should be\b`, "the expected state", "ends as it should be"},
	{`\b(takes?|taken|took|taking) (\w+ ){0,2}?up\b`, "recover", "the next one takes them up"},
	{`\b(containers?|pods?|processes|and) runs? on($|[,.;])`, "keep running", "containers run on."},
	{`\b(makes?|made) (it|them) leave\b`, "stop", "SIGTERM makes it leave"},
	{`\b(is|are) made\b`, "is created", "It is made when a pod first names it"},
	{`\bmakes? room\b`, "free disk space", "make room there"},
}

// allowed are texts that may contain the phrases: messages of the kubelet and of other programs.
var allowed = regexp.MustCompile(`(?i)exit status \d+` + // os/exec
	`|already present on machine` + // kubelet: "Pulled"
	`|Pods on (one|a) machine` + // the slogan
	`|virtual machine` +
	`|DSSE[ -]envelope` +
	`|user nobody`)

// findPhrases returns the phrases in a text, each as "line N: phrase, use replacement".
func findPhrases(text string) []string {
	text = allowed.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("_", len(s)) })
	var found []string
	for i, p := range phrases {
		for _, at := range patterns[i].FindAllStringIndex(text, -1) {
			line := 1 + strings.Count(text[:at[0]], "\n")
			found = append(found, fmt.Sprintf("line %d: %q, use: %s", line, strings.Join(strings.Fields(text[at[0]:at[1]]), " "), p.use))
		}
	}
	return found
}

// patterns are those of phrases.
var patterns = func() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, p := range phrases {
		all = append(all, regexp.MustCompile(`(?im)`+strings.ReplaceAll(p.pattern, " ", `\s+`)))
	}
	return all
}()

func checkVoice(t *testing.T, text string) {
	t.Helper()
	for _, problem := range findPhrases(text) {
		t.Error(problem)
	}
}

// TestFindPhrases checks that each phrase is found in its bad text, and that allowed texts contain none.
func TestFindPhrases(t *testing.T) {
	for _, p := range phrases {
		if !slices.ContainsFunc(findPhrases(p.bad), func(problem string) bool { return strings.HasSuffix(problem, ", use: "+p.use) }) {
			t.Errorf("%s: not found in %q", p.pattern, p.bad)
		}
	}
	want := []string{`line 2: "taken away", use: delete, remove`}
	if got := findPhrases("The pod is\nnot taken\n  away.\n"); !slices.Equal(got, want) {
		t.Errorf("phrase with a line break: %q, want %q", got, want)
	}
	for _, good := range []string{
		"start daemon: exited unexpectedly: exit status 7",
		`Container image "nginx:1.27" already present on machine`,
		"Kubernetes-grade pods on one machine, without Kubernetes",
		"Stop the daemon; containers keep running",
		"the host that they run on.", "the pod has 3 containers", "Container exited with code 137 (OOMKilled)",
	} {
		if got := findPhrases(good); len(got) > 0 {
			t.Errorf("%q: %q", good, got)
		}
	}
}

// TestVoiceOfEvents checks the table of events.
func TestVoiceOfEvents(t *testing.T) {
	for _, e := range api.EventEntries() {
		t.Run(string(e.Kind), func(t *testing.T) { checkVoice(t, e.Sentence) })
	}
}

// program returns a function that runs podstead in empty directories. The function returns stdout and stderr, and can be called by several
// tests at the same time.
func program(t *testing.T) func(t *testing.T, args ...string) string {
	t.Helper()
	binary, _ := podstead(t)
	return func(t *testing.T, args ...string) string {
		t.Helper()
		dir := t.TempDir()
		configFile := filepath.Join(dir, "podstead.toml")
		if err := os.WriteFile(configFile, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PODSTEAD_CONFIG="+configFile,
			"PODSTEAD_STATE_DIR="+dir, "PODSTEAD_RUN_DIR="+dir, "PODSTEAD_LOG_DIR="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatalf("podstead %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
}

// commandLine matches a command in the list of commands of a help text.
var commandLine = regexp.MustCompile(`(?m)^  ([a-z-]+) {2,}\S`)

// subcommands returns the commands that a help text lists, without those of cobra.
func subcommands(help string) []string {
	var names []string
	for section := range strings.SplitSeq(help, "\n\n") {
		if title, _, _ := strings.Cut(section, "\n"); !strings.HasSuffix(title, ":") {
			continue
		}
		for _, match := range commandLine.FindAllStringSubmatch(section, -1) {
			if name := match[1]; name != "help" && name != "completion" {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestVoiceOfProgram checks the help of every command, and the output of commands that need neither a daemon nor root.
func TestVoiceOfProgram(t *testing.T) {
	run := program(t)
	all := subcommands(run(t, "help", "all"))
	if len(all) < 30 {
		t.Errorf("podstead help all lists the commands %q", all)
	}
	var help func(t *testing.T, args []string)
	help = func(t *testing.T, args []string) {
		t.Helper()
		t.Run("help/"+cmp.Or(strings.Join(args, "/"), "podstead"), func(t *testing.T) {
			t.Parallel()
			text := run(t, append(slices.Clone(args), "--help")...)
			checkVoice(t, text)
			names := subcommands(text)
			if len(args) == 0 {
				names = all
			}
			for _, name := range names {
				help(t, append(slices.Clone(args), name))
			}
		})
	}
	help(t, nil)
	for _, line := range []string{
		"help all", "version", "doctor", "rmi", "play", "pull", "down", "load", "edit", "info", "gte", "pod.toml",
		"run", "run busybox:latest", "run none.toml", "get --no-such-flag", "get -o xml", "get deployment/web",
		"get --socket relative", "get --config none.toml", "delete", "delete --all web", "logs", "logs web -p -f",
		"volume rm", "volume make", "daemon extra",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			text := run(t, strings.Fields(line)...)
			if text == "" {
				t.Error("no output")
			}
			checkVoice(t, text)
		})
	}
}

// TestVoiceOfFiles checks documentation, examples, the descriptions of make targets, and the expected output of tests, wherever they are.
func TestVoiceOfFiles(t *testing.T) {
	for name, text := range textsForUsers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkVoice(t, text)
		})
	}
}

// textsForUsers returns the texts that users read, by the name of their file. There is at least one of each kind.
func textsForUsers(t *testing.T) map[string]string {
	t.Helper()
	texts, found := map[string]string{}, map[string]bool{}
	err := walk(func(name string) error {
		kind := cmp.Or(path.Ext(name), path.Base(name))
		if !slices.Contains(kindsForUsers, kind) {
			return nil
		}
		found[kind] = true
		texts[name] = readFile(t, name)
		if kind == "Makefile" {
			texts[name] = strings.Join(regexp.MustCompile(`(?m)^[a-z0-9-]+:.*## .*$`).FindAllString(texts[name], -1), "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kindsForUsers {
		if !found[kind] {
			t.Errorf("no file is of the kind %s", kind)
		}
	}
	return texts
}

// kindsForUsers are the kinds of files with texts for users, or with the expected output of commands.
var kindsForUsers = []string{"Makefile", ".md", ".toml", ".yaml", ".json", ".txt", ".txtar"}

// kubernetesVersion matches the release whose semantics a text refers to.
var kubernetesVersion = regexp.MustCompile(`^(?:Kubernetes|kubelet)(?:\s+is\s+that\s+of)?\s+v?(1\.\d+)\b`)

// anotherRelease are the words before a release in which a feature changed, such as "since Kubernetes 1.35".
var anotherRelease = []string{"since", "from", "to", "until", "before", "in"}

// versions calls visit for each release that a text refers to, with the word before it.
func versions(text string, visit func(before, version string)) {
	for _, program := range []string{"Kubernetes", "kubelet"} {
		at := 0
		for {
			next := strings.Index(text[at:], program)
			if next < 0 {
				break
			}
			at += next
			if match := kubernetesVersion.FindStringSubmatch(text[at:min(len(text), at+60)]); match != nil {
				between := func(r rune) bool { return !unicode.IsLetter(r) } // also a line break
				words := strings.FieldsFunc(text[max(0, at-30):at], between)
				visit(append([]string{""}, words...)[len(words)], match[1])
			}
			at += len(program)
		}
	}
}

// TestKubernetesVersion checks that documentation and code refer to the release in [spec.KubernetesVersion].
func TestKubernetesVersion(t *testing.T) {
	found := false
	err := walk(func(name string) error {
		if path.Ext(name) != ".md" && path.Ext(name) != ".go" {
			return nil
		}
		versions(readFile(t, name), func(before, version string) {
			found = found || version == spec.KubernetesVersion
			if version != spec.KubernetesVersion && !slices.Contains(anotherRelease, before) {
				t.Errorf("%s: %q, want Kubernetes %s", name, before+" Kubernetes "+version, spec.KubernetesVersion)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Errorf("no file refers to Kubernetes %s", spec.KubernetesVersion)
	}
}
