package statefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/internal/statefile"
)

var errOther = errors.New("of another")

func isNamed(name string, p *part) error {
	if p.Name != name {
		return errOther
	}
	return nil
}

// TestDirSetsNothingAside: files that a failed load has found are found again.
func TestDirSetsNothingAside(t *testing.T) {
	path := t.TempDir()
	held := filepath.Join(path, ".podstead-tmp-a.json-1", "sub") // the left part of a write that cannot be removed
	if err := errors.Join(os.MkdirAll(held, 0o700), os.WriteFile(filepath.Join(path, "damaged.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	dir := statefile.NewDir[part](statefile.Format{Version: 1, Aside: ".bad"}, path)
	for range 2 {
		if files, err := dir.Load(isNamed); err == nil || len(files) != 1 || files[0].Err == nil || filepath.Ext(files[0].Path) == ".bad" {
			t.Errorf("files: %+v, %v", files, err)
		}
	}
}

func TestDir(t *testing.T) {
	for _, loss := range []statefile.Loss{statefile.Durable, statefile.Ordered, statefile.Volatile} {
		path := t.TempDir()
		for name, text := range map[string]string{
			"a.json": `{"version":1,"name":"a","new":1}`, "damaged.json": `{`, "later.json": `{"version":2,"name":"later"}`,
			"other.json": `{"version":1}`, "sum.json": `{"version":1,"name":"sum","_sum":"00000000"}`,
			"note": "no file of the format", ".podstead-tmp-a.json-1": "partial",
		} {
			if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		dir := statefile.NewDir[part](statefile.Format{Version: 1, Loss: loss, Aside: ".bad"}, path)
		files, err := dir.Load(isNamed)
		if err != nil || len(files) != 5 {
			t.Fatalf("files: %+v, %v", files, err)
		}
		for _, f := range files {
			_, statErr := os.Stat(f.Path)
			aside := filepath.Ext(f.Path) == ".bad"
			switch f.Name {
			case "a":
				if f.Err != nil || f.Value.Name != "a" || aside {
					t.Errorf("good file: %+v", f)
				}
			case "later":
				if !errors.Is(f.Err, statefile.ErrNewer) || len(f.Text) == 0 || aside {
					t.Errorf("file of a later version: %+v", f)
				}
			default:
				if f.Err == nil || errors.Is(f.Err, statefile.ErrNewer) || !aside || len(f.Text) == 0 || f.Value != (part{}) {
					t.Errorf("damaged file: %+v", f)
				}
			}
			if statErr != nil {
				t.Error(statErr)
			}
		}
		if err := dir.Save("a", &part{Name: "a", Count: 2}); err != nil {
			t.Fatal(err)
		}
		var p part
		if unknown, err := (statefile.Format{Version: 1}).Read(dir.Path("a"), &p); err != nil || p.Count != 2 || unknown.IsZero() {
			t.Errorf("read again: %+v, %v, %v", p, unknown, err)
		}
		for range 2 { // the second time there is nothing
			if err := errors.Join(dir.Delete("a"), dir.Delete("damaged")); err != nil {
				t.Error(err)
			}
		}
		if left, err := filepath.Glob(filepath.Join(path, "*")); err != nil || len(left) != 4 {
			t.Errorf("left: %v, %v", left, err)
		}
		if _, err := statefile.NewDir[part](v1, path+"/none").Load(isNamed); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without the directory: %v", err)
		}
	}
}

func TestArray(t *testing.T) {
	f := statefile.Format{Version: 1, Unversioned: true, Migrate: statefile.Array("list")}
	for _, text := range []string{`[{"name":"a"}]`, `{"list":[{"name":"a"}]}`, `{"version":1,"list":[{"name":"a"}]}`} {
		var got file
		_, err := f.Decode([]byte(text), &got)
		if err != nil || len(got.List) != 1 || f.Check([]byte(text)) != nil {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
}
