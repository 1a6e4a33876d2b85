package images

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/podstead/podstead/runtime/image"
)

// noon is the time in the tests.
var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// removals are all kinds of removals.
var removals = []struct {
	name    string
	respect Respect
}{
	{"collection", Collection},
	{"all", CollectionAll},
	{"prune", pruneNames},
	{"pruneAll", pruneAllNames},
	{"remove", removeName},
	{"force", forceName},
}

// TestRespect: which kind of claim keeps an image from which removal.
func TestRespect(t *testing.T) {
	for by, want := range map[image.Claimant]string{
		image.RunningPod: "collection all prune pruneAll remove force",
		image.Directory:  "collection all prune pruneAll remove force",
		image.Pod:        "collection all prune pruneAll remove",
		image.Generation: "collection all prune pruneAll remove",
		image.Import:     "collection all prune pruneAll",
		image.Container:  "collection all",
		image.Person:     "collection prune",
	} {
		var got []string
		for _, r := range removals {
			f := Facts{Now: noon, Claims: []image.Claim{{By: by, Who: "web", Image: "a"}}, Images: []Whole{{ID: "a"}}}
			kept := len(Keep(&f, Rule{Respect: r.respect, Low: 100})) == 0
			if claim, claimed := f.Claimed(&f.Images[0], r.respect); claimed != kept || claimed && claim.By != by {
				t.Errorf("%s by %s: claimed %t (%v), kept %t", r.name, by, claimed, claim, kept)
			}
			if kept {
				got = append(got, r.name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("a claim by %s keeps an image from %q, want %q", by, got, want)
		}
	}
}

// TestKeep has a row for each reason to remove an image or not.
func TestKeep(t *testing.T) {
	age := func(id string, known, unused time.Duration) Whole {
		return Whole{ID: id, Records: []string{"docker.io/library/" + id + ":1"}, Known: known, Unused: unused}
	}
	const hour, minute = time.Hour, time.Minute
	old := []Whole{age("a", hour, hour)}
	young := []Whole{age("a", minute, minute)}
	full := Disk{Space: 86}
	byAge := Rule{Respect: Collection, Unused: 10 * hour, Low: 100}
	byAll := Rule{Respect: CollectionAll, Low: 100}
	byDisk := Rule{Respect: Collection, Unused: Never, MinAge: 2 * minute, Low: 80}
	claimed := func(by image.Claimant, on string, until time.Time) Facts {
		return Facts{Now: noon, Claims: []image.Claim{{By: by, Image: on, Until: until}}, Images: old, Disk: full}
	}
	for name, c := range map[string]struct {
		facts Facts
		rule  Rule
		want  string
	}{
		"an image that was not used for long": {
			Facts{Images: []Whole{age("a", 20*hour, 10*hour), age("b", 20*hour, 9*hour)}}, byAge, "a tooOld",
		},
		"all images that were not used for long, whatever the disk": {
			Facts{Images: []Whole{age("a", 20*hour, 10*hour), age("b", 20*hour, 11*hour)}, Disk: full}, byAge, "a tooOld, b tooOld",
		},
		"a prune of an image whose age is not known": {
			Facts{Images: []Whole{age("a", 0, 0)}}, Rule{Respect: Collection, Low: 100}, "a tooOld",
		},
		"a prune by age of an image whose age is not known": {
			Facts{Images: []Whole{age("a", 0, 0)}}, Rule{Respect: Collection, Unused: hour, Low: 100}, "",
		},
		"a full disk: the image that was not used for the longest time, and one only": {
			Facts{Images: []Whole{age("a", hour, minute), age("b", hour, 3*minute), age("c", hour, 2*minute)}, Disk: full},
			byDisk, "b diskFull",
		},
		"of images that were used at the same time, the one that is known for longer": {
			Facts{Images: []Whole{age("a", hour, 0), age("b", 2*hour, 0)}, Disk: full}, byDisk, "b diskFull",
		},
		"what is too old first, and then the disk is measured": {
			Facts{Images: []Whole{age("a", hour, 2*hour), age("b", hour, hour)}, Disk: full}, Rule{Unused: 2 * hour, Low: 80}, "a tooOld",
		},
		"a disk without inodes":                {Facts{Images: old, Disk: Disk{Space: 1, Inodes: 80}}, byDisk, "a diskFull"},
		"a disk with space":                    {Facts{Images: old, Disk: Disk{Space: 79, Inodes: 79}}, byDisk, ""},
		"no threshold":                         {Facts{Images: old, Disk: Disk{Space: 100}}, Rule{Unused: Never, Low: 100}, ""},
		"too young, on a full disk":            {Facts{Images: young, Disk: full}, byDisk, ""},
		"too young, and not used":              {Facts{Images: young}, Rule{MinAge: hour, Low: 100}, ""},
		"a claim on a name of the image":       {claimed(image.Pod, "docker.io/library/a:1", time.Time{}), byDisk, ""},
		"a claim on its configuration":         {claimed(image.Container, "a", time.Time{}), byDisk, ""},
		"a claim on another image":             {claimed(image.Pod, "docker.io/library/a:2", time.Time{}), byDisk, "a diskFull"},
		"a claim that the removal overrides":   {claimed(image.Person, "a", time.Time{}), byAll, "a tooOld"},
		"a claim that ends later":              {claimed(image.Import, "a", noon.Add(1)), byDisk, ""},
		"a claim whose time is over":           {claimed(image.Import, "a", noon), byDisk, "a diskFull"},
		"no image, on a full disk":             {Facts{Disk: full}, byDisk, ""},
		"a claim on an image that is not here": {Facts{Claims: []image.Claim{{By: image.Pod, Image: "a"}}, Disk: full}, byDisk, ""},
	} {
		if got := text(&c.facts, Keep(&c.facts, c.rule)); got != c.want {
			t.Errorf("%s: removals %q, want %q", name, got, c.want)
		}
	}
}

// text returns removals as text.
func text(f *Facts, list []Removal) string {
	var words []string
	for _, r := range list {
		words = append(words, f.Images[r.Image].ID+" "+string(r.Cause))
	}
	return strings.Join(words, ", ")
}

// TestKeepAnyHost checks, with random hosts, that nothing is removed that something claims, and that a collection which carries out what
// Keep returns, and asks again, ends, with nothing left that should be removed.
func TestKeepAnyHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, rule := drawFacts(t), drawRule(t)
		for range len(f.Images) + 1 {
			before := fmt.Sprint(f)
			list := Keep(&f, rule)
			if fmt.Sprint(f) != before {
				t.Fatal("the facts were changed")
			}
			if again := Keep(&f, rule); !slices.Equal(list, again) {
				t.Fatalf("%v, and then %v of the same facts", list, again)
			}
			check(t, &f, rule, list)
			if len(list) == 0 {
				return
			}
			for _, r := range slices.Backward(list) { // their indexes ascend
				f.Images = slices.Delete(f.Images, r.Image, r.Image+1)
			}
			f.Disk.Space = max(0, f.Disk.Space-rapid.IntRange(0, 20).Draw(t, "freed"))
		}
		t.Fatal("the collection does not end")
	})
}

