package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/network"
)

func tree(t *testing.T, files map[string]string) string {
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
	const most = "sys/user/max_user_namespaces"
	for _, test := range []struct {
		name  string
		files map[string]string
		grade Grade
		mend  string
	}{
		{"there", map[string]string{"self/ns/user": "", most: "15000\n"}, OK, ""},
		{"not allowed", map[string]string{"self/ns/user": "", most: "0\n"}, Warn, "sysctl -w user.max_user_namespaces="},
		{"not in the kernel", map[string]string{most: "15000\n"}, Warn, "CONFIG_USER_NS"},
		{"too old", map[string]string{"self/ns/user": ""}, Warn, "4.9"},
	} {
		if l := userNamespaces(tree(t, test.files)); l.grade != test.grade || !strings.Contains(l.mend, test.mend) || (l.mend == "") != (test.mend == "") {
			t.Errorf("%s: %+v", test.name, l)
		}
	}
}

func TestAppArmor(t *testing.T) {
	const enabled = "module/apparmor/parameters/enabled"
	programs := tree(t, map[string]string{"apparmor_parser": ""})
	if err := os.Chmod(filepath.Join(programs, "apparmor_parser"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text, path string
		grade            Grade
	}{
		{"not in the kernel", "", programs, OK},
		{"switched off", "N\n", programs, OK},
		{"there", "Y\n", programs, OK},
		{"without its program", "Y\n", t.TempDir(), Warn},
	} {
		t.Setenv("PATH", test.path)
		files := map[string]string{enabled: test.text}
		if test.text == "" {
			files = nil
		}
		if l := appArmor(tree(t, files)); l.grade != test.grade || (l.mend == "") != (test.grade == OK) {
			t.Errorf("%s: %+v", test.name, l)
		}
	}
}

// What was found is told, and so is what kept the rest from being looked at.
func TestNetworkFindingsAndError(t *testing.T) {
	finding := network.Finding{Problem: "a firewall is in the way", Hint: "open it"}
	for _, test := range []struct {
		name     string
		findings []network.Finding
		err      error
		want     []string
	}{
		{"nothing", nil, nil, nil},
		{"a finding", []network.Finding{finding}, nil, []string{"a firewall", "open it"}},
		{"an error", nil, errors.New("no netlink"), []string{"no netlink", "as root"}},
		{"both", []network.Finding{finding}, errors.New("no netlink"), []string{"a firewall", "open it", "no netlink", "as root"}},
	} {
		l, bad := networkLook(test.findings, test.err)
		if bad != (len(test.want) > 0) {
			t.Errorf("%s: %+v", test.name, l)
		}
		for _, want := range test.want {
			if !strings.Contains(l.detail+" "+l.mend, want) {
				t.Errorf("%s: %+v does not tell %q", test.name, l, want)
			}
		}
	}
}

func TestTellRefused(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	newest := map[string]api.Event{}
	for i := range maxRefused + 2 {
		name := string(rune('a' + i))
		newest[name] = api.Event{Pod: name, Time: at.Add(time.Duration(i) * time.Second), Fields: map[string]string{"error": "no", "hint": "do it"}}
	}
	l := tellRefused(newest)
	if l.grade != Warn || l.mend != "do it" || !strings.HasPrefix(l.detail, "g: no; f: no; ") || !strings.HasSuffix(l.detail, "c: no; and 2 others") {
		t.Errorf("%+v", l)
	}
}
