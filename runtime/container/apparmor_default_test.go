package container

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/contrib/apparmor"
	"github.com/google/go-cmp/cmp"
)

// rules returns the rules of a profile without comments, each in one line. Lines that begin with #include are rules.
func rules(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line, comment, found := strings.Cut(line, "#")
		if found && strings.HasPrefix(comment, "include") {
			line += "#" + comment
		}
		lines = append(lines, strings.Fields(line)...)
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.Join(lines, " "), " ,", ","), ", ", ",\n")
}

// TestDefaultProfile compares the default profile with containerd's on this host.
func TestDefaultProfile(t *testing.T) {
	want, err := apparmor.DumpDefaultProfile("podstead-default")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rules(want), rules(thisHost().defaultProfile("podstead-default"))); diff != "" {
		t.Errorf("rules of containerd (-), of podstead (+):\n%s", diff)
	}
}

// TestDefaultProfileOfHost checks what the default profile has of a host.
func TestDefaultProfileOfHost(t *testing.T) {
	h := appArmorHost{dir: t.TempDir(), daemon: "podstead", rootlessKit: "/usr/bin/rootlesskit"}
	without := "@{PROC}=/proc/ profile p flags=(attach_disconnected,mediate_deleted) { network,\n"
	if got := rules(h.defaultProfile("p")); !strings.HasPrefix(got, without) {
		t.Errorf("a host without files: %s, want %s", got, without)
	}
	for _, file := range []string{"abi/3.0", "tunables/global", "abstractions/base"} {
		path := filepath.Join(h.dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got := rules(h.defaultProfile("p"))
	with := "abi <abi/3.0>,\n#include <tunables/global> profile p flags=(attach_disconnected,mediate_deleted) { " +
		"#include <abstractions/base> network,\n"
	if !strings.HasPrefix(got, with) {
		t.Errorf("a host with files: %s, want %s", got, with)
	}
	lines := strings.Split(got, "\n")
	for _, line := range []string{
		"signal (receive) peer=podstead,", "signal (receive) peer=/usr/bin/rootlesskit,", "signal (send,receive) peer=p,",
		"ptrace (trace,tracedby,read,readby) peer=p,",
	} {
		if !slices.Contains(lines, line) {
			t.Errorf("no rule %s in\n%s", line, got)
		}
	}
	if strings.ContainsAny(strings.NewReplacer("<abi/3.0>", "", "<tunables/global>", "", "<abstractions/base>", "").Replace(got), "<>") {
		t.Errorf("a word was not replaced:\n%s", got)
	}
}
