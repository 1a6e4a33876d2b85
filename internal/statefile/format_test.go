package statefile_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/statefile"
)

type part struct {
	Name  string `json:"name,omitempty"`
	Count int    `json:"count,omitempty"`
}

// Ref is embedded, as in the facts of pods.
type Ref struct {
	N int `json:"n,omitempty" format:"key"`
}

type run struct {
	Ref
	Count int `json:"count,omitempty"`
}

type file struct {
	Text  string          `json:"text,omitempty"`
	Runs  map[string]*run `json:"runs,omitempty"`
	List  []part          `json:"list,omitempty"`
	Whole *part           `json:"whole,omitempty" format:"whole"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	Other part            `json:"other,omitzero"`
}

var v1 = statefile.Format{Version: 1}

// TestUnknownFields reads a file of a later version, changes something, and writes the file.
func TestUnknownFields(t *testing.T) {
	const added = `"new":{"deep":[1.50,12345678901234567890]}`
	for name, c := range map[string]struct {
		in     string
		change func(*file)
		want   string
	}{
		"unchanged": {
			`{"version":2,"minReader":1,"text":"a",` + added + `}`, func(*file) {}, `{"version":1,"text":"a",` + added + `}`,
		},
		"of the file": {
			`{"version":2,"minReader":1,"text":"a",` + added + `}`, func(f *file) { f.Text = "b" },
			`{"version":1,"text":"b",` + added + `}`,
		},
		"same version":         {`{"version":1,` + added + `}`, func(*file) {}, `{"version":1,` + added + `}`},
		"without known fields": {`{"version":1}`, func(*file) {}, `{"version":1}`},
		"any case":             {`{"version":1,"TEXT":"a"}`, func(*file) {}, `{"version":1,"text":"a"}`},
		"of an object": {
			`{"version":1,"other":{"name":"a",` + added + `}}`, func(f *file) { f.Other.Name = "b" },
			`{"version":1,"other":{"name":"b",` + added + `}}`,
		},
		"removed object": {
			`{"version":1,"other":{"name":"a",` + added + `}}`, func(f *file) { f.Other = part{} }, `{"version":1}`,
		},
		"object with a key": {
			`{"version":1,"runs":{"c":{"n":1,` + added + `}}}`, func(f *file) { f.Runs["c"].Count = 3 },
			`{"version":1,"runs":{"c":{"n":1,"count":3,` + added + `}}}`,
		},
		"object with another key": {
			`{"version":1,"runs":{"c":{"n":1,` + added + `}}}`, func(f *file) { f.Runs["c"].N = 2 }, `{"version":1,"runs":{"c":{"n":2}}}`,
		},
		"object with a new key": {
			`{"version":1,"runs":{"c":{` + added + `}}}`, func(f *file) { f.Runs["c"].N = 2 }, `{"version":1,"runs":{"c":{"n":2}}}`,
		},
		"removed map entry": {
			`{"version":1,"runs":{"c":{` + added + `},"d":{}}}`, func(f *file) { delete(f.Runs, "c") }, `{"version":1,"runs":{"d":{}}}`,
		},
		"moved element": {
			`{"version":1,"list":[{"name":"a"},{"name":"b",` + added + `}]}`, func(f *file) { f.List = f.List[1:] },
			`{"version":1,"list":[{"name":"b",` + added + `}]}`,
		},
		"changed element": {
			`{"version":1,"list":[{"name":"b",` + added + `}]}`, func(f *file) { f.List[0].Name = "c" },
			`{"version":1,"list":[{"name":"c"}]}`,
		},
		"equal elements": {
			`{"version":1,"list":[{"name":"b","x":1},{"name":"b","x":2}]}`, func(*file) {},
			`{"version":1,"list":[{"name":"b","x":1},{"name":"b","x":2}]}`,
		},
		"same whole": {
			`{"version":1,"whole":{"name":"b",` + added + `}}`, func(f *file) { f.Text = "a" },
			`{"version":1,"text":"a","whole":{"name":"b",` + added + `}}`,
		},
		"changed whole": {
			`{"version":1,"whole":{"name":"b",` + added + `}}`, func(f *file) { f.Whole = &part{Name: "b", Count: 1} },
			`{"version":1,"whole":{"name":"b","count":1}}`,
		},
		"opaque": {`{"version":1,"raw":{"x":{}}}`, func(f *file) { f.Raw = nil }, `{"version":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			var f file
			unknown, err := v1.Decode([]byte(c.in), &f)
			if err != nil {
				t.Fatal(err)
			}
			c.change(&f)
			got, err := v1.Encode(f, unknown)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, c.want), tree(t, withoutSum(got))); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
}

func withoutSum(text []byte) string {
	return regexp.MustCompile(`,"_sum":"[0-9a-f]{8}"}$`).ReplaceAllString(string(text), "}")
}

// tree parses JSON without a loss of digits.
func tree(t *testing.T, text string) any {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return text
	}
	nodes := map[string]any{}
	for name, raw := range members {
		nodes[name] = tree(t, string(raw))
	}
	return nodes
}

func TestVersions(t *testing.T) {
	adds := statefile.Format{Version: 3, MinReader: 2}
	for _, c := range []struct {
		f     statefile.Format
		text  string
		newer bool
		fails bool
	}{
		{v1, `{"version":1}`, false, false},
		{v1, `{"version":2}`, true, true},
		{v1, `{"version":2,"minReader":1}`, false, false},
		{v1, `{"version":3,"minReader":2}`, true, true},
		{v1, `{"version":1,"minReader":9}`, false, false},
		{v1, `{"version":9,"minReader":-1}`, true, true},
		{v1, `{}`, false, true},
		{v1, `{"version":-1}`, false, true},
		{v1, `{"version":"1"}`, false, true},
		{v1, `[]`, false, true},
		{v1, `{`, false, true},
		{adds, `{"version":1}`, false, false},
		{statefile.Format{Version: 1, Unversioned: true}, `{}`, false, false},
	} {
		var f file
		_, err := c.f.Decode([]byte(c.text), &f)
		if (err != nil) != c.fails || errors.Is(err, statefile.ErrNewer) != c.newer {
			t.Errorf("%+v reads %s: %v", c.f, c.text, err)
		}
	}
	text, err := adds.Encode(file{Text: "a"}, statefile.Unknown{})
	if withoutSum(text) != `{"version":3,"minReader":2,"text":"a"}` || err != nil {
		t.Errorf("written: %s, %v", text, err)
	}
}
