package spec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	pelletier "github.com/pelletier/go-toml/v2"
)

// breaks replaces the line breaks of YAML.
var breaks = strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func addFiles(f *testing.F, add func(name string, data []byte)) {
	f.Helper()
	files, err := filepath.Glob("testdata/*/*.*")
	if err != nil || len(files) == 0 {
		f.Fatalf("found %d seeds: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		add(file, data)
	}
}

// FuzzParse checks that no input panics or hangs, that every problem has a
// position in the file and no control characters, and that a valid pod is the
// same after a JSON round trip.
func FuzzParse(f *testing.F) {
	addFiles(f, func(name string, data []byte) {
		f.Add(data, strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".json"))
	})
	f.Add([]byte("# podstead: allow low-port, no-memory-limit # reason\n[[containers]]\nname = \"a\" # podstead: allow x\n"), false)
	f.Add([]byte("# podstead: allow low-port\nkind: Pod # podstead: allow no-memory-limit, \x00\"\n---\n# podstead: allow x"), true)
	f.Fuzz(func(t *testing.T, data []byte, manifest bool) {
		file := "web.toml"
		if manifest {
			file = "web.yaml"
		}
		pod, problems := parse(file, data, Options{Lint: &Lint{ShutdownGracePeriod: time.Minute, Strict: true}})
		if (pod == nil) != (len(problems.Errors()) > 0) {
			t.Fatalf("pod %v with problems:\n%v", pod, problems)
		}
		lines := strings.Count(breaks.Replace(string(data)), "\n") + 2
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Line > lines {
				t.Errorf("line %d of %d: %v", p.Line, lines, p)
			}
			if strings.ContainsFunc(p.String()+p.Hint, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("a control character in %q", p)
			}
		}
		if pod == nil {
			return
		}
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		var again Pod
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pod, again.WithSecretValues(pod.SecretValues())); diff != "" {
			t.Errorf("JSON round trip (-want +got):\n%s", diff)
		}
	})
}

// FuzzSameAsBurntSushi checks that the syntax tree and the values match: both
// libraries accept the same files and read the same keys.
func FuzzSameAsBurntSushi(f *testing.F) {
	addFiles(f, func(name string, data []byte) {
		if strings.HasSuffix(name, ".toml") {
			f.Add(data)
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 || invalidUTF8(data) >= 0 {
			return // stay within the limits, which BurntSushi/toml does not have
		}
		root, syntax := readTOML(data)
		if syntax != nil && (strings.Contains(syntax.message, "levels deep") || strings.Contains(syntax.message, "bytes")) {
			return
		}
		var values map[string]any
		_, err := toml.Decode(string(data), &values)
		if err == nil && syntax != nil && syntax.message == errShape.Error() {
			// BurntSushi/toml accepts some redefinitions; compare with go-toml.
			err = pelletier.Unmarshal(data, &map[string]any{})
		}
		if (err == nil) != (syntax == nil) {
			t.Fatalf("BurntSushi/toml: %v, syntax tree: %v", err, syntax)
		}
		if err == nil && len(root.items) != len(values) {
			t.Fatalf("%d keys in the tree, %d in the values", len(root.items), len(values))
		}
	})
}

// FuzzConvert checks that the conversion of a valid file to the long and to the short form gives the same pod, that a further conversion
// to the same form changes nothing, and that one to the other form changes comments at most.
func FuzzConvert(f *testing.F) {
	addFiles(f, func(name string, data []byte) {
		f.Add(data, strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".json"))
	})
	for _, form := range forms {
		f.Add(formFile(form.pod, form.container), false)
		f.Add(formFile(form.longPod, form.longContainer), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, manifest bool) {
		file := "/a/web.toml"
		if manifest {
			file = "/a/web.yaml"
		}
		pod, _ := Parse(file, data)
		if pod == nil {
			return
		}
		long, problems := Options{}.Convert(file, data, false)
		if long == nil {
			t.Fatalf("%v", problems)
		}
		short, _ := Options{}.Convert(file, data, true)
		for i, text := range [][]byte{long, short} {
			again, problems := Parse("/a/web.toml", text)
			if again == nil {
				t.Fatalf("%v\n%s", problems, text)
			}
			if pod.Hash != again.Hash && !strings.Contains(string(data), generateNameKey) {
				t.Errorf("another pod (-want +got):\n%s\n%s", cmp.Diff(pod, again), text)
			}
			toLong, _ := Options{}.Convert("/a/web.toml", text, false)
			toShort, _ := Options{}.Convert("/a/web.toml", text, true)
			form := func(converted []byte, same bool) string {
				if same {
					return string(converted)
				}
				return withoutComments(converted)
			}
			if diff := cmp.Diff(form(long, i == 0), form(toLong, i == 0)); diff != "" {
				t.Errorf("the long form is not stable (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(form(short, i == 1), form(toShort, i == 1)); diff != "" {
				t.Errorf("the short form is not stable (-want +got):\n%s", diff)
			}
		}
	})
}

// withoutComments returns a TOML file without its comments, and without line breaks and spaces, which comments add.
func withoutComments(text []byte) string {
	comments := commentsOf(text)
	var b strings.Builder
	for i, line := range strings.SplitAfter(string(text), "\n") {
		if len(comments) > 0 && comments[0].line == i+1 {
			line = strings.TrimSuffix(strings.TrimRight(line, "\n"), comments[0].text)
			comments = comments[1:]
		}
		b.WriteString(line)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
