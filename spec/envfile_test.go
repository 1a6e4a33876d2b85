package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnvFile(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       map[string]string
		problems   []string
	}{
		{"empty", "", nil, nil},
		{
			"value is the rest of the line", "A=1\nB= 2 \nC='x'\nD=a=b\nE=\n",
			map[string]string{"A": "1", "B": " 2 ", "C": "'x'", "D": "a=b", "E": ""},
			nil,
		},
		{"comments and empty lines", "# A=1\n\n  # B=1\n  C=1\n", map[string]string{"C": "1"}, nil},
		{"byte order mark and CRLF", "\xef\xbb\xbfA=1\r\nB=2\r\n", map[string]string{"A": "1", "B": "2"}, nil},
		{"no newline at the end of file", "A=1", map[string]string{"A": "1"}, nil},
		{"all characters of keys", "a.b-c_D9=1\n", map[string]string{"a.b-c_D9": "1"}, nil},
		{
			"all problems, without values", "1A=topsecret\nB C=topsecret\n=topsecret\ntopsecret\nA=1\nA=topsecret\n\xff=topsecret\n",
			map[string]string{"A": "1"},
			[]string{
				"1: a key must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
				"2: a key must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
				"3: a key must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
				"4: must be KEY=value",
				`6: Duplicate value: "A"`,
				"7: must be UTF-8 text",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := map[string]string{}
			var problems []string
			for _, p := range parseEnvFile([]byte(test.text), func(key, value string) bool {
				if _, taken := got[key]; taken {
					return false
				}
				got[key] = value
				return true
			}) {
				problems = append(problems, fmt.Sprintf("%d: %s", p.Line, p.Message))
				if strings.Contains(p.Message+p.Hint, "topsecret") {
					t.Errorf("line %d: the problem contains a value: %s", p.Line, p.Message)
				}
			}
			if test.want == nil {
				test.want = map[string]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccept(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	const file = `
containers = [{ name = "a", image = "i", env.A.secretKeyRef = { name = "s", key = "KEY" } }]
configMaps = [{ name = "c", data = { x = "1" }, envFile = "c.env" }]
secrets = [{ name = "s", envFile = "s.env" }]
`
	name := filepath.Join(dir, "web.toml")
	write("c.env", "B=2\n", 0o644)
	write("s.env", "KEY=hunter2\n", 0o600)
	first, problems := Accept(name, []byte(file))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(map[string]string{"x": "1", "B": "2"}, first.ConfigMaps[0].Data); diff != "" {
		t.Errorf("config map (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]map[string]string{"s": {"KEY": "hunter2"}}, first.SecretValues()); diff != "" {
		t.Errorf("secret (-want +got):\n%s", diff)
	}
	same, _ := Accept(name, []byte(file))
	write("s.env", "KEY=hunter3\n", 0o600)
	other, _ := Accept(name, []byte(file))
	if same.Hash != first.Hash || other.Hash == first.Hash {
		t.Errorf("hashes %s, %s of the same files, %s of other content", first.Hash, same.Hash, other.Hash)
	}

	for _, test := range []struct {
		name   string
		change func()
		want   string
	}{
		{"missing key", func() { write("s.env", "OTHER=hunter2\n", 0o600) }, `web.toml:2:`},
		{"duplicate key", func() { write("c.env", "\nx=2\n", 0o644) }, `c.env:2:1: Duplicate value: "x"`},
		{"file too large", func() { write("c.env", strings.Repeat("#", maxConfigBytes+1), 0o644) }, "larger than 1048576 bytes"},
		{
			"directory", func() { _ = os.Remove(filepath.Join(dir, "c.env")); _ = os.Mkdir(filepath.Join(dir, "c.env"), 0o700) },
			"not a regular file",
		},
		{"missing file", func() { _ = os.Remove(filepath.Join(dir, "c.env")) }, "web.toml:3:"},
	} {
		write("s.env", "KEY=hunter2\n", 0o600)
		test.change()
		pod, problems := Accept(name, []byte(file))
		if pod != nil || !strings.Contains(problems.Error(), test.want) || strings.Contains(problems.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %q", test.name, problems, test.want)
		}
	}
	_ = os.RemoveAll(filepath.Join(dir, "c.env"))
	write("c.env", "B=2\n", 0o644)
	write("s.env", "KEY=hunter2\n", 0o600)
	if err := os.Chmod(filepath.Join(dir, "s.env"), 0o644); err != nil {
		t.Fatal(err)
	}
	pod, problems := Accept(name, []byte(file))
	if pod == nil || len(problems) != 1 || !problems[0].Warning || !strings.Contains(problems[0].Message, "(mode 0644)") {
		t.Errorf("secret file with mode 0644: got %v, want a warning", problems)
	}
}
