package main

import (
	"strings"
	"testing"

	"github.com/creack/pty"
)

func TestLogin(t *testing.T) {
	h, images := newImageHost(t)
	images.Logins = map[string]string{"a.example alice": "hunter22"}
	h.stdin = "hunter22\n"
	h.want(t, "login a.example -u alice --password-stdin", "registry/a.example logged in (user alice)\n")
	h.want(t, "logout a.example", "registry/a.example logged out\n")
	h.fails(t, "logout a.example", statusNotFound, "not logged in")
	for text, want := range map[string]string{
		"wrong": "incorrect user name or password", "": "must not be empty", strings.Repeat("x", maxPassword+1): "longer than 65536 bytes",
	} {
		h.stdin = text
		if got := h.run(t, "login a.example -u alice --password-stdin"); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("password of %d bytes: %+v, want %s", len(text), got, want)
		}
	}
	h.fails(t, "login a.example --password-stdin", statusUsage, "--password-stdin requires --username")
	h.fails(t, "login a.example", statusUsage, "standard input is not a terminal")
	h.fails(t, "login", statusUsage, "requires one registry, got 0 arguments")
	h.fails(t, "logout a b", statusUsage, "requires one registry, got 2 arguments")
}

// TestLoginOnTerminal types a user name and a password, which the terminal does not show.
func TestLoginOnTerminal(t *testing.T) {
	h, images := newImageHost(t)
	images.Logins = map[string]string{"a.example alice": "hunter22"}
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close(); _ = tty.Close() })
	if _, err := terminal.WriteString("alice\nhunter22\n"); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	a := &app{in: tty, out: &stdout, err: &stderr, hostRoot: h.hostRoot}
	code := a.run(t.Context(), []string{"login", "a.example"})
	if code != 0 || stdout.String() != "registry/a.example logged in (user alice)\n" || stderr.String() != "Username: Password: \n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}
