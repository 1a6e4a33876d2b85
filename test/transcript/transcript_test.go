package transcript_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/test/transcript"
)

const page = "# Title\n\nRun `echo a` or `true`.\n\n| there | here |\n| --- | --- |\n| `x` | `echo b \\| cat`, `echo logs -f` |\n\n" +
	"```toml\n# dir/a.toml\nname = \"a\"\n```\n\n```console\n$ echo hello\nhello\n$ sleep 100\n^C\n```\n"

// TestParse checks that all parts of a page are found.
func TestParse(t *testing.T) {
	steps, err := transcript.Parse(page, "echo")
	if err != nil {
		t.Fatal(err)
	}
	want := []transcript.Step{
		{Line: 3, Command: "echo a"},
		{Line: 7, Command: "echo b | cat"},
		{Line: 7, Command: "echo logs -f", Interrupt: true},
		{Line: 10, File: "dir/a.toml", Text: "# dir/a.toml\nname = \"a\"\n"},
		{Line: 15, Command: "echo hello", Output: []string{"hello"}, Checked: true},
		{Line: 17, Command: "sleep 100", Checked: true, Interrupt: true},
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestParseErrors checks that no block can be exempt.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"```text\nfree\n```\n":              "line 1: the block is neither a console block nor a file: its first line must be # NAME",
		"\n```sh\n$ true\n```\n":            "line 2: the block is neither a console block nor a file",
		"```toml\n```\n":                    "line 1: the block is neither",
		"```console\noutput\n$ true\n```\n": "line 1: the console block must start with a command, after $",
		"```console\n```\n":                 "line 1: the console block must start",
		"```toml\nname = \"a\"":             "line 1: the block is neither",
	} {
		if _, err := transcript.Parse(text, "podstead"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestCompare checks what is compared of an output.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		shown, output string
		continues     bool
		same          bool
	}{
		{"a\nb", "a\nb\n", false, true},
		{"a", "a\nb\n", false, false},
		{"a", "a\nb\n", true, true},
		{"a\nb", "a\n", false, false},
		{"...\nb", "a\na\nb\n", false, true},
		{"a\n...", "a\n", false, true},
		{"a\n...\nc", "a\nb\n", false, false},
		{"web   1/1   Running   0   12s   10.77.64.4", "web 1/1 Running 0 3s 10.77.64.9\n", false, true},
		{"web   1/1   Running   1 (4s ago)   2m3s   10.77.64.4", "web  1/1  Running  1 (1m ago)  12m  10.77.64.4\n", false, true},
		{"web   1/1   Running   0   12s   10.77.64.4", "web 0/1 Running 0 3s 10.77.64.9\n", false, false},
		{"web   1/1   Running   0   12s   10.77.64.4", "web 1/1 Pending 0 3s 10.77.64.9\n", false, false},
		{"14:35:06 web Pod accepted", "09:00:00 web Pod accepted\n", false, true},
		{"2026-11-23T14:33:23.884062840Z GET /", "2027-01-02T15:04:05Z GET /\n", false, true},
		{"requested by podstead stop, pid 26977, uid 0", "requested by podstead stop, pid 1, uid 0\n", false, true},
		{"busybox:1   d0ab5906cf3e   linux/amd64", "busybox:1 012345678901 linux/amd64\n", false, true},
		{"busybox:1   d0ab5906cf3e   linux/amd64", "busybox:1 none linux/amd64\n", false, false},
		{"rolled back: ...", "rolled back: not ready\n", false, true},
		{"rolled back: ...", "rolled out: ready\n", false, false},
		{"exit code 3 after", "exit code 4 after\n", false, false},
		{"Images 2 1 8.3Mi 6.2Mi (75%)", "Images 2 1 9Mi 7.1Mi (5%)\n", false, true},
		{"Images 2 1 8.3Mi 0B (0%)", "Images 2 1 9Mi 7.1Mi (5%)\n", false, false},
		{"x (images: 1, 2.0Mi)", "x (images: 1, 312Ki)\n", false, true},
		{"x (images: 1, 2.0Mi)", "x (images: 2, 2.0Mi)\n", false, false},
	} {
		err := transcript.Compare(strings.Split(c.shown, "\n"), c.output, c.continues)
		if (err == nil) != c.same {
			t.Errorf("shown %q, output %q: %v", c.shown, c.output, err)
		}
	}
}

// TestRun checks which results of a command meet the page.
func TestRun(t *testing.T) {
	shell := &transcript.Shell{Dir: t.TempDir(), Env: os.Environ(), Timeout: 20 * time.Second}
	for text, want := range map[string]string{
		"```console\n$ echo a; echo note >&2\na\n```":                                       "",
		"```console\n$ echo a\nb\n```":                                                      "output:\na\n\nwant:\nb",
		"```console\n$ echo a\n```":                                                         "output:\na\n",
		"```console\n$ exit 3\n```":                                                         "exit code 3",
		"```console\n$ echo 'podstead: no' >&2; exit 3\npodstead: no\n```":                  "",
		"```console\n$ echo 'podstead: no' >&2; exit 3\npodstead: yes\n```":                 "stderr: output:\npodstead: no",
		"```console\n$ echo a; echo b; sleep 1000; echo c\na\n^C\n```":                      "",
		"```console\n$ echo a; exit\nb\n^C\n```":                                            "output:\na",
		"```sh\n# x/a.sh\necho from a file\n```\n```console\n$ sh x/a.sh\nfrom a file\n```": "",
		"`echo word`":                "",
		"`echo x; exit 4`":           "exit code 4",
		"`echo logs -f; sleep 1000`": "",
	} {
		steps, err := transcript.Parse(text, "echo")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for i := range steps {
			if err = shell.Run(t.Context(), &steps[i]); err != nil {
				break
			}
		}
		if got := err != nil; got != (want != "") || got && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestActualPaths checks that paths of a page are those of the test in commands and files, and are those of the page in outputs.
func TestActualPaths(t *testing.T) {
	dir := t.TempDir()
	shell := &transcript.Shell{
		Dir: dir, Env: os.Environ(), Timeout: 20 * time.Second,
		Replace: strings.NewReplacer(dir+"/etc", "/etc/none"), Actual: strings.NewReplacer("/etc/none", dir+"/etc"),
	}
	text := "```toml\n# /etc/none/a.toml\nkey = \"/etc/none/key\"\n```\n```console\n$ ls /etc/none\na.toml\n$ tail -n 1 " +
		"/etc/none/a.toml\nkey = \"/etc/none/key\"\n$ grep -c " +
		dir + " etc/a.toml\n2\n```"
	steps, err := transcript.Parse(text, "podstead")
	if err != nil || len(steps) != 4 {
		t.Fatal(steps, err)
	}
	for i := range steps {
		if err := shell.Run(t.Context(), &steps[i]); err != nil {
			t.Error(err)
		}
	}
}

// TestRepeated checks that a command that only reads is repeated until its output is that of the page, and that others are not.
func TestRepeated(t *testing.T) {
	shell := &transcript.Shell{Dir: t.TempDir(), Env: os.Environ(), Timeout: 20 * time.Second}
	count := `sh -c 'echo x >>runs; wc -l <runs' `
	for _, c := range []struct {
		command string
		same    bool
	}{
		{"cat runs | " + count, false},
		{"env true system df; " + count, false},
		{"true events -f; " + count, false},
		{"true why a; " + count, true},
		{"true events a; " + count, true},
		{"true system df; " + count, true},
		{"true system prune --all --dry-run; " + count, true},
	} {
		if err := os.RemoveAll(shell.Dir + "/runs"); err != nil {
			t.Fatal(err)
		}
		err := shell.Run(t.Context(), &transcript.Step{Command: c.command, Checked: true, Output: []string{"3"}})
		if (err == nil) != c.same {
			t.Errorf("%s: %v", c.command, err)
		}
	}
}

// TestHints checks that a hint after an error is on stderr, and one without an error on stdout.
func TestHints(t *testing.T) {
	shell := &transcript.Shell{Dir: t.TempDir(), Env: os.Environ(), Timeout: 20 * time.Second}
	for command, same := range map[string]bool{"echo hint: a": true, "echo hint: a >&2": false} {
		if err := shell.Run(t.Context(),
			&transcript.Step{Command: command, Checked: true, Output: []string{"hint: a"}}); (err == nil) != same {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestTerminal checks that a command with -it has a terminal, on which exit is entered.
func TestTerminal(t *testing.T) {
	shell := &transcript.Shell{Dir: t.TempDir(), Env: os.Environ(), Timeout: 20 * time.Second}
	r, err := shell.Exec(t.Context(), `sh -c 'read line; test -t 0 && test -t 1 && echo "read $line"; exit 3' -it x`,
		func(string) bool { return false })
	if err != nil || r.Code != 3 || !strings.Contains(r.Stdout, "read exit") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTimeout checks that a command that does not exit is killed with its children.
func TestTimeout(t *testing.T) {
	shell := &transcript.Shell{Dir: t.TempDir(), Env: os.Environ(), Timeout: 200 * time.Millisecond}
	for _, step := range []transcript.Step{
		{Command: "sleep 1000 & sleep 1000"},
		{Command: "trap '' INT; echo a; sleep 1000; sleep 1000", Interrupt: true},
		{Command: "echo a; sleep 1000", Interrupt: true, Checked: true, Output: []string{"b"}},
	} {
		if err := shell.Run(t.Context(), &step); err == nil || !strings.Contains(err.Error(), "not finished after 200ms") {
			t.Errorf("%s: %v", step.Command, err)
		}
	}
}