// check checks one answer of Keep.
func check(t *rapid.T, f *Facts, rule Rule, list []Removal) {
	removed := map[int]Cause{}
	last := -1
	for _, r := range list {
		if r.Image <= last {
			t.Fatalf("removals %v are not in the order of the images", list)
		}
		last = r.Image
		removed[r.Image] = r.Cause
	}
	pressed := f.Disk.Above(rule.Low)
	for n := range f.Images {
		w, claimed := &f.Images[n], false
		for _, c := range f.Claims {
			on := c.Image == w.ID || slices.Contains(w.Records, c.Image)
			claimed = claimed || on && slices.Contains(rule.Respect, c.By) && (c.Until.IsZero() || f.Now.Before(c.Until))
		}
		may := !claimed && w.Known >= rule.MinAge
		cause, gone := removed[n]
		switch {
		case gone && !may:
			t.Fatalf("image %s is removed (%s), claimed %t", w.ID, cause, claimed)
		case gone && cause == DiskFull && (!pressed || len(list) > 1):
			t.Fatalf("image %s is removed for a disk that uses %v, among %v", w.ID, f.Disk, list)
		case gone && cause == TooOld && w.Unused < rule.Unused:
			t.Fatalf("image %s is removed after %v without use", w.ID, w.Unused)
		case !gone && may && w.Unused >= rule.Unused:
			t.Fatalf("image %s stays, and was not used for %v", w.ID, w.Unused)
		case !gone && may && pressed && len(list) == 0:
			t.Fatalf("image %s stays on a disk that uses %v", w.ID, f.Disk)
		case !gone && may && len(list) == 1 && list[0].Cause == DiskFull && w.Unused > f.Images[list[0].Image].Unused:
			t.Fatalf("image %s was not used for longer than the one that is removed", w.ID)
		}
	}
}

