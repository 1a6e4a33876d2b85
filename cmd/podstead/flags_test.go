package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// imageAndDiskCommands are the commands for images, bundles, registries and the disk.
var imageAndDiskCommands = []string{
	"image ls", "image pull", "image import", "image export", "image rm", "image prune", "image inspect", "image history",
	"bundle create", "bundle apply", "bundle inspect", "system df", "system prune", "login", "logout",
}

// TestImageAndDiskCommands checks that no command is missing in the list.
func TestImageAndDiskCommands(t *testing.T) {
	var names []string
	root := (&app{}).root()
	for _, group := range []string{"image", "bundle", "system"} {
		for _, cmd := range findCommand(t, root, group).Commands() {
			if !cmd.Hidden { // a hint at another command
				names = append(names, group+" "+cmd.Name())
			}
		}
	}
	want := slices.Sorted(slices.Values(imageAndDiskCommands[:len(imageAndDiskCommands)-2])) // without login and logout
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("commands %q, want %q", names, want)
	}
}

// TestFlagsInScripts checks that a script, which runs the binary, uses every flag of the commands for pods that stay, for images and for
// the disk.
func TestFlagsInScripts(t *testing.T) {
	lines := strings.Split(filesOf(t, "testdata/*/*.txtar")[""], "\n")
	root := (&app{}).root()
	for _, name := range slices.Concat(imageAndDiskCommands, []string{
		"apply", "plan", "run", "stop", "start", "restart", "delete", "wait", "ps", "down", "kill", "rm", "images", "pull", "load", "logs",
	}) {
		if !slices.ContainsFunc(lines, regexp.MustCompile("podstead "+name+`\b`).MatchString) {
			t.Errorf("no script uses %s", name)
		}
		for flag, pattern := range flagPatterns(t, root, name) {
			if !slices.ContainsFunc(lines, regexp.MustCompile("podstead "+name+" (.* )?"+pattern).MatchString) {
				t.Errorf("no script uses --%s of %s", flag, name)
			}
		}
	}
}

// TestFlagsOnPages checks that a page shows every command for images, bundles, registries and the disk in a block with output, and its
// flags.
func TestFlagsOnPages(t *testing.T) {
	pages := filesOf(t, "../../docs/howto/*.md")
	delete(pages, "")
	root := (&app{}).root()
	for _, name := range imageAndDiskCommands {
		shown := regexp.MustCompile("(?m)^[$#] podstead " + name + `\b`)
		var text string // of the pages that show the command
		for _, page := range pages {
			if shown.MatchString(page) {
				text += page
			}
		}
		if text == "" {
			t.Errorf("no page shows %s", name)
		}
		for flag, pattern := range flagPatterns(t, root, name) {
			if !regexp.MustCompile("[` ]" + pattern).MatchString(text) {
				t.Errorf("no page that shows %s has --%s", name, flag)
			}
		}
	}
}

// flagNames matches a flag in the help: the short name, which may be empty, and the long one.
var flagNames = regexp.MustCompile(`(?m)^ +(?:(-[a-z]), )?--([a-z-]+)`)

// flagPatterns returns patterns for the flags of a command, by their long names.
func flagPatterns(t *testing.T, root *cobra.Command, name string) map[string]string {
	t.Helper()
	patterns := map[string]string{}
	for _, flag := range flagNames.FindAllStringSubmatch(findCommand(t, root, name).LocalNonPersistentFlags().FlagUsages(), -1) {
		short, long := flag[1], flag[2]
		if long == "help" {
			continue
		}
		patterns[long] = "--" + long + `\b`
		if short != "" {
			patterns[long] = "(--" + long + "|" + short + `)\b`
		}
	}
	return patterns
}

func findCommand(t *testing.T, root *cobra.Command, name string) *cobra.Command {
	t.Helper()
	cmd, rest, err := root.Find(strings.Fields(name))
	if err != nil || len(rest) > 0 {
		t.Fatalf("command %s: %q, %v", name, rest, err)
	}
	return cmd
}

// filesOf returns the text of files by path, and that of all under the empty path.
func filesOf(t *testing.T, pattern string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	files := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(text)
		files[""] += string(text)
	}
	return files
}
