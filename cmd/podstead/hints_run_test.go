package main

import (
	"strings"
	"testing"
)

// TestFollowedHints runs the commands of hints where they were given: each succeeds.
func TestFollowedHints(t *testing.T) {
	for _, test := range []struct{ fails, file string }{
		{"run $DIR/web.toml", "$DIR/web.toml"},
		{"create -f $DIR/web.toml", "$DIR/web.toml"},
		{"rm web", ""},
		{"logs web app", ""},
		{"wait web --for=phase=Failed --timeout 10ms", ""},
		{"enable web", "$DIR/web.toml"},
		{"ls", ""},
		{"show web", ""},
		{"log web", ""},
		{"history web", ""},
		{"api-resources", ""},
		{"drain node", ""},
		{"uncordon node", ""},
		{"pause web", ""},
		{"volumes", ""},
		{"healthcheck web", ""},
		{"reload web", "$DIR/web.toml"},
		{"port web", ""},
		{"apply -f $DIR/web.toml --dry-run=client", "$DIR/web.toml"},
	} {
		t.Run(test.fails, func(t *testing.T) {
			h := newListed(t)
			got := h.run(t, test.fails)
			if got.code == 0 {
				t.Fatalf("exit code 0, stdout %q", got.stdout)
			}
			followed := 0
			for line := range strings.Lines(got.stderr) {
				hint, isHint := strings.CutPrefix(line, "hint: ")
				if !isHint {
					continue
				}
				named := strings.NewReplacer(" web", " POD", " app", " CONTAINER").Replace(hint) // arguments, and no words of the text
				for _, words := range commandLines(named) {
					command := strings.Join(words[1:], " ")
					command = strings.NewReplacer("POD", "web", "CONTAINER", "app", "FILE", test.file).Replace(command)
					if cannotRun(words[1:]) {
						continue
					}
					followed++
					if got := h.run(t, command); got.code != 0 {
						t.Errorf("hint %q: podstead %s: exit code %d, stderr %q", strings.TrimSpace(hint), command, got.code, got.stderr)
					}
				}
			}
			if followed == 0 {
				t.Errorf("no hint was followed: %q", got.stderr)
			}
		})
	}
}

// cannotRun reports whether a command needs an editor, or real images.
func cannotRun(words []string) bool { return words[0] == "edit" || words[0] == "image" }
