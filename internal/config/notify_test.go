package config_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestNotifiers(t *testing.T) {
	c, err := load(t, `[[notify]]
name = "chat"
url = "https://chat.example.com/hooks/planted?token=planted"
reasons = ["BackOff"]
[[notify]]
name = "page"
command = ["/usr/local/bin/page", "planted"]
timeout = "1m"
`, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if chat, page := c.Notify[0], c.Notify[1]; chat.Limit() != 10*time.Second || page.Limit() != time.Minute ||
		page.Command[1] != "planted" {
		t.Errorf("%+v", c.Notify)
	}
	text, err := json.Marshal(c)
	if err != nil || strings.Contains(string(text), "planted") || !strings.Contains(string(text), `"url":"https://chat.example.com"`) {
		t.Errorf("%v: %s", err, text)
	}
	empty, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	merged, changed, restart := empty.Reload(c)
	if len(merged.Notify) != 2 || len(changed) != 1 || changed[0] != "notify" || len(restart) > 0 {
		t.Errorf("%+v, changed %v, needs a restart: %v", merged.Notify, changed, restart)
	}
}

func TestInvalidNotifiers(t *testing.T) {
	const ok = "name = \"a\"\nurl = \"http://localhost:1/\"\n"
	for text, want := range map[string]string{
		"url = \"http://localhost:1/\"":                        "name: Required value",
		"name = \"A_\"\nurl = \"http://localhost:1/\"":         "must consist of lower case letters",
		ok + "[[notify]]\n" + ok:                               "another notifier has this name",
		"name = \"a\"":                                         "set exactly one of them",
		ok + "urlFile = \"/u\"":                                "set exactly one of them",
		"name = \"a\"\ncommand = [\"page\"]":                   "must be an absolute path",
		"name = \"a\"\ncommand = [\"/page\"]\ncaFile = \"/c\"": "require url or urlFile",
		"name = \"a\"\nurl = \"ftp://x/\"":                     "scheme http or https",
		"name = \"a\"\nurl = \"http://u:planted@x/\"":          "must not have a password",
		ok + "timeout = \"0s\"":                                "must be a duration",
		ok + "timeout = \"1h\"":                                "at most 10m0s",
		ok + "reasons = [\"Nope\"]":                            "no event has this reason",
		ok + "types = [\"Error\"]":                             "must be one of Normal, Warning",
		ok + "pods = [\"[\"]":                                  "must be the name of a pod or a pattern",
		ok + "selector = \"a=(\"":                              "unable to parse",
		ok + "headersFile = \"h\"":                             "must be an absolute path",
	} {
		_, err := load(t, "[[notify]]\n"+text, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
}