func drawFacts(t *rapid.T) Facts {
	f := Facts{Now: noon, Disk: Disk{Space: rapid.IntRange(0, 100).Draw(t, "space"), Inodes: rapid.IntRange(0, 100).Draw(t, "inodes")}}
	hours := rapid.IntRange(0, 5)
	for n := range rapid.IntRange(0, 6).Draw(t, "images") {
		known := hours.Draw(t, "known")
		w := Whole{ID: fmt.Sprint("id", n), Known: time.Duration(known) * time.Hour}
		w.Unused = time.Duration(min(known, hours.Draw(t, "unused"))) * time.Hour
		for name := range rapid.IntRange(1, 2).Draw(t, "names") {
			w.Records = append(w.Records, fmt.Sprintf("name%d.%d", n, name))
		}
		f.Images = append(f.Images, w)
	}
	by := rapid.SampledFrom(Collection)
	for range rapid.IntRange(0, 8).Draw(t, "claims") {
		n := rapid.IntRange(0, 7).Draw(t, "claimed") // of some, there is no image
		on := rapid.SampledFrom([]string{fmt.Sprint("id", n), fmt.Sprintf("name%d.0", n), fmt.Sprintf("name%d.1", n)}).Draw(t, "on")
		c := image.Claim{By: by.Draw(t, "by"), Who: "web", Image: on}
		if rapid.Bool().Draw(t, "ends") {
			c.Until = noon.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "until")) * time.Hour)
		}
		f.Claims = append(f.Claims, c)
	}
	return f
}

func drawRule(t *rapid.T) Rule {
	r := Rule{
		Respect: removals[rapid.IntRange(0, len(removals)-1).Draw(t, "respect")].respect,
		MinAge:  time.Duration(rapid.IntRange(0, 3).Draw(t, "minAge")) * time.Hour,
		Unused:  Never,
		Low:     rapid.SampledFrom([]int{0, 50, 80, 100}).Draw(t, "low"),
	}
	if rapid.Bool().Draw(t, "age") {
		r.Unused = time.Duration(rapid.IntRange(0, 5).Draw(t, "maxAge")) * time.Hour
	}
	return r
}

// TestKeepIsPure: the file of the decision uses nothing that reads or changes anything but its arguments.
func TestKeepIsPure(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "keep.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range file.Imports {
		got = append(got, strings.Trim(i.Path.Value, `"`))
	}
	want := []string{"cmp", "fmt", "math", "slices", "time", "github.com/podstead/podstead/runtime/image"} // the last for Claim
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("imports (-want +got):\n%s", diff)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Now", "Since", "Until", "Sleep"}, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
				t.Errorf("time.%s is used", s.Sel.Name)
			}
		}
		return true
	})
}
