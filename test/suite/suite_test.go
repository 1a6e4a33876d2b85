package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTestNames uses the tags of this program: it must not have e2e.
func TestTestNames(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a_test.go": "package p\nfunc TestMain(m *testing.M) {}\nfunc TestA(t *testing.T) {}\n" +
			"func (x) TestMethod(t *testing.T) {}\nfunc Testify() {}\n",
		"b_test.go":       "//go:build e2e\n\npackage p\nfunc TestB(t *testing.T) {}\n",
		"c_test.go":       "//go:build !e2e\n\npackage p\nfunc TestC(t *testing.T) {}\nfunc FuzzC(f *testing.F) {}\n",
		"other.go":        "package p\nfunc TestOther() {}\n",
		"d_plan9_test.go": "package p\nfunc TestD(t *testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := testNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []testName{{"TestA", false}, {"TestC", false}, {"FuzzC", false}}
	if diff := cmp.Diff(want, names, cmp.AllowUnexported(testName{})); diff != "" {
		t.Error(diff)
	}
	if names, err := testNames(t.TempDir()); err != nil || names != nil {
		t.Errorf("a directory without sources: %v, %v", names, err)
	}
}

func TestDivide(t *testing.T) {
	names := []testName{{"TestUnit", false}, {"TestA", true}, {"TestScripts", true}, {"TestSlow", true}}
	o := Options{
		Slow:  []string{"TestScripts/^two$", "TestSlow", "TestRemoved"},
		Parts: map[string][]string{"TestScripts": {"^one$", "^two$"}},
	}
	together := Options{Together: true}
	for _, test := range []struct {
		name    string
		names   []testName
		options Options
		pattern string
		want    []part
	}{
		{"tests with a build tag, the slow ones first", names, o, "", []part{
			{"TestScripts/^two$", "^TestScripts$/^two$"},
			{"TestSlow", "^TestSlow$"},
			{"TestA", "^TestA$"},
			{"TestScripts/^one$", "^TestScripts$/^one$"},
		}},
		{"a pattern selects tests without a build tag, too", names, o, "Unit|TestA", []part{
			{"TestUnit", "^TestUnit$"}, {"TestA", "^TestA$"},
		}},
		{"a pattern of subtests", names, o, "TestA/x|TestScripts/y", whole},
		{"no match", names, o, "None", nil},
		{"without sources", nil, o, "", whole},
		{"together", names, together, "", []part{{"", "^(TestA|TestScripts|TestSlow)$"}}},
		{"together with a pattern", names, together, "TestUnit", whole},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := divide(test.names, test.options, test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(part{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := divide(names, o, "("); err == nil {
		t.Error("an invalid pattern: no error")
	}
}

// TestSlots checks that a slot is free after its release.
func TestSlots(t *testing.T) {
	var releases []func()
	for range slots() {
		releases = append(releases, acquire())
	}
	if _, ok := tryAcquire(); ok {
		t.Error("more slots than -parallel")
	}
	releases[0]()
	release, ok := tryAcquire()
	if !ok {
		t.Fatal("a released slot is not free")
	}
	release()
	for _, release := range releases[1:] {
		release()
	}
}
