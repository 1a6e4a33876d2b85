package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/config"
)

// TestRuntimeClasses expects the worst grade, with its hint.
func TestRuntimeClasses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"new": "echo 'crun version 1.25'", "old": "echo 'crun version 1.8'", "broken": "exit 1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		programs     []string
		want         Grade
		detail, hint string
	}{
		{[]string{"new"}, OK, "new: crun version 1.25 (" + dir + "/new)", ""},
		{[]string{"old", "new"}, Warn, "has known container escapes", "update the OCI runtime"},
		{[]string{"missing", "old"}, Fail, "missing: ", "install the OCI runtime of the class"},
		{[]string{"old", "broken"}, Fail, "broken --version: exit status 1", "install the OCI runtime of the class"},
	} {
		var classes []config.RuntimeClass
		for _, p := range test.programs {
			classes = append(classes, config.RuntimeClass{Name: p, Runtime: filepath.Join(dir, p)})
		}
		got := runtimeClasses(t.Context(), classes)
		if got.grade != test.want || !strings.Contains(got.detail, test.detail) || !strings.HasPrefix(got.hint, test.hint) ||
			(got.hint == "") != (test.hint == "") {
			t.Errorf("%v: %+v, want %+v", test.programs, got, test)
		}
	}
}

func TestEscapes(t *testing.T) {
	for _, test := range []struct {
		output, want string // "" is no warning
	}{
		{"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev\n", "distribution package 1.1.5+ds1-1+deb12u1"},
		{"runc version 1.1.15\ncommit: v1.1.15-0-gbc20cb4\n", "fixed in 1.2.8, 1.3.3, 1.4.0-rc.3"},
		{"runc version 1.0.0-rc93\n", "known container escapes"},
		{"runc version 1.2.7\n", "known container escapes"},
		{"runc version 1.2.8\n", ""},
		{"runc version 1.2.10\n", ""},
		{"runc version 1.3.2\n", "known container escapes"},
		{"runc version 1.3.3-0ubuntu1\n", ""},
		{"runc version 1.4.0-rc.2\n", "known container escapes"},
		{"runc version 1.4.0-rc.3\n", ""},
		{"runc version 1.4.0\n", ""},
		{"runc version 1.5.0-rc.1\n", ""},
		{"crun version 1.8.1\ncommit: f8a096be060b22ccd3d5f3ebe44108517fbf6c30\n", "fixed in 1.20"},
		{"crun version 1.20\n", ""},
		{"crun version 1.25.1\n", ""},
		{"youki version 0.5.7\n", ""},
		{"", ""},
	} {
		got, found := escapes(test.output)
		if strings.Contains(got, "distribution") && !strings.Contains(test.want, "distribution") {
			t.Errorf("%q is not of a distribution: %q", test.output, got)
		}
		if found != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%q: %q, want %q", test.output, got, test.want)
		}
	}
}
