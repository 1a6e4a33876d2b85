package doctor

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/spec"
)

// writeFiles writes files to a temporary directory and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, source := t.TempDir(), fstest.MapFS{}
	for name, text := range files {
		source[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if err := os.CopyFS(dir, source); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestUserNamespaces(t *testing.T) {
	const limit = "sys/user/max_user_namespaces"
	for _, test := range []struct {
		name  string
		files map[string]string
		grade Grade
		hint  string
	}{
		{"supported", map[string]string{"self/ns/user": "", limit: "15000\n"}, OK, ""},
		{"disabled by sysctl", map[string]string{"self/ns/user": "", limit: "0\n"}, Warn, "sysctl -w user.max_user_namespaces="},
		{"not supported by the kernel", map[string]string{limit: "15000\n"}, Warn, "CONFIG_USER_NS"},
		{"kernel too old", map[string]string{"self/ns/user": ""}, Warn, "4.9"},
	} {
		if r := userNamespaces(writeFiles(t, test.files)); r.grade != test.grade || !strings.Contains(r.hint, test.hint) ||
			(r.hint == "") != (test.hint == "") {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

func TestAppArmor(t *testing.T) {
	const enabled = "module/apparmor/parameters/enabled"
	programs := writeFiles(t, map[string]string{"apparmor_parser": ""})
	if err := os.Chmod(filepath.Join(programs, "apparmor_parser"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text, path string
		grade            Grade
	}{
		{"not supported by the kernel", "", programs, OK},
		{"disabled", "N\n", programs, OK},
		{"enabled", "Y\n", programs, OK},
		{"without apparmor_parser", "Y\n", t.TempDir(), Warn},
	} {
		t.Setenv("PATH", test.path)
		files := map[string]string{enabled: test.text}
		if test.text == "" {
			files = nil
		}
		if r := appArmor(writeFiles(t, files)); r.grade != test.grade || (r.hint == "") != (test.grade == OK) {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

func TestNetworkResult(t *testing.T) {
	finding := network.Finding{Problem: "a firewall drops packets", Hint: "open it"}
	for _, test := range []struct {
		name     string
		findings []network.Finding
		err      error
		want     []string
	}{
		{"no findings", nil, nil, nil},
		{"finding", []network.Finding{finding}, nil, []string{"a firewall", "open it"}},
		{"error", nil, errors.New("no netlink"), []string{"no netlink", "as root"}},
		{
			"finding and error",
			[]network.Finding{finding},
			errors.New("no netlink"),
			[]string{"a firewall", "open it", "no netlink", "as root"},
		},
	} {
		r, found := networkResult(test.findings, test.err)
		if found != (len(test.want) > 0) {
			t.Errorf("%s: %+v", test.name, r)
		}
		for _, want := range test.want {
			if !strings.Contains(r.detail+" "+r.hint, want) {
				t.Errorf("%s: %+v does not contain %q", test.name, r, want)
			}
		}
	}
}

func TestRejectedResult(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	newest := map[string]api.Event{}
	for i := range maxRejected + 2 {
		name := string(rune('a' + i))
		newest[name] = api.Event{
			Pod: name, Time: at.Add(time.Duration(i) * time.Second), Fields: map[string]string{"error": "no", "hint": "do it"},
		}
	}
	r := rejectedResult(newest)
	if r.grade != Warn || r.hint != "do it" || !strings.HasPrefix(r.detail, "g: no; f: no; ") ||
		!strings.HasSuffix(r.detail, "c: no; and 2 more") {
		t.Errorf("%+v", r)
	}
}

// TestDropGone: a file of the pods directory that was removed is not reported. A pod that a command was to run is.
func TestDropGone(t *testing.T) {
	newest := map[string]api.Event{
		"gone":  {Fields: map[string]string{"file": "/pods.d/gone.toml"}},
		"there": {Fields: map[string]string{"file": "/pods.d/there.toml"}},
		"run":   {Fields: map[string]string{"by": "podstead run, pid 7, uid 0"}},
	}
	dropGone(newest, []api.Pod{{Metadata: api.Metadata{Name: "there"}}})
	if got := slices.Sorted(maps.Keys(newest)); !slices.Equal(got, []string{"run", "there"}) {
		t.Error(got)
	}
}

func TestInvalidConfigurationHasHints(t *testing.T) {
	problems := spec.Problems{
		{File: "p.toml", Line: 2, Column: 1, Path: "pods.x", Message: "unknown field", Hint: "did you mean \"y\"?"},
	}
	r := configuration(&config.FileError{Err: problems, LastValid: true})
	if want := "p.toml:2:1: pods.x: unknown field (did you mean \"y\"?)"; r.grade != Warn || r.detail != want {
		t.Errorf("%+v, want %s", r, want)
	}
}
