package spec_test

import (
	"testing"

	"github.com/podstead/podstead/spec"
)

func TestWithoutArchives(t *testing.T) {
	const rest = "\n# the app\n[[containers]]\nname = \"a\" # imageArchives = [\"x\"]\nimage = \"localhost/a:1\"\n"
	for name, test := range map[string]struct{ text, want string }{
		"none": {"name = \"a\"" + rest, "name = \"a\"" + rest},
		"one":  {"name = \"a\"\nimageArchives = [\"a.tar\"]" + rest, "name = \"a\"\nimageArchives = []" + rest},
		"several lines": {
			"name = \"a\"\nimageArchives = [\n  'a.tar', # the app\n  \"/b]#.tar\", # ]\n]  # end" + rest,
			"name = \"a\"\nimageArchives = []  # end" + rest,
		},
		"quoted key":     {"name = \"a\"\n\"imageArchives\"=[ \"a.tar\" , ]" + rest, "name = \"a\"\n\"imageArchives\"=[]" + rest},
		"multi-line":     {"name = \"a\"\nimageArchives = [\"\"\"a.tar\"\"\"]" + rest, "name = \"a\"\nimageArchives = []" + rest},
		"other encoding": {"name = \"a\"\nimageArchives = [\"\\u0061ä.tar\"]" + rest, "name = \"a\"\nimageArchives = []" + rest},
	} {
		got, err := spec.WithoutArchives("/srv/a.toml", []byte(test.text))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, test.want)
		}
	}
	if _, err := spec.WithoutArchives("/srv/a.toml", []byte("nonsense")); err == nil {
		t.Error("no error for an invalid file")
	}
}
