package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// optionsOfHints are the command lines of hints that name an option or another program and no command line of this one, by a part of the
// hint. TestHintsOnContainers follows them.
var optionsOfHints = map[string]recipe{
	"check the archive with tar -tf":    {before: []string{"volume export data -o c.tar"}, as: "tar -tf c.tar"},
	"extract the archive with tar into": {before: []string{"volume export data -o e.tar"}, as: "mkdir out && tar -xf e.tar -C out"},
	"import with --replace to delete what": {
		before: []string{"volume export data -o r.tar", "stop web"}, as: "podstead volume import data r.tar --replace",
	},
	"name another image with --image, its": {as: "podstead debug web --image busybox -- true"},
	"archive with --image-archive FILE": {
		as: "podstead debug web --image localhost/podstead/busybox:1 --image-archive images/busybox.tar -- true",
	},
	"or put busybox.tar into the image directory": {
		as: "mkdir -p $PODSTEAD_STATE_DIR/images && cp images/busybox.tar $PODSTEAD_STATE_DIR/images && podstead debug web -- true",
	},
	"remove the name with --force": {
		before: []string{"apply changed.toml --wait", "apply web.toml --wait"},
		as:     "! podstead image rm docker.io/library/nginx:2 && podstead image rm docker.io/library/nginx:2 --force",
	},
	"send requests to the API socket with": {as: "curl -sSf --unix-socket $PODSTEAD_RUN_DIR/podstead.sock http://localhost/v1/pods"},
	"without its signatures with --pull":   {as: "podstead bundle create pods -o never.bundle --pull Never"},
	"write to standard output with -o -":   {as: "podstead support-bundle -o - | tar -tz"},
	"--socket":                             {as: "podstead --socket $PODSTEAD_RUN_DIR/podstead.sock get"},
	"start the pod, or copy the file": {
		before: []string{"stop web", "start web", "wait web --for=condition=Ready"}, as: "podstead cp web:/bin/busybox copy",
	},
	"--help for usage": {as: "podstead get --help"},
}

// notFollowed is why no test follows hints that match a pattern.
var notFollowed = []struct{ hints, why string }{
	{`^(re)?install |^update the`, "packages of the host would change"},
	{`\bkernel\b|^use Linux|modprobe|sysctl|^set X=1 on`, "the kernel of the host would change"},
	{`^mount |^free disk|disk errors|hanging file server|^create it with mkdir|read-write`, "a disk of the host would change"},
	{`^run (nft|firewall-cmd|X -I)`, "the firewall of the host would change"},
	{`as root|group podstead|^make root|chmod|capabilities`, "it gives rights to a user or to the program"},
	{`systemctl|time service|from the unit|of the host$`, "services of the host would change"},
	{`try again|^attach again|^retry |Ctrl-C`, "it is to wait"},
	{`^(correct|change|remove|replace|repair|restore|edit|delete|move|read|see|check) `, "a person reads or changes a file"},
	{`^(request|use|omit|set one|did you mean|to use it, delete)|is read as|^the pod was|^if X is|^podstead runs`, "it names no command"},
}

// TestEachHintIsFollowed checks that each hint in the sources has a command line, a field, a setting or an option that a test follows, or
// a reason why no test does.
func TestEachHintIsFollowed(t *testing.T) {
	var rest []string
	for _, h := range scanHints(t).hints {
		isSentence := strings.Contains(h.text, " ") // another text is a name in a table of hints
		if !strings.HasPrefix(h.at, "../../spec/") && !aboutCompose(&h) && isSentence && len(commandLines(h.text)) == 0 &&
			!namesField(h.text) && !namesSetting.MatchString(h.text) {
			rest = append(rest, h.text)
		}
	}
	for _, r := range notFollowed {
		if !slices.ContainsFunc(rest, regexp.MustCompile(r.hints).MatchString) {
			t.Errorf("no hint matches %s", r.hints)
		}
	}
	for _, hint := range rest {
		follows := func(part string) bool { return strings.Contains(hint, part) }
		if slices.ContainsFunc(append(slices.Collect(maps.Keys(optionsOfHints)), slices.Collect(maps.Keys(fieldsOfHints))...), follows) {
			continue
		}
		matches := 0
		for _, r := range notFollowed {
			if regexp.MustCompile(r.hints).MatchString(hint) {
				matches++
			}
		}
		if matches == 0 || strings.Contains(hint, " --") && !strings.HasPrefix(hint, "run firewall-cmd") {
			t.Errorf("hint %q is not followed", hint)
		}
	}
	checkFollowed(t, slices.Collect(maps.Keys(optionsOfHints)), "optionsOfHints", func(foundHint) bool { return false })
}

// aboutCompose reports whether a hint says what to write into a Compose file. TestHintsOfComposeFiles follows these.
func aboutCompose(h *foundHint) bool { return strings.Contains(h.at, "/internal/compose/") }

// aboutQuadlet reports whether a hint says what to write into a unit of Quadlet. TestHintsOfUnits follows these.
func aboutQuadlet(h *foundHint) bool { return strings.Contains(h.at, "/spec/quadlet/") }
